"""What a log may come as: told by what it holds, read in whole lines, and never a reason to fail."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import random
import socket
import struct
import sys
import tarfile
import threading
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.limits import ordinary_user
from toolkit.errors import StorageError, ToolkitError, UsageError
from toolkit.process import run
from toolkit.triage import unpacking
from toolkit.triage.contents import encoding_of
from toolkit.triage.reading import LONGEST, Remark, Source, find_sources, read_chunks
from toolkit.triage.sources import natural_key, rank_of

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MIB = 1 << 20
LINE = "[rank3]: 2026-08-20 11:02:11 INFO step: {:6d}  loss: 12.2131  grad_norm: 3.1021  tps: 1,234\n"
LOG = "".join(LINE.format(step) for step in range(2000)).encode()
FAILURE = b"[rank3]: RuntimeError: The size of tensor a (4) must match the size of tensor b (3)\n"

CHECKED = {zstd.CompressionParameter.checksum_flag: 1}
"""As the tool writes it."""

PACKERS = [
    pytest.param("gzip", gzip.compress, id="gzip"),
    pytest.param("zstd", lambda content: zstd.compress(content, options=CHECKED), id="zstd"),
    pytest.param("xz", lambda content: lzma.compress(content, preset=0), id="xz"),
    pytest.param("bzip2", bz2.compress, id="bzip2"),
]
Pack = Callable[[bytes], bytes]


def source(path: Path) -> Source:
    return Source(name=path.name, path=path, rank=None)


def read(path: Path) -> tuple[list[bytes], list[str]]:
    notes: list[str] = []
    return list(read_chunks(source(path), notes.append)), notes


def read_bytes(tmp_path: Path, content: bytes) -> tuple[bytes, list[str]]:
    path = tmp_path / "some.log"
    path.write_bytes(content)
    chunks, notes = read(path)
    return b"".join(chunks), notes


# --- chunks ------------------------------------------------------------------------------------------------------


def test_chunks_are_whole_lines_of_about_a_megabyte(tmp_path: Path) -> None:
    path = tmp_path / "some.log"
    path.write_bytes(LOG * 30 + b"no line end")

    chunks, notes = read(path)

    assert b"".join(chunks) == LOG * 30 + b"no line end"
    assert [chunk[-1:] for chunk in chunks[:-1]] == [b"\n"] * (len(chunks) - 1)
    assert {len(chunk) // MIB for chunk in chunks[1:-1]} <= {0, 1}
    assert len(chunks) == len(LOG) * 30 // MIB + 1
    assert notes == []


@pytest.mark.parametrize("before", [0, 1, 2, 3], ids=lambda count: f"{count} before")
def test_a_line_of_50_megabytes_comes_in_pieces_that_break_no_character(before: int, tmp_path: Path) -> None:
    line = b"x" * before + "中".encode() * (50 * MIB // 3)
    path = tmp_path / "some.log"
    path.write_bytes(b"first\n" + line + b"\nlast\n")

    pieces: list[bytes] = []
    tracemalloc.start()
    try:
        for chunk in read_chunks(source(path), pytest.fail):
            pieces.append(chunk[:4] + chunk[-4:])
            assert len(chunk) <= LONGEST + MIB
            chunk.decode("utf-8")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert len(pieces) > 10
    assert [piece.endswith(b"\n") for piece in pieces[1:-1]] == [False] * (len(pieces) - 2)
    assert pieces[-1].endswith(b"last\n"[-4:])
    assert peak < 40 * MIB


@pytest.mark.parametrize("size", [LONGEST - 1, LONGEST, LONGEST + 1, 5 * MIB, 5 * MIB + 1])
def test_no_piece_begins_with_a_line_end(size: int, tmp_path: Path) -> None:
    path = tmp_path / "some.log"
    path.write_bytes(b"x" * size + b"\n" + LOG)

    chunks, notes = read(path)

    assert b"".join(chunks) == b"x" * size + b"\n" + LOG
    assert [chunk[:1] for chunk in chunks if chunk.startswith(b"\n")] == []
    assert notes == []


def test_an_empty_log_is_told(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, b"") == (b"", ["empty"])


def random_lines() -> bytes:
    """Return what packs badly, so that a packed stream has a middle: 1.3 MB."""
    chance = random.Random(1)
    return b"".join(b"%032x\n" % chance.getrandbits(128) for _ in range(40_000))


# --- packed ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "pack"), PACKERS)
def test_packed_logs_of_several_parts_are_read_whatever_they_are_called(name: str, pack: Pack, tmp_path: Path) -> None:
    content = pack(LOG * 10) + pack(b"") + pack(FAILURE)

    assert read_bytes(tmp_path, content) == (LOG * 10 + FAILURE, [])
    assert read_bytes(tmp_path, content + b"\0" * 512) == (LOG * 10 + FAILURE, [])


@pytest.mark.parametrize(("name", "pack"), PACKERS)
def test_a_packed_log_that_is_cut_gives_what_can_be_read(name: str, pack: Pack, tmp_path: Path) -> None:
    text = random_lines()
    packed = pack(text)

    told, notes = read_bytes(tmp_path, packed[: len(packed) * 3 // 4])

    assert len(told) > len(text) // 3
    assert text.startswith(told)
    assert notes == [f"{name}: cut off after line {told.count(10)}"]


@pytest.mark.parametrize(("name", "pack"), PACKERS)
def test_a_packed_log_that_is_damaged_gives_what_comes_before(name: str, pack: Pack, tmp_path: Path) -> None:
    text = random_lines()
    packed = bytearray(pack(text))
    packed[len(packed) * 3 // 4 : len(packed) * 3 // 4 + 64] = b"\xaa" * 64

    told, notes = read_bytes(tmp_path, bytes(packed))

    assert len(told) > len(text) // 3
    assert told[: len(text) // 3] == text[: len(text) // 3]
    assert notes[0].startswith(f"{name}: cannot be unpacked after line {told.count(10)}: ")


def test_what_follows_a_whole_stream_and_is_none_is_told(tmp_path: Path) -> None:
    told, notes = read_bytes(tmp_path, gzip.compress(LOG) + b"and then text\n")

    assert told == LOG
    assert notes == [
        "gzip: cannot be unpacked after line 2000: Error -3 while decompressing data: incorrect header check"
    ]


@pytest.mark.parametrize(("name", "pack"), PACKERS)
def test_a_packed_log_without_text_is_told_once(name: str, pack: Pack, tmp_path: Path) -> None:
    assert read_bytes(tmp_path, pack(b"")) == (b"", [f"{name}: empty"])
    assert read_bytes(tmp_path, pack(LOG)[:15]) == (b"", [f"{name}: cut off at its very beginning"])


def test_frames_that_zstd_skips_are_skipped(tmp_path: Path) -> None:
    skipped = b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc"

    assert read_bytes(tmp_path, skipped + zstd.compress(LOG) + skipped) == (LOG, [])


def test_a_log_of_few_bits_is_unpacked_in_flat_memory(tmp_path: Path) -> None:
    path = tmp_path / "some.log"
    path.write_bytes(gzip.compress(LOG * 100, 9))

    tracemalloc.start()
    try:
        size = sum(map(len, read_chunks(source(path), pytest.fail)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert size == len(LOG) * 100
    assert peak < 10 * MIB


def test_an_xz_stream_that_wants_much_memory_is_not_read(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 512 * MIB}]

    told, notes = read_bytes(tmp_path, lzma.compress(LOG, filters=filters))

    assert told == b""
    assert notes == ["xz: cannot be unpacked at its very beginning: Memory usage limit exceeded"]


def test_a_missing_zstd_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, zstd.__name__, None)
    with contextlib.suppress(AttributeError):  # Once imported, it is an attribute of its package as well.
        monkeypatch.delattr(sys.modules[zstd.__name__.rpartition(".")[0]], "zstd")

    told, notes = read_bytes(tmp_path, zstd.compress(LOG))

    assert told == b""
    (note,) = notes
    assert note.endswith("pip install backports.zstd, or unpack it first")


def test_zstd_is_imported_only_where_it_is_met(tmp_path: Path) -> None:
    (tmp_path / "some.log").write_bytes(LOG)
    code = (
        "import sys; from pathlib import Path; from toolkit.triage.reading import *\n"
        "sources, _ = find_sources(['.']); list(read_chunks(sources[0], print))\n"
        "print(sorted({'backports.zstd', 'compression.zstd'} & set(sys.modules)))"
    )
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(unpacking.__file__).parents[2])}

    assert run([sys.executable, "-c", code], cwd=tmp_path, env=env).stdout == "[]\n"


# --- encodings ---------------------------------------------------------------------------------------------------

SPOKEN = "step 1 损失: 12.2 😀\nRuntimeError: NPU out of memory\n" * 50


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["no mark", "mark"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-8"])
def test_utf_16_and_32_become_utf_8(encoding: str, mark: str, tmp_path: Path) -> None:
    assert read_bytes(tmp_path, (mark + SPOKEN).encode(encoding)) == (SPOKEN.encode(), [])


def test_a_large_utf_16_log_is_cut_at_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "some.log"
    path.write_bytes((SPOKEN * 1000).encode("utf-16"))

    chunks, notes = read(path)

    assert b"".join(chunks) == (SPOKEN * 1000).encode()
    assert {chunk[-1:] for chunk in chunks} == {b"\n"}
    assert notes == []


def test_a_packed_utf_16_log_that_ends_within_a_character_is_read(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, gzip.compress(("\ufeff" + SPOKEN).encode("utf-16-le")[:-1])) == (
        SPOKEN[:-1].encode() + "\ufffd".encode(),
        [],
    )


def test_other_encodings_are_left_as_they_are(tmp_path: Path) -> None:
    content = "运行失败: 内存不足\n".encode("gbk") * 100

    assert read_bytes(tmp_path, content) == (content, [])


# --- binary and NULs ---------------------------------------------------------------------------------------------


def binary_samples() -> Iterator[tuple[str, bytes]]:
    chance = random.Random(3)
    yield "an ELF library", Path(sys.executable).resolve().read_bytes()[: 1 << 18]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}q\x00." * 10)
        archive.writestr("archive/data/0", chance.randbytes(5000))
    yield "a checkpoint", buffer.getvalue()
    yield "floats", struct.pack("<2000f", *(chance.gauss(0, 1) for _ in range(2000)))
    yield "small integers", struct.pack("<2000i", *(chance.randrange(30) for _ in range(2000)))
    yield "small short integers", struct.pack("<2000h", *(chance.randrange(30) for _ in range(2000)))
    yield "zeros of numpy", b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False}\n" + bytes(4000)
    header = b'{"weight":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}'
    yield "safetensors", struct.pack("<Q", len(header)) + header + bytes(4000)
    event = b"\x09\x00\x00\x80\xa4\x0b\x7e\xda\x41\x1a\x0dbrain.Event:2"
    yield "a tfevents file", b"".join(struct.pack("<QI", len(event), 77) + event + b"\0\0\0\0" for _ in range(50))
    yield "a picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + chance.randbytes(3000)
    yield "a pickle", b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x04loss\x94K\x01s."
    yield "words between NULs", b"PATH=/usr/bin\0HOME=/root\0SHELL=/bin/sh\0LANG=C\0USER=root\0TERM=xterm\0"


@pytest.mark.parametrize("content", [pytest.param(raw, id=name) for name, raw in binary_samples()])
def test_binary_files_are_told_and_not_read(content: bytes, tmp_path: Path) -> None:
    assert read_bytes(tmp_path, content) == (b"", ["binary, not a log"])
    assert read_bytes(tmp_path, gzip.compress(content)) == (b"", ["binary, not a log"])


@pytest.mark.parametrize(
    ("content", "nulls"),
    [
        pytest.param(LOG + b"\0" * 4096 + FAILURE, 4096, id="a run after a crash"),
        pytest.param(b"\0" * 300_000 + LOG + FAILURE, 300_000, id="emptied while it was written"),
        pytest.param(FAILURE + b"\0", 1, id="one at the end"),
        pytest.param(b"E40021: failed\0\n" * 100, 100, id="one in each line"),
        pytest.param(b"ab\0", 1, id="a short one"),
    ],
)
def test_a_log_with_some_nulls_is_a_log(content: bytes, nulls: int, tmp_path: Path) -> None:
    assert read_bytes(tmp_path, content) == (content.replace(b"\0", b""), [f"has {nulls} NUL bytes, left out"])


def test_nothing_but_nulls_is_no_log(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, bytes(300_000)) == (b"", ["nothing but NUL bytes, not a log"])


def test_colours_and_progress_bars_are_text() -> None:
    assert encoding_of(b"\x1b[31mERROR\x1b(B\x1b[m\x0f\n\r 10%|#\x08\x08\a" * 20) == "utf-8"


def test_archives_are_named(tmp_path: Path) -> None:
    path = tmp_path / "logs.tar"
    (tmp_path / "a.log").write_bytes(LOG)
    with tarfile.open(path, "w") as archive:
        archive.add(tmp_path / "a.log", "a.log")

    assert read(path) == ([], ["a tar archive, not looked into: unpack it first"])
    assert read_bytes(tmp_path, gzip.compress(path.read_bytes()))[1] == [
        "a tar archive, not looked into: unpack it first"
    ]


# --- files that change, and what is no file ----------------------------------------------------------------------


def test_a_file_that_grows_is_read_as_it_was_when_it_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "some.log"
    path.write_bytes(LOG * 30)

    chunks, notes = [], list[str]()
    with path.open("ab") as more:
        for chunk in read_chunks(source(path), notes.append):
            chunks.append(chunk)
            more.write(chunk)
            more.flush()

    assert b"".join(chunks) == LOG * 30
    assert path.stat().st_size > len(LOG) * 50
    assert notes == []


def test_a_file_that_shrinks_is_told(tmp_path: Path) -> None:
    path = tmp_path / "some.log"
    path.write_bytes(LOG * 30)
    notes: list[str] = []

    chunks = read_chunks(source(path), notes.append)
    size = len(next(chunks))
    os.truncate(path, 2 * MIB)
    size += sum(map(len, chunks))

    assert size == 2 * MIB
    assert notes == [f"became shorter while it was read: {len(LOG) * 30 - 2 * MIB} bytes are gone"]


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    assert read(tmp_path / "some.log") == ([], ["cannot be read: No such file or directory"])


def test_a_folder_in_a_files_place_is_told(tmp_path: Path) -> None:
    assert read(tmp_path) == ([], ["cannot be read: Is a directory"])


def test_a_file_without_permission_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_public_folder(tmp_path, monkeypatch)
    Path("some.log").write_bytes(LOG)
    Path("some.log").chmod(0)

    with ordinary_user():
        assert read(Path("some.log")) == ([], ["cannot be read: Permission denied"])


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    (found,), _ = find_sources([str(path)])
    writer = threading.Thread(target=lambda: path.write_bytes(gzip.compress(LOG * 5)))
    writer.start()

    assert b"".join(read_chunks(found, pytest.fail)) == LOG * 5
    writer.join()


def test_standard_input_is_read_and_left_open() -> None:
    stream = io.BytesIO(LOG)

    (found,), remarks = find_sources(["-", "-"])

    assert found == Source(name="-", path=None, rank=None)
    assert remarks == []
    assert b"".join(read_chunks(found, pytest.fail, stream)) == LOG
    assert not stream.closed


@pytest.mark.parametrize("place", ["-", "/dev/stdin"])
def test_a_whole_process_reads_its_standard_input(place: str, tmp_path: Path) -> None:
    (tmp_path / "some.log").write_bytes(LOG)
    code = (
        "import sys; from toolkit.triage.reading import *\n"
        f"(source,), _ = find_sources([{place!r}])\n"
        "print(sum(map(len, read_chunks(source, print))))"
    )
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(unpacking.__file__).parents[2])}
    script = '"$0" -c "$1" < some.log; cat some.log some.log | "$0" -c "$1"; "$0" -c "$1" < /dev/zero'
    done = run(["sh", "-c", script, sys.executable, code], cwd=tmp_path, env=env, check=False)

    expected = [str(len(LOG)), str(2 * len(LOG))]
    if place == "-":
        assert done.stdout.splitlines() == [*expected, "a device, not a log: it may have no end", "0"]
    else:
        assert done.stdout.splitlines() == expected
        assert "there is no log to read: /dev/stdin: a device, not a log: it may have no end" in done.stderr


def test_a_pipe_that_does_not_wait_is_waited_for(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    timer = threading.Timer(0.2, lambda: (os.write(writing, FAILURE), os.close(writing)))
    timer.start()

    with os.fdopen(reading, "rb") as stream:
        found = b"".join(read_chunks(Source(name="-", path=None, rank=None), pytest.fail, stream))

    timer.join()
    assert found == FAILURE


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_devices_without_an_end_are_refused(device: str) -> None:
    assert read(Path(device)) == ([], ["a device, not a log: it may have no end"])
    assert refusal_of(device) == (
        UsageError,
        f"there is no log to read: {device}: a device, not a log: it may have no end",
    )


def test_the_null_device_is_empty() -> None:
    assert read(Path("/dev/null")) == ([], ["empty"])


def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as here:
        here.bind("run.sock")

        assert read(Path("run.sock")) == ([], ["cannot be read: No such device or address"])
        assert refusal_of("run.sock") == (UsageError, "there is no log to read: run.sock: a socket, not a log")


# --- places ------------------------------------------------------------------------------------------------------


def enter_public_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where another user may look, too."""
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)


