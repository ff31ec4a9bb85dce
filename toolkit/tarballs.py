"""Source archives (`.tar.gz`), read without trust: every member is found safe before a byte is written.

What is laid out are regular files and folders. A link to a file of the archive becomes a copy of that file; all other
links, devices and the like are refused.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import posixpath
import shutil
import tarfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from toolkit.errors import SourceError
from toolkit.files import CHUNK, copy_hashed, safe_relative_path
from toolkit.wheels.zipread import find_clash, refusal

SUFFIX = ".tar.gz"
MAX_SIZE = 4 << 30
"""How many bytes an archive may unpack to."""

MAX_MEMBERS = 500_000
MAX_READ = 16 << 20
"""How many bytes of an archive are taken into memory at once, for a member's extended header for one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One file: the member that has its content, which is another one for a link, and 0o644 or 0o755."""

    member: str
    mode: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Tarball:
    """What an archive holds below its one top folder; `newest` is the latest time of a member, in seconds."""

    path: Path
    top: str
    entries: Mapping[str, Entry]
    newest: int


def list_tarball(path: Path) -> Tarball:
    """Read an archive's table of contents, and so all of it.

    Raises SourceError, naming the member, for one that is cut short, has no single top folder, would unpack to more
    than `MAX_SIZE`, or has a member that could be written outside its folder, over another one, or is no file.
    """
    members: dict[str, tarfile.TarInfo] = {}
    folders: set[str] = set()
    size = newest = 0
    with _opened(path) as archive:
        for member in archive:
            name = _safe_name(path, member)
            size += max(member.size, 0)
            if member.size < 0 or size > MAX_SIZE or len(members) + len(folders) > MAX_MEMBERS:
                raise refusal(path, name, f"makes the archive too large: more than {MAX_SIZE >> 30} GiB, or no size")
            if name in members:
                raise refusal(path, name, "is there twice")
            if member.isdir():
                folders.add(name)
            else:
                members[name] = member
            newest = max(newest, int(member.mtime))
    top = _only_top(path, {*members, *folders})
    _refuse_clashes(path, members, folders)
    cut = len(top) + 1
    entries = {name[cut:]: _entry(path, name, members) for name in sorted(members)}
    return Tarball(path=path, top=top, entries=entries, newest=newest)


def hash_files(tarball: Tarball, names: Iterable[str]) -> dict[str, str]:
    """Return the sha256 of files without writing them."""
    found: dict[str, str] = {}
    for stream, copies in _contents(tarball, names):
        digest = hashlib.sha256()
        while piece := stream.read(CHUNK):
            digest.update(piece)
        found |= dict.fromkeys(copies, digest.hexdigest())
    return found


def extract_files(tarball: Tarball, names: Collection[str], into: Path) -> dict[str, str]:
    """Write files to new ones below `into` under their own names; return the sha256 of what was written.

    Modes are 0644 or 0755 whatever the umask. A file that is there already is an error.
    """
    for folder in sorted({posixpath.dirname(name) for name in names}):
        (into / folder).mkdir(parents=True, exist_ok=True)
    found: dict[str, str] = {}
    for stream, copies in _contents(tarball, names):
        first = into / copies[0]
        digest, _ = copy_hashed(stream, first)
        for name in copies[1:]:
            shutil.copyfile(first, into / name)
        for name in copies:
            (into / name).chmod(tarball.entries[name].mode)
        found |= dict.fromkeys(copies, digest)
    return found


def read_file(tarball: Tarball, name: str) -> bytes:
    """Return one file's content."""
    return b"".join(stream.read() for stream, _ in _contents(tarball, [name]))


def _contents(tarball: Tarball, names: Iterable[str]) -> Iterator[tuple[IO[bytes], list[str]]]:
    """Yield each content that is asked for, with the files that have it, in the archive's order."""
    wanted: dict[str, list[str]] = {}
    for name in names:
        wanted.setdefault(tarball.entries[name].member, []).append(name)
    with _opened(tarball.path) as archive:
        for member in archive:
            if wanted and (copies := wanted.pop(member.name, None)):
                stream = archive.extractfile(member)
                assert stream is not None
                yield stream, copies
    if wanted:
        raise refusal(tarball.path, min(wanted), "is no longer there")


class _Bounded:
    """A stream that is never read into memory in one piece, whatever a header asks for."""

    def __init__(self, path: Path, stream: IO[bytes]) -> None:
        self._path = path
        self._stream = stream
        self.seek = stream.seek
        self.tell = stream.tell

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= MAX_READ:
            raise SourceError(
                f"{self._path.name} has a header of {size} bytes, expected {MAX_READ} at most",
                hint="do not use this file; pin another artifact",
            )
        return self._stream.read(size)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    """Open an archive; a fault in it, wherever that is come upon, is a SourceError."""
    try:
        with gzip.open(path) as stream:
            bounded = cast(IO[bytes], _Bounded(path, cast(IO[bytes], stream)))
            with tarfile.open(fileobj=bounded, mode="r:", errorlevel=2) as archive:
                yield archive
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError, OverflowError) as fault:
        raise SourceError(
            f"{path.name} is not a whole {SUFFIX} archive: {fault}", hint="it may be cut short: fetch it again"
        ) from fault


def _safe_name(path: Path, member: tarfile.TarInfo) -> str:
    name = member.name
    try:
        safe_relative_path(name)
        name.encode("utf-8")
    except ValueError as fault:
        raise refusal(path, name, f"has an unsafe name: {fault}") from fault
    if not (member.isdir() or member.issym() or member.islnk() or member.isreg()) or member.issparse():
        raise refusal(path, name, "is no regular file")
    return name


def _only_top(path: Path, names: Collection[str]) -> str:
    tops = sorted({name.partition("/")[0] for name in names})
    if len(tops) != 1 or not any("/" in name for name in names):
        raise SourceError(
            f"{path.name} has {len(tops)} files and folders at its top ({', '.join(tops[:3])}), expected one folder",
            hint="it is no sdist: pin another artifact",
        )
    return tops[0]


def _refuse_clashes(path: Path, files: Collection[str], folders: Collection[str]) -> None:
    """Refuse a file that is a folder, too, and names that are one on a file system without cases."""
    if clash := find_clash([*files, *(f"{name}/" for name in folders)]):
        raise refusal(path, clash, "is a file and a folder at once")
    spelled: dict[str, str] = {}
    for name in sorted({*files, *folders}):
        for end in (*(index for index, sign in enumerate(name) if sign == "/"), len(name)):
            part = name[:end]
            if (other := spelled.setdefault(part.casefold(), part)) != part:
                raise refusal(path, part, f"is {other!r} but for upper and lower case")


def _entry(path: Path, name: str, members: Mapping[str, tarfile.TarInfo]) -> Entry:
    """Return where a file's content is: for a link in the file that it leads to, whose mode it has as well."""
    member = members[name]
    if member.isreg():
        return Entry(member=name, mode=0o755 if member.mode & 0o111 else 0o644)
    folder = posixpath.dirname(name) if member.issym() else ""
    target = members.get(posixpath.normpath(posixpath.join(folder, member.linkname)))
    if target is None or not target.isreg():
        raise refusal(path, name, f"is a link to {member.linkname!r}, expected one to a file of the archive")
    return Entry(member=target.name, mode=0o755 if target.mode & 0o111 else 0o644)
