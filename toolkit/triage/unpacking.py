"""Packed logs as they come: gzip, zstd, xz and bzip2, of one part or several, whole or cut."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from toolkit.triage.contents import Packing

PIECE = 1 << 17
"""How much is unpacked in one step: of damaged data, that much may be lost before the damage."""

STEP = 1 << 16
"""How much packed data a step is given at the most: what it leaves is copied for the next."""

MOST_MEMORY = 100 << 20
"""What the window of an xz stream may take; that of a zstd frame takes 128 MiB at the most, as with the tool."""

Note = Callable[[str], None]


class Decoder(Protocol):
    """What the standard library gives for bz2, lzma and zstd: one part of a stream."""

    @property
    def eof(self) -> bool:
        """Whether the part is whole."""

    @property
    def needs_input(self) -> bool:
        """Whether all that was given is used up."""

    @property
    def unused_data(self) -> bytes:
        """What was given beyond the part."""

    def decompress(self, data: bytes, /, max_length: int) -> bytes:
        """Return up to `max_length` bytes."""


class MissingLibraryError(Exception):
    """A library is not installed; the text says which."""


def unpack(blocks: Iterable[bytes], packing: Packing, note: Note) -> Iterator[bytes]:
    """Yield what a packed stream holds, in small pieces.

    What can be had of a damaged or cut stream comes, and then a note that says after which line it stops.
    """
    try:
        start, faults = _library(packing)
    except MissingLibraryError as fault:
        note(f"{packing}: cannot be read without {fault}")
        return
    stream = _Stream(start)
    for block in blocks:
        try:
            for at in range(0, len(block), STEP):
                yield from stream.take(block[at : at + STEP])
        except faults as fault:
            note(f"{packing}: cannot be unpacked {stream.place}: {fault}")
            return
    if not stream.is_whole:
        note(f"{packing}: cut off {stream.place}")
    elif stream.is_empty:
        note(f"{packing}: empty")


class _Stream:
    """Puts the parts of a stream together."""

    def __init__(self, start: Callable[[], Decoder]) -> None:
        self._start = start
        self._decoder = start()
        self._is_fresh = True
        self._parts = 0
        self._lines = 0
        self.is_empty = True

    @property
    def is_whole(self) -> bool:
        """Whether a part has ended and no other has begun."""
        return self._is_fresh and self._parts > 0

    @property
    def place(self) -> str:
        """Say how far it was read."""
        if self.is_empty:
            return "at its very beginning"
        return f"after line {self._lines}" if self._lines else "within the first line"

    def take(self, block: bytes) -> Iterator[bytes]:
        """Yield what comes out for a piece of the packed stream; zeros between parts fill up tapes and disks."""
        while True:
            if self._is_fresh and self._parts:
                block = block.lstrip(b"\0")
            if not block and self._is_fresh:
                return
            self._is_fresh = False
            found = self._decoder.decompress(block, PIECE)
            if found:
                self.is_empty = False
                self._lines += found.count(b"\n")
                yield found
            if self._decoder.eof:
                block = self._decoder.unused_data
                self._parts += 1
                self._decoder, self._is_fresh = self._start(), True
            elif self._decoder.needs_input:
                return
            else:
                block = b""


class _Inflater:
    """Gives zlib's decompressor the shape of the others."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(31)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, /, max_length: int) -> bytes:
        found = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self.needs_input = not self._inner.unconsumed_tail and len(found) < max_length
        return found


def _library(packing: Packing) -> tuple[Callable[[], Decoder], tuple[type[Exception], ...]]:
    """Return what starts a part, and what it raises for bytes that are none; imported when it is met."""
    if packing == "gzip":
        return _Inflater, (zlib.error,)
    if packing == "zstd":
        return _zstd()
    try:
        if packing == "xz":
            import lzma

            return lambda: lzma.LZMADecompressor(memlimit=MOST_MEMORY), (lzma.LZMAError,)
        import bz2

        return bz2.BZ2Decompressor, (OSError, ValueError)
    except ImportError as fault:  # Pythons are built without them where their headers were missing.
        raise MissingLibraryError(f"Python's {fault.name}") from fault


def _zstd() -> tuple[Callable[[], Decoder], tuple[type[Exception], ...]]:
    zstd: Any
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError as fault:
        raise MissingLibraryError(f"{fault.name}: pip install backports.zstd, or unpack it first") from fault
    return zstd.ZstdDecompressor, (zstd.ZstdError,)
