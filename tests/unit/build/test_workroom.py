"""The folder of a build: emptied before, and the way back into it after."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from toolkit.build.workroom import (
    RECORD,
    BuildRecord,
    build_words,
    open_workroom,
    restore_record,
    shell_command,
    write_record,
)
from toolkit.errors import BuildError, UsageError

AGAIN = "run the build again: it makes the folder anew"


def record(env: dict[str, str], cwd: str = "/") -> BuildRecord:
    return BuildRecord(component="part", command=["python"], prefix=["bwrap", "--"], env=env, cwd=cwd)


def test_a_kept_folder_is_emptied_but_for_its_tree(tmp_path: Path) -> None:
    for name in ("tree", "home", "tmp", "dist", "counters", "bin", "logs"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "file").touch()
        (tmp_path / name / "deep").chmod(0o500)
    (tmp_path / RECORD).touch()

    room = open_workroom(tmp_path)

    left = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert left == [Path("tree/deep/file")]
    assert all(path.is_dir() for path in (room.home, room.tmp, room.dist, room.compilers, room.log.parent))


def test_a_folder_behind_a_symlink_is_known_by_its_real_name(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    assert open_workroom(tmp_path / "link").root == (tmp_path / "real").resolve()


def test_a_shell_has_the_builds_environment_and_sandbox_and_the_callers_terminal(tmp_path: Path) -> None:
    write_record(open_workroom(tmp_path), record({"PATH": "/usr/bin:/bin", "A": "1"}))

    argv, env, cwd = shell_command(tmp_path, {"TERM": "xterm", "SECRET": "s", "A": "2"})

    assert argv[:4] == ["bwrap", "--", "sh", "-c"]
    assert argv[4] in ("umask 022; exec bash --norc -i", "umask 022; exec sh -i")
    assert (env, cwd) == ({"PATH": "/usr/bin:/bin", "A": "1", "TERM": "xterm"}, Path("/"))


def test_without_bash_there_is_a_plain_shell(tmp_path: Path) -> None:
    write_record(open_workroom(tmp_path), record({"PATH": str(tmp_path)}))

    argv, env, _ = shell_command(tmp_path, {})

    assert (argv[-1], env["TERM"]) == ("umask 022; exec sh -i", "dumb")


def test_a_record_is_for_its_owner_alone(tmp_path: Path) -> None:
    write_record(open_workroom(tmp_path), record({"TOKEN": "s3cret"}))

    assert (tmp_path / RECORD).stat().st_mode & 0o777 == 0o600


def test_where_no_build_is_kept_there_is_no_shell(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        shell_command(tmp_path / "none", {})

    assert caught.value.message == f"there is no kept build in {tmp_path}/none"
    assert caught.value.hint == "a build's folder is kept only where the build fails"


def test_a_record_and_a_log_lie_where_no_build_may_write(tmp_path: Path) -> None:
    room = open_workroom(tmp_path)

    for place in (room.root / RECORD, room.log, room.compilers / "cc"):
        assert not any(place.is_relative_to(folder) for folder in room.writable)
    assert {room.tree, room.home, room.tmp, room.dist, room.cache_log.parent} == set(room.writable)


def with_other(**parts: Any) -> str:
    return json.dumps({**asdict(record({})), **parts})


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="no JSON"),
        pytest.param("\udcff", id="no text"),
        pytest.param('{"argv": []}', id="nothing of it"),
        pytest.param("[]", id="a list"),
        pytest.param("7", id="a number"),
        pytest.param(with_other(prefix="bwrap"), id="prefix"),
        pytest.param(with_other(command=[1]), id="command"),
        pytest.param(with_other(env={"A": 1}), id="env"),
        pytest.param(with_other(env=[["A", "1"]]), id="env as pairs"),
        pytest.param(with_other(cwd=None), id="cwd"),
    ],
)
def test_a_record_that_cannot_be_read_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / RECORD).write_text(text, errors="surrogateescape")

    for ask in (lambda: shell_command(tmp_path, {}), lambda: build_words(tmp_path)):
        with pytest.raises(UsageError, match=f"^{tmp_path}/{RECORD} cannot be read: ") as caught:
            ask()
        assert caught.value.hint == AGAIN


def make_folder(place: Path) -> None:
    (place / "deep").mkdir(parents=True)


def make_link(place: Path) -> None:
    other = place.with_name("other.json")
    other.write_text(with_other(prefix=[]))
    place.symlink_to(other)


@pytest.mark.parametrize("make", [make_folder, make_link, os.mkfifo], ids=["folder", "symlink", "fifo"])
def test_a_record_that_is_no_file_is_not_read(tmp_path: Path, make: Any) -> None:
    make(tmp_path / RECORD)

    with pytest.raises(UsageError) as caught:
        shell_command(tmp_path, {})

    assert caught.value.message == f"{tmp_path / RECORD} cannot be read: it is no regular file"
    assert caught.value.hint == AGAIN


@pytest.mark.parametrize("make", [lambda _place: None, Path.touch], ids=["removed", "a file"])
def test_there_is_no_shell_in_a_folder_that_is_gone(tmp_path: Path, make: Any) -> None:
    write_record(open_workroom(tmp_path), record({}, cwd=str(tmp_path / "tree")))
    make(tmp_path / "tree")

    with pytest.raises(UsageError) as caught:
        shell_command(tmp_path, {})

    assert caught.value.message == f"the kept build in {tmp_path} has lost its folder {tmp_path}/tree"
    assert caught.value.hint == AGAIN


def write_other(place: Path) -> None:
    place.write_text(with_other(prefix=[]))


@pytest.mark.parametrize(
    "change",
    [lambda _place: None, write_other, make_folder, make_link, os.mkfifo],
    ids=["removed", "another", "folder", "symlink", "fifo"],
)
def test_a_record_that_was_changed_is_restored(tmp_path: Path, change: Any) -> None:
    room = open_workroom(tmp_path)
    write_record(room, record({}))
    (tmp_path / RECORD).unlink()
    change(tmp_path / RECORD)

    restore_record(room, record({}))

    assert shell_command(tmp_path, {})[0][:2] == ["bwrap", "--"]
    assert not (tmp_path / RECORD).is_symlink()
    assert (tmp_path / RECORD).stat().st_mode & 0o777 == 0o600


def test_a_room_that_takes_no_record_any_more_is_the_builds_fault(tmp_path: Path) -> None:
    room = open_workroom(tmp_path / "work")
    (tmp_path / "work").rename(tmp_path / "away")
    (tmp_path / "work").touch()

    with pytest.raises(BuildError) as caught:
        restore_record(room, record({}))

    assert caught.value.message == (
        f"part cannot be built: its build has damaged its own folder {tmp_path}/work: File exists"
    )
