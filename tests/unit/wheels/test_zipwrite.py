from __future__ import annotations

import hashlib
import io
import zipfile
import zlib

import pytest

from toolkit.wheels import zipwrite
from toolkit.wheels.zipwrite import ZipWriter

FILES = {"a/b.py": b"one\n" * 100, "a/größe.txt": b"", "run": b"\0\1"}


def write(files: dict[str, bytes] = FILES) -> tuple[bytes, str]:
    stream = io.BytesIO()
    writer = ZipWriter(stream)
    for name, content in files.items():
        writer.add_stored(name, content, mode=0o755 if name == "run" else 0o644)
    digest = writer.finish()
    return stream.getvalue(), digest


def test_zipfile_reads_what_was_written() -> None:
    raw, digest = write()

    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == FILES
        assert [oct(entry.external_attr >> 16) for entry in archive.infolist()] == ["0o100644", "0o100644", "0o100755"]
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert [entry.flag_bits for entry in archive.infolist()] == [0, 0x800, 0]
    assert digest == hashlib.sha256(raw).hexdigest()


def test_compressed_data_is_taken_over_as_it_is() -> None:
    content = b"x" * 5000
    engine = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = engine.compress(content) + engine.flush()
    stream = io.BytesIO()
    writer = ZipWriter(stream)
    writer.add_raw(
        "x",
        [packed[:3], packed[3:]],
        crc=zlib.crc32(content),
        size=5000,
        compressed_size=len(packed),
        method=8,
        mode=0o644,
    )
    writer.finish()

    assert packed in stream.getvalue()
    with zipfile.ZipFile(stream) as archive:
        assert archive.read("x") == content


@pytest.mark.parametrize("limit", [1, 100, 400, 500], ids="limit {}".format)
def test_sizes_and_offsets_beyond_the_limit_go_into_zip64(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(zipwrite, "SIZE_LIMIT", limit)
    raw, _ = write()

    assert raw.count(b"PK\6\6") == 1
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        for entry in archive.infolist():
            wide = max(entry.file_size, entry.header_offset) >= limit
            assert (entry.extract_version, raw.count(entry.filename.encode() + b"\1\0\x10\0")) == (
                (45, 1) if wide else (20, 0)
            )
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == FILES


def test_more_members_than_the_old_format_counts() -> None:
    files = {f"{number}": b"" for number in range(70_000)}
    raw, _ = write(files)

    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        assert archive.namelist() == list(files)
