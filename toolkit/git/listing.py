"""What a commit's tree holds, and whether it may be written to a disk at all."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from toolkit.errors import SourceError
from toolkit.files import safe_relative_path

FILE, EXECUTABLE, SYMLINK, GITLINK = "100644", "100755", "120000", "160000"
MODES = {FILE: FILE, EXECUTABLE: EXECUTABLE, "100664": FILE, SYMLINK: SYMLINK, GITLINK: GITLINK}
"""Every mode that a tree may hold, and how it is checked out; the second of plain files is from git's early days."""

IGNORED_LETTERS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""What some file systems leave out of a name when they look for it."""

PLAIN = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_+.-]*(?:/[A-Za-z0-9_+-][A-Za-z0-9_+.-]*)*")
"""Paths that nothing can be wrong with, as most are: a tree may have tens of thousands."""

MANY_LINKS = 40
"""How many symlinks one path may go through: the kernel's own limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeEntry:
    """One file, symlink or submodule of a tree; `id` is a blob's, or a submodule's commit."""

    path: str
    mode: str
    id: str


Listing = Mapping[str, TreeEntry]
"""Every entry of a tree by its path from the top."""


def parse_listing(raw: bytes, *, what: str) -> Listing:
    """Read what `git ls-tree -r -z` prints; SourceError names the path that may not be checked out.

    Refused are paths that leave the tree, reach into a `.git` folder in any spelling or are not UTF-8, paths that
    differ only in case, entries below a symlink or a file, and other modes than git writes.
    """
    entries: dict[str, TreeEntry] = {}
    for line in filter(None, raw.split(b"\0")):
        head, _, name = line.partition(b"\t")
        mode, _, identifier = head.decode("ascii").split(" ")
        path = _read_path(name, what)
        if mode not in MODES:
            raise SourceError(f"{what} cannot be checked out: {path!r} has the mode {mode}")
        entries[path] = TreeEntry(path=path, mode=MODES[mode], id=identifier)
    _require_distinct(entries, what)
    return entries


def judge_symlinks(entries: Listing, targets: Mapping[str, bytes], *, what: str) -> None:
    """Raise SourceError for a symlink that leads out of the tree, through other symlinks too.

    `targets` are the symlinks' texts by path.
    """
    for path, target in targets.items():
        if why := _follow(path, targets):
            raise SourceError(f"{what} cannot be checked out: the symlink {path!r} to {_shown(target)} {why}")


def symlinks(entries: Listing) -> Sequence[TreeEntry]:
    """Return the symlinks among the entries."""
    return [entry for entry in entries.values() if entry.mode == SYMLINK]


def gitlinks(entries: Listing) -> dict[str, str]:
    """Return the submodules among the entries, path to commit."""
    return {entry.path: entry.id for entry in entries.values() if entry.mode == GITLINK}


def path_fault(path: str) -> str:
    """Say why a path may not be checked out, or nothing where it may."""
    if PLAIN.fullmatch(path):
        return ""
    try:
        safe_relative_path(path)
    except ValueError as fault:
        return str(fault)
    if path.endswith("/") or any(_is_git_folder(part) for part in path.split("/")):
        return f"{path!r} reaches into a '.git' folder" if not path.endswith("/") else f"{path!r} is a folder"
    return ""


def _read_path(name: bytes, what: str) -> str:
    try:
        path = name.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise SourceError(f"{what} cannot be checked out: the path {name!r} is not UTF-8") from fault
    if why := path_fault(path):
        raise SourceError(f"{what} cannot be checked out: {why}")
    return path


def _is_git_folder(part: str) -> bool:
    """Whether a file system that ignores case, some letters or endings could take a name for `.git`."""
    plain = IGNORED_LETTERS.sub("", part).partition(":")[0].rstrip(" .").lower()
    return plain in (".git", "git~1")


def _require_distinct(entries: Iterable[str], what: str) -> None:
    """Raise SourceError where a path is also another's folder, or differs from another path or folder only in case."""
    files = frozenset(entries)
    seen: dict[str, str] = {}
    for path in sorted(files):
        for place in _unseen_places(path, seen, files):
            other = seen.setdefault(place.casefold(), place)
            if other != place:
                raise SourceError(f"{what} cannot be checked out: {other!r} and {place!r} differ only in case")
            if place != path and place in files:
                raise SourceError(f"{what} cannot be checked out: {path!r} lies below {place!r}, which is no folder")


def _unseen_places(path: str, seen: Mapping[str, str], files: Collection[str]) -> Iterator[str]:
    """Yield a path and its folders from the inside out, up to a folder that was seen: so were those above it."""
    yield path
    while folder := path.rpartition("/")[0]:
        if seen.get(folder.casefold()) == folder and folder not in files:
            return
        yield folder
        path = folder


def _follow(path: str, targets: Mapping[str, bytes]) -> str:
    """Walk to where a symlink leads and say what is wrong there, or nothing."""
    place: list[str] = path.split("/")[:-1]
    pending = _parts(targets[path])
    links = 0
    if pending is None:
        return "is absolute or unreadable"
    while pending:
        part = pending.pop(0)
        if part == "..":
            if not place:
                return "leaves the tree"
            place.pop()
            continue
        place.append(part)
        if _is_git_folder(part):
            return "reaches into a '.git' folder"
        if (text := targets.get("/".join(place))) is not None:
            links += 1
            further = _parts(text)
            if further is None or links > MANY_LINKS:
                return "leads to one that is absolute or unreadable" if further is None else "leads in a circle"
            place.pop()
            pending = further + pending
    return ""


def _parts(target: bytes) -> list[str] | None:
    """Split a symlink's text; None for what is absolute, empty or not UTF-8."""
    try:
        text = target.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if not text or text.startswith("/") or "\0" in text or "\\" in text:
        return None
    return [part for part in text.split("/") if part not in ("", ".")]


def _shown(target: bytes) -> str:
    return repr(target.decode("utf-8", "replace"))
