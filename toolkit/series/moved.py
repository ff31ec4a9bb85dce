"""Where a file went that a patch names and the base no longer has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from toolkit.series.diff import FileDiff
from toolkit.series.place import has_places, is_own_base

MOST_READ = 400
"""Members that are read in search of one file: each may cost a process, and what is far away is rarely the file."""

Reader = Callable[[str], "bytes | None"]
"""Reads a member of the base, or gives None for one that cannot be had."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """What a search found: `places` are the members where the lines stand, all of equal right.

    With `has_change` what stands there are the lines that the patch leaves. `unread` members were too many to read.
    """

    path: str
    places: tuple[str, ...] = ()
    has_change: bool = False
    unread: int = 0

    @property
    def new_path(self) -> str:
        """The one place where the file went, empty where there is none or more than one."""
        return self.places[0] if len(self.places) == 1 else ""

    def __str__(self) -> str:
        gone = f"the base has no file {self.path}"
        if self.new_path:
            where = "has its change already" if self.has_change else "has the lines that the patch expects"
            return f"{gone}: it was renamed to {self.new_path}, which {where}"
        if self.places:
            return f"{gone}; its lines stand in {' and in '.join(self.places)}"
        looked = f"none of the {MOST_READ} nearest" if self.unread else "no other"
        return f"{gone}, and {looked} has the lines that the patch expects"


@dataclass(frozen=True, kw_only=True, slots=True)
class Index:
    """The members of a base by their names, and by suffix and folder."""

    names: Mapping[str, Sequence[str]]
    suffixes: Mapping[str, Mapping[str, Sequence[str]]]


def index_members(members: Iterable[str]) -> Index:
    """Sort a base's members so that a search need not look at each of them."""
    names: dict[str, list[str]] = {}
    suffixes: dict[str, dict[str, list[str]]] = {}
    for path in sorted(members):
        folder, _, name = path.rpartition("/")
        names.setdefault(name, []).append(path)
        suffixes.setdefault(PurePosixPath(name).suffix, {}).setdefault(folder, []).append(path)
    return Index(names=names, suffixes=suffixes)


def trace_file(file: FileDiff, index: Index, read: Reader) -> Trace:
    """Look for a file that was renamed: under its name elsewhere, then beside its place, then among all of its suffix.

    The file is where every hunk's old lines stand, or all of its new lines; for one without hunks where its bytes are.
    """
    left = MOST_READ
    unread = 0
    for candidates in _candidates(file.old_path, index):
        near = candidates[:left]
        left, unread = left - len(near), unread + len(candidates) - len(near)
        contents = [(path, raw) for path in near if (raw := read(path)) is not None]
        for reverse in (False, True):
            if found := tuple(path for path, raw in contents if _stands(file, raw, reverse=reverse)):
                return Trace(path=file.old_path, places=found, has_change=reverse)
    return Trace(path=file.old_path, unread=unread)


def _candidates(path: str, index: Index) -> Iterator[Sequence[str]]:
    gone = PurePosixPath(path)
    place = path.rpartition("/")[0]
    same_name = index.names.get(gone.name, ())
    yield sorted(same_name, key=lambda name: _distance(name.rpartition("/")[0], place))
    folders = index.suffixes.get(gone.suffix, {})
    yield [name for name in folders.get(place, ()) if name not in same_name]
    further = sorted(folders.keys() - {place}, key=lambda folder: (_distance(folder, place), folder))
    yield [name for folder in further for name in folders[folder] if name.rpartition("/")[2] != gone.name]


def _distance(folder: str, other: str) -> int:
    """Count the folders to go up and down from one to another."""
    here, there = (name.split("/") if name else [] for name in (folder, other))
    common = next((n for n, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), min(len(here), len(there)))
    return len(here) + len(there) - 2 * common


def _stands(file: FileDiff, raw: bytes, *, reverse: bool) -> bool:
    if is_own_base(file, raw, reverse=reverse):
        return True
    sides = [hunk.after if reverse else hunk.before for hunk in file.hunks]
    return any(sides) and has_places(file, raw, reverse=reverse)
