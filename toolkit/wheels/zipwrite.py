"""Zip archives that repeat byte for byte: fixed times and modes, no data descriptors, hashed while they are written.

Compressed data is taken over as it is, and what is new is stored uncompressed: how deflate packs depends on the
version of zlib.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterable
from typing import IO

STORED = 0
LOCAL_HEADER = struct.Struct("<4s5H3L2H")
CENTRAL_HEADER = struct.Struct("<4s6H3L5H2L")
END = struct.Struct("<4s4H2LH")
END64 = struct.Struct("<4sQ2H2L4Q")
END64_LOCATOR = struct.Struct("<4sLQL")

WIDE, WIDE_COUNT = 0xFFFF_FFFF, 0xFFFF
"""What stands in a field whose value is in the zip64 record instead."""
SIZE_LIMIT, COUNT_LIMIT = WIDE, WIDE_COUNT
DATE_1980_01_01 = 0x21
UTF8 = 0x800
UNIX = 3
VERSION, VERSION_ZIP64 = 20, 45
REGULAR = 0o100000


class ZipWriter:
    """Writes one archive to a stream, member after member; `finish` must come last."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self._offset = 0
        self._central: list[bytes] = []

    def add_stored(self, name: str, content: bytes, *, mode: int) -> None:
        """Add a member from its content, uncompressed."""
        size = len(content)
        self.add_raw(
            name, [content], crc=zlib.crc32(content), size=size, compressed_size=size, method=STORED, mode=mode
        )

    def add_raw(
        self, name: str, pieces: Iterable[bytes], *, crc: int, size: int, compressed_size: int, method: int, mode: int
    ) -> None:
        """Add a member from its data as it stands in an archive."""
        path = name.encode("utf-8")
        flags = 0 if name.isascii() else UTF8
        start = self._offset
        wide = max(size, compressed_size, start) >= SIZE_LIMIT
        common = (flags, method, 0, DATE_1980_01_01, crc)
        version = VERSION_ZIP64 if wide else VERSION
        sizes = (WIDE, WIDE) if wide else (compressed_size, size)
        extra = struct.pack("<2H2Q", 1, 16, size, compressed_size) if wide else b""
        self._write(LOCAL_HEADER.pack(b"PK\3\4", version, *common, *sizes, len(path), len(extra)) + path + extra)
        for piece in pieces:
            self._write(piece)
        extra = struct.pack("<2H3Q", 1, 24, size, compressed_size, start) if wide else b""
        place = ((REGULAR | mode) << 16, WIDE if wide else start)
        made_by = UNIX << 8 | version
        self._central.append(
            CENTRAL_HEADER.pack(b"PK\1\2", made_by, version, *common, *sizes, len(path), len(extra), 0, 0, 0, *place)
            + path
            + extra
        )

    def finish(self) -> str:
        """Write the central directory and return the sha256 of the whole archive."""
        start, count = self._offset, len(self._central)
        self._write(b"".join(self._central))
        size = self._offset - start
        ends = (count, count, size, start)
        if max(start, size) >= SIZE_LIMIT or count >= COUNT_LIMIT:
            self._finish_wide(start, size, count)
            ends = (WIDE_COUNT, WIDE_COUNT, WIDE, WIDE)
        self._write(END.pack(b"PK\5\6", 0, 0, *ends, 0))
        return self._digest.hexdigest()

    def _finish_wide(self, start: int, size: int, count: int) -> None:
        here = self._offset
        versions = (UNIX << 8 | VERSION_ZIP64, VERSION_ZIP64)
        self._write(END64.pack(b"PK\6\6", END64.size - 12, *versions, 0, 0, count, count, size, start))
        self._write(END64_LOCATOR.pack(b"PK\6\7", 0, here, 1))

    def _write(self, raw: bytes) -> None:
        self._stream.write(raw)
        self._digest.update(raw)
        self._offset += len(raw)
