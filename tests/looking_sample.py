"""A project in small to look at: a series that was written on one state of an upstream of our own, its home another."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.repositories import make_upstream
from tests.sample import ANSWER, CHECKS, RECIPE, own_tag, torch_version
from tests.series_cases import Tree, write_patches
from toolkit import cli
from toolkit.project import Project, find_project
from toolkit.store import Store
from toolkit.work import Means

SERIES = "sample/1.0"
MESSAGE = "change\n\nIt fails without it.\n\nUpstream-Status: Pending [not sent yet]\nWitness: answer\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Looking:
    """The project at `root`; `home` is the commit that its series' home is."""

    root: Path
    home: str

    @property
    def series(self) -> Path:
        """The folder of the series."""
        return self.root / "patches" / SERIES

    @property
    def project(self) -> Project:
        """Its places, as a command finds them."""
        return find_project(start=self.root, environ={})

    @property
    def means(self) -> Means:
        """What work on it goes by."""
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "TOOLKIT_"))}
        return Means(project=self.project, store=Store(self.root.parent / "store"), environ=environ)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a command ended: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document that it printed."""
        return json.loads(self.out)


Toolkit = Callable[..., Ended]


def make_looking(folder: Path, *trees: Tree, home: Tree) -> Looking:
    """Write the project: a patch for each step between the trees, and `home` as the commit that is the series' home."""
    root = folder / "project"
    commit = make_upstream(folder / "upstream", home)
    url = (folder / "upstream").as_uri()
    write_patches(folder / "making", root / "patches" / SERIES, *trees, message=MESSAGE)
    _write(
        root,
        {
            f"patches/{SERIES}/series.toml": f'schema = 1\ncovers = ["git:{commit}"]\nupstream = ["{url}"]\n',
            "recipes/sample.toml": recipe_text(url, commit),
            "verify/checks.json": json.dumps(CHECKS),
            "verify/answer.py": ANSWER,
        },
    )
    return Looking(root=root, home=commit)


def recipe_text(url: str, commit: str, *, series: str = SERIES) -> str:
    """Return a recipe whose only component is a commit with a series."""
    head = RECIPE.partition("[[component]]")[0]
    tag = own_tag()
    return head.format(python_tag=tag.interpreter, platform=tag.platform, torch=torch_version()) + (
        f'[[component]]\nname = "sample"\nseries = "{series}"\n\n'
        f'[component.base]\nkind = "git"\nurls = ["{url}"]\ncommit = "{commit}"\n\n'
        '[component.base.build]\nbackend = "setup.py"\nrequires = ["setuptools"]\n\n[verify]\nchecks = ["loads"]\n'
    )


def toolkit_of(looking: Looking, capsys: pytest.CaptureFixture[str]) -> Toolkit:
    """Return what runs a `toolkit patch` command on the project in this process."""

    def run(command: str, *words: str) -> Ended:
        capsys.readouterr()
        places = ("--project", str(looking.root), "--store", str(looking.root.parent / "store"))
        with pytest.raises(SystemExit) as ended:
            cli.main(["patch", command, *words, *places])
        printed = capsys.readouterr()
        return Ended(code=int(ended.value.code or 0), out=printed.out, err=printed.err)

    return run


def _write(root: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
