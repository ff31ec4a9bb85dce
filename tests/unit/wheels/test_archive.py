from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.wheels import add_members, make_wheel, record_hash, write_members
from toolkit.errors import SourceError
from toolkit.files import sha256_bytes
from toolkit.wheels import zipread
from toolkit.wheels.archive import WheelMetadata, open_wheel

HINT = "do not use this file; pin another artifact"


def refusal(path: Path) -> str:
    """Open a wheel that must be refused and return what it is refused for."""
    with pytest.raises(SourceError) as caught, open_wheel(path):
        pass
    return caught.value.message.removeprefix(f"{path.name}: ")


def special(name: str, mode: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.create_system = 3
    entry.external_attr = mode << 16
    return entry


# --- what is refused before anything is written ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "why"),
    [
        pytest.param("../evil.py", "'../evil.py' leaves its folder through '..'", id="parent"),
        pytest.param(
            "sample/../../evil.py", "'sample/../../evil.py' leaves its folder through '..'", id="inner parent"
        ),
        pytest.param("/etc/evil.py", "'/etc/evil.py' is not a relative POSIX path", id="absolute"),
        pytest.param("..\\evil.py", "'..\\\\evil.py' is not a relative POSIX path", id="backslash"),
        pytest.param("C:/evil.py", "'C:/evil.py' is not a relative POSIX path", id="drive"),
        pytest.param("sample/./evil.py", "'sample/./evil.py' is not in normal form", id="dot"),
        pytest.param("sample//evil.py", "'sample//evil.py' is not in normal form", id="empty part"),
        pytest.param(".git/hooks/x", "'.git/hooks/x' reaches into a '.git' folder", id="git"),
    ],
)
def test_a_member_that_leaves_the_folder_is_refused(tmp_path: Path, name: str, why: str) -> None:
    wheel = add_members(make_wheel(tmp_path), [(name, "x")])

    assert refusal(wheel) == f"member {name!r} has an unsafe name: {why}"


def test_a_name_cut_off_at_a_nul_byte_is_refused(tmp_path: Path) -> None:
    wheel = add_members(make_wheel(tmp_path), [("sample/evilXpy", "x")])
    wheel.write_bytes(wheel.read_bytes().replace(b"evilXpy", b"evil\0py"))

    assert refusal(wheel) == "member 'sample/evil\\x00py' has an unsafe name: 'sample/evil\\x00py' is not a path"


def test_a_member_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    wheel = add_members(make_wheel(tmp_path), [("sample/core.py", "evil")])

    assert refusal(wheel) == "member 'sample/core.py' is there twice"


@pytest.mark.parametrize("name", ["sample/core.py/evil.py", "sample/core.py/"])
def test_a_member_that_is_file_and_folder_is_refused(tmp_path: Path, name: str) -> None:
    wheel = add_members(make_wheel(tmp_path), [(name, "")])

    assert refusal(wheel) == "member 'sample/core.py' is a file and a folder at once"


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        pytest.param(stat.S_IFLNK | 0o777, "is a symlink", id="symlink"),
        pytest.param(stat.S_IFIFO | 0o644, "is not a regular file", id="fifo"),
        pytest.param(stat.S_IFCHR | 0o644, "is not a regular file", id="device"),
    ],
)
def test_a_member_that_is_no_plain_file_is_refused(tmp_path: Path, mode: int, why: str) -> None:
    wheel = add_members(make_wheel(tmp_path), [(special("sample/link", mode), "/etc")])

    assert refusal(wheel) == f"member 'sample/link' {why}"


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    raw = bytearray(wheel.read_bytes())
    raw[raw.index(b"PK\1\2") + 8] |= 1
    wheel.write_bytes(raw)

    assert refusal(wheel) == "member 'sample/__init__.py' is encrypted"


def test_a_member_in_another_compression_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, compression=zipfile.ZIP_BZIP2)

    assert refusal(wheel) == "member 'sample/__init__.py' is compressed by method 12, expected 0 or 8"


