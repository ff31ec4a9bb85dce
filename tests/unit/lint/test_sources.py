"""What is read of the places that are named, and what is told of the rest."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.lint_sample import write_sample
from toolkit.errors import UsageError
from toolkit.lint import Skipped, lint_model

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
UNPARSED, READ = "it cannot be parsed", f"(as Python {PYTHON} reads it)"
FAULT = """
class Net(nn.Module):
    def forward(self, x):
        print(x)
"""


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"def f(:\n    pass\n", f"{UNPARSED}: invalid syntax in line 1 {READ}", id="a syntax error"),
        pytest.param("s = 'é'\n".encode("latin-1"), "not UTF-8: byte 0xe9 at offset 5", id="latin-1"),
        pytest.param("x = 1\n".encode("utf-16"), "binary: it has null bytes", id="UTF-16"),
        pytest.param(b"\x7fELF\0\0", "binary: it has null bytes", id="binary"),
        pytest.param(b"# coding: nonesuch\n", f"{UNPARSED}: unknown encoding: nonesuch {READ}", id="an encoding"),
        pytest.param(b"x = " + b"(" * 5000, f"{UNPARSED}: too many nested parentheses in line 1 {READ}", id="nested"),
        pytest.param(b"x = " + b"-" * 100_000 + b"1\n", "nested too deeply",
                     id="nested operators"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_hides_nothing(data: bytes, why: str, tmp_path: Path) -> None:
    write_sample(tmp_path, FAULT, "good.py")
    bad = tmp_path / "bad.py"
    bad.write_bytes(data)

    report = lint_model([tmp_path])

    assert report.skipped == (Skipped(file=str(bad), why=why),)
    assert [one.check for one in report.findings] == ["log-in-forward"]
    assert report.files == 1


@pytest.mark.parametrize("length", [50, 480, 3000])
def test_a_long_chain_of_calls_is_judged_or_named(length: int, tmp_path: Path) -> None:
    write_sample(tmp_path, FAULT, "good.py")
    source = f"class Net(nn.Module):\n    def forward(self, x, y):\n        return x{'.float()' * length} @ y\n"
    path = write_sample(tmp_path, source, "long.py")

    report = lint_model([tmp_path])

    assert [one.check for one in report.findings] == ["log-in-forward"]
    assert report.skipped == (() if length == 50 else (Skipped(file=str(path), why="nested too deeply"),))


def test_every_file_is_read_once_and_no_foreign_folders(tmp_path: Path) -> None:
    write_sample(tmp_path, FAULT, "pkg/a.py")
    (tmp_path / "pkg/link.py").symlink_to("a.py")
    (tmp_path / "pkg/loop").symlink_to("..")
    for name in (".git/x.py", "__pycache__/x.py", "node_modules/x.py", "env/x.py"):
        write_sample(tmp_path, FAULT, name)
    (tmp_path / "env/pyvenv.cfg").touch()
    (tmp_path / "pkg/dead.py").symlink_to("nowhere.py")

    report = lint_model([tmp_path, tmp_path / "pkg/a.py"])

    assert [Path(one.file).name for one in report.findings] == ["a.py"]
    assert report.skipped == (
        Skipped(file=str(tmp_path / "pkg/dead.py"), why="cannot be read: No such file or directory"),
    )


def test_a_file_with_another_declared_encoding_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes("# -*- coding: latin-1 -*-\ns = 'é'\n".encode("latin-1"))
    (tmp_path / "b.py").write_bytes(b"\xef\xbb\xbfs = 1\r\n")
    assert lint_model([tmp_path]).skipped == ()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("nowhere", "cannot look at {place!r}: No such file or directory", id="not there"),
        pytest.param("empty", "there is no Python file in {place!r}", id="an empty folder"),
        pytest.param("loop", "cannot look at {place!r}: Too many levels of symbolic links", id="a loop"),
        pytest.param("pipe", "{place!r} is neither a file nor a folder", id="a pipe"),
    ],
)
def test_a_place_that_is_none_is_an_error(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/notes.txt").touch()
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    write_sample(tmp_path, FAULT)

    with pytest.raises(UsageError) as caught:
        lint_model([tmp_path / "sample.py", tmp_path / name])

    assert str(caught.value) == message.format(place=str(tmp_path / name))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    write_sample(tmp_path, FAULT)
    shut = tmp_path / "shut"
    shut.mkdir(mode=0)

    assert lint_model([tmp_path]).skipped == (Skipped(file=str(shut), why="cannot be listed: Permission denied"),)


@pytest.mark.parametrize(
    ("codec", "why"),
    [
        ("zlib_codec", "'zlib_codec' is not a text encoding; use codecs.open() to handle arbitrary codecs"),
        ("undefined", "undefined encoding"),
    ],
)
def test_an_encoding_that_is_none_for_text_is_named(codec: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f"# coding: {codec}\nx = 1\n")

    report = lint_model([tmp_path])

    assert report.skipped == (Skipped(file=str(tmp_path / "a.py"), why=f"its declared encoding cannot be read: {why}"),)
