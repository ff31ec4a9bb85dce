"""Patches of one series that take each other back: the sum of them is less than what their messages promise."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolkit.model import Patch
from toolkit.series.diff import FileDiff, Hunk
from toolkit.series.lines import PatchFault, PlacedHunk, placed_hunks

FULL_ID = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})\Z")
FOLD = "drop both, or fold them into one"

Lines = tuple[bytes, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadPatch:
    """A patch with the bytes of its file and the diff in them."""

    patch: Patch
    raw: bytes
    files: tuple[FileDiff, ...]


def undoing_faults(patches: Sequence[ReadPatch]) -> Iterator[tuple[Patch, PatchFault]]:
    """Find what a patch takes back of an earlier one: all of it, a hunk, or a file's content as its ids name it."""
    earlier: list[ReadPatch] = []
    hunks: dict[tuple[str, Lines, Lines], list[tuple[ReadPatch, PlacedHunk]]] = {}
    contents = _Contents()
    for one in patches:
        placed = list(placed_hunks(one.raw, one.files))
        undone = next((other for other in reversed(earlier) if _undoes(one, other)), None)
        returns = list(contents.take(one))
        if undone:
            yield one.patch, PatchFault(what=f"takes back all that {undone.patch.name} does; {FOLD}")
        else:
            taken = list(_taken_back(placed, hunks))
            yield from ((one.patch, fault) for _, fault in taken)
            yield from ((one.patch, fault) for path, fault in returns if path not in {path for path, _ in taken})
        for hunk in placed:
            hunks.setdefault(_change(hunk), []).append((one, hunk))
        earlier.append(one)


def _undoes(one: ReadPatch, other: ReadPatch) -> bool:
    """Whether a patch's files are the other's with before and after exchanged."""
    mine = sorted(one.files, key=lambda file: _ends(file))
    theirs = sorted(other.files, key=lambda file: _ends(file)[::-1])
    return bool(mine) and len(mine) == len(theirs) and all(map(_is_turned, mine, theirs))


def _is_turned(one: FileDiff, other: FileDiff) -> bool:
    if _ends(one) != _ends(other)[::-1] or len(one.hunks) != len(other.hunks):
        return False
    if not one.hunks:
        return one.kind == "renamed" or (one.old_blob, one.new_blob) == (other.new_blob, other.old_blob)
    return all(
        _core(mine) == _core(theirs)[::-1] and _is_same_place(mine, theirs)
        for mine, theirs in zip(one.hunks, other.hunks, strict=True)
    )


def _ends(file: FileDiff) -> tuple[str, str]:
    """Return the path before and the path after, empty where there is no file."""
    return "" if file.kind == "added" else file.old_path, "" if file.kind == "deleted" else file.path


def _taken_back(
    placed: Sequence[PlacedHunk], hunks: dict[tuple[str, Lines, Lines], list[tuple[ReadPatch, PlacedHunk]]]
) -> Iterator[tuple[str, PatchFault]]:
    """Find the hunks that are an earlier one turned round, at a place that looks the same."""
    for one in placed:
        path, before, after = _change(one)
        for other, undone in reversed(hunks.get((path, after, before), [])):
            if _is_same_place(one.hunk, undone.hunk):
                what = f"{one} takes back hunk #{undone.number} of {other.patch.name}; {FOLD}"
                yield path, PatchFault(what=what, line=one.line)
                break


def _change(placed: PlacedHunk) -> tuple[str, Lines, Lines]:
    return (placed.file.path, *_core(placed.hunk))


def _core(hunk: Hunk) -> tuple[Lines, Lines]:
    """Return the lines that a hunk takes away and those that it puts there, without its context."""
    before, after = (side[hunk.leading : len(side) - hunk.trailing] for side in (hunk.before, hunk.after))
    return before, after


def _is_same_place(one: Hunk, other: Hunk) -> bool:
    """Compare as much of the context as both hunks have."""
    above, below = min(one.leading, other.leading), min(one.trailing, other.trailing)
    return (
        one.before[one.leading - above : one.leading] == other.before[other.leading - above : other.leading]
        and one.before[len(one.before) - one.trailing :][:below]
        == other.before[len(other.before) - other.trailing :][:below]
    )


class _Contents:
    """What is known of each file's contents along a series, by the full ids of the index lines."""

    def __init__(self) -> None:
        self._known: dict[str, list[tuple[str, str]]] = {}

    def take(self, one: ReadPatch) -> Iterator[tuple[str, PatchFault]]:
        """Go on by one patch, and say for which files it brings back what was there before an earlier one."""
        for file in one.files:
            known = self._known.pop(file.old_path, []) if file.kind == "renamed" else self._known.get(file.path, [])
            if not known and FULL_ID.match(file.old_blob):
                known = [(file.old_blob, one.patch.name)]
            new = file.new_blob if FULL_ID.match(file.new_blob) else ""
            if new and (before := next((name for blob, name in known[:-1] if blob == new), "")):
                what = f"brings {file.path} back to what it was before {before}, by the id in its index line"
                yield file.path, PatchFault(what=f"{what}; {FOLD}")
            self._known[file.path] = [*_noted(known, one), (new, "")]


def _noted(known: Sequence[tuple[str, str]], one: ReadPatch) -> list[tuple[str, str]]:
    """Note at the last content which patch changed it."""
    return [*known[:-1], *((blob, name or one.patch.name) for blob, name in known[-1:])]
