"""The folder of one build, and the way back into it: `toolkit debug shell`.

The build may write in tree/  the source tree    home/, tmp/  its own    dist/  what it made    counters/  of its cache
It may only read     bin/  compilers behind a cache    logs/build.log    build.json  what was run, in which environment

Where no sandbox holds a build back, it can change those too: nothing that lies here is believed to be what it was.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import stat
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from toolkit.errors import BuildError, UsageError
from toolkit.files import remove_tree, write_atomic

TREE = "tree"
WRITABLE = ("home", "tmp", "dist", "counters")
OWN_FOLDERS = (*WRITABLE, "bin", "logs")
RECORD = "build.json"
UMASK = 0o022
FULL = (errno.ENOSPC, errno.EDQUOT)

AGAIN = "run the build again: it makes the folder anew"


@dataclass(frozen=True, kw_only=True, slots=True)
class Workroom:
    """One build's folder, an absolute path without symlinks."""

    root: Path

    @property
    def tree(self) -> Path:
        """The top of the source tree."""
        return self.root / TREE

    @property
    def writable(self) -> tuple[Path, ...]:
        """The only folders that the build may write; its record and its log lie in none of them."""
        return tuple(self.root / name for name in (TREE, *WRITABLE))

    @property
    def home(self) -> Path:
        """The build's home folder."""
        return self.root / "home"

    @property
    def tmp(self) -> Path:
        """The build's folder for temporary files."""
        return self.root / "tmp"

    @property
    def compilers(self) -> Path:
        """The compilers that go through a compiler cache."""
        return self.root / "bin"

    @property
    def dist(self) -> Path:
        """Where a build backend is told to put its wheel."""
        return self.root / "dist"

    @property
    def log(self) -> Path:
        """What the build printed."""
        return self.root / "logs" / "build.log"

    @property
    def has_log(self) -> bool:
        """Whether the log is still there, and nothing that leads elsewhere in its place."""
        return is_plain_file(self.log) and self.log.resolve() == self.log

    @property
    def cache_log(self) -> Path:
        """What the compiler cache did; the build writes it."""
        return self.root / "counters" / "compiler-cache.log"


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildRecord:
    """What a build runs: its command behind the sandbox's `prefix`, the whole environment, the folder."""

    component: str
    command: Sequence[str]
    prefix: Sequence[str]
    env: Mapping[str, str]
    cwd: str

    @property
    def argv(self) -> list[str]:
        """The command in its sandbox."""
        return [*self.prefix, *self.command]


def open_workroom(work: Path) -> Workroom:
    """Make a build's own folders in `work`, empty whatever a failed run left in them; its tree is not touched."""
    work.mkdir(parents=True, exist_ok=True)
    room = Workroom(root=work.resolve())
    for name in OWN_FOLDERS:
        remove_tree(room.root / name)
        (room.root / name).mkdir()
    remove_tree(room.root / RECORD)
    return room


def write_record(room: Workroom, record: BuildRecord) -> None:
    """Note what is about to be run; for the owner's eyes alone, as the environment may hold what the recipe passes."""
    write_atomic(room.root / RECORD, _record_text(record), mode=0o600)


def restore_record(room: Workroom, record: BuildRecord) -> None:
    """Write the record anew where the build changed it; BuildError where its folder takes none any more."""
    place = room.root / RECORD
    try:
        if is_plain_file(place) and place.read_bytes() == _record_text(record).encode():
            return
        if place.is_dir() and not place.is_symlink():
            remove_tree(place)
        write_record(room, record)
    except OSError as fault:
        if fault.errno in FULL:
            raise
        raise BuildError(
            f"{record.component} cannot be built: its build has damaged its own folder {room.root}: {fault.strerror}",
            hint="see what the project's build removes or replaces there",
        ) from fault


def is_plain_file(path: Path) -> bool:
    """Whether a regular file is there, and no symlink to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def shell_command(work: Path, environ: Mapping[str, str]) -> tuple[list[str], dict[str, str], Path]:
    """Return what to run for a shell where a kept build ran: its command, environment and folder.

    Of the caller's environment only TERM gets there. Raises UsageError where no build is kept in `work`, or where what
    is left of it is not whole.
    """
    record = _read_record(work)
    cwd = Path(record.cwd)
    if not (cwd.is_dir() and os.access(cwd, os.X_OK)):
        raise UsageError(f"the kept build in {work} has lost its folder {cwd}", hint=AGAIN)
    env = {**record.env, "TERM": environ.get("TERM", "dumb")}
    shell = "exec bash --norc -i" if shutil.which("bash", path=env.get("PATH")) else "exec sh -i"
    return [*record.prefix, "sh", "-c", f"umask {UMASK:03o}; {shell}"], env, cwd


def build_words(work: Path) -> str:
    """Return the command of a kept build, for somebody in its shell to type; UsageError where none is kept."""
    return shlex.join(_read_record(work).command)


def _record_text(record: BuildRecord) -> str:
    return json.dumps(asdict(record), indent=2) + "\n"


def _read_record(work: Path) -> BuildRecord:
    place = work / RECORD
    if not os.path.lexists(place):
        raise UsageError(
            f"there is no kept build in {work}", hint="a build's folder is kept only where the build fails"
        )
    if not is_plain_file(place):
        raise UsageError(f"{place} cannot be read: it is no regular file", hint=AGAIN)
    try:
        return msgspec.json.decode(place.read_bytes(), type=BuildRecord)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise UsageError(f"{place} cannot be read: {fault}", hint=AGAIN) from fault
