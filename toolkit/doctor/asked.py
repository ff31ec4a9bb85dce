"""What a look at the machine starts from: gathered once, handed to every group of observations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolkit.model import Interpreter, Recipe
from toolkit.project import Project


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """The environment, the folder, the interpreter and the recipe that training would have.

    `interpreter` is None where there is none to use, and `interpreter_fault` then says why. `packages` are the packages
    that the interpreter would import there, by import name, each with its folder (`torch_npu`: `…/site-packages/
    torch_npu`); what is not found is not in it. `project` is None outside a checkout; `wanted` is the recipe, None
    where it cannot be read. Whatever of the machine is looked at (`/dev`, `/proc`, `/etc`, `/usr/local/Ascend`) is
    looked at below `root`; paths that variables name are not.
    """

    environ: Mapping[str, str]
    cwd: Path
    interpreter: Interpreter | None
    interpreter_fault: str = ""
    packages: Mapping[str, Path]
    project: Project | None
    recipe: str
    wanted: Recipe | None = None
    root: Path = Path("/")
