from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.limits import file_size_limit, ordinary_user
from toolkit.errors import SourceError
from toolkit.files import sha256_bytes, sha256_file
from toolkit.platforms import accepts_wheel
from toolkit.wheels.archive import open_wheel
from toolkit.wheels.pack import PackFile, WheelContents, is_packed, pack_wheel

METADATA = b"Metadata-Version: 2.1\nName: sample-parts\nVersion: 1.0\n"
FILES = {
    "sample/run.sh": b"#!/bin/sh\n",
    "sample/__init__.py": b"x = 1\n",
    "sample_parts-1.0.dist-info/entry_points.txt": b"[a]\nb = sample\n",
    "zz/\xe4.txt": b"",
}


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """Make a folder that every user may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def contents(root: Path, files: dict[str, bytes] = FILES, *, tag: str = "py3-none-any") -> WheelContents:
    """Write the files below a folder, in the order given, and return what packs them."""
    packed = []
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        mode = 0o755 if name.endswith(".sh") else 0o644
        packed.append(PackFile(name=name, path=path, mode=mode, sha256=sha256_bytes(content)))
    return WheelContents(distribution="sample-parts", version="1.0", tag=tag, metadata=METADATA, files=tuple(packed))


def test_a_packed_wheel_has_the_files_and_tells_the_truth_about_them(tmp_path: Path) -> None:
    path = pack_wheel(contents(tmp_path / "files"), tmp_path)

    assert path == tmp_path / "sample_parts-1.0-py3-none-any.whl"
    info = "sample_parts-1.0.dist-info"
    with open_wheel(path) as wheel:
        assert list(wheel.members) == [
            "sample/__init__.py", "sample/run.sh", "zz/\xe4.txt", f"{info}/entry_points.txt",
            f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD",
        ]  # fmt: skip
        assert wheel.verify_record() == []
        assert {name: wheel.read(name) for name in FILES} == FILES
        assert wheel.members["sample/run.sh"].mode == 0o755
        assert wheel.members["sample/__init__.py"].mode == 0o644
        assert (wheel.metadata.name, wheel.metadata.version, wheel.metadata.tags) == (
            "sample-parts", "1.0", ("py3-none-any",),
        )  # fmt: skip
        assert wheel.metadata.root_is_purelib


def test_the_tag_of_a_target_is_one_that_the_target_takes(tmp_path: Path) -> None:
    path = pack_wheel(contents(tmp_path / "files", tag="cp311-cp311-manylinux_2_28_x86_64"), tmp_path)

    assert accepts_wheel(path.name, python_tag="cp311", platform="manylinux_2_28_x86_64")
    with open_wheel(path) as wheel:
        assert not wheel.metadata.root_is_purelib


def test_pip_installs_it(tmp_path: Path) -> None:
    path = pack_wheel(contents(tmp_path / "files"), tmp_path)
    words = ["install", "--no-deps", "--no-index", "--quiet", "--target", str(tmp_path / "site"), str(path)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)

    assert (tmp_path / "site/sample/__init__.py").read_bytes() == b"x = 1\n"


def test_the_same_files_give_the_same_bytes_wherever_and_whenever_they_lie(tmp_path: Path) -> None:
    one = contents(tmp_path / "one")
    other = contents(tmp_path / "a" / "b", dict(reversed(FILES.items())))
    for file in other.files:
        os.utime(file.path, (1, 1))
    (tmp_path / "out").mkdir()

    first, second = pack_wheel(one, tmp_path), pack_wheel(other, tmp_path / "out")
    assert first.read_bytes() == second.read_bytes()
    assert one.digest == other.digest


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"distribution": "other"}, id="distribution"),
        pytest.param({"version": "1.1"}, id="version"),
        pytest.param({"tag": "cp311-cp311-manylinux_2_28_x86_64"}, id="tag"),
        pytest.param({"metadata": METADATA + b"\nWhat it is for.\n"}, id="metadata"),
        pytest.param({"files": ()}, id="files"),
    ],
)
def test_whatever_goes_into_the_wheel_goes_into_the_digest(tmp_path: Path, change: dict[str, object]) -> None:
    old = contents(tmp_path)
    assert replace(old, **change).digest != old.digest  # type: ignore[arg-type]


@pytest.mark.parametrize("change", [{"name": "sample/b.py"}, {"mode": 0o755}, {"sha256": "ab" * 32}], ids=str)
def test_so_does_a_file_with_its_name_mode_and_content(tmp_path: Path, change: dict[str, object]) -> None:
    old = contents(tmp_path, {"sample/a.py": b""})
    new = replace(old, files=(replace(old.files[0], **change),))  # type: ignore[arg-type]
    assert new.digest != old.digest


def test_a_file_that_changed_since_it_was_found_is_noticed_and_nothing_is_left(tmp_path: Path) -> None:
    wanted = contents(tmp_path / "files")
    path = tmp_path / "files/sample/run.sh"
    path.write_bytes(b"#!/bin/no\n")
    (tmp_path / "out").mkdir()

    with pytest.raises(SourceError) as caught:
        pack_wheel(wanted, tmp_path / "out")
    assert caught.value.message == f"{path} changed while it was read"
    assert caught.value.hint == "wait until nothing writes to it, then run again"
    assert list((tmp_path / "out").iterdir()) == []


def test_a_file_that_is_gone_has_changed_as_well(tmp_path: Path) -> None:
    wanted = contents(tmp_path / "files")
    path = tmp_path / "files/sample/run.sh"
    path.unlink()
    with pytest.raises(SourceError) as caught:
        pack_wheel(wanted, tmp_path)
    assert caught.value.message == f"{path} changed while it was read"


def test_a_file_that_may_not_be_read_is_named(shared_folder: Path) -> None:
    wanted = contents(shared_folder / "files")
    path = shared_folder / "files/sample/run.sh"
    path.chmod(0)
    out = shared_folder / "out"
    out.mkdir()
    out.chmod(0o777)
    with ordinary_user(), pytest.raises(SourceError) as caught:
        pack_wheel(wanted, out)
    assert caught.value.message == f"{path} cannot be read: Permission denied"
    assert caught.value.hint == "run as a user who may read it"
    assert list(out.iterdir()) == []


def test_a_full_disk_leaves_nothing_and_is_no_fault_of_the_files(tmp_path: Path) -> None:
    wanted = contents(tmp_path / "files", {"sample/big.bin": bytes(3 << 20)})
    (tmp_path / "out").mkdir()
    with file_size_limit(2 << 20), pytest.raises(OSError, match="File too large"):
        pack_wheel(wanted, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_wheel_that_is_there_stays(tmp_path: Path) -> None:
    wanted = contents(tmp_path / "files")
    path = pack_wheel(wanted, tmp_path)
    before = sha256_file(path)
    with pytest.raises(FileExistsError):
        pack_wheel(wanted, tmp_path)
    assert sha256_file(path) == before


def rewrite(path: Path, name: str, content: bytes) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {entry: archive.read(entry) for entry in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for entry, old in members.items():
            archive.writestr(entry, content if entry == name else old)


def test_a_whole_wheel_is_known_again_without_its_files(tmp_path: Path) -> None:
    wanted = contents(tmp_path / "files")
    path = pack_wheel(wanted, tmp_path)
    for file in wanted.files:
        file.path.unlink()
    assert is_packed(wanted, path)


@pytest.mark.parametrize(
    "damage", ["missing", "cut short", "a file", "METADATA", "WHEEL", "other files", "other metadata"]
)
def test_a_damaged_wheel_is_not(tmp_path: Path, damage: str) -> None:
    wanted = contents(tmp_path / "files")
    path = pack_wheel(wanted, tmp_path)
    if damage == "missing":
        path.unlink()
    elif damage == "cut short":
        path.write_bytes(path.read_bytes()[:-30])
    elif damage == "other files":
        wanted = contents(tmp_path / "files", FILES | {"sample/__init__.py": b"x = 2\n"})
    elif damage == "other metadata":
        wanted = replace(wanted, metadata=METADATA + b"Summary: more\n")
    elif damage == "a file":
        rewrite(path, "sample/__init__.py", b"x = 2\n")
    else:
        info = f"sample_parts-1.0.dist-info/{damage}"
        old = zipfile.ZipFile(path).read(info)
        rewrite(path, info, old + b"X-More: 1\n")
    assert not is_packed(wanted, path)
