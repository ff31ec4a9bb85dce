"""The command that makes a wheel, how far it has come, and the wheel that it made."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from toolkit.build.interpreter import BuildPython
from toolkit.build.workroom import Workroom, is_plain_file
from toolkit.errors import BuildError
from toolkit.files import FileSignature, file_signature
from toolkit.model import Backend, Progress

STEP = re.compile(r"\[\s*(\d+)(?:/(\d+)|%)\]")
"""What ninja and CMake's makefiles begin the line of a step with: `[12/345]`, `[ 12%]`."""


def build_command(backend: Backend, python: BuildPython, room: Workroom) -> list[str]:
    """Return what makes the wheel when it is run in the project's folder; BuildError where the environment lacks it."""
    if backend == "setup.py":
        return [str(python.executable), "setup.py", "build", "bdist_wheel"]
    if not python.has_build:
        raise BuildError(
            "the build's environment has no package `build`, which runs a project's build backend",
            hint='add "build" to `requires` in `[component.base.build]`, and run `toolkit lock`',
        )
    return [str(python.executable), "-m", "build", "--wheel", "--no-isolation", "--outdir", str(room.dist), "."]


def wheel_folder(backend: Backend, project: Path, room: Workroom) -> Path:
    """Return where that command leaves the wheel."""
    return project / "dist" if backend == "setup.py" else room.dist


def list_wheels(folder: Path) -> dict[str, FileSignature]:
    """List the wheels in a folder, which need not be there."""
    return {path.name: file_signature(path.lstat()) for path in folder.glob("*.whl")}


def take_wheel(folder: Path, before: dict[str, FileSignature], *, within: Path) -> Path:
    """Return the one wheel in `folder` that was not there before; BuildError where there is none, or several.

    A build could leave a symlink to what it cannot read itself: neither the folder may lead out of `within`, a resolved
    path, nor may the wheel be anything but a regular file.
    """
    real = Path(os.path.realpath(folder))
    if not real.is_relative_to(within):
        raise BuildError(
            f"the build ended well and left its wheel behind {folder}, which leads to {real}",
            hint=f"the project's build must leave its wheel in its own folder, {within}",
        )
    new = sorted(name for name, signature in list_wheels(folder).items() if before.get(name) != signature)
    if len(new) != 1:
        raise BuildError(
            f"the build ended well and left {', '.join(new) or 'no wheel'} in {folder}, expected one wheel",
            hint="see what the project's build makes; `backend` in `[component.base.build]` chooses how it is called",
        )
    if not is_plain_file(folder / new[0]):
        raise BuildError(
            f"the build ended well and left {new[0]} in {folder}, which is no regular file",
            hint="the project's build must leave the wheel itself there, no symlink to it",
        )
    return folder / new[0]


def step_reader(on_progress: Progress | None) -> Callable[[str], None] | None:
    """Return what reads steps from a build's lines and passes them on: how many are done, of how many."""
    if on_progress is None:
        return None

    def read(line: str) -> None:
        match = STEP.match(line)
        if match:
            on_progress(int(match[1]), int(match[2] or 100))

    return read
