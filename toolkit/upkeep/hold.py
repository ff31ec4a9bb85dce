"""One command at a time on a series, and what it leaves for a person to go on with."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from toolkit.errors import UsageError, WorkTreeError
from toolkit.files import recover_directory, remove_tree, write_atomic
from toolkit.project import Project

PATIENCE = 2.0
"""Seconds that a command waits for another one on the same series: a person may have a shell open in that."""

RECORD = "work.json"
RECORDS = (RECORD, "moving.json")
"""The notes that commands leave: those that change patches, and those that move them."""

TREE = "tree"


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What a command left in its folder: how to go on with it.

    `command` is the word after `toolkit patch`, `number` its patch, 0 where it has none. `base` is the base's version,
    `kind` its kind. `patches` are the names of the series' files with their commits, `digest` is over the folder as it
    was. `pending` are the commits to be put on top still. `message` is the template of a new patch's message, if there
    is one.
    """

    command: str
    number: int = 0
    base: str
    kind: str
    digest: str
    patches: tuple[tuple[str, str], ...]
    pending: tuple[str, ...] = ()
    message: str = ""
    gitlinks: dict[str, str] = {}


def work_folder(project: Project, name: str) -> Path:
    """Return where the work on a series is kept; UsageError for series that came with an installed package."""
    return _room(project) / name


@contextlib.contextmanager
def hold_series(project: Project, name: str) -> Iterator[None]:
    """Keep other commands off a series; put it back first where one was killed in its last step.

    Raises WorkTreeError, naming the process if it is known, where another command has it for longer than a moment.
    """
    lock_file = _room(project) / f"{name.replace('/', '-')}.lock"
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    holder = lock_file.with_suffix(".pid")
    lock = FileLock(lock_file)
    try:
        lock.acquire(timeout=PATIENCE)
    except Timeout as fault:
        raise WorkTreeError(
            f"another `toolkit patch` command is at work on series {name}{_who(holder)}",
            hint="wait until it ends, or leave the shell that it has opened",
        ) from fault
    try:
        holder.write_text(f"{os.getpid()}\n", encoding="ascii")
        for folder in project.patches:
            if (folder / name).parent.is_dir():
                recover_directory((folder / name).resolve())
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def read_kept(folder: Path) -> Kept | None:
    """Return what a command left in a folder, None where there is nothing to go on with."""
    try:
        return msgspec.json.decode((folder / RECORD).read_bytes(), type=Kept)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as fault:
        raise WorkTreeError(
            f"{folder / RECORD} cannot be read: {fault}", hint=f"remove the folder {folder} and begin again"
        ) from fault


def write_kept(folder: Path, kept: Kept) -> None:
    """Note how to go on."""
    write_atomic(folder / RECORD, msgspec.json.encode(kept))


def require_kept(folder: Path, command: str, name: str) -> Kept:
    """Return what `command` left; UsageError where it, or any command, left nothing."""
    waiting = waiting_command(folder)
    if waiting is None:
        raise UsageError(f"no `toolkit patch {command}` waits on series {name}")
    kept = read_kept(folder)
    if kept is None or waiting != command:
        raise UsageError(
            f"what waits on series {name} is `toolkit patch {waiting}`, not `toolkit patch {command}`",
            hint=f"go on with `toolkit patch {waiting} --continue --series {name}`",
        )
    return kept


def waiting_command(folder: Path) -> str | None:
    """Return the word of the command that left work in a folder, None where there is none to go on with."""
    for name in RECORDS:
        with contextlib.suppress(FileNotFoundError, msgspec.MsgspecError):
            return msgspec.json.decode((folder / name).read_bytes(), type=_Record).command
    return None


def clear_folder(folder: Path, name: str) -> None:
    """Make room for new work; WorkTreeError where another's waits for a person."""
    if waiting := waiting_command(folder):
        raise WorkTreeError(
            f"`toolkit patch {waiting}` on series {name} is not finished: its work tree is {folder / TREE}",
            hint=f"go on with `toolkit patch {waiting} --continue --series {name}`, or give it up with --abort",
        )
    remove_tree(folder)


def drop_work(folder: Path) -> None:
    """Remove the work on a series, the notes of it first: half a work tree is none."""
    for name in RECORDS:
        (folder / name).unlink(missing_ok=True)
    remove_tree(folder)


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    """What every command notes, whatever else it does."""

    command: str


def _room(project: Project) -> Path:
    if project.root is None:
        raise UsageError(
            "the patches of an installed package cannot be changed",
            hint="work in a checkout, or name one with --project DIR",
        )
    return project.root / ".toolkit" / "patches"


def _who(holder: Path) -> str:
    try:
        return f" (process {int(holder.read_text(encoding='ascii'))})"
    except (OSError, ValueError):
        return ""
