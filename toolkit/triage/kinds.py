"""Which files of a folder are logs: told by what they hold, after unpacking."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Literal

from toolkit.triage.contents import HEAD, archive_of, encoding_of, packing_of
from toolkit.triage.unpacking import unpack

Kind = Literal["log", "archive", "binary", "empty", "Python source", "profiler's trace"]

MOST_PACKED = 1 << 20
"""How much of a packed file is read for the first bytes of what it holds: a block of bzip2 has up to 0.9 MB."""

CODE = re.compile(rb"^(?:import [\w.]+|from [\w.]+ import |def \w+\(|class \w+)", re.MULTILINE)
"""Code, where the name says so as well: a log may begin with the script that ran."""

TRACE = re.compile(rb'\s*(?:\{\s*"(?:schemaVersion|traceEvents|deviceProperties)"|\[\s*\{\s*"(?:ph|ts|name|pid|args)")')


def kind_of(path: str) -> Kind:
    """Tell what a regular file is; OSError where it cannot be read.

    Whatever may be a log is one: a packed file that does not open, a text in an unknown encoding.
    """
    with open(path, "rb") as stream:
        head = stream.read(HEAD)
        packing = packing_of(head)
        if packing is not None:
            stream.seek(0)
            head = _first(unpack(_blocks(stream), packing, lambda _: None))
            if not head:
                return "log"
    if path.endswith(".py") and CODE.search(head):
        return "Python source"
    return _kind_of_head(head)


def _kind_of_head(head: bytes) -> Kind:
    if not head:
        return "empty"
    if archive_of(head) is not None:
        return "archive"
    if TRACE.match(head):
        return "profiler's trace"
    return "binary" if encoding_of(head) is None else "log"


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    for _ in range(MOST_PACKED // HEAD):
        yield stream.read(HEAD)


def _first(pieces: Iterator[bytes]) -> bytes:
    """Return enough of a stream to tell what it holds."""
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= HEAD:
            break
    return head[:HEAD]
