"""What a file holds, told by its first bytes, never by its name: text in some encoding, a packed stream, or neither."""

from __future__ import annotations

import codecs
import re
from typing import Literal

TEXT_BEFORE = 256
LINES_BEFORE = 3
"""So much text makes a log of what goes on otherwise."""

HEAD = 1 << 16
"""How much of a file is looked at."""

Packing = Literal["gzip", "zstd", "xz", "bzip2"]
Encoding = Literal["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
"""How a text must be decoded; "utf-8" stands for everything that is read byte by byte, whatever encoding it is in."""

PACKED: tuple[tuple[re.Pattern[bytes], Packing], ...] = (
    (re.compile(rb"\x1f\x8b\x08"), "gzip"),
    (re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), "zstd"),  # A frame, or one to be skipped (RFC 8878).
    (re.compile(rb"\xfd7zXZ\x00"), "xz"),
    (re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), "bzip2"),
)

ARCHIVES: tuple[tuple[re.Pattern[bytes], str], ...] = (
    (re.compile(rb"[\s\S]{257}ustar"), "a tar archive"),
    (re.compile(rb"7z\xbc\xaf\x27\x1c"), "a 7z archive"),
    (re.compile(rb"Rar!\x1a\x07"), "a rar archive"),
    (re.compile(rb"\x04\x22\x4d\x18"), "an lz4 stream"),
)
"""What may well hold logs, and is not looked into."""

BINARY = re.compile(
    rb"PK[\x03\x05]|\x7fELF|\x89(?:PNG|HDF)|\x93NUMPY|GIF8|%PDF-|\xff\xd8\xff|SQLite format 3\x00|!<arch>\n"
    rb"|[\s\S]{4}\x00{4}\{"  # safetensors: the length of a header in JSON.
)
"""Files that begin with much text, or are told soonest by their first bytes."""

MARKS: tuple[tuple[bytes, Encoding], ...] = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # Begins with the mark of UTF-16.
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
WIDTHS: tuple[tuple[Encoding, int, tuple[int, ...], int], ...] = (
    ("utf-32-le", 4, (2, 3), 0),
    ("utf-32-be", 4, (0, 1), 3),
    ("utf-16-le", 2, (1,), 0),
    ("utf-16-be", 2, (0,), 1),
)
"""Encodings without a mark: bytes of a unit, those that are mostly 0 in a log, and one that hardly ever is."""

MOSTLY, HARDLY = 0.6, 0.05

CONTROLS = bytes(set(range(32)) - set(b"\a\b\t\n\v\f\r\x0e\x0f\x1b"))
"""What a log does not have, of the first 32 characters: the others move a terminal's cursor or change its colours."""

FEW = 0.01
"""How much of a text may be control characters, or may not decode."""


def packing_of(head: bytes) -> Packing | None:
    """Tell how a file is packed; None for one that is not."""
    return next((packing for magic, packing in PACKED if magic.match(head)), None)


def archive_of(head: bytes) -> str | None:
    """Name the kind of archive; None for what is none, or is a zip, as checkpoints are."""
    return next((kind for magic, kind in ARCHIVES if magic.match(head)), None)


def encoding_of(head: bytes) -> Encoding | None:
    """Tell the encoding of a text; None for what is no text.

    A text may have runs of NUL bytes, which a crash or a rotation leaves behind; one that has nothing else yet is
    given the benefit of the doubt.
    """
    if BINARY.match(head):
        return None
    marked = next((name for mark, name in MARKS if head.startswith(mark) and _decodes(head, name)), None)
    if marked is not None:
        return marked
    if b"\0" in head:
        wide = next((one[0] for one in WIDTHS if _has_zeros(head, *one[1:]) and _decodes(head, one[0])), None)
        if wide is not None:
            return wide
    return "utf-8" if _is_plain(head) or _begins_plain(head) else None


def _has_zeros(head: bytes, width: int, mostly: tuple[int, ...], hardly: int) -> bool:
    units = len(head) // width
    if not units:
        return False
    shares = [head[at : units * width : width].count(0) / units for at in range(width)]
    return all(shares[at] >= MOSTLY for at in mostly) and shares[hardly] <= HARDLY


def _decodes(head: bytes, encoding: Encoding) -> bool:
    """Whether some bytes make sense in an encoding; the last character may be cut."""
    text = codecs.getincrementaldecoder(encoding)("replace").decode(head)
    strange = sum(text.count(chr(code)) for code in (*CONTROLS, 0xFFFD))
    return bool(text) and strange <= len(text) * FEW


def _begins_plain(head: bytes) -> bool:
    """Whether bytes begin with lines of text, as a log does that a dying machine has written something else behind."""
    broken = re.search(rb"[%s]" % re.escape(CONTROLS + b"\0"), head)
    text = head if broken is None else head[: broken.start()]
    return len(text) >= TEXT_BEFORE and text.count(b"\n") >= LINES_BEFORE


def _is_plain(head: bytes) -> bool:
    """Whether bytes are a text in an encoding that has ASCII in it; NULs count by the run, of which lines have few."""
    rest = head.replace(b"\0", b"")
    runs = len(re.findall(rb"\x00+", head)) if len(rest) < len(head) else 0
    strange = len(rest) - len(rest.translate(None, CONTROLS))
    return strange <= len(rest) * FEW and runs <= max(4, rest.count(b"\n"))
