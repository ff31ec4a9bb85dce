"""The logs that a user means: files, folders of them, standard input; and the rank that a name tells."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from toolkit.errors import StorageError, UsageError
from toolkit.triage.kinds import Kind, kind_of

STDIN = "-"

RANK = re.compile(r"(?<![a-z])rank(?:[-_]?id)?[-_=.:\[( ]?([0-9]{1,6})(?![0-9])", re.IGNORECASE)
WORKER = re.compile(r"(?<![a-z])worker[-_=.:\[( ]?([0-9]{1,6})(?![0-9])", re.IGNORECASE)
UP_TO = re.compile(r"(?:-|_?to_?|\.\.)(?:rank)?([0-9]{1,4})(?![0-9])", re.IGNORECASE)
"""What makes a range of a rank: rank0-7.log holds all of them."""

TORCHRUN = re.compile(r"(?:^|/)attempt_[0-9]+/([0-9]{1,6})/[^/]+$")
"""How torchrun lays out --log-dir: RUN/attempt_0/RANK/stderr.log."""

NULL = os.makedev(1, 3)
TERMINALS = frozenset((4, 5, *range(136, 144)))
"""By major number (Linux, Documentation/admin-guide/devices.txt)."""

NAMED = 3
"""How many unreadable files of a folder are named, before they are only counted."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One log. `name` is the path as given, or below the folder that was given (with it, where there are several).

    `path` is None for standard input. `rank` is told by the name, and None where that tells none, or several.
    """

    name: str
    path: Path | None
    rank: int | None


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """What could not be read or was left out, in one line; `source` is a log's name or a place as given."""

    source: str
    text: str


def find_sources(places: Sequence[str]) -> tuple[list[Source], list[Remark]]:
    """Find the logs in files and folders, each real file once, in the natural order of their names; `-` comes first.

    A file that is named is taken for a log, whatever it holds. Of a folder, with all below it that is not hidden, every
    text is taken, packed or not, that is no Python source and no profiler's trace; archives and what cannot be read are
    remarked one by one, the rest is counted. UsageError for a place that is not there, and where there is no log at
    all; StorageError where that is for want of a permission.
    """
    search = _Search(is_single=len(places) == 1)
    for place in places:
        search.add_place(place)
    if not search.sources:
        raise _nothing_to_read(search)
    return sorted(
        search.sources, key=lambda source: (source.path is not None, natural_key(source.name))
    ), search.remarks


def natural_key(name: str) -> list[tuple[int, str]]:
    """Return what sorts rank2 before rank10."""
    pieces = re.split(r"([0-9]+)", name)
    return [(len(piece.lstrip("0")), piece.lstrip("0")) if at % 2 else (0, piece) for at, piece in enumerate(pieces)]


def rank_of(path: str) -> int | None:
    """Return the rank that a file's name tells, or else the nearest folder's; None where none does, or one is unclear.

    A word with "rank" goes before torchrun's folders, and those before a worker, which may be a node or a loader.
    """
    parts = path.split("/")[::-1]
    said = next(filter(None, (_numbers(RANK, part) for part in parts)), None)
    if said is None and (layout := TORCHRUN.search(os.path.abspath(path))):
        return int(layout[1])
    said = said or next(filter(None, (_numbers(WORKER, part) for part in parts)), None)
    return said.pop() if said and len(said) == 1 else None


def _numbers(word: re.Pattern[str], part: str) -> set[int]:
    """Return the numbers that follow a word in a name, both ends of a range."""
    found = set()
    for match in word.finditer(part):
        found.add(int(match[1]))
        up_to = UP_TO.match(part, match.end())
        if up_to and int(up_to[1]) > int(match[1]):
            found.add(int(up_to[1]))
    return found


