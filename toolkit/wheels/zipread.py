"""Zip archives, read without trust: what cannot be laid out safely is refused before a byte is written."""

from __future__ import annotations

import contextlib
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import IO

from toolkit.errors import SourceError
from toolkit.files import safe_relative_path

inflater: ModuleType = zlib
with contextlib.suppress(ImportError):  # Inflates to the same bytes in about half of zlib's time.
    from isal import isal_zlib

    inflater = isal_zlib

PIECE = 1 << 20
LOCAL_HEADER = struct.Struct("<4s5H3L2H")
HEADER_ROOM = 512
"""How much a local header usually takes at most, so that a small member is read in one call."""
ENCRYPTED = 0x1
UTF8 = 0x800
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One file of the archive. `mode` is 0o644 or 0o755; `offset` is where its local header starts."""

    name: str
    size: int
    compressed_size: int
    crc: int
    method: int
    mode: int
    offset: int


def read_members(path: Path, stream: IO[bytes]) -> dict[str, Member]:
    """Read the central directory and return the files by name, in its order; folders are left out.

    Raises SourceError, naming the member, where one could be written outside its folder or twice, shares bytes with
    another, is no regular file, is encrypted, or is compressed in a way that no wheel is.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            entries = archive.infolist()
            end = archive.start_dir
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, struct.error) as fault:
        raise SourceError(
            f"{path.name} is not a whole zip archive: {fault}", hint="it may be cut short: fetch it again"
        ) from fault
    _check_names(path, entries)
    _check_layout(path, entries, end)
    return {entry.filename: _member(path, entry) for entry in entries if not entry.is_dir()}


def content_pieces(path: Path, descriptor: int, member: Member) -> Iterator[bytes]:
    """Yield a member's content in pieces of at most 1 MiB; its size and CRC are checked at the end."""
    crc = size = 0
    for piece in _inflated(path, descriptor, member):
        crc = inflater.crc32(piece, crc)
        size += len(piece)
        if size > member.size:
            break
        yield piece
    if size != member.size or crc != member.crc:
        raise refusal(path, member.name, "is damaged: its size or CRC is not the one listed")


def raw_pieces(path: Path, descriptor: int, member: Member) -> Iterator[bytes]:
    """Yield a member's bytes as they stand in the archive, compressed or not. Any number of threads may read."""
    block = os.pread(descriptor, min(PIECE, HEADER_ROOM + member.compressed_size), member.offset)
    start = _content_start(path, member, block)
    piece = block[start : start + member.compressed_size]
    position, left = member.offset + start, member.compressed_size
    while True:
        yield piece
        position, left = position + len(piece), left - len(piece)
        if not left:
            return
        piece = os.pread(descriptor, min(PIECE, left), position)
        if not piece:
            raise refusal(path, member.name, "is cut short")


def find_clash(names: Iterable[str]) -> str | None:
    """Return a name that is a file and also a folder, or None; a folder's own entry ends with a slash."""
    listed = frozenset(names)
    folders = {os.path.dirname(name) for name in listed}
    pending = folders
    while pending := {os.path.dirname(folder) for folder in pending} - folders:
        folders |= pending
    return min(listed & folders, default=None)


def refusal(path: Path, name: str, why: str) -> SourceError:
    """Return the error that names an archive's member."""
    return SourceError(f"{path.name}: member {name!r} {why}", hint="do not use this file; pin another artifact")


def _check_names(path: Path, entries: list[zipfile.ZipInfo]) -> None:
    """Refuse names that leave the folder, stand twice, or are a file here and a folder there."""
    seen: set[str] = set()
    for entry in entries:
        try:
            safe_relative_path(entry.orig_filename)
        except ValueError as fault:
            raise refusal(path, entry.orig_filename, f"has an unsafe name: {fault}") from fault
        if entry.filename in seen:
            raise refusal(path, entry.filename, "is there twice")
        seen.add(entry.filename)
    if clash := find_clash(seen):
        raise refusal(path, clash, "is a file and a folder at once")


def _check_layout(path: Path, entries: list[zipfile.ZipInfo], end: int) -> None:
    """Refuse members that share bytes: a small archive could otherwise unpack to any size."""
    ordered = sorted(entries, key=lambda entry: entry.header_offset)
    limits = [entry.header_offset for entry in ordered[1:]] + [end]
    for entry, limit in zip(ordered, limits, strict=False):
        if entry.header_offset < 0 or entry.header_offset + LOCAL_HEADER.size + entry.compress_size > limit:
            raise refusal(path, entry.filename, "overlaps what comes after it")


def _member(path: Path, entry: zipfile.ZipInfo) -> Member:
    mode = entry.external_attr >> 16
    if stat.S_ISLNK(mode):
        raise refusal(path, entry.filename, "is a symlink")
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise refusal(path, entry.filename, "is not a regular file")
    if entry.flag_bits & ENCRYPTED:
        raise refusal(path, entry.filename, "is encrypted")
    if entry.compress_type not in METHODS:
        raise refusal(path, entry.filename, f"is compressed by method {entry.compress_type}, expected 0 or 8")
    return Member(
        name=entry.filename,
        size=entry.file_size,
        compressed_size=entry.compress_size,
        crc=entry.CRC,
        method=entry.compress_type,
        mode=0o755 if mode & 0o111 else 0o644,
        offset=entry.header_offset,
    )


def _inflated(path: Path, descriptor: int, member: Member) -> Iterator[bytes]:
    if member.method == zipfile.ZIP_STORED:
        yield from raw_pieces(path, descriptor, member)
        return
    engine = inflater.decompressobj(-15)
    try:
        for raw in raw_pieces(path, descriptor, member):
            yield (piece := engine.decompress(raw, PIECE))
            while len(piece) == PIECE:  # There may be more, even where all input was taken.
                yield (piece := engine.decompress(engine.unconsumed_tail, PIECE))
    except (zlib.error, inflater.error) as fault:
        raise refusal(path, member.name, f"is damaged: {fault}") from fault
    if not engine.eof:
        raise refusal(path, member.name, "is damaged: its compressed data does not end")


def _content_start(path: Path, member: Member, block: bytes) -> int:
    """Return where content starts from the local header on, which must be that member's."""
    if len(block) < LOCAL_HEADER.size or not block.startswith(b"PK\3\4"):
        raise refusal(path, member.name, "has no local header")
    fields = LOCAL_HEADER.unpack_from(block)
    flags, method, name_length, extra_length = fields[2], fields[3], fields[9], fields[10]
    own_name = block[LOCAL_HEADER.size : LOCAL_HEADER.size + name_length]
    if method != member.method or own_name != member.name.encode("utf-8" if flags & UTF8 else "cp437", "replace"):
        raise refusal(path, member.name, "is another file in its local header")
    return LOCAL_HEADER.size + int(name_length) + int(extra_length)
