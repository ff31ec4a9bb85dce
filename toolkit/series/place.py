"""Whether the place where a hunk fits is the place that it was written for.

git applies a hunk wherever its old lines stand, looking outwards from its line number. In a base that has moved on,
that can be a near-identical function while the true place has changed. git then says no more than "offset".
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from toolkit.series.diff import FileDiff, Hunk, split_lines

HEADING_LENGTH = 80
"""Bytes that git keeps of a heading (xdiff/xemit.c)."""

RIVAL_SHARE = 0.5
"""A region that has this share of a hunk's old lines may be its true place, changed since."""

DEFINITION = re.compile(rb"^[ \t]*((?:class|(?:async[ \t]+)?def)[ \t].*)$")
LABEL = re.compile(rb"^[A-Za-z_][A-Za-z_0-9]*:[ \t]*($|/[/*])")
SCOPE = re.compile(rb"^((::[ \t]*)?[A-Za-z_].*)$")

HeadingRule = Callable[[bytes], "bytes | None"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Misplacement:
    """Why the place of one hunk cannot be trusted; `line` is where it fits, counted from 1."""

    hunk: int
    line: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a hunk's old lines stand: the first line of the first place, 0 for nowhere, and why not to trust it."""

    line: int
    distrust: str = ""


def find_misplacement(file: FileDiff, base: bytes, *, reverse: bool = False) -> Misplacement | None:
    """Return the first hunk that fits `base` at a place which may not be its own, or None where all can be trusted."""
    for number, (hunk, place) in enumerate(zip(file.hunks, locate_hunks(file, base, reverse=reverse), strict=True), 1):
        if place.distrust:
            line = place.line or (hunk.new_start if reverse else hunk.old_start)
            return Misplacement(hunk=number, line=line, reason=place.distrust)
    return None


def locate_hunks(file: FileDiff, base: bytes, *, reverse: bool = False) -> tuple[Place, ...]:
    """Return where each hunk stands in `base`, and why that may not be its own place.

    Where the id in the patch's index line is that of `base`, it is the very file that the patch was written for, and
    every hunk fits at its own line. In any other file, with an offset or without, a hunk can be trusted only where

    1. its old lines stand at exactly one place (at the end or start of the file, where it is bound to that);
    2. the heading that git noted after `@@` still is the nearest one above that place, by the rule of git's default,
       Python or C++ driver, whichever the patch was made with; or the hunk has the first line of its own function in
       it, which no class or function encloses and which is found only once: the heading then is of what stood before
       that, and says nothing where the function was moved;
    3. nothing else below that heading (in the whole file, if it noted none) has half of its old lines or more, blank
       lines and indentation aside: that may be the true place, changed since. A hunk that has in it a `def` or
       `class` line found only once in the file is known by that line, and one that is bound to an end of the file by
       that end.

    With `reverse`, the question is the same for taking the patch out of a base that seems to have it.
    """
    hunks = [hunk.reversed() if reverse else hunk for hunk in file.hunks]
    if is_own_base(file, base, reverse=reverse):
        return tuple(Place(line=max(hunk.old_start, 1)) for hunk in hunks)
    lines = split_lines(base)
    headings = [_headings_above(lines, rule) for rule in HEADING_RULES]
    return tuple(_locate(hunk, lines, headings) for hunk in hunks)


def _locate(hunk: Hunk, lines: Sequence[bytes], headings: Sequence[Sequence[bytes]]) -> Place:
    places = find_places(hunk, lines)
    return Place(line=places[0] + 1 if places else 0, distrust=_distrust(hunk, places, lines, headings))


def has_places(file: FileDiff, base: bytes, *, reverse: bool = False) -> bool:
    """Say whether every hunk's old lines stand somewhere in `base`, be it at a place that cannot be trusted."""
    if is_own_base(file, base, reverse=reverse):
        return True
    lines = split_lines(base)
    return all(find_places(hunk.reversed() if reverse else hunk, lines) for hunk in file.hunks)


def is_own_base(file: FileDiff, base: bytes, *, reverse: bool = False) -> bool:
    """Say whether a file is, byte for byte, the one whose id stands in the patch's index line."""
    blob = file.new_blob if reverse else file.old_blob
    if len(blob) < 7:
        return False
    framed = b"blob %d\0" % len(base) + base
    digest = hashlib.sha256(framed) if len(blob) == 64 else hashlib.sha1(framed, usedforsecurity=False)
    return digest.hexdigest().startswith(blob)


def find_places(hunk: Hunk, lines: Sequence[bytes]) -> list[int]:
    """Return every index where a hunk's old lines stand, under the bounds that git sets.

    git demands the start of the file for a hunk that begins at line 1 or 0, and its end for one without trailing
    context (apply.c: apply_one_fragment).
    """
    wanted = list(hunk.before)
    last = len(lines) - len(wanted)
    candidates = range(last + 1)
    if hunk.old_start <= 1:
        candidates = candidates[:1]
    if not hunk.trailing:
        candidates = range(max(last, candidates.start), candidates.stop)
    return [
        at
        for at in candidates
        if (not wanted or lines[at] == wanted[0]) and list(lines[at : at + len(wanted)]) == wanted
    ]


def find_nearest(hunk: Hunk, lines: Sequence[bytes]) -> int | None:
    """Return the index of the region that is most like a hunk's old lines, None where nothing is.

    Among equals the one with most lines in their own place, then the nearest to the hunk's line number.
    """

    def rank(at: int, share: float) -> tuple[float, int, int]:
        in_place = sum(
            wanted == there for wanted, there in zip(hunk.before, lines[at : at + len(hunk.before)], strict=False)
        )
        return share, in_place, -abs(at - (hunk.old_start - 1))

    ranks = [(rank(at, share), at) for at, share in _shares(hunk.before, lines, range(len(lines))) if share]
    return max(ranks)[1] if ranks else None


def _distrust(hunk: Hunk, places: Sequence[int], lines: Sequence[bytes], headings: Sequence[Sequence[bytes]]) -> str:
    if not places:
        return "git finds it where its old lines do not stand"
    if len(places) > 1:
        return f"it is ambiguous: its old lines stand at lines {', '.join(str(at + 1) for at in places)}"
    at = places[0]
    matching = [above for above in headings if above[at] == hunk.heading]
    if hunk.heading and not matching and not _names_its_scope(hunk, lines):
        return f"it was made below {_show(hunk.heading)}, but there it would stand below {_show(headings[0][at])}"
    if _is_known_by_itself(hunk, lines):
        return ""
    scope = [start for start in range(len(lines)) if not hunk.heading or _is_below(hunk.heading, start, matching)]
    rival = _find_rival(hunk, at, lines, scope)
    if rival is None:
        return ""
    return f"it is ambiguous: what begins at line {rival + 1} has most of its old lines too, and may be its place"


def _names_its_scope(hunk: Hunk, lines: Sequence[bytes]) -> bool:
    context = hunk.before[: hunk.leading]
    return any(not line[:1].isspace() and DEFINITION.match(line) and lines.count(line) == 1 for line in context)


def _is_below(heading: bytes, start: int, headings: Sequence[Sequence[bytes]]) -> bool:
    return any(above[start] == heading for above in headings)


def _find_rival(hunk: Hunk, at: int, lines: Sequence[bytes], scope: Sequence[int]) -> int | None:
    """Return the index of the likest other region, None where none has the share of lines that makes it one.

    A region that overlaps the hunk's own has many of its lines by that alone, so there each has to be in its place.
    """
    elsewhere = [start for start in scope if abs(start - at) >= len(hunk.before)]
    slid = [start for start in scope if 0 < abs(start - at) < len(hunk.before)]
    wanted = [line.strip() for line in hunk.before]
    shares = [
        *_shares(hunk.before, lines, elsewhere),
        *((start, _share_in_place(wanted, lines, start)) for start in slid),
    ]
    rivals = [(share, start) for start, share in shares if share >= RIVAL_SHARE]
    return min(rivals, key=lambda rival: (-rival[0], rival[1]))[1] if rivals else None


def _share_in_place(wanted: Sequence[bytes], lines: Sequence[bytes], start: int) -> float:
    pairs = zip(wanted, lines[start : start + len(wanted)], strict=False)
    total = sum(1 for line in wanted if line)
    return sum(1 for line, there in pairs if line and line == there.strip()) / total if total else 0.0


def _is_known_by_itself(hunk: Hunk, lines: Sequence[bytes]) -> bool:
    if hunk.old_start <= 1 or not hunk.trailing:
        return True
    return any(DEFINITION.match(line) and lines.count(line) == 1 for line in hunk.before)


def _shares(wanted: Sequence[bytes], lines: Sequence[bytes], starts: Sequence[int]) -> Iterator[tuple[int, float]]:
    """Yield, for each start, which share of the wanted lines stands in the region of that length there."""
    sought = Counter(line.strip() for line in wanted if line.strip())
    total = sum(sought.values())
    common = list(_count_common(sought, [line.strip() for line in lines], len(wanted)))
    yield from ((start, common[start] / total if total else 0.0) for start in starts)


def _count_common(sought: Counter[bytes], lines: Sequence[bytes], length: int) -> Iterator[int]:
    """Yield, for each line, how many of the sought ones are among the `length` that begin there.

    Each region differs from the one before by the line that leaves and the line that comes.
    """
    held: Counter[bytes] = Counter()
    common = 0
    for end in range(len(lines) + length):
        start = end - length
        if start >= 0:
            yield common
            leaving = lines[start]
            held[leaving] -= 1
            common -= held[leaving] < sought[leaving]
        if end < len(lines):
            coming = lines[end]
            common += held[coming] < sought[coming]
            held[coming] += 1


def _headings_above(lines: Sequence[bytes], rule: HeadingRule) -> list[bytes]:
    """Return, for every index and the one after the last, the nearest heading above it."""
    above = [b""]
    for line in lines:
        heading = rule(line.rstrip(b"\n"))
        above.append(above[-1] if heading is None else heading[:HEADING_LENGTH].rstrip())
    return above


def _default_heading(line: bytes) -> bytes | None:
    return line if line[:1].isalpha() or line[:1] in (b"_", b"$") else None


def _python_heading(line: bytes) -> bytes | None:
    match = DEFINITION.match(line)
    return match[1] if match else None


def _cpp_heading(line: bytes) -> bytes | None:
    match = None if LABEL.match(line) else SCOPE.match(line)
    return match[1] if match else None


HEADING_RULES: tuple[HeadingRule, ...] = (_default_heading, _python_heading, _cpp_heading)


def _show(heading: bytes) -> str:
    return repr(heading.decode("utf-8", "replace")) if heading else "nothing"
