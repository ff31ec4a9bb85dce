"""A log's bytes, whatever it comes as: plain or packed, in UTF-8 or UTF-16, still growing, cut, or not to be read."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import select
import stat
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO

from toolkit.triage.contents import HEAD, Encoding, archive_of, encoding_of, packing_of
from toolkit.triage.sources import Remark, Source, find_sources, why_refused
from toolkit.triage.unpacking import Note, unpack

__all__ = ["LONGEST", "Remark", "Source", "find_sources", "read_chunks"]

BLOCK = 1 << 20
LONGEST = 4 << 20
"""A longer line comes in pieces."""


def read_chunks(source: Source, note: Note, stdin: BinaryIO | None = None) -> Iterator[bytes]:
    r"""Yield a log in chunks of whole lines, about 1 MiB each, never decoded; raise nothing for what cannot be read.

    A chunk ends with `\n`, the last one of a log aside, and a line of more than 4 MiB: that comes in pieces, of which
    all but the last have no line end at all, so that whatever follows a chunk without one continues its line; no
    piece begins with `\n`, or within a character. Bytes are as they are in the log, apart from NULs, which are taken
    out, and from UTF-16 and UTF-32, which become UTF-8. `note` is told in a line what is wrong with the log: binary,
    empty, cut, damaged, gone. Of a file that grows, what it had when it was opened is read.
    """
    try:
        with _opened(source, stdin) as stream:
            refused = _why_refused(stream)
            if refused is not None:
                note(refused)
                return
            yield from _whole_lines(_text(_blocks(stream, note), note))
    except OSError as fault:
        note(f"cannot be read: {fault.strerror}")


@contextlib.contextmanager
def _opened(source: Source, stdin: BinaryIO | None) -> Iterator[BinaryIO]:
    if source.path is not None:
        with open(source.path, "rb") as stream:
            yield stream
    elif stdin is not None:
        yield stdin
    elif sys.stdin is not None:
        yield sys.stdin.buffer
    else:
        yield io.BytesIO()


def _status(stream: BinaryIO) -> os.stat_result | None:
    try:
        return os.fstat(stream.fileno())
    except io.UnsupportedOperation:  # In memory.
        return None


def _why_refused(stream: BinaryIO) -> str | None:
    status = _status(stream)
    return None if status is None else why_refused(status)


# --- bytes -------------------------------------------------------------------------------------------------------


def _blocks(stream: BinaryIO, note: Note) -> Iterator[bytes]:
    """Yield a stream's bytes: of a file as many as it has now, of all else until it ends."""
    left = _size_left(stream)
    while left is None or left > 0:
        try:
            block = _read(stream, BLOCK if left is None else min(BLOCK, left))
        except OSError as fault:
            note(f"cannot be read further: {fault.strerror}")
            return
        if not block:
            break
        left = None if left is None else left - len(block)
        yield block
    if left:
        note(f"became shorter while it was read: {left} bytes are gone")


def _size_left(stream: BinaryIO) -> int | None:
    status = _status(stream)
    return status.st_size - stream.tell() if status is not None and stat.S_ISREG(status.st_mode) else None


def _read(stream: BinaryIO, size: int) -> bytes:
    """Read, and wait where a pipe was set not to."""
    while True:
        block: bytes | None = stream.read(size)
        if block is not None:
            return block
        select.select([stream], [], [])


# --- text --------------------------------------------------------------------------------------------------------


def _text(blocks: Iterator[bytes], note: Note) -> Iterator[bytes]:
    """Yield what a log says, unpacked and as UTF-8, without NULs; nothing of what is no log."""
    head, blocks = _peek(blocks)
    packing = packing_of(head)
    if packing is not None:
        head, blocks = _peek(unpack(blocks, packing, note))
    archive, encoding = archive_of(head), encoding_of(head)
    if not head:
        if packing is None:  # Else it was said why nothing came.
            note("empty")
    elif archive is not None:
        note(f"{archive}, not looked into: unpack it first")
    elif encoding is None:
        note("binary, not a log")
    else:
        yield from _without_nulls(_recoded(blocks, encoding), note)


def _peek(blocks: Iterable[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first bytes and, with them, all blocks."""
    blocks = iter(blocks)
    first: list[bytes] = []
    while sum(map(len, first)) < HEAD and (block := next(blocks, b"")):
        first.append(block)
    return b"".join(first)[:HEAD], chain(first, blocks)


def _recoded(blocks: Iterator[bytes], encoding: Encoding) -> Iterator[bytes]:
    """Yield UTF-8 without a byte order mark."""
    if encoding == "utf-8":
        first = next(blocks, b"")
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from blocks
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    is_first = True
    for block in chain(blocks, [b""]):
        text = decoder.decode(block, final=not block)
        if is_first and text:
            text, is_first = text.removeprefix("\ufeff"), False
        yield text.encode("utf-8")


def _without_nulls(blocks: Iterator[bytes], note: Note) -> Iterator[bytes]:
    """Yield blocks without the NULs that a crash or a rotation leaves in a log."""
    nulls = others = 0
    for block in blocks:
        kept = block.replace(b"\0", b"") if b"\0" in block else block
        nulls, others = nulls + len(block) - len(kept), others + len(kept)
        yield kept
    if nulls:
        note(f"has {nulls} NUL bytes, left out" if others else "nothing but NUL bytes, not a log")


# --- lines -------------------------------------------------------------------------------------------------------


def _whole_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield blocks cut at line ends, and longer lines in pieces."""
    held: list[bytes] = []
    size = 0
    for block in blocks:
        size += len(block)
        cut = block.rfind(b"\n") + 1 if size >= BLOCK else 0
        if cut:
            yield b"".join([*held, memoryview(block)[:cut]])
            held, size = [block[cut:]], len(block) - cut
            continue
        held.append(block)
        if size > LONGEST:
            whole = b"".join(held)
            cut = whole.rfind(b"\n") + 1 or _inner_cut(whole)
            yield whole[:cut]
            held, size = [whole[cut:]], len(whole) - cut
    if size:
        yield b"".join(held)


def _inner_cut(line: bytes) -> int:
    """Return where a long line is cut: not within a character of UTF-8."""
    continues = (at for at in range(LONGEST, LONGEST - 4, -1) if line[at] & 0xC0 != 0x80)
    return next(continues, LONGEST)