def test_members_that_share_bytes_are_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, compression=zipfile.ZIP_STORED)
    raw = bytearray(wheel.read_bytes())
    first = raw.index(b"PK\1\2")
    second = raw.index(b"PK\1\2", first + 4)
    raw[second + 42 : second + 46] = raw[first + 42 : first + 46]
    wheel.write_bytes(raw)

    assert refusal(wheel) == "member 'sample/__init__.py' overlaps what comes after it"


@pytest.mark.parametrize("missing", [1, 10, 100, 1000])
def test_a_wheel_that_is_cut_short_is_refused(tmp_path: Path, missing: int) -> None:
    wheel = make_wheel(tmp_path)
    os.truncate(wheel, wheel.stat().st_size - missing)

    assert refusal(wheel) == f"{wheel.name} is not a whole zip archive: File is not a zip file"


def test_a_file_that_is_no_zip_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sample-1.0-py3-none-any.whl"
    path.write_text("404 not found")

    assert refusal(path) == f"{path.name} is not a whole zip archive: File is not a zip file"


@pytest.mark.parametrize(
    ("names", "why"),
    [
        pytest.param(["sample/a.py"], "has no dist-info folder, expected one", id="none"),
        pytest.param(
            ["a-1.dist-info/METADATA", "b-1.dist-info/METADATA"],
            "has 2 dist-info folders (a-1.dist-info, b-1.dist-info), expected one",
            id="two",
        ),
        pytest.param(["a-1.dist-info/WHEEL", "a-1.dist-info/RECORD"], "lacks a-1.dist-info/METADATA", id="METADATA"),
        pytest.param(["a-1.dist-info/METADATA", "a-1.dist-info/RECORD"], "lacks a-1.dist-info/WHEEL", id="WHEEL"),
        pytest.param(["a-1.dist-info/METADATA", "a-1.dist-info/WHEEL"], "lacks a-1.dist-info/RECORD", id="RECORD"),
    ],
)
def test_a_wheel_without_exactly_one_whole_dist_info_is_refused(tmp_path: Path, names: list[str], why: str) -> None:
    path = write_members(tmp_path / "a-1-py3-none-any.whl", [(name, "x") for name in names])

    assert refusal(path) == f"{path.name} {why}"


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        pytest.param("Name: other\nVersion: 1.0\n", "name 'other' and version '1.0'", id="name"),
        pytest.param("Name: sample\nVersion: 1.1\n", "name 'sample' and version '1.1'", id="version"),
        pytest.param("Name: sample\nVersion: one\n", "name 'sample' and version 'one'", id="no version"),
        pytest.param("Name: sample\n", "name 'sample' and version ''", id="version missing"),
    ],
)
def test_metadata_that_contradicts_its_folder_is_refused(tmp_path: Path, metadata: str, said: str) -> None:
    wheel = make_wheel(tmp_path, dist_info={"METADATA": metadata})

    assert refusal(wheel) == f"member 'sample-1.0.dist-info/METADATA' has {said}, unlike its folder"


def test_another_generation_of_the_wheel_format_is_refused(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, dist_info={"WHEEL": "Wheel-Version: 2.0\n"})

    assert refusal(wheel) == "member 'sample-1.0.dist-info/WHEEL' is not of Wheel-Version 1"


# --- damage that shows only on reading ---------------------------------------------------------------------------


def read_failure(wheel: Path, name: str) -> str:
    with open_wheel(wheel) as archive, pytest.raises(SourceError) as caught:
        archive.read(name)
    assert caught.value.hint == HINT
    return caught.value.message.removeprefix(f"{wheel.name}: ")


def test_a_flipped_byte_in_stored_content_is_found(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, compression=zipfile.ZIP_STORED)
    wheel.write_bytes(wheel.read_bytes().replace(b"return 41", b"return 42"))

    why = "is damaged: its size or CRC is not the one listed"
    assert read_failure(wheel, "sample/core.py") == f"member 'sample/core.py' {why}"