class _Search:
    """Remembers what was seen, by device and inode."""

    def __init__(self, *, is_single: bool) -> None:
        self.sources: list[Source] = []
        self.remarks: list[Remark] = []
        self.is_denied = False
        self.repeats = 0
        self._is_single = is_single
        self._seen: set[tuple[int, int]] = set()

    def add_place(self, place: str) -> None:
        """Take in what a user has named; of what is there but cannot be used, remark why."""
        if place == STDIN:
            if all(source.path is not None for source in self.sources):
                self.sources.append(Source(name=STDIN, path=None, rank=None))
            return
        try:
            status = os.stat(place)
            if not self._is_new(status):
                return
            if stat.S_ISDIR(status.st_mode):
                self._add_folder(place)
            else:
                self._add_file(place, status)
        except (FileNotFoundError, NotADirectoryError) as fault:
            hint = "name logs, folders of logs, or - for standard input"
            raise UsageError(f"there is no {place!r}", hint=hint) from fault
        except OSError as fault:
            self._remark_fault(place, fault)

    def _is_new(self, status: os.stat_result) -> bool:
        real = (status.st_dev, status.st_ino)
        is_new = real not in self._seen
        self._seen.add(real)
        self.repeats += not is_new
        return is_new

    def _remark_fault(self, name: str, fault: OSError) -> None:
        self.is_denied |= isinstance(fault, PermissionError)
        self.remarks.append(Remark(source=name, text=f"cannot be read: {fault.strerror}"))

    def _add_file(self, place: str, status: os.stat_result) -> None:
        refused = why_refused(status)
        if refused is not None:
            self.remarks.append(Remark(source=place, text=refused))
            return
        if stat.S_ISREG(status.st_mode):  # To open a pipe would take what is in it, or wait for it.
            os.close(os.open(place, os.O_RDONLY))
        self.sources.append(Source(name=place, path=Path(place), rank=rank_of(place)))

    def _add_folder(self, place: str) -> None:
        before, left_out = (len(self.sources), self.repeats), Counter[Kind]()
        faults: list[tuple[str, OSError]] = []
        for path in self._files(place, faults):
            try:
                kind = kind_of(path)
            except OSError as fault:
                faults.append((path, fault))
                continue
            name = os.path.relpath(path, place) if self._is_single else path
            if kind == "log":
                self.sources.append(Source(name=name, path=Path(path), rank=rank_of(path)))
            elif kind == "archive":
                self.remarks.append(Remark(source=name, text="an archive, not looked into: unpack it first"))
            else:
                left_out[kind] += 1
        for path, why in faults[:NAMED]:
            self._remark_fault(path, why)
        if len(faults) > NAMED:
            self.remarks.append(Remark(source=place, text=f"{len(faults) - NAMED} more in it cannot be read"))
        told = ", ".join(f"{count} {kind}" for kind, count in sorted(left_out.items()))
        if (len(self.sources), self.repeats) == before:
            self.remarks.append(Remark(source=place, text=f"no log is in it{told and f' (left out: {told})'}"))
        elif told:
            self.remarks.append(Remark(source=place, text=f"left out: {told}"))

    def _files(self, folder: str, faults: list[tuple[str, OSError]]) -> Iterator[str]:
        """Yield the regular files below a folder that are new; links come last, so that a file has its own name."""
        folders, links = [folder], list[str]()
        while folders:
            for entry in _entries(folders.pop(), faults):
                if entry.is_symlink():
                    links.append(entry.path)
                elif entry.is_dir(follow_symlinks=False) and self._is_new_entry(entry):
                    folders.append(entry.path)
                elif entry.is_file(follow_symlinks=False) and self._is_new_entry(entry):
                    yield entry.path
            while links and not folders:
                yield from self._follow(links.pop(0), folders)

    def _is_new_entry(self, entry: os.DirEntry[str]) -> bool:
        try:
            return self._is_new(entry.stat(follow_symlinks=False))
        except OSError:  # It has just been removed.
            return False

    def _follow(self, link: str, folders: list[str]) -> Iterator[str]:
        """Yield the file that a link leads to, or note the folder."""
        try:
            status = os.stat(link)
        except OSError:  # It leads nowhere, or in a circle.
            return
        if stat.S_ISDIR(status.st_mode) and self._is_new(status):
            folders.append(link)
        elif stat.S_ISREG(status.st_mode) and self._is_new(status):
            yield link


def _entries(folder: str, faults: list[tuple[str, OSError]]) -> list[os.DirEntry[str]]:
    """List what is in a folder and not hidden, by name."""
    try:
        with os.scandir(folder) as found:
            return sorted((one for one in found if not one.name.startswith(".")), key=lambda one: one.name)
    except OSError as fault:
        faults.append((folder, fault))
        return []


def why_refused(status: os.stat_result) -> str | None:
    """Say why something is not read as a file: a folder, a socket, a device without an end; None where it can be."""
    mode = status.st_mode
    if stat.S_ISCHR(mode):
        is_finite = os.major(status.st_rdev) in TERMINALS or status.st_rdev == NULL
        return None if is_finite else "a device, not a log: it may have no end"
    if stat.S_ISREG(mode) or stat.S_ISFIFO(mode):
        return None
    kind = "a folder" if stat.S_ISDIR(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    return f"{kind}, not a log"


def _nothing_to_read(search: _Search) -> UsageError | StorageError:
    if not search.remarks:
        return UsageError("no log is named", hint="name logs, folders of logs, or - for standard input")
    first, *others = search.remarks
    message = f"there is no log to read: {first.source}: {first.text}"
    details = [f"{other.source}: {other.text}" for other in others]
    if search.is_denied:
        return StorageError(
            message, hint="read it as a user who may, or have it copied to where you may", details=details
        )
    return UsageError(message, hint="name the files that the run printed to, or its log folder", details=details)
