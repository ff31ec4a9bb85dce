"""A project whose series has three patches in normal form on a release wheel, for tests of what changes a series.

The second is about two files and has two hunks in one; the third changes a line that the first has written.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.sample import CHECKS, LINE, RECIPE, own_tag, torch_version
from tests.wheels import make_wheel
from toolkit import cli
from toolkit.git import WorkTree
from toolkit.project import Project, find_project
from toolkit.store import Store
from toolkit.work import Means

SERIES = "sample_npu/1.0"
AUTHOR = "Ann Author <ann@example.org>"
DAY = "1788220800 +0200"
TRAILERS = "Upstream-Status: Pending [a sample]\nWitness: answer"
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

CORE = "".join(f"def {name}():\n    # {name}\n    return {value}\n\n\n" for value, name in enumerate(NUMBERS, 1))
OTHER = "".join(f"{name.upper()} = {value}\n" for value, name in enumerate(NUMBERS, 1))
FILES = {"sample_npu/__init__.py": "", "sample_npu/core.py": CORE, "sample_npu/other.py": OTHER}

STEPS: tuple[tuple[str, Mapping[str, tuple[tuple[str, str], ...]]], ...] = (
    ("core: mend two", {"sample_npu/core.py": (("return 2\n", "return 20\n"),)}),
    (
        "mend four and eight",
        {
            "sample_npu/core.py": (("return 4\n", "return 40\n"), ("return 8\n", "return 80\n")),
            "sample_npu/other.py": (("FOUR = 4\n", "FOUR = 40\n"),),
        },
    ),
    ("core: mend two again", {"sample_npu/core.py": (("return 20\n", "return 2 * 10\n"),)}),
)

NAMES = ("0001-core-mend-two", "0002-mend-four-and-eight", "0003-core-mend-two-again")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How a command came to its end."""

    code: int
    out: str
    err: str


Run = Callable[["Changing", Sequence[str], Mapping[str, str]], Ended]
"""Runs `toolkit` with these words and variables besides."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Changing:
    """The project at `root`; `environ` lets pip find its wheel without an index."""

    root: Path
    environ: dict[str, str]
    run: Run

    @property
    def folder(self) -> Path:
        """The series' folder."""
        return self.root / "patches" / SERIES

    @property
    def tree(self) -> Path:
        """Where a work tree is kept."""
        return self.root / ".toolkit/patches" / SERIES / "tree"

    @property
    def project(self) -> Project:
        """Its places."""
        return find_project(start=self.root, environ={})

    @property
    def means(self) -> Means:
        """What is worked with on it."""
        return Means(project=self.project, store=Store(Path(self.environ["TOOLKIT_STORE"])), environ=self.environ)

    def files(self) -> dict[str, bytes]:
        """Return the series as it is, every file of it."""
        return {path.name: path.read_bytes() for path in sorted(self.folder.iterdir())}

    def patch(self, command: str, *words: str, **variables: str) -> Ended:
        """Run `toolkit patch` on the series to its end, with nothing on its standard input."""
        return self.run(self, ["patch", command, "--series", SERIES, *words], variables)


def in_process(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run commands in the test's own process, which has all of toolkit imported already."""

    def run(changing: Changing, words: Sequence[str], variables: Mapping[str, str]) -> Ended:
        with monkeypatch.context() as patched, open(os.devnull, encoding="utf-8") as nothing:
            for name, value in (changing.environ | {"TOOLKIT_PROJECT": str(changing.root)} | variables).items():
                patched.setenv(name, value)
            patched.setattr(sys, "stdin", nothing)
            capfd.readouterr()
            with pytest.raises(SystemExit) as ended:
                cli.main([*words])
        printed = capfd.readouterr()
        return Ended(code=int(ended.value.code or 0), out=printed.out, err=printed.err)

    return run


def in_a_process(changing: Changing, words: Sequence[str], variables: Mapping[str, str]) -> Ended:
    """Run a command as a user does."""
    with start(changing, *words, **variables) as child:
        out, err = child.communicate(timeout=60)
    return Ended(code=child.returncode, out=out, err=err)


def start(changing: Changing, *words: str, **variables: str) -> subprocess.Popen[str]:
    """Start a command as a user does."""
    return subprocess.Popen(
        [sys.executable, "-m", "toolkit", *words], cwd=changing.root, env=os.environ | changing.environ | variables,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def make_changing(folder: Path) -> Changing:
    """Write the project below `folder`; its store is empty."""
    root, tag = folder / "project", own_tag()
    make_wheel(folder / "index", "sample_npu", files=FILES, tag=f"{tag.interpreter}-{tag.abi}-{tag.platform}")
    for name in ("recipes", "patches", "verify"):
        (root / name).mkdir(parents=True)
    recipe = RECIPE.format(python_tag=tag.interpreter, platform=tag.platform, torch=torch_version())
    (root / "recipes/sample.toml").write_text(recipe, encoding="utf-8")
    (root / "verify/checks.json").write_text(json.dumps(CHECKS), encoding="utf-8")
    environ = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder / "index"),
        "PIP_CONFIG_FILE": os.devnull,
        "TOOLKIT_STORE": str(folder / "store"),
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    changing = Changing(root=root, environ=environ, run=in_a_process)
    _write_series(changing.folder, folder / "made")
    return changing


def copy_of(changing: Changing, folder: Path, run: Run | None = None) -> Changing:
    """Copy the project, with a store that both share."""
    shutil.copytree(changing.root, folder / "project")
    return replace(changing, root=folder / "project", run=run or changing.run)


def _write_series(folder: Path, scratch: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "series.toml").write_text(LINE, encoding="utf-8")
    (folder / "README.md").write_text("A companion.\n", encoding="utf-8")
    worktree = WorkTree(scratch)
    worktree.start(files={name: text.encode() for name, text in FILES.items()}, has_modes=False)
    for (subject, edits), name in zip(STEPS, NAMES, strict=True):
        for path, changes in edits.items():
            text = (scratch / path).read_text(encoding="utf-8")
            for old, new in changes:
                text = text.replace(old, new)
            (scratch / path).write_text(text, encoding="utf-8")
        worktree.stage_all()
        message = f"{subject}\n\nWithout it the number is wrong.\n\n{TRAILERS}\n"
        (folder / f"{name}.patch").write_bytes(worktree.export(worktree.commit(message, author=AUTHOR, date=DAY)))
