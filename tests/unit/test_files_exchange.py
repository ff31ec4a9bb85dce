"""Two folders exchanged in one step, or put back."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.files import exchange_directories, recover_directory, storage_error

WITHOUT_RENAMEAT2 = "import ctypes\nctypes.CDLL = lambda *words, **more: object()\n"

DIES_AT_RENAME = (
    WITHOUT_RENAMEAT2
    + """
import os, pathlib, sys
from toolkit.files import exchange_directories
left = [int(sys.argv[3])]

def watch(event, arguments):
    if event == "os.rename":
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), 9)

sys.addaudithook(watch)
exchange_directories(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
"""
)


def make_folders(tmp_path: Path) -> tuple[Path, Path]:
    new, current = tmp_path / "work" / "new", tmp_path / "patches" / "current"
    for folder in (new, current):
        folder.mkdir(parents=True)
        (folder / "file").write_text(folder.name)
    return new, current


def test_each_is_where_the_other_was(tmp_path: Path) -> None:
    new, current = make_folders(tmp_path)
    exchange_directories(new, current)

    assert ((current / "file").read_text(), (new / "file").read_text()) == ("new", "current")
    assert recover_directory(current) is False


def test_it_is_done_without_the_system_call_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new, current = make_folders(tmp_path)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_words, **_more: object())
    exchange_directories(new, current)

    assert ((current / "file").read_text(), (new / "file").read_text()) == ("new", "current")
    assert sorted(path.name for path in current.parent.iterdir()) == ["current"]


@pytest.mark.parametrize(
    ("rename", "left"), [(1, "current"), (2, "current"), (3, "new")], ids=["before", "between", "after"]
)
def test_killed_without_the_system_call_it_is_the_one_or_the_other(tmp_path: Path, rename: int, left: str) -> None:
    new, current = make_folders(tmp_path)
    words = [sys.executable, "-c", DIES_AT_RENAME, str(new), str(current), str(rename)]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2])}
    assert subprocess.run(words, env=environ, check=False).returncode == -9

    recover_directory(current)
    assert (current / "file").read_text() == left
    assert sorted(path.name for path in current.parent.iterdir()) == ["current"]


def test_a_folder_that_is_missing_is_an_error_with_both_names(tmp_path: Path) -> None:
    new, current = make_folders(tmp_path)
    with pytest.raises(FileNotFoundError) as caught:
        exchange_directories(new, current.with_name("other"))
    assert (caught.value.filename, caught.value.filename2) == (str(new), str(current.with_name("other")))


def test_another_file_system_is_a_refusal_of_the_storage() -> None:
    fault = storage_error(OSError(errno.EXDEV, "Invalid cross-device link", "/new", None, "/current"))
    assert fault is not None
    assert fault.message == (
        "cannot move /current: what is to take its place lies on another file system (Invalid cross-device link)"
    )
