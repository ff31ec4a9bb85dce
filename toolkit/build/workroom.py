"""The folder of one build, and the way back into it: `toolkit debug shell`.

tree/  the source tree    home/, tmp/  the build's own    bin/  compilers behind a cache    dist/  what it made
logs/build.log    build.json  what was run, in which environment
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from toolkit.errors import UsageError
from toolkit.files import remove_tree, write_atomic

OWN_FOLDERS = ("home", "tmp", "bin", "dist", "logs")
RECORD = "build.json"
UMASK = 0o022


@dataclass(frozen=True, kw_only=True, slots=True)
class Workroom:
    """One build's folder, an absolute path without symlinks."""

    root: Path

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
    def cache_log(self) -> Path:
        """What the compiler cache did."""
        return self.root / "logs" / "compiler-cache.log"


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
    (room.root / RECORD).unlink(missing_ok=True)
    return room


def write_record(room: Workroom, record: BuildRecord) -> None:
    """Note what is about to be run; for the owner's eyes alone, as the environment may hold what the recipe passes."""
    write_atomic(room.root / RECORD, json.dumps(asdict(record), indent=2) + "\n", mode=0o600)


def shell_command(work: Path, environ: Mapping[str, str]) -> tuple[list[str], dict[str, str], Path]:
    """Return what to run for a shell where a kept build ran: its command, environment and folder.

    Of the caller's environment only TERM gets there. Raises UsageError where no build is kept in `work`.
    """
    record = _read_record(work)
    env = {**record.env, "TERM": environ.get("TERM", "dumb")}
    shell = "exec bash --norc -i" if shutil.which("bash", path=env.get("PATH")) else "exec sh -i"
    return [*record.prefix, "sh", "-c", f"umask {UMASK:03o}; {shell}"], env, Path(record.cwd)


def _read_record(work: Path) -> BuildRecord:
    try:
        return BuildRecord(**json.loads((work / RECORD).read_text(encoding="utf-8")))
    except FileNotFoundError as fault:
        raise UsageError(
            f"there is no kept build in {work}", hint="a build's folder is kept only where the build fails"
        ) from fault
    except (ValueError, TypeError) as fault:
        raise UsageError(
            f"{work / RECORD} cannot be read: {fault}", hint="run the build again: it writes the file anew"
        ) from fault
