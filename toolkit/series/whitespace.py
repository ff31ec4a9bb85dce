"""What a patch does to white space without meaning it, and hunks that do nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from toolkit.series.diff import FileDiff
from toolkit.series.lines import PatchFault, PlacedHunk, placed_hunks

BLANKS_BEFORE_TAB = re.compile(rb"^\t* +\t")
MARKER = re.compile(rb"(<{7}|>{7}|\|{7})( |$)")
MIDDLE_MARKER = b"======="
"""What stands between the sides of a conflict; alone it may be the underline of a heading."""

INDENTED = frozenset((".py", ".pyi", ".pyx", ".yaml", ".yml", ".mk", ""))
"""The endings of files whose indentation says something; a Makefile has none."""

BREAKS_LINES = frozenset((".md",))
"""The endings of files in which two blanks at the end of a line are a line break."""


def whitespace_faults(raw: bytes, files: Sequence[FileDiff]) -> Iterator[PatchFault]:
    """Find the white space that no reviewer wants in a patch, each with its line in the patch file."""
    all_placed = list(placed_hunks(raw, files))
    for file in files:
        placed = [one for one in all_placed if one.file is file]
        yield from _idle_hunks(placed)
        yield from _blank_faults(placed)
        yield from _line_end_faults(file, placed)
        yield from _marker_faults(placed)


def _idle_hunks(placed: Sequence[PlacedHunk]) -> Iterator[PatchFault]:
    """Find hunks without effect; a file of which that is true as a whole is refused already when it is read."""
    if all(one.hunk.before == one.hunk.after for one in placed):
        return
    for one in placed:
        if one.hunk.before == one.hunk.after:
            yield PatchFault(what=f"{one} changes nothing; leave it out", line=one.line)
        elif _meant(one.hunk.before, one.file.path) == _meant(one.hunk.after, one.file.path):
            yield PatchFault(what=f"{one} changes nothing but white space; leave it out", line=one.line)


def _meant(lines: Sequence[bytes], path: str) -> list[bytes]:
    """Return what lines say, white space that says nothing left out."""
    is_indented = PurePosixPath(path).suffix in INDENTED
    return [line.rstrip() if is_indented else line.strip() for line in lines if line.strip()]


def _blank_faults(placed: Sequence[PlacedHunk]) -> Iterator[PatchFault]:
    for one in placed:
        path = one.file.path
        for number, line in one.added():
            text = line.rstrip(b"\r\n")
            if text != text.rstrip() and PurePosixPath(path).suffix not in BREAKS_LINES:
                yield PatchFault(what=f"adds a line to {path} that ends in blanks: {_shown(text)}", line=number)
            if BLANKS_BEFORE_TAB.match(text):
                yield PatchFault(what=f"adds a line to {path} with a blank before a tab: {_shown(text)}", line=number)


def _line_end_faults(file: FileDiff, placed: Sequence[PlacedHunk]) -> Iterator[PatchFault]:
    """Find added lines that do not end as the file's other lines do, and a new file whose last line does not end."""
    others = [line for one in placed for line in one.hunk.before] or [line for one in placed for _, line in one.added()]
    whole = [line.endswith(b"\r\n") for line in others if line.endswith(b"\n")]
    if whole and (all(whole) or not any(whole) or file.kind == "added"):
        expected = all(whole)
        for number, line in (pair for one in placed for pair in one.added() if pair[1].endswith(b"\n")):
            if line.endswith(b"\r\n") is not expected:
                ends = ("LF", "CRLF") if expected else ("CRLF", "LF")
                what = f"adds a line to {file.path} that ends in {ends[0]}, expected {ends[1]} as the others have"
                yield PatchFault(what=what, line=number)
    if file.kind == "added" and placed and (lines := list(placed[-1].added())) and not lines[-1][1].endswith(b"\n"):
        yield PatchFault(what=f"adds {file.path} without a newline at its end", line=lines[-1][0])


def _marker_faults(placed: Sequence[PlacedHunk]) -> Iterator[PatchFault]:
    added = [(one.file.path, *pair) for one in placed for pair in one.added()]
    is_conflict = any(MARKER.match(line.rstrip()) for _, _, line in added)
    for path, number, line in added:
        if MARKER.match(line.rstrip()) or (is_conflict and line.rstrip() == MIDDLE_MARKER):
            yield PatchFault(what=f"adds the conflict marker {_shown(line[:7])} to {path}", line=number)


def _shown(line: bytes) -> str:
    return repr(line.decode("utf-8", "backslashreplace"))