def test_damaged_compressed_data_is_found(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, files={"sample/big.py": os.urandom(3000).hex()})
    raw = bytearray(wheel.read_bytes())
    raw[60:80] = b"\xff" * 20
    wheel.write_bytes(raw)

    assert read_failure(wheel, "sample/big.py").startswith("member 'sample/big.py' is damaged: ")


def test_content_that_is_longer_than_listed_is_not_inflated_to_its_end(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, files={"sample/bomb": b"\0" * 50_000_000})
    raw = bytearray(wheel.read_bytes())
    entry = raw.index(b"PK\1\2")
    raw[entry + 24 : entry + 28] = (1000).to_bytes(4, "little")
    wheel.write_bytes(raw)

    with open_wheel(wheel) as archive, wheel.open("rb") as stream:
        pieces = zipread.content_pieces(wheel, stream.fileno(), archive.members["sample/bomb"])
        with pytest.raises(SourceError, match="its size or CRC is not the one listed"):
            next(pieces)


def test_content_that_is_shorter_than_listed_is_found(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    raw = bytearray(wheel.read_bytes())
    entry = raw.index(b"PK\1\2")
    raw[entry + 24 : entry + 28] = (1000).to_bytes(4, "little")
    wheel.write_bytes(raw)

    why = "is damaged: its size or CRC is not the one listed"
    assert read_failure(wheel, "sample/__init__.py") == f"member 'sample/__init__.py' {why}"


def test_a_local_header_of_another_file_is_found(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    raw = wheel.read_bytes()
    wheel.write_bytes(raw.replace(b"sample/core.py", b"sample/evil.py", 1))

    assert read_failure(wheel, "sample/core.py") == "member 'sample/core.py' is another file in its local header"


def test_an_offset_that_points_nowhere_is_found(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    raw = bytearray(wheel.read_bytes())
    raw[0:4] = b"XXXX"
    wheel.write_bytes(raw)

    assert read_failure(wheel, "sample/__init__.py") == "member 'sample/__init__.py' has no local header"


# --- reading -----------------------------------------------------------------------------------------------------


def test_metadata_is_what_the_files_say(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "My.Sample", "1.0.post3", tag="cp312-cp312-manylinux_2_28_aarch64")

    with open_wheel(wheel) as archive:
        assert archive.dist_info == "My.Sample-1.0.post3.dist-info"
        assert archive.metadata == WheelMetadata(
            name="My.Sample",
            version="1.0.post3",
            tags=("cp312-cp312-manylinux_2_28_aarch64",),
            root_is_purelib=False,
        )


def test_members_are_the_files_in_the_archives_order(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, files={"sample/z.py": "", "sample/a.py": "ab"}, folders=["sample/"])

    with open_wheel(wheel) as archive:
        assert list(archive.members)[:2] == ["sample/z.py", "sample/a.py"]
        assert "sample/" not in archive.members
        assert archive.members["sample/a.py"].size == 2


CONTENTS = {
    "nothing": b"",
    "one byte": b"x",
    "exactly one piece": b"\0" * zipread.PIECE,
    "pieces that inflate from little": b"\0" * (9 * zipread.PIECE + 5),
    "pieces that do not compress": bytes(os.urandom(2 * zipread.PIECE + 7)),
}


@pytest.mark.parametrize("inflater", ["isal.isal_zlib", "zlib"])
@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED], ids=["deflated", "stored"])
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
def test_content_is_what_zipfile_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, compression: int, inflater: str
) -> None:
    monkeypatch.setattr(zipread, "inflater", pytest.importorskip(inflater))
    wheel = make_wheel(tmp_path, files={"sample/data": content}, compression=compression)

    with open_wheel(wheel) as archive:
        assert archive.read("sample/data") == content
        assert archive.digests(["sample/data"]) == {"sample/data": (sha256_bytes(content), len(content))}


