"""Look for what killed builds leave in a folder of JIT extensions: locks that nobody holds, libraries cut short.

torch builds each extension in a folder of its own below TORCH_EXTENSIONS_DIR: `build.ninja`, objects, the library, and
while it works a file `lock` that it keeps open. The lock names no process: whoever finds it waits until it is gone,
without a limit and without a word.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

LOCK = "lock"
NINJA = b"ninja"
NINJA_FILE = "build.ninja"

HEADER = struct.Struct("<16s2HI3QI6H")
SEGMENT = struct.Struct("<2I6Q")
ELF_64_LITTLE = b"\x7fELF\x02\x01"
"""How every library begins on the platforms that wheels are made for."""

UNSEEN = "; processes of other users cannot be seen"
_LockId = tuple[int, int, int]
"""Device, inode and mtime in nanoseconds: another build's lock may get the inode of one just removed."""

AGES = ((86400, "days"), (3600, "h"), (60, "min"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What is wrong with a path, and the command, or the words, that mend it."""

    path: Path
    what: str
    remedy: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Suspect:
    """A build's folder, its lock as it was before processes were looked at, and what is wrong if none is at it."""

    build: Path
    lock: _LockId | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Busy:
    """Where the processes that can be seen are at work: locks held open, by device and inode, and ninja's folders."""

    locks: frozenset[tuple[int, int]]
    folders: frozenset[str]


def describe_findings(overlay: Path) -> list[str]:
    """Say in a line each what is wrong among an overlay's own extensions, and what to do about it."""
    found = examine_extensions(overlay / "torch_extensions")
    return [f"{one.path}: {one.what}; {one.remedy}" for one in found]


def examine_extensions(folder: Path) -> tuple[Finding, ...]:
    """Report stale locks, broken libraries and unfinished builds below a TORCH_EXTENSIONS_DIR.

    Changes nothing, and says nothing of a build that a live process is at. Only processes of this machine, and unless
    run as root only this user's, can be seen. A folder that is not there holds nothing.
    """
    suspects = [suspect for build in _build_folders(folder) if (suspect := _examine(build)).findings]
    if not suspects:
        return ()
    busy = _look_at_processes()
    return tuple(finding for suspect in suspects if not _is_busy(suspect, busy) for finding in suspect.findings)


def _build_folders(root: Path) -> Iterator[Path]:
    """Yield every folder, in order, and at last those that cannot be listed."""
    refused: list[Path] = []
    for folder, names, _ in os.walk(root, onerror=lambda fault: refused.append(Path(fault.filename))):
        names.sort()
        yield Path(folder)
    yield from refused


def _examine(build: Path) -> _Suspect:
    lock = _lock_id(build)
    try:
        findings = _find_faults(build, sorted(os.listdir(build)))
    except FileNotFoundError:
        findings = []
    except OSError as fault:
        findings = [_unreadable(build, fault)]
    return _Suspect(build=build, lock=lock, findings=tuple(findings))


def _find_faults(build: Path, names: Sequence[str]) -> list[Finding]:
    """Say what a build's folder has that only a live process would excuse."""
    findings = [_stale(build / LOCK)] if LOCK in names else []
    libraries = [name for name in names if name.endswith(".so")]
    findings += [found for name in libraries if (found := _examine_library(build / name, NINJA_FILE in names))]
    has_objects = NINJA_FILE in names and any(name.endswith(".o") for name in names)
    if has_objects and not libraries and LOCK not in names:
        findings.append(_unfinished(build))
    return findings


def _stale(lock: Path) -> Finding:
    unseen = "" if os.geteuid() == 0 else UNSEEN
    return Finding(
        path=lock,
        what=f"a lock{_age(lock)} that no live process holds: whoever needs the extension waits for ever{unseen}",
        remedy=f"rm {shlex.quote(str(lock))}",
    )


def _age(path: Path) -> str:
    try:
        seconds = time.time() - path.lstat().st_mtime
    except FileNotFoundError:
        return ""
    size, unit = next(((size, unit) for size, unit in AGES if seconds >= 2 * size), (1, "s"))
    return f", {max(int(seconds / size), 0)} {unit} old,"


def _unfinished(build: Path) -> Finding:
    return Finding(
        path=build,
        what="an unfinished build: objects and no library; compiling failed or was killed",
        remedy=f"nothing: the next use goes on with it; to start afresh: rm -r {shlex.quote(str(build))}",
    )


def _unreadable(path: Path, fault: OSError) -> Finding:
    return Finding(
        path=path,
        what=f"cannot be read: {fault.strerror}",
        remedy=f"make it readable: chmod u+rwX {shlex.quote(str(path))}",
    )


# --- libraries -------------------------------------------------------------------------------------------------


def _examine_library(path: Path, is_ninjas: bool) -> Finding | None:
    """Report a library that cannot be whole; ninja takes it for made, and so it stays until it is removed."""
    try:
        fault = _library_fault(path)
    except FileNotFoundError:
        return None
    except OSError as refused:
        return _unreadable(path, refused)
    # Objects from the same moment may be cut short too.
    command = f"rm -r {shlex.quote(str(path.parent))}" if is_ninjas else f"rm {shlex.quote(str(path))}"
    return Finding(path=path, what=fault, remedy=f"{command} (the next use compiles it again)") if fault else None


def _library_fault(path: Path) -> str:
    with path.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        head = stream.read(HEADER.size)
        if not head:
            return "an empty library"
        if not head.startswith(ELF_64_LITTLE[: len(head)]):
            return "a library that is none: it does not begin as a 64-bit ELF file does"
        if len(head) < HEADER.size:
            return f"a library cut short: it has {size} bytes, its header alone {HEADER.size}"
        _, _, _, _, _, segments, sections, _, _, segment_size, segment_count, section_size, section_count, _ = (
            HEADER.unpack(head)
        )
        stream.seek(segments)
        table = stream.read(SEGMENT.size * segment_count)
    ends = [segments + segment_size * segment_count, sections + section_size * section_count, *_segment_ends(table)]
    return f"a library cut short: it has {size} of {max(ends)} bytes" if max(ends) > size else ""


def _segment_ends(table: bytes) -> list[int]:
    whole = table[: len(table) // SEGMENT.size * SEGMENT.size]
    return [offset + length for _, _, offset, _, _, length, _, _ in SEGMENT.iter_unpack(whole)]


# --- processes -------------------------------------------------------------------------------------------------


def _is_busy(suspect: _Suspect, busy: _Busy) -> bool:
    """Tell whether a build began or ended meanwhile, or a live process holds its lock, or ninja is at work there.

    Only ninja's folder counts: it outlives a killed caller, and a shell may stand anywhere.
    """
    if _lock_id(suspect.build) != suspect.lock:
        return True
    if suspect.lock is not None and suspect.lock[:2] in busy.locks:
        return True
    place = os.path.realpath(suspect.build)
    return any(Path(folder).is_relative_to(place) for folder in busy.folders)


def _lock_id(build: Path) -> _LockId | None:
    try:
        status = os.stat(build / LOCK)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _look_at_processes() -> _Busy:
    locks: set[tuple[int, int]] = set()
    folders: set[str] = set()
    for pid in _pids():
        # A process may end, or belong to another user, or be the kernel's own.
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_bytes().startswith(NINJA):
                folders.add(os.readlink(f"/proc/{pid}/cwd"))
            locks.update(_held_locks(f"/proc/{pid}/fd"))
    return _Busy(locks=frozenset(locks), folders=frozenset(folders))


def _pids() -> Sequence[str]:
    return [name for name in os.listdir("/proc") if name.isdecimal()]


def _held_locks(descriptors: str) -> Iterator[tuple[int, int]]:
    for name in os.listdir(descriptors):
        with contextlib.suppress(FileNotFoundError):
            if os.path.basename(os.readlink(f"{descriptors}/{name}")) == LOCK:
                status = os.stat(f"{descriptors}/{name}")
                yield status.st_dev, status.st_ino
