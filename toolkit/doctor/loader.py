"""Which files the dynamic loader would take for the libraries that others need, found by its own rules (ld.so(8))."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.doctor.elf import ElfError, Library, open_library
from toolkit.doctor.places import split_paths

CACHE_MAGIC = b"glibc-ld.so.cache1.1"
CACHE_HEADER = struct.Struct("<20sIIB3xI12x")
CACHE_ENTRY = struct.Struct("<iIIIQ")

USUAL_FOLDERS = ("lib64", "usr/lib64", "lib", "usr/lib", "lib/{machine}-linux-gnu", "usr/lib/{machine}-linux-gnu")


@dataclass(frozen=True, kw_only=True, slots=True)
class Missing:
    """A library that is not found; `by` is the file that needs it first, `broken` what is wrong with the one found."""

    name: str
    by: str
    broken: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Closure:
    """What is loaded with some libraries: themselves, all that they need in turn, and what of that is missing."""

    libraries: tuple[Library, ...]
    missing: tuple[Missing, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """Where libraries are looked for: `cache` is `read_cache(root)`, `loaded` are folders of what is loaded already."""

    library_path: str
    root: Path
    loaded: tuple[Path, ...]
    cache: Mapping[str, str]


def load_closure(starts: Sequence[Path], search: Search) -> Closure:
    """Follow what the libraries at `starts` need. What every machine has (libc and its like) is not looked for.

    Raises ElfError or OSError for a start that cannot be read.
    """
    from toolkit.sysroot.needs import SYSTEM_LIBRARY

    libraries: dict[str, Library] = {}
    missing: dict[str, Missing] = {}
    pending: list[tuple[Library, tuple[Path, ...]]] = []
    for start in starts:
        library = open_library(start)
        libraries[library.soname] = library
        pending.append((library, ()))
    while pending:
        library, inherited = pending.pop(0)
        own = (*_run_folders(library, library.old_run_path), *inherited)
        for name in library.needed:
            if name in libraries or name in missing or SYSTEM_LIBRARY.fullmatch(name):
                continue
            found = _find(name, library, own, search)
            if isinstance(found, Missing):
                # What torch's own libraries need is torch's affair: it has loaded them already.
                if library.path.parent not in search.loaded:
                    missing[name] = found
            else:
                libraries[name] = found
                pending.append((found, own))
    return Closure(libraries=tuple(libraries.values()), missing=tuple(missing.values()))


def _find(name: str, by: Library, inherited: Sequence[Path], search: Search) -> Library | Missing:
    """Return the first file of that name for the machine; one that is broken ends the search, as in the loader."""
    for path in _candidates(name, by, inherited, search):
        if not os.path.isfile(path):
            continue
        try:
            library = open_library(path)
        except (ElfError, OSError) as fault:
            return Missing(name=name, by=by.path.name, broken=str(fault))
        if library.machine == by.machine:
            return library
    return Missing(name=name, by=by.path.name)


def _candidates(name: str, by: Library, inherited: Sequence[Path], search: Search) -> Iterator[Path]:
    yield from (folder / name for folder in search.loaded)
    if not by.run_path:
        yield from (folder / name for folder in inherited)
    yield from (folder / name for folder in split_paths(search.library_path))
    yield from (folder / name for folder in _run_folders(by, by.run_path))
    if cached := search.cache.get(name):
        yield search.root / cached.lstrip("/")
    yield from (search.root / folder.format(machine=by.machine) / name for folder in USUAL_FOLDERS)


def _run_folders(library: Library, entries: Sequence[str]) -> list[Path]:
    origin = str(library.path.parent)
    return [Path(entry.replace("$ORIGIN", origin).replace("${ORIGIN}", origin)) for entry in entries]


def read_cache(root: Path) -> Mapping[str, str]:
    """Read which path /etc/ld.so.cache has for each name; the first one wins."""
    try:
        raw = (root / "etc/ld.so.cache").read_bytes()
        start = raw.index(CACHE_MAGIC)
        _, count, *_ = CACHE_HEADER.unpack_from(raw, start)
        found: dict[str, str] = {}
        for number in range(count):
            _, key, value, _, _ = CACHE_ENTRY.unpack_from(raw, start + CACHE_HEADER.size + CACHE_ENTRY.size * number)
            found.setdefault(_text(raw, start + key), _text(raw, start + value))
        return found
    except (OSError, ValueError, struct.error):
        return {}


def _text(raw: bytes, offset: int) -> str:
    return raw[offset : raw.index(b"\0", offset)].decode("utf-8", "replace")
