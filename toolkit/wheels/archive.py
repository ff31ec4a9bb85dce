"""Wheels, read without trust: their metadata, their RECORD, and their files laid out while they are hashed."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.parser import BytesHeaderParser
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from toolkit.errors import SourceError
from toolkit.files import available_cores
from toolkit.wheels.record import RECORD, FileDigest, RecordLine, parse_record, record_problems
from toolkit.wheels.zipread import Member, content_pieces, raw_pieces, read_members, refusal

WANTED = ("METADATA", "WHEEL", RECORD)
NO_WHEEL = "it is no wheel, or a damaged one"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class WheelMetadata:
    """What METADATA and WHEEL say, as they say it."""

    name: str
    version: str
    tags: tuple[str, ...]
    root_is_purelib: bool


@contextlib.contextmanager
def open_wheel(path: Path) -> Iterator[WheelArchive]:
    """Open a wheel for reading.

    Raises SourceError, naming the member, for a file that is cut short or no zip, that has a member which could be
    written outside its folder or twice, a symlink or an encrypted one, or not exactly one whole dist-info.
    """
    with open(path, "rb") as stream:
        yield WheelArchive(path, stream.fileno(), read_members(path, stream))


class WheelArchive:
    """An open wheel; `members` are its files by name, in the archive's order (folders are left out)."""

    def __init__(self, path: Path, descriptor: int, members: Mapping[str, Member]) -> None:
        self.path = path
        self.members = members
        self._descriptor = descriptor
        self.dist_info = _find_dist_info(path, members)
        self.metadata = self._read_metadata()

    def read(self, name: str) -> bytes:
        """Return a member's content; SourceError where it is not what the archive lists."""
        return b"".join(content_pieces(self.path, self._descriptor, self.members[name]))

    def raw_pieces(self, name: str) -> Iterator[bytes]:
        """Yield a member's bytes as they stand in the archive, compressed or not."""
        return raw_pieces(self.path, self._descriptor, self.members[name])

    def extract(self, names: Iterable[str], into: Path) -> dict[str, FileDigest]:
        """Write members below `into` under their own names; see `extract_as`."""
        return self.extract_as({name: name for name in names}, into)

    def extract_as(self, places: Mapping[str, str], into: Path) -> dict[str, FileDigest]:
        """Write members to new files at their places below `into`; return hash and size of what was written, by place.

        Hashes while writing, in constant memory; modes are 0644 or 0755 whatever the umask. A file that is there
        already is an error.
        """
        root = str(into)
        for folder in sorted({os.path.dirname(place) for place in places.values()}):
            os.makedirs(f"{root}/{folder}", exist_ok=True)

        def write(name: str) -> FileDigest:
            return self._write(name, f"{root}/{places[name]}")

        return {places[name]: digest for name, digest in self._side_by_side(write, places).items()}

    def digests(self, names: Iterable[str]) -> dict[str, FileDigest]:
        """Return hash and size of members' contents, by name in the order given, without writing them."""

        def digest(name: str) -> FileDigest:
            return _digest(content_pieces(self.path, self._descriptor, self.members[name]))

        return self._side_by_side(digest, names)

    @cached_property
    def record(self) -> tuple[RecordLine, ...]:
        """The lines of RECORD; SourceError where it cannot be read."""
        name = f"{self.dist_info}/{RECORD}"
        try:
            return parse_record(self.read(name).decode("utf-8"))
        except ValueError as fault:
            raise refusal(self.path, name, f"cannot be read: {fault}") from fault

    def verify_record(self) -> list[str]:
        """List where RECORD does not say what is in the wheel; reads and hashes every member."""
        return record_problems(self.record, self.digests(self.members), self.dist_info)

    def _write(self, name: str, target: str) -> FileDigest:
        member = self.members[name]
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(descriptor, member.mode)
            pieces = content_pieces(self.path, self._descriptor, member)
            return _digest(pieces, lambda piece: _write_all(descriptor, piece))
        except OSError as fault:
            fault.filename = fault.filename or target
            raise
        finally:
            os.close(descriptor)

    def _side_by_side(self, work: Callable[[str], T], names: Iterable[str]) -> dict[str, T]:
        """Do the work for each name, on every core: inflating, hashing and writing release the interpreter's lock."""
        ordered = list(names)
        results: dict[str, T] = {}
        queue = iter(sorted(ordered, key=lambda name: -self.members[name].size))

        def drain() -> None:
            try:
                for name in queue:
                    results[name] = work(name)
            except BaseException:
                for _ in queue:  # So that the other threads end, too.
                    pass
                raise

        with ThreadPoolExecutor(available_cores()) as pool:
            for done in [pool.submit(drain) for _ in range(available_cores())]:
                done.result()
        return {name: results[name] for name in ordered}

    def _read_metadata(self) -> WheelMetadata:
        """Read METADATA and WHEEL, which must agree with the name of the dist-info folder."""
        metadata = BytesHeaderParser().parsebytes(self.read(f"{self.dist_info}/METADATA"))
        wheel = BytesHeaderParser().parsebytes(self.read(f"{self.dist_info}/WHEEL"))
        name, version = str(metadata.get("Name", "")), str(metadata.get("Version", ""))
        if not _is_dist_info_of(self.dist_info, name, version):
            why = f"has name {name!r} and version {version!r}, unlike its folder"
            raise refusal(self.path, f"{self.dist_info}/METADATA", why)
        if str(wheel.get("Wheel-Version", "")).partition(".")[0] != "1":
            raise refusal(self.path, f"{self.dist_info}/WHEEL", "is not of Wheel-Version 1")
        return WheelMetadata(
            name=name,
            version=version,
            tags=tuple(str(tag) for tag in wheel.get_all("Tag", [])),
            root_is_purelib=str(wheel.get("Root-Is-Purelib", "")).lower() == "true",
        )


def _find_dist_info(path: Path, members: Mapping[str, Member]) -> str:
    tops = {name.partition("/")[0] for name in members}
    folders = sorted(top for top in tops if top.endswith(".dist-info"))
    if len(folders) != 1:
        found = f"{len(folders)} dist-info folders ({', '.join(folders)})" if folders else "no dist-info folder"
        raise SourceError(f"{path.name} has {found}, expected one", hint=NO_WHEEL)
    for name in WANTED:
        if f"{folders[0]}/{name}" not in members:
            raise SourceError(f"{path.name} lacks {folders[0]}/{name}", hint=NO_WHEEL)
    return folders[0]


def _is_dist_info_of(folder: str, name: str, version: str) -> bool:
    own_name, _, own_version = folder.removesuffix(".dist-info").rpartition("-")
    try:
        same_version = Version(own_version) == Version(version)
    except InvalidVersion:
        return False
    return same_version and canonicalize_name(own_name) == canonicalize_name(name)


def _digest(pieces: Iterable[bytes], keep: Callable[[bytes], object] | None = None) -> FileDigest:
    digest = hashlib.sha256()
    size = 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
        if keep is not None:
            keep(piece)
    return digest.hexdigest(), size


def _write_all(descriptor: int, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(descriptor, view) :]