def test_a_zip64_member_is_read(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    with zipfile.ZipFile(wheel, "a") as archive, archive.open("sample/wide", "w", force_zip64=True) as stream:
        stream.write(b"wide")

    with open_wheel(wheel) as opened:
        assert opened.read("sample/wide") == b"wide"


def test_a_member_with_a_long_extra_field_is_read(tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("sample/extra")
    entry.extra = b"\x99\x99" + (2000).to_bytes(2, "little") + b"x" * 2000
    wheel = add_members(make_wheel(tmp_path), [(entry, "content")])

    with open_wheel(wheel) as opened:
        assert opened.read("sample/extra") == b"content"


def test_a_name_outside_ascii_is_read(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, files={"sample/größe.txt": "5"})

    with open_wheel(wheel) as opened:
        assert opened.read("sample/größe.txt") == b"5"


# --- laying out --------------------------------------------------------------------------------------------------


def test_extract_writes_what_it_hashes(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, files={"sample/a/b.py": "one", "sample/c.py": "three"})
    into = tmp_path / "out"

    with open_wheel(wheel) as archive:
        found = archive.extract(["sample/c.py", "sample/a/b.py"], into)

    assert found == {"sample/c.py": (sha256_bytes(b"three"), 5), "sample/a/b.py": (sha256_bytes(b"one"), 3)}
    assert {str(path.relative_to(into)): path.read_text() for path in into.rglob("*") if path.is_file()} == {
        "sample/a/b.py": "one",
        "sample/c.py": "three",
    }


@pytest.mark.parametrize("umask", [0o077, 0o022, 0o000])
def test_modes_do_not_depend_on_the_umask(tmp_path: Path, umask: int) -> None:
    modes = {"sample/run": 0o750, "sample/odd": 0o4666, "sample/secret": 0o600}
    wheel = make_wheel(tmp_path, files=dict.fromkeys(modes, "x"), modes=modes)
    before = os.umask(umask)
    try:
        with open_wheel(wheel) as archive:
            archive.extract(modes, tmp_path / "out")
    finally:
        os.umask(before)

    found = {name: stat.S_IMODE((tmp_path / "out" / name).stat().st_mode) for name in modes}
    assert found == {"sample/run": 0o755, "sample/odd": 0o644, "sample/secret": 0o644}


def test_a_file_that_is_there_already_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out" / "sample").mkdir(parents=True)
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "out" / "sample" / "core.py").symlink_to(tmp_path / "victim")

    with open_wheel(make_wheel(tmp_path)) as archive, pytest.raises(FileExistsError):
        archive.extract(["sample/core.py"], tmp_path / "out")

    assert (tmp_path / "victim").read_text() == "mine"


def test_the_first_damaged_member_ends_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: {0})  # one thread: then the order is known
    wheel = make_wheel(
        tmp_path,
        files={f"sample/{n:04}.py": f"value = {n}\n" * 50 for n in range(3000)},
        compression=zipfile.ZIP_STORED,
    )
    raw = wheel.read_bytes()
    wheel.write_bytes(raw.replace(b"value = 1000\n", b"value = 1111\n", 1))

    with open_wheel(wheel) as archive, pytest.raises(SourceError, match=r"member 'sample/1000\.py' is damaged"):
        archive.extract(archive.members, tmp_path / "out")

    assert len(list((tmp_path / "out" / "sample").iterdir())) == 1


