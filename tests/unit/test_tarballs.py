from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import pytest

from tests.tarballs import NOON, Member, entry, make_sdist, write_tarball
from toolkit import tarballs
from toolkit.errors import SourceError
from toolkit.files import sha256_bytes
from toolkit.tarballs import Tarball, extract_files, hash_files, list_tarball, read_file

HINT = "do not use this file; pin another artifact"


def written(tmp_path: Path, *members: Member) -> Path:
    return write_tarball(tmp_path / "a-1.tar.gz", [entry("a-1/PKG-INFO"), *members])


def refused(tmp_path: Path, *members: Member) -> SourceError:
    with pytest.raises(SourceError) as caught:
        list_tarball(written(tmp_path, *members))
    return caught.value


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> Member:
    return entry(name, type=kind, linkname=target)


def test_all_files_are_listed_below_the_one_top_folder(tmp_path: Path) -> None:
    path = written(
        tmp_path, entry("a-1", type=tarfile.DIRTYPE), entry("a-1/b/c.py"), entry("a-1/run.sh", mtime=NOON + 5)
    )
    found = list_tarball(path)
    assert (found.path, found.top, found.newest) == (path, "a-1", NOON + 5)
    assert {name: oct(one.mode) for name, one in found.entries.items()} == {
        "PKG-INFO": "0o644", "b/c.py": "0o644", "run.sh": "0o755",
    }  # fmt: skip


def test_files_are_written_with_plain_modes_and_hashed(tmp_path: Path) -> None:
    found = list_tarball(written(tmp_path, entry("a-1/b/c.py", "c", mode=0o4666), entry("a-1/x", mode=0o700)))
    digests = extract_files(found, ["b/c.py", "x"], tmp_path / "out")
    assert digests == {"b/c.py": sha256_bytes(b"c"), "x": sha256_bytes(b"")} == hash_files(found, ["b/c.py", "x"])
    assert oct((tmp_path / "out/b/c.py").stat().st_mode) == "0o100644"
    assert oct((tmp_path / "out/x").stat().st_mode) == "0o100755"
    assert not (tmp_path / "out/PKG-INFO").exists()
    assert read_file(found, "b/c.py") == b"c"


def test_what_is_there_already_is_not_written_over(tmp_path: Path) -> None:
    found = list_tarball(written(tmp_path))
    extract_files(found, ["PKG-INFO"], tmp_path / "out")
    with pytest.raises(FileExistsError):
        extract_files(found, ["PKG-INFO"], tmp_path / "out")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE], ids=["symlink", "hard link"])
def test_a_link_to_a_file_of_the_archive_becomes_a_copy(tmp_path: Path, kind: bytes) -> None:
    target = "../x.sh" if kind == tarfile.SYMTYPE else "a-1/x.sh"
    found = list_tarball(written(tmp_path, entry("a-1/x.sh", "x"), link("a-1/b/l", target, kind)))
    for names in (["b/l"], ["x.sh", "b/l"]):
        out = tmp_path / str(len(names))
        assert extract_files(found, names, out) == dict.fromkeys(names, sha256_bytes(b"x"))
        assert not (out / "b/l").is_symlink()
        assert (out / "b/l").stat().st_nlink == 1
        assert oct((out / "b/l").stat().st_mode) == "0o100755"
    assert hash_files(found, ["b/l"]) == {"b/l": sha256_bytes(b"x")}


@pytest.mark.parametrize(
    "target",
    ["/etc/passwd", "../../x", "nothing", "folder", "l", "l2", "../a-1/../x", "../b/x"],
)
def test_any_other_symlink_is_refused(tmp_path: Path, target: str) -> None:
    fault = refused(
        tmp_path, link("a-1/l", target), link("a-1/l2", "PKG-INFO"), entry("a-1/folder", type=tarfile.DIRTYPE)
    )
    assert fault.message == (
        f"a-1.tar.gz: member 'a-1/l' is a link to {target!r}, expected one to a file of the archive"
    )
    assert fault.hint == HINT


@pytest.mark.parametrize("target", ["/etc/passwd", "../x", "PKG-INFO", "a-1/l"])
def test_any_other_hard_link_is_refused(tmp_path: Path, target: str) -> None:
    assert "is a link to" in refused(tmp_path, link("a-1/l", target, tarfile.LNKTYPE)).message


@pytest.mark.parametrize(
    ("member", "why"),
    [
        (entry("/a-1/x"), "has an unsafe name: '/a-1/x' is not a relative POSIX path"),
        (entry("a-1/../x"), "has an unsafe name: 'a-1/../x' leaves its folder through '..'"),
        (entry("../a-1/x"), "has an unsafe name: '../a-1/x' leaves its folder through '..'"),
        (entry("a-1/./x"), "has an unsafe name: 'a-1/./x' is not in normal form"),
        (entry("a-1//x"), "has an unsafe name: 'a-1//x' is not in normal form"),
        (entry("a-1/b\\x"), "has an unsafe name: 'a-1/b\\\\x' is not a relative POSIX path"),
        (entry("a-1/.git/hooks/x"), "has an unsafe name: 'a-1/.git/hooks/x' reaches into a '.git' folder"),
        (entry("a-1/x", type=tarfile.CHRTYPE), "is no regular file"),
        (entry("a-1/x", type=tarfile.BLKTYPE), "is no regular file"),
        (entry("a-1/x", type=tarfile.FIFOTYPE), "is no regular file"),
        (entry("a-1/x", type=b"Z"), "is no regular file"),
        (entry("a-1/x", type=tarfile.GNUTYPE_SPARSE), "is no regular file"),
        (entry("a-1/PKG-INFO"), "is there twice"),
        (entry("a-1/pkg-info"), "is 'a-1/PKG-INFO' but for upper and lower case"),
        (entry("a-1/PKG-INFO/x"), "is a file and a folder at once"),
        (entry("a-1/PKG-INFO", type=tarfile.DIRTYPE), "is there twice"),
    ],
    ids=lambda value: None if isinstance(value, tuple) else value,
)
def test_a_member_that_is_not_safe_is_named(tmp_path: Path, member: Member, why: str) -> None:
    fault = refused(tmp_path, member)
    assert fault.message.startswith("a-1.tar.gz: member 'a-1/PKG-INFO' " if "once" in why else "a-1.tar.gz: member ")
    assert fault.message.endswith(why)
    assert fault.hint == HINT


