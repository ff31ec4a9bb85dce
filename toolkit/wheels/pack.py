"""A wheel from files that lie in folders: the same files give the same bytes, wherever and whenever they are packed.

Members are stored uncompressed, in the order of their names, dist-info last; METADATA, WHEEL and RECORD are ours.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import SourceError
from toolkit.files import CHUNK, sha256_bytes
from toolkit.model import framed_digest
from toolkit.wheels.archive import open_wheel
from toolkit.wheels.record import RECORD, FileDigest, format_record, record_hash
from toolkit.wheels.zipwrite import STORED, ZipWriter

LOGIC_VERSION = "1"
"""Part of every digest: raise it when the same files would give other bytes."""

PURE_TAG = "py3-none-any"
OURS = ("METADATA", "WHEEL", RECORD)
"""What the packer writes into dist-info itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PackFile:
    """One file to pack: its path in the wheel, where it lies, 0o644 or 0o755, and the sha256 that it was found with."""

    name: str
    path: Path
    mode: int
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class WheelContents:
    """All that a wheel is packed from; `metadata` is its METADATA, whose name and version are these."""

    distribution: str
    version: str
    tag: str
    metadata: bytes
    files: tuple[PackFile, ...]

    @property
    def file(self) -> str:
        """The wheel's file name."""
        return f"{wheel_stem(self.distribution, self.version)}-{self.tag}.whl"

    @property
    def dist_info(self) -> str:
        """The folder in the wheel that tells about it."""
        return f"{wheel_stem(self.distribution, self.version)}.dist-info"

    @property
    def digest(self) -> str:
        """What changes with the wheel's bytes, and not with where the files lie."""
        parts = [LOGIC_VERSION, self.distribution, self.version, self.tag, sha256_bytes(self.metadata)]
        for file in sorted(self.files, key=lambda file: file.name):
            parts += [file.name, f"{file.mode:o}", file.sha256]
        return framed_digest(parts)


def wheel_stem(distribution: str, version: str) -> str:
    """Return what a wheel's name begins with: `cann_ops_transformer-1.0.0`."""
    return f"{escape_name(distribution)}-{version}"


def escape_name(distribution: str) -> str:
    """Return a distribution's name as it stands in the names of files."""
    return re.sub("[-_.]+", "_", distribution)


def pack_wheel(contents: WheelContents, into: Path) -> Path:
    """Write the wheel into a folder and return its path.

    Raises SourceError for a file that cannot be read, or is not what it was found to be; nothing is left then.
    """
    path = into / contents.file
    info = contents.dist_info
    try:
        with open(path, "xb", buffering=CHUNK) as stream:
            writer = ZipWriter(stream)
            digests = {file.name: _add_file(writer, file) for file in _in_order(contents)}
            for name, content in (("METADATA", contents.metadata), ("WHEEL", _wheel_file(contents.tag))):
                writer.add_stored(f"{info}/{name}", content, mode=0o644)
                digests[f"{info}/{name}"] = sha256_bytes(content), len(content)
            record = format_record(digests, f"{info}/{RECORD}")
            writer.add_stored(f"{info}/{RECORD}", record.encode("utf-8"), mode=0o644)
            writer.finish()
    except FileExistsError:
        raise
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def is_packed(contents: WheelContents, path: Path) -> bool:
    """Whether a file is the whole wheel of these contents; reads all of it, and none of the files."""
    wanted = {file.name: record_hash(file.sha256) for file in contents.files}
    try:
        with open_wheel(path) as wheel:
            listed = {line.path: line.hash for line in wheel.record}
            metadata = wheel.read(f"{wheel.dist_info}/METADATA")
            return wanted.items() <= listed.items() and metadata == contents.metadata and not wheel.verify_record()
    except (OSError, SourceError):
        return False


@contextlib.contextmanager
def reading_files() -> Iterator[None]:
    """Turn what keeps a file from being read into a SourceError; whatever writes does not belong into the block."""
    try:
        yield
    except FileNotFoundError as fault:
        raise changed_while_read(str(fault.filename)) from fault
    except OSError as fault:
        raise SourceError(
            f"{fault.filename} cannot be read: {fault.strerror}", hint="run as a user who may read it"
        ) from fault


def changed_while_read(path: str) -> SourceError:
    """Return the error for a file that somebody else writes to."""
    return SourceError(f"{path} changed while it was read", hint="wait until nothing writes to it, then run again")


def _in_order(contents: WheelContents) -> list[PackFile]:
    last = f"{contents.dist_info}/"
    return sorted(contents.files, key=lambda file: (file.name.startswith(last), file.name))


def _add_file(writer: ZipWriter, file: PackFile) -> FileDigest:
    """Add a file in constant memory. It is read twice, as its checksum stands before its content."""
    crc = size = 0
    for piece in _checked_pieces(file):
        crc, size = zlib.crc32(piece, crc), size + len(piece)
    writer.add_raw(
        file.name, _checked_pieces(file), crc=crc, size=size, compressed_size=size, method=STORED, mode=file.mode
    )
    return file.sha256, size


def _checked_pieces(file: PackFile) -> Iterator[bytes]:
    """Yield a file's content; SourceError at the end where it was not the one that was found."""
    digest = hashlib.sha256()
    with reading_files(), open(file.path, "rb", buffering=0) as stream:
        while piece := stream.read(CHUNK):
            digest.update(piece)
            yield piece
    if digest.hexdigest() != file.sha256:
        raise changed_while_read(str(file.path))


def _wheel_file(tag: str) -> bytes:
    pure = str(tag == PURE_TAG).lower()
    lines = (
        "Wheel-Version: 1.0",
        f"Generator: toolkit pack {LOGIC_VERSION}",
        f"Root-Is-Purelib: {pure}",
        f"Tag: {tag}",
    )
    return "".join(f"{line}\n" for line in lines).encode("ascii")
