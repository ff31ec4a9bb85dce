"""Where in a patch file its hunks and lines stand, for what is said about one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from toolkit.series.diff import FileDiff, Hunk, split_lines


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchFault:
    """What is wrong in a patch file, and in which line of it, counted from 1; 0 where it is in none."""

    what: str
    line: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedHunk:
    """One hunk with its number in its file, from 1, and the line of its heading in the patch file."""

    file: FileDiff
    hunk: Hunk
    number: int
    line: int

    def __str__(self) -> str:
        return f"hunk #{self.number} of {self.file.path}"

    def added(self) -> Iterator[tuple[int, bytes]]:
        """Yield the lines that it adds, without their mark, each with its line in the patch file."""
        lines = split_lines(self.hunk.raw)
        for number, (line, following) in enumerate(pairwise([*lines[1:], b""]), self.line + 1):
            if line.startswith(b"+"):
                yield number, line[1:].removesuffix(b"\n") if following.startswith(b"\\") else line[1:]


def placed_hunks(raw: bytes, files: Sequence[FileDiff]) -> Iterator[PlacedHunk]:
    """Find the hunks of a patch, as it was parsed, in the bytes of its file."""
    at = 0
    for file in files:
        at = raw.index(file.header, at) + len(file.header)
        for number, hunk in enumerate(file.hunks, 1):
            at = raw.index(hunk.raw, at)
            yield PlacedHunk(file=file, hunk=hunk, number=number, line=raw.count(b"\n", 0, at) + 1)
            at += len(hunk.raw)