def test_a_large_member_takes_constant_memory(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, files={"sample/large.so": b"0123456789abcdef" * (100 << 16)})
    script = (
        "import pathlib, resource, sys\n"
        "from toolkit.wheels.archive import open_wheel\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10\n"
        "before = peak()\n"
        "with open_wheel(pathlib.Path(sys.argv[1])) as archive:\n"
        "    archive.extract(archive.members, pathlib.Path(sys.argv[2]))\n"
        "print(peak() - before)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", script, str(wheel), str(tmp_path / "out")],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )

    assert int(done.stdout) < 50


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, files={"sample/large.bin": os.urandom(300_000)})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with open_wheel(wheel) as archive, pytest.raises(OSError, match="File too large") as caught:
            archive.extract(["sample/large.bin"], tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert caught.value.filename == str(tmp_path / "out" / "sample" / "large.bin")


# --- RECORD ------------------------------------------------------------------------------------------------------


def record_problems_of(tmp_path: Path, record_lines: dict[str, str | None]) -> list[str]:
    with open_wheel(make_wheel(tmp_path, record_lines=record_lines)) as archive:
        return archive.verify_record()


def test_a_true_record_has_no_problems(tmp_path: Path) -> None:
    assert record_problems_of(tmp_path, {}) == []


GOOD = record_hash("def answer():\n    return 41\n")
SIZE = len("def answer():\n    return 41\n")


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        pytest.param(
            {"sample/core.py": f"sample/core.py,{record_hash('other')},{SIZE}"},
            f"RECORD gives 'sample/core.py' the hash {record_hash('other')!r}, it has {GOOD!r}",
            id="hash",
        ),
        pytest.param(
            {"sample/core.py": f"sample/core.py,{GOOD},1"},
            f"RECORD gives 'sample/core.py' the size 1, it has {SIZE}",
            id="size",
        ),
        pytest.param(
            {"sample/core.py": f"sample/core.py,sha512=abc,{SIZE}"},
            "RECORD gives 'sample/core.py' a sha512 hash, which is not checked",
            id="another algorithm",
        ),
        pytest.param({"sample/core.py": None}, "RECORD has no line for 'sample/core.py'", id="missing"),
        pytest.param(
            {"sample/gone.py": f"sample/gone.py,{GOOD},{SIZE}"},
            "RECORD lists 'sample/gone.py', which the wheel does not have",
            id="superfluous",
        ),
        pytest.param(
            {"again": f"sample/core.py,{GOOD},{SIZE}"}, "RECORD lists 'sample/core.py' more than once", id="twice"
        ),
    ],
)
def test_what_record_has_wrong_is_told(tmp_path: Path, lines: dict[str, str | None], problem: str) -> None:
    assert record_problems_of(tmp_path, lines) == [problem]


def test_a_line_without_hash_and_size_is_told(tmp_path: Path) -> None:
    assert record_problems_of(tmp_path, {"sample/core.py": "sample/core.py,,"}) == [
        f"RECORD gives 'sample/core.py' the hash '', it has {GOOD!r}",
        f"RECORD gives 'sample/core.py' the size None, it has {SIZE}",
    ]


def test_signatures_need_no_line(tmp_path: Path) -> None:
    info = "sample-1.0.dist-info/RECORD.jws"
    with open_wheel(make_wheel(tmp_path, dist_info={"RECORD.jws": "{}"}, record_lines={info: None})) as archive:
        assert archive.verify_record() == []


def test_a_name_with_comma_and_quote_is_found_in_record(tmp_path: Path) -> None:
    name = 'sample/a,"b".txt'
    line = f'"sample/a,""b"".txt",{record_hash("x")},1'
    with open_wheel(make_wheel(tmp_path, files={name: "x"}, record_lines={name: line})) as archive:
        assert archive.verify_record() == []


@pytest.mark.parametrize(
    ("record", "why"),
    [
        pytest.param("a,b\n", "RECORD line 1 has 2 fields, expected 3", id="fields"),
        pytest.param("a,,\nb,,many\n", "RECORD line 2 has the size 'many', expected a number", id="size"),
        pytest.param('"a,,\n', "RECORD is not CSV: unexpected end of data", id="csv"),
    ],
)
def test_a_record_that_cannot_be_read_is_refused(tmp_path: Path, record: str, why: str) -> None:
    with (
        open_wheel(make_wheel(tmp_path, dist_info={"RECORD": record})) as archive,
        pytest.raises(SourceError) as caught,
    ):
        archive.verify_record()

    assert caught.value.message == (
        f"sample-1.0-py3-none-any.whl: member 'sample-1.0.dist-info/RECORD' cannot be read: {why}"
    )
