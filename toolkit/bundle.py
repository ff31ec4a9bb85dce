"""One file that carries a recipe's store entries from one machine to another, for a CI cache.

A tar archive, uncompressed as wheels are compressed already and equal for equal entries: `bundle.json` first, naming
every other member with its sha256, then `entries/<kind>/<key>/<file>`, and the lock and the overlay's manifest for
people who look inside. Importing believes nothing: members, paths, hashes and wheel records are checked before an
entry gets its name in the store. The hashes show damage, not who made the file: import only what you would install.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from toolkit.errors import ArchiveError, HashMismatchError, StoreError
from toolkit.files import copy_hashed, safe_relative_path, sha256_bytes, sha256_file
from toolkit.store import Store
from toolkit.wheels.stored import RECORD_FILE, read_wheel_record

INDEX = "bundle.json"
SCHEMA = 1
KINDS = ("base", "native", "wheel")
AGAIN = "export it again"


@dataclass(frozen=True, kw_only=True, slots=True)
class BundleFile:
    """One file of an entry, `path` its name in the entry's folder; or one for people, `path` its member's name."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class BundleEntry:
    """One store entry."""

    kind: str
    key: str
    files: tuple[BundleFile, ...]


class Index(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """bundle.json, member for member; `key` is the overlay's."""

    schema: int
    recipe: str
    key: str
    entries: tuple[BundleEntry, ...]
    extra: tuple[BundleFile, ...]


class _AnyIndex(msgspec.Struct):
    """What every schema's bundle.json has."""

    schema: int


def export_bundle(
    store: Store, file: Path, *, recipe: str, key: str, entries: Sequence[tuple[str, str]], extra: Mapping[str, Path]
) -> Index:
    """Write the named (kind, key) entries to `file`; `extra` maps member names to files added for people to read.

    Raises StoreError naming an entry that the store lacks.
    """
    index = Index(
        schema=SCHEMA,
        recipe=recipe,
        key=key,
        entries=tuple(_describe(store, kind, name) for kind, name in dict.fromkeys(entries)),
        extra=tuple(_describe_file(name, path) for name, path in sorted(extra.items())),
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_name(f".part-{file.name}")
    try:
        with tarfile.open(aside, "w", format=tarfile.PAX_FORMAT) as archive:
            _add_bytes(archive, INDEX, msgspec.json.format(msgspec.json.encode(index), indent=1))
            for entry, item in _entry_files(index):
                _add_file(archive, _member_name(entry, item), store.root / entry.kind / entry.key / item.path)
            for item in index.extra:
                _add_file(archive, item.path, extra[item.path])
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)
    return index


def import_bundle(store: Store, file: Path) -> tuple[Index, int]:
    """Bring a bundle's entries into the store, every hash checked; return its index and how many were new.

    Raises ArchiveError, or HashMismatchError, and keeps no entry that is not whole and right.
    """
    try:
        with tarfile.open(file, "r:") as archive:
            index = _read_index(archive, file)
            _require_members(archive, index, file)
            for item in index.extra:
                _require_hash(item.path, item, sha256_bytes(_open(archive, item.path, item, file).read()), file)
            new = sum(_import_entry(store, archive, entry, file) for entry in index.entries)
    except (tarfile.TarError, EOFError) as fault:
        raise ArchiveError(f"{file} is no whole bundle: {fault}", hint=AGAIN) from fault
    return index, new


def _read_index(archive: tarfile.TarFile, file: Path) -> Index:
    first = archive.next()
    stream = archive.extractfile(first) if first is not None and first.name == INDEX and first.isreg() else None
    if stream is None:
        raise ArchiveError(f"{file} does not begin with {INDEX}", hint="expected a file of `toolkit cache export`")
    raw = stream.read()
    try:
        if (schema := msgspec.json.decode(raw, type=_AnyIndex).schema) != SCHEMA:
            raise ArchiveError(f"{file} has schema {schema}, this toolkit reads {SCHEMA}", hint=AGAIN)
        index = msgspec.json.decode(raw, type=Index)
    except (msgspec.MsgspecError, RecursionError) as fault:
        raise ArchiveError(f"{INDEX} in {file} cannot be read: {fault}", hint=AGAIN) from fault
    for entry in index.entries:
        _require_safe(entry, file)
    return index


def _require_safe(entry: BundleEntry, file: Path) -> None:
    if entry.kind not in KINDS or not re.fullmatch("[0-9a-f]{64}", entry.key):
        raise ArchiveError(
            f"{file} names an entry {entry.kind}/{entry.key}, expected {' or '.join(KINDS)} and a sha256"
        )
    for item in entry.files:
        try:
            if safe_relative_path(item.path).name != item.path:
                raise ValueError(f"{item.path!r} is not a plain file name")
        except ValueError as fault:
            raise ArchiveError(f"{file} has an unsafe member: {fault}") from fault


def _require_members(archive: tarfile.TarFile, index: Index, file: Path) -> None:
    """Check that the archive has what its index names, each once and nothing else."""
    named = [INDEX, *(_member_name(*pair) for pair in _entry_files(index)), *(item.path for item in index.extra)]
    present = archive.getnames()
    if missing := sorted(set(named) - set(present)):
        raise ArchiveError(f"{file} lacks {missing[0]}, which its index names", hint=AGAIN)
    if strange := sorted(set(present) - set(named)):
        raise ArchiveError(f"{file} has a member {strange[0]!r} that its index does not name", hint=AGAIN)
    if twice := [name for name, count in (Counter(named) + Counter(present)).items() if count != 2]:
        raise ArchiveError(f"{file} has {twice[0]} more than once", hint=AGAIN)


def _import_entry(store: Store, archive: tarfile.TarFile, entry: BundleEntry, file: Path) -> bool:
    if store.find(entry.kind, entry.key) is not None:
        return False

    def make(folder: Path) -> None:
        for item in entry.files:
            name = _member_name(entry, item)
            actual, _size = copy_hashed(_open(archive, name, item, file), folder / item.path)
            _require_hash(name, item, actual, file)
        _require_right(entry, folder, file)

    store.obtain(entry.kind, entry.key, make)
    return True


def _open(archive: tarfile.TarFile, name: str, item: BundleFile, file: Path) -> IO[bytes]:
    member = archive.getmember(name)
    stream = archive.extractfile(member) if member.isreg() and not member.issparse() else None
    if stream is None:
        raise ArchiveError(f"{name} in {file} is not a regular file")
    if member.size != item.size:
        raise ArchiveError(f"{name} in {file} has {member.size} bytes, its index says {item.size}", hint=AGAIN)
    return stream


def _require_hash(name: str, item: BundleFile, actual: str, file: Path) -> None:
    if actual != item.sha256:
        raise HashMismatchError(what=name, expected=item.sha256, actual=actual, origin=str(file), hint=AGAIN)


def _require_right(entry: BundleEntry, folder: Path, file: Path) -> None:
    """Check what an entry's key promises: a base's is its hash, a wheel's the digest of its record's inputs."""
    if entry.kind == "base":
        if [item.sha256 for item in entry.files] != [entry.key]:
            raise ArchiveError(f"base {entry.key} in {file} is not the file with that hash")
        return
    try:
        stored = read_wheel_record(folder)
    except StoreError as fault:
        raise ArchiveError(f"wheel {entry.key} in {file} does not hold: {fault.message}") from fault
    if stored.key.digest != entry.key or {item.path for item in entry.files} != {RECORD_FILE, stored.wheel.path.name}:
        raise ArchiveError(f"wheel {entry.key} in {file} is not what its record says")


def _describe(store: Store, kind: str, key: str) -> BundleEntry:
    folder = store.find(kind, key)
    if folder is None:
        raise StoreError(f"the store has no {kind} {key}", hint="build the recipe first: toolkit build --recipe NAME")
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return BundleEntry(kind=kind, key=key, files=tuple(_describe_file(path.name, path) for path in files))


def _describe_file(name: str, path: Path) -> BundleFile:
    return BundleFile(path=name, sha256=sha256_file(path), size=path.stat().st_size)


def _entry_files(index: Index) -> Iterator[tuple[BundleEntry, BundleFile]]:
    return ((entry, item) for entry in index.entries for item in entry.files)


def _member_name(entry: BundleEntry, item: BundleFile) -> str:
    return f"entries/{entry.kind}/{entry.key}/{item.path}"


def _add_bytes(archive: tarfile.TarFile, name: str, raw: bytes) -> None:
    archive.addfile(_member(name, len(raw)), io.BytesIO(raw))


def _add_file(archive: tarfile.TarFile, name: str, path: Path) -> None:
    with path.open("rb") as stream:
        archive.addfile(_member(name, path.stat().st_size), stream)


def _member(name: str, size: int) -> tarfile.TarInfo:
    """Describe a member by name and size only, so that equal entries give equal archives."""
    member = tarfile.TarInfo(name)
    member.size = size
    member.mode = 0o644
    return member
