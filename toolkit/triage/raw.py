"""The lines of a chunk as bytes: how they are cut, and how they are gone through from behind."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.triage.records import HEADER

LONGEST = 8_192
"""Of a longer line so many bytes are read: its head, where the prefixes are, and what stands around the word."""

LONGEST_RECORD = 262_144
"""A line with lines in it, a logger's record or a traceback, is read to this length."""

HEAD = 256

CUT = " [...] "
"""Stands where something of a long line is left out."""

TRACEBACK = HEADER.encode()


def common_indent(head: bytes) -> bytes:
    """Return the blanks that all lines begin with, as where a log was pasted into a page."""
    lines = [line for line in head.split(b"\n") if line.strip()]
    first = lines[0] if lines else b""
    blanks = first[: len(first) - len(first.lstrip(b" \t"))]
    while blanks and not all(line.startswith(blanks) for line in lines):
        blanks = blanks[:-1]
    return blanks


def cut_line(chunk: bytes, start: int, end: int, at: int) -> bytes:
    """Return a line, of a very long one its head and what stands around the word."""
    longest = LONGEST_RECORD if end - start > LONGEST and _has_lines(chunk, start, end) else LONGEST
    if end - start <= longest:
        return chunk[start:end]
    first = max(at - HEAD // 4, start + HEAD)
    return chunk[start : start + HEAD] + CUT.encode() + chunk[first : min(end, first + LONGEST - 2 * HEAD)]


def _has_lines(chunk: bytes, start: int, end: int) -> bool:
    """Whether a line may hold others, which are read one by one."""
    return chunk.startswith(b"{", start) or chunk.find(TRACEBACK, start, end) >= 0


def lines_backwards(held: bytes, start: int, end: int, *, is_whole: bool) -> Iterator[bytes]:
    """Yield the lines between two places, last first; the one that `start` cuts only where it `is_whole`."""
    while (cut := held.rfind(b"\n", start, end)) >= 0:
        yield held[cut + 1 : end]
        end = cut
    if is_whole:
        yield held[start:end]
