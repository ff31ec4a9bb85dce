"""A project in small whose series is on a commit of an upstream of our own: for what comes from there, and goes there.

Upstream's package lies in a subfolder. `core.py` has functions `one` to `nine`, each of which returns its number.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.repositories import commit_files, git, make_upstream
from tests.sample import CHECKS
from toolkit import cli
from toolkit.git import WorkTree
from toolkit.project import Project, find_project
from toolkit.store import Store
from toolkit.work import Means

SERIES = "sample/1.0"
NAMES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
AUTHOR = "Ada Example <ada@example.org>"
DATE = "1780000000 +0200"
TRAILERS = "Upstream-Status: Pending [not sent yet]\nWitness: answer\n"


def core(**returned: str) -> str:
    """Return the text of `core.py`, where some functions return something else than their number."""
    functions = [
        f'def {name}(x):\n    """Return {name}."""\n    first = x * {at}\n    return {returned.get(name, str(at))}\n'
        for at, name in enumerate(NAMES, 1)
    ]
    return "\n\n".join(functions)


def twin(name: str, last: str = "steps") -> str:
    """Return a function so long that a change at its end does not show whose it is."""
    return f"def {name}(x):\n    steps = x\n" + "    steps += 1\n" * 6 + f"    return {last}\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Moving:
    """The project at `root`, its upstream's repository at `upstream`, whose commit `home` the series is on."""

    root: Path
    upstream: Path
    home: str
    environ: Mapping[str, str]

    @property
    def series(self) -> Path:
        """The folder of the series."""
        return self.root / "patches" / SERIES

    @property
    def tree(self) -> Path:
        """The work tree that is kept for a person."""
        return self.room / "tree"

    @property
    def room(self) -> Path:
        """The folder of what is kept."""
        return self.root / ".toolkit" / "patches" / SERIES

    @property
    def project(self) -> Project:
        """Its places, as a command finds them."""
        return find_project(start=self.root, environ={})

    @property
    def means(self) -> Means:
        """What work on it goes by."""
        return Means(project=self.project, store=Store(self.root.parent / "store"), environ=self.environ)

    def files(self) -> dict[str, bytes]:
        """Return the bytes of every file of the series."""
        return {path.name: path.read_bytes() for path in sorted(self.series.iterdir())}

    def commit(self, files: Mapping[str, str | bytes | None], message: str = "Change", onto: str = "") -> str:
        """Commit files to upstream, on what it has or on another commit, and return the id."""
        if onto:
            git(self.upstream, "checkout", "--quiet", "--detach", onto)
        return commit_files(self.upstream, files, message=message)

    def patch(self, name: str) -> str:
        """Return the text of a patch of the series."""
        return (self.series / f"{name}.patch").read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a command ended: its exit code and what it printed."""

    code: int
    out: str
    err: str


Toolkit = Callable[..., Ended]


def make_moving(folder: Path) -> Moving:
    """Write the project and its upstream: two patches, which let `two` return "2 + 0" and `five` return "5 + 0"."""
    upstream, root = folder / "upstream", folder / "project"
    home = make_upstream(
        upstream,
        {
            "ext/pkg/core.py": core(), "ext/pkg/shapes.py": "SIZE = 1\n", "ext/pkg/twins.py": twin("left"),
            "docs/notes.md": "Notes.\n", "README.md": "Read.\n",
        },
    )  # fmt: skip
    (root / "recipes").mkdir(parents=True)
    _write_verify(root / "verify")
    series = root / "patches" / SERIES
    series.mkdir(parents=True)
    (series / "series.toml").write_text(
        f'schema = 1\n# Where it is from.\ncovers = ["git:{home}"]\n'
        f'upstream = ["file://{upstream}"]\nsubfolder = "ext"\n',
        encoding="utf-8",
    )
    (series / "README.md").write_text("About the series.\n", encoding="utf-8")
    _write_patches(folder / "making", series)
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "TOOLKIT_"))}
    return Moving(root=root, upstream=upstream, home=home, environ=environ)


def copy_of(moving: Moving, folder: Path) -> Moving:
    """Copy a project and its upstream, which the copy of the series names as its own."""
    upstream, root = folder / "upstream", folder / "project"
    shutil.copytree(moving.upstream, upstream)
    shutil.copytree(moving.root, root)
    copied = replace(moving, root=root, upstream=upstream)
    line = copied.series / "series.toml"
    line.write_text(line.read_text(encoding="utf-8").replace(str(moving.upstream), str(upstream)), encoding="utf-8")
    return copied


def toolkit_of(moving: Moving, capsys: pytest.CaptureFixture[str]) -> Toolkit:
    """Return what runs a `toolkit patch` command on the project's series, in this process."""

    def run(command: str, *words: str) -> Ended:
        capsys.readouterr()
        places = ("--project", str(moving.root), "--store", str(moving.root.parent / "store"), "--series", SERIES)
        with pytest.raises(SystemExit) as ended:
            cli.main(["patch", command, *words, *places])
        printed = capsys.readouterr()
        return Ended(code=int(ended.value.code or 0), out=printed.out, err=printed.err)

    return run


def _write_patches(scratch: Path, series: Path) -> None:
    worktree = WorkTree(scratch)
    worktree.start(files={"pkg/core.py": core().encode(), "pkg/shapes.py": b"SIZE = 1\n"})
    changed: dict[str, str] = {}
    for number, name in enumerate(("two", "five"), 1):
        changed[name] = f"{NAMES.index(name) + 1} + 0"
        (scratch / "pkg/core.py").write_text(core(**changed), encoding="utf-8")
        worktree.stage_all()
        commit = worktree.commit(f"core: mend {name}\n\nWhy.\n\n{TRAILERS}", author=AUTHOR, date=DATE)
        (series / f"{number:04}-core-mend-{name}.patch").write_bytes(worktree.export(commit))


def _write_verify(folder: Path) -> None:
    folder.mkdir()
    (folder / "checks.json").write_text(json.dumps(CHECKS), encoding="utf-8")
