"""An ELF library as the dynamic loader sees it: what it needs, where it looks, which names it lacks and has.

The file is mapped and a name is found through its hash table, so that asking one of 400 MB for a hundred names takes
a millisecond; pyelftools, which the sysroot's generator uses, walks through every symbol. 64-bit little endian only, as
every platform is that wheels are made for.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"\x7fELF\x02\x01"
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SEGMENT = struct.Struct("<IIQQQQQQ")
ENTRY = struct.Struct("<qQ")
SYMBOL = struct.Struct("<IBBHQQ")

MACHINES = {62: "x86_64", 183: "aarch64"}
"""e_machine of the platforms that wheels are made for."""

PT_LOAD, PT_DYNAMIC = 1, 2
NEEDED, HASH, STRTAB, SYMTAB, SONAME, RPATH, RUNPATH = 1, 4, 5, 6, 14, 15, 29
GNU_HASH, VERSYM = 0x6FFFFEF5, 0x6FFFFFF0
WEAK = 2


class ElfError(ValueError):
    """A file that is no whole 64-bit ELF library."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Library:
    """One library. `run_path` is its DT_RUNPATH, `old_run_path` its DT_RPATH, each as it stands, cut at colons."""

    path: Path
    machine: str
    soname: str
    needed: tuple[str, ...]
    run_path: tuple[str, ...]
    old_run_path: tuple[str, ...]
    raw: mmap.mmap
    segments: tuple[tuple[int, int, int], ...]
    places: Mapping[int, int]

    def undefined(self) -> list[str]:
        """List the names that another library must have: weak ones and those bound to a version (libc's) left out."""
        return list(_undefined(self))

    def defines(self, name: str) -> bool:
        """Whether the library exports a name."""
        return _is_defined(self, name)


def open_library(path: Path) -> Library:
    """Map a library. Raises ElfError for what is none, or cut short, OSError for what cannot be read."""
    if not path.is_file():  # To open a pipe would wait for who writes to it.
        raise ElfError(f"{path} is no file")
    with path.open("rb") as stream:
        if os.fstat(stream.fileno()).st_size < HEADER.size:
            raise ElfError(f"{path} is too short to be a library")
        raw = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        return _parse(path, raw)
    except ElfError:
        raise
    except (struct.error, IndexError, StopIteration, ValueError) as fault:
        raise ElfError(f"{path} is no whole 64-bit library") from fault


def _parse(path: Path, raw: mmap.mmap) -> Library:
    if raw[: len(MAGIC)] != MAGIC:
        raise ElfError(f"{path} does not begin as a 64-bit library does")
    _, _, machine, _, _, table, _, _, _, size, count, *_ = HEADER.unpack_from(raw)
    headers = [SEGMENT.unpack_from(raw, table + size * number) for number in range(count)]
    segments = tuple((place, offset, length) for kind, _, offset, place, _, length, _, _ in headers if kind == PT_LOAD)
    if any(offset + length > len(raw) for _, offset, length in segments):
        raise ElfError(f"{path} is cut short")
    dynamic = next(((offset, length) for kind, _, offset, _, _, length, *_ in headers if kind == PT_DYNAMIC), (0, 0))
    entries = list(_entries(raw, *dynamic))
    places = {
        tag: _offset(segments, value) for tag, value in entries if tag in (HASH, STRTAB, SYMTAB, GNU_HASH, VERSYM)
    }
    texts = places.get(STRTAB, 0)

    def strings(wanted: int) -> tuple[str, ...]:
        return tuple(_text(raw, texts + value) for tag, value in entries if tag == wanted)

    return Library(
        path=path,
        machine=MACHINES.get(machine, f"machine {machine}"),
        soname=next(iter(strings(SONAME)), path.name),
        needed=strings(NEEDED),
        run_path=tuple(entry for text in strings(RUNPATH) for entry in text.split(":") if entry),
        old_run_path=tuple(entry for text in strings(RPATH) for entry in text.split(":") if entry),
        raw=raw,
        segments=segments,
        places=places,
    )


def _entries(raw: mmap.mmap, offset: int, length: int) -> Iterator[tuple[int, int]]:
    for place in range(offset, offset + length - ENTRY.size + 1, ENTRY.size):
        tag, value = ENTRY.unpack_from(raw, place)
        if tag == 0:
            return
        yield tag, value


def _offset(segments: tuple[tuple[int, int, int], ...], address: int) -> int:
    """Return where in the file an address of the loaded library lies."""
    return next(offset + address - place for place, offset, length in segments if place <= address < place + length)


def _text(raw: mmap.mmap, offset: int) -> str:
    return raw[offset : raw.find(b"\0", offset)].decode("utf-8", "replace")


# --- symbols ---------------------------------------------------------------------------------------------------


def _undefined(library: Library) -> Iterator[str]:
    raw, places = library.raw, library.places
    if SYMTAB not in places or STRTAB not in places:
        return
    for number in range(1, _end_of_undefined(library)):
        name, info, _, section, _, _ = SYMBOL.unpack_from(raw, places[SYMTAB] + SYMBOL.size * number)
        if section == 0 and info >> 4 != WEAK and name and not _has_version(library, number):
            yield _text(raw, places[STRTAB] + name)


def _end_of_undefined(library: Library) -> int:
    """Return how many symbols to look at: a GNU hash table has those that are defined at the end."""
    raw, places = library.raw, library.places
    if GNU_HASH in places:
        _, first, _, _ = struct.unpack_from("<4I", raw, places[GNU_HASH])
        # An empty table gives 1 (ld) or 0: then the string table, which follows the symbols, ends them.
        if first > 1:
            return int(first)
    if HASH in places:
        return int(struct.unpack_from("<2I", raw, places[HASH])[1])
    return max(0, places[STRTAB] - places[SYMTAB]) // SYMBOL.size


def _has_version(library: Library, number: int) -> bool:
    if VERSYM not in library.places:
        return False
    (version,) = struct.unpack_from("<H", library.raw, library.places[VERSYM] + 2 * number)
    return int(version) & 0x7FFF > 1


def _is_defined(library: Library, name: str) -> bool:
    if not {SYMTAB, STRTAB} <= library.places.keys():
        return False
    sought = name.encode()
    if GNU_HASH in library.places:
        return any(_is_at(library, number, sought) for number in _gnu_candidates(library, sought))
    if HASH in library.places:
        count = struct.unpack_from("<2I", library.raw, library.places[HASH])[1]
        return any(_is_at(library, number, sought) for number in range(1, count))
    return False


def _gnu_candidates(library: Library, name: bytes) -> Iterator[int]:
    """Yield the numbers of the symbols whose hash is the name's."""
    raw, table = library.raw, library.places[GNU_HASH]
    bucket_count, first, words, _ = struct.unpack_from("<4I", raw, table)
    if not bucket_count:
        return
    wanted = _gnu_hash(name)
    buckets = table + 16 + 8 * words
    chains = buckets + 4 * bucket_count
    (number,) = struct.unpack_from("<I", raw, buckets + 4 * (wanted % bucket_count))
    while number >= first:
        (found,) = struct.unpack_from("<I", raw, chains + 4 * (number - first))
        if found | 1 == wanted | 1:
            yield number
        if found & 1:
            return
        number += 1


def _gnu_hash(name: bytes) -> int:
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


def _is_at(library: Library, number: int, name: bytes) -> bool:
    raw, places = library.raw, library.places
    text, _, _, section, _, _ = SYMBOL.unpack_from(raw, places[SYMTAB] + SYMBOL.size * number)
    start = places[STRTAB] + text
    return section != 0 and raw[start : start + len(name) + 1] == name + b"\0"