def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = write_tarball(tmp_path / "a-1.tar.gz", [entry("a-1/\udce4")], form=tarfile.GNU_FORMAT)
    with pytest.raises(SourceError, match="has an unsafe name"):
        list_tarball(path)


def test_a_folder_that_is_a_file_as_well_is_refused(tmp_path: Path) -> None:
    fault = refused(tmp_path, entry("a-1/x", type=tarfile.DIRTYPE), entry("a-1/x"))
    assert fault.message == "a-1.tar.gz: member 'a-1/x' is a file and a folder at once"


def test_folders_that_differ_in_case_alone_are_refused(tmp_path: Path) -> None:
    fault = refused(tmp_path, entry("a-1/Lib/a"), entry("a-1/lib/b"))
    assert fault.message == "a-1.tar.gz: member 'a-1/lib' is 'a-1/Lib' but for upper and lower case"


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ([entry("a-1/x"), entry("b/x")], "2 files and folders at its top (a-1, b)"),
        ([entry("a-1")], "1 files and folders at its top (a-1)"),
        ([], "0 files and folders at its top ()"),
    ],
    ids=["two", "a file", "nothing"],
)
def test_there_is_one_folder_at_the_top(tmp_path: Path, members: list[Member], found: str) -> None:
    path = write_tarball(tmp_path / "a-1.tar.gz", members)
    with pytest.raises(SourceError) as caught:
        list_tarball(path)
    assert caught.value.message == f"a-1.tar.gz has {found}, expected one folder"


def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tarballs, "MAX_SIZE", 1 << 20)
    path = written(tmp_path, entry("a-1/big", "\0" * (2 << 20)))
    assert path.stat().st_size < 10_000
    with pytest.raises(SourceError, match="'a-1/big' makes the archive too large"):
        list_tarball(path)


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tarballs, "MAX_MEMBERS", 3)
    members = [entry(f"a-1/{number}") for number in range(9)]
    assert "makes the archive too large" in refused(tmp_path, *members).message


def raw_header(name: str, size: bytes, kind: bytes = b"0") -> bytes:
    """Return a header whose size field is as given, with a right checksum."""
    info = tarfile.TarInfo(name)
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT)[:512])
    block[124:136] = size
    block[156:157] = kind
    block[148:156] = b" " * 8
    block[148:155] = b"%06o\0" % sum(block)
    return bytes(block)


@pytest.mark.parametrize("kind", [b"0", b"L", b"x"], ids=["file", "long name", "extended header"])
@pytest.mark.parametrize("size", [b"\xff" * 10 + b"\xfc\0", b"\x80" + b"\0" * 6 + b"\x7f" + b"\xff" * 4],
                         ids=["negative", "huge"])  # fmt: skip
def test_a_header_that_lies_about_its_size_ends_soon(tmp_path: Path, kind: bytes, size: bytes) -> None:
    path = tmp_path / "a-1.tar.gz"
    path.write_bytes(gzip.compress(raw_header("a-1/x", size, kind) + bytes(2048)))
    with pytest.raises(SourceError) as caught:
        list_tarball(path)
    expected = "'a-1/x' makes the archive too large" if kind == b"0" else "has a header of "
    assert expected in caught.value.message


@pytest.mark.parametrize("damage", ["cut short", "not gzip", "not tar", "empty"])
def test_a_damaged_archive_is_told(tmp_path: Path, damage: str) -> None:
    path = make_sdist(tmp_path, files={"big.bin": "".join(map(str, range(60_000)))})
    path.write_bytes(
        {
            "cut short": path.read_bytes()[:2000],
            "not gzip": b"hello",
            "not tar": gzip.compress(b"hello" * 300),
            "empty": b"",
        }[damage]
    )
    with pytest.raises(SourceError) as caught:
        hash_files(found := list_tarball(path), found.entries)
    assert caught.value.message.startswith("sample-1.0.tar.gz is not a whole .tar.gz archive: ")
    assert caught.value.hint == "it may be cut short: fetch it again"


def test_a_file_that_is_missing_later_is_told(tmp_path: Path) -> None:
    found = list_tarball(written(tmp_path, entry("a-1/x")))
    written(tmp_path)
    with pytest.raises(SourceError, match="member 'a-1/x' is no longer there"):
        read_file(found, "x")


def test_nothing_is_written_for_names_that_are_not_asked_for(tmp_path: Path) -> None:
    found: Tarball = list_tarball(written(tmp_path))
    assert extract_files(found, [], tmp_path / "out") == {}
