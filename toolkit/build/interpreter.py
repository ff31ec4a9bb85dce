"""The interpreter of a build's environment: where its files lie, and what it can do."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import BuildError, CommandError
from toolkit.process import run

QUESTION = """
import importlib.util, json, sys, sysconfig
print(json.dumps({
    "prefixes": [sys.base_prefix, sys.base_exec_prefix, sys.prefix],
    "path": sys.path,
    "has_build": importlib.util.find_spec("build") is not None,
    "commands": {name: sysconfig.get_config_var(name) for name in ("CC", "CXX", "LDSHARED", "LDCXXSHARED")},
}))
"""

TIME_LIMIT = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildPython:
    """What the interpreter of a build's environment says of itself.

    `files` are the places that it needs to run. `commands` are those that it was compiled and linked with (CC, CXX,
    LDSHARED, LDCXXSHARED), which setuptools runs.
    """

    executable: Path
    files: tuple[Path, ...]
    has_build: bool
    commands: Mapping[str, str]


def inspect_python(environment: Path) -> BuildPython:
    """Ask the interpreter of a virtual environment; BuildError where it does not run."""
    executable = environment / "bin" / "python"
    try:
        done = run(
            [executable, "-I", "-c", QUESTION], cwd=Path("/"), env={"PATH": os.defpath, "LANG": "C.UTF-8"},
            timeout=TIME_LIMIT,
        )  # fmt: skip
        facts = json.loads(done.stdout)
    except (CommandError, ValueError) as fault:
        raise BuildError(
            f"the build's environment {environment} cannot be used: {fault}",
            hint="remove that folder: the next build makes it anew",
            details=getattr(fault, "details", ()),
        ) from fault
    places = [*facts["prefixes"], *facts["path"]]
    return BuildPython(
        executable=executable,
        files=(environment, *_chain(executable), *(Path(place) for place in places if place.startswith("/"))),
        has_build=facts["has_build"],
        commands={name: command for name, command in facts["commands"].items() if command},
    )


def _chain(link: Path) -> Iterator[Path]:
    """Yield what a symlink leads to, one step at a time."""
    while link.is_symlink():
        link = link.parent / os.readlink(link)
        yield Path(os.path.normpath(link))