def refusal_of(*places: str) -> tuple[type[ToolkitError], str]:
    with pytest.raises(ToolkitError) as caught:
        find_sources(places)
    assert caught.value.hint
    return type(caught.value), str(caught.value)


def write_tree(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def names(*places: str | Path) -> list[str]:
    return [found.name for found in find_sources(list(map(str, places)))[0]]


def test_a_folder_of_a_thousand_rank_logs_is_sorted_by_rank(tmp_path: Path) -> None:
    for rank in range(1000):
        (tmp_path / f"rank{rank}.log").write_bytes(LOG[:2000])

    sources, remarks = find_sources([str(tmp_path)])

    assert [(found.name, found.rank) for found in sources] == [(f"rank{rank}.log", rank) for rank in range(1000)]
    assert remarks == []


def test_what_is_no_log_in_a_folder_is_left_out_and_counted(tmp_path: Path) -> None:
    binaries = {f"checkpoint/{at}.bin": raw for at, (_, raw) in enumerate(binary_samples())}
    write_tree(tmp_path, {
        "train.log": LOG,
        "packed/a": gzip.compress(LOG),
        "packed/b": zstd.compress(LOG),
        "packed/c": bz2.compress(LOG),
        "packed/cut.gz": gzip.compress(LOG)[:20],
        "wide.txt": SPOKEN.encode("utf-16"),
        "printed.py.log": b"import torch\nstep 1 loss 2\n",
        "script.log": b"import torch\n",
        "output_code.py": b"# AOT ID: ['0_inference']\nimport torch\nprint('\\d')\n",
        "trace.json.gz": gzip.compress(b'{"schemaVersion": 1, "traceEvents": []}'),
        "empty.log": b"",
        ".git/HEAD": b"ref: refs/heads/main\n",
        ".env": b"A=b\n",
        **binaries,
    })  # fmt: skip
    os.mkfifo(tmp_path / "pipe")

    sources, remarks = find_sources([str(tmp_path)])

    assert [found.name for found in sources] == [
        "packed/a", "packed/b", "packed/c", "packed/cut.gz", "printed.py.log", "script.log", "train.log", "wide.txt",
    ]  # fmt: skip
    assert remarks == [
        Remark(
            source=str(tmp_path),
            text=f"left out: 1 Python source, {len(binaries)} binary, 1 empty, 1 profiler's trace",
        )
    ]


def test_each_real_file_is_read_once_and_under_its_own_name(tmp_path: Path) -> None:
    write_tree(tmp_path, {"run/rank1.log": LOG, "run/below/rank2.log": LOG, "elsewhere/rank3.log": LOG})
    (tmp_path / "run/a.log").symlink_to("rank1.log")
    (tmp_path / "run/hard.log").hardlink_to(tmp_path / "run/rank1.log")
    (tmp_path / "run/again").symlink_to("..")
    (tmp_path / "run/below/up").symlink_to(tmp_path / "run")
    (tmp_path / "run/circle").symlink_to("circle")
    (tmp_path / "run/nowhere").symlink_to("gone")

    assert names(tmp_path / "run") == ["again/elsewhere/rank3.log", "below/rank2.log", "hard.log"]
    assert find_sources([str(tmp_path / "elsewhere/rank3.log"), str(tmp_path / "elsewhere")])[1] == []
    assert names(tmp_path / "run/a.log", tmp_path / "run/rank1.log") == [str(tmp_path / "run/a.log")]


def test_names_are_as_given_and_whole_where_there_are_several_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_tree(tmp_path, {"a/rank10.log": LOG, "a/rank9.log": LOG, "b/rank1.log": LOG, "c.log": LOG})

    assert names("a") == ["rank9.log", "rank10.log"]
    assert names("a/rank9.log") == ["a/rank9.log"]
    assert names("c.log", "b", "-", "a") == ["-", "a/rank9.log", "a/rank10.log", "b/rank1.log", "c.log"]


def test_a_named_file_is_taken_whatever_it_holds(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.bin": bytes(100), "empty": b""})

    assert names(tmp_path / "a.bin", tmp_path / "empty") == [str(tmp_path / "a.bin"), str(tmp_path / "empty")]


def test_a_place_that_is_not_there_is_refused_even_among_others(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a.log": LOG})
    gone = f"{tmp_path}/gone.log"

    assert refusal_of(f"{tmp_path}/a.log", gone) == (UsageError, f"there is no {gone!r}")
    assert refusal_of(f"{tmp_path}/a.log/b") == (UsageError, f"there is no '{tmp_path}/a.log/b'")
    assert refusal_of("") == (UsageError, "there is no ''")


def test_a_folder_without_a_log_is_refused_with_what_is_in_it(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a/empty.log": b"", "a/b/x.npy": bytes(6) + b"\1\2\3", "c/rank0.log": LOG})
    (tmp_path / "d").mkdir()

    assert refusal_of(f"{tmp_path}/a") == (
        UsageError, f"there is no log to read: {tmp_path}/a: no log is in it (left out: 1 binary, 1 empty)",
    )  # fmt: skip
    assert refusal_of(f"{tmp_path}/d") == (UsageError, f"there is no log to read: {tmp_path}/d: no log is in it")
    assert find_sources([f"{tmp_path}/d", f"{tmp_path}/c"])[1] == [
        Remark(source=f"{tmp_path}/d", text="no log is in it")
    ]


def test_archives_in_a_folder_are_remarked(tmp_path: Path) -> None:
    write_tree(tmp_path, {"rank0.log": LOG})
    with tarfile.open(tmp_path / "old.tgz", "w:gz") as archive:
        archive.add(tmp_path / "rank0.log", "rank0.log")

    assert find_sources([str(tmp_path)])[1] == [
        Remark(source="old.tgz", text="an archive, not looked into: unpack it first")
    ]


def test_want_of_permission_is_an_error_alone_and_a_remark_among_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    enter_public_folder(tmp_path, monkeypatch)
    write_tree(Path("."), {f"run/rank{at}.log": LOG for at in range(6)})
    for path in list(Path("run").iterdir())[:5]:
        path.chmod(0)
    write_tree(Path("."), {"closed/rank0.log": LOG, "own.log": LOG})
    Path("closed").chmod(0)
    Path("own.log").chmod(0)

    with ordinary_user():
        alone = refusal_of("own.log")
        closed = refusal_of("closed")
        sources, remarks = find_sources(["run", "own.log"])

    assert alone == (StorageError, "there is no log to read: own.log: cannot be read: Permission denied")
    assert closed == (StorageError, "there is no log to read: closed: cannot be read: Permission denied")
    assert len(sources) == 1
    assert [remark.text for remark in remarks] == [
        *["cannot be read: Permission denied"] * 3, "2 more in it cannot be read", "cannot be read: Permission denied",
    ]  # fmt: skip
    assert [remark.source for remark in remarks][3:] == ["run", "own.log"]


# --- ranks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("rank3.log", 3),
        ("log_rank_3", 3),
        ("RANK-03.txt.gz", 3),
        ("hccl.rank12.log", 12),
        ("node0_rank8_stdout.log", 8),
        ("local_rank_2.log", 2),
        ("rank_id_5/train.log", 5),
        ("worker-3", 3),
        ("worker_3.log", 3),
        ("worker-1/rank9.log", 9),
        ("rank9/worker-0.log", 9),
        ("rank3/rank4.log", 4),
        ("out/run_abc/attempt_0/3/stderr.log", 3),
        ("out/attempt_1/10/error.json", 10),
        ("rank0-7.log", None),
        ("rank0_to_rank7.log", None),
        ("rank0_rank3_diff.log", None),
        ("rank3-20260820.log", 3),
        ("rank3_2026-08-20.log", 3),
        ("train.log", None),
        ("frank3.log", None),
        ("ranks8.log", None),
        ("train.log.1", None),
        ("step_100/train.log", None),
        ("3.log", None),
        ("8workers.log", None),
    ],
)
def test_a_rank_is_told_by_a_name(path: str, rank: int | None) -> None:
    assert rank_of(path) == rank


def test_numbers_in_names_sort_by_value() -> None:
    given = ["rank10", "rank2", "rank02", "a", "9" * 5000, "rank2.log", "10"]

    assert sorted(given, key=natural_key) == ["10", "9" * 5000, "a", "rank2", "rank02", "rank2.log", "rank10"]
