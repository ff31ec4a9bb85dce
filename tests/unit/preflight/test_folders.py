"""Folders that must be fresh, and the one of extensions, which must be the overlay's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.preflight.builders import Room, lines
from toolkit.model import Observation
from toolkit.preflight.folders import examine_folders

RUN = "python train.py --compile.enable"


def look(room: Room, line: str, **given: object) -> list[Observation]:
    return examine_folders(room.subject(line, **given))  # type: ignore[arg-type]


def test_the_overlay_s_own_cache_is_fine_while_it_is_empty(room: Room) -> None:
    own = room.overlay / "cache/inductor"
    seen = f"TORCHINDUCTOR_CACHE_DIR={own}, the overlay's own, holds nothing yet"
    assert lines(look(room, RUN), "cache_folder") == [("ok", seen)]

    (own / "ab").mkdir(parents=True)
    (own / "ab/code.py").touch()
    assert lines(look(room, RUN), "cache_folder") == [
        (
            "warn",
            f"TORCHINDUCTOR_CACHE_DIR={own} is the overlay's own and holds code of runs before, such as code.py: "
            "nothing stale is loaded, but what is found there is not compiled again, and a scan of it counts those "
            "runs in",
        ),
    ]


def test_a_cache_that_the_command_names_must_hold_nothing(room: Room) -> None:
    other = room.folder / "cache"
    line = f"TORCHINDUCTOR_CACHE_DIR=cache {RUN}"
    assert lines(look(room, line), "cache_folder") == [("ok", "TORCHINDUCTOR_CACHE_DIR=cache holds nothing yet")]

    other.mkdir()
    (other / "x").touch()
    assert lines(look(room, line), "cache_folder") == [
        (
            "fail",
            "TORCHINDUCTOR_CACHE_DIR=cache: it holds results already, such as x, and the run's cannot be told "
            "from them",
        ),
    ]


def test_a_command_that_stands_alone_without_a_cache_shares_one(room: Room) -> None:
    seen = "TORCHINDUCTOR_CACHE_DIR is not set: generated code goes to a folder that all runs of this user share"

    assert lines(look(room, f"PYTHONPATH={{site}} {RUN}"), "cache_folder") == [("fail", seen)]


@pytest.mark.parametrize(
    ("line", "grade", "seen"),
    [
        (RUN, "warn", "--dump_folder is not given: the configuration's own is used again by every run"),
        (f"{RUN} --dump-folder out/a", "ok", "--dump-folder out/a holds nothing yet"),
        (f"{RUN} --dump_folder=file", "fail", "--dump_folder=file: {folder}/file is no folder"),
        (f"{RUN} --dump_folder=file/below", "fail",
         "--dump_folder=file/below: {folder}/file cannot be written by this user"),
    ],
)  # fmt: skip
def test_the_output_s_folder_is_looked_at(line: str, grade: str, seen: str, room: Room) -> None:
    (room.folder / "file").touch()

    assert lines(look(room, line), "dump_folder") == [(grade, seen.format(folder=room.folder))]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_made_is_told(room: Room) -> None:
    (room.folder / "shut").mkdir(mode=0o500)
    seen = f"--dump_folder=shut/out: {room.folder}/shut cannot be written by this user"

    assert lines(look(room, f"{RUN} --dump_folder=shut/out"), "dump_folder") == [("fail", seen)]


def test_what_only_a_shell_could_tell_is_said_so(room: Room) -> None:
    text = f"export LOG_DIR=$(mktemp -d)\n{RUN} --dump_folder=$(date +%F)\n"
    found = look(room, text, text=True)

    assert lines(found, "dump_folder") == [
        ("warn", "--dump_folder=$(…): what that is, only the shell will know"),
    ]  # fmt: skip
    assert lines(found, "log_folder") == [
        ("warn", "what LOG_DIR will be cannot be known from the command's text"),
    ]  # fmt: skip


def test_what_no_sourced_file_mentions_is_known_to_be_unset(room: Room) -> None:
    (room.folder / "one.sh").write_text("export A=1\n")
    (room.folder / "two.sh").write_text("export LOG_DIR=/logs\n")

    unknown = ("warn", "what LOG_DIR will be cannot be known from the command's text")
    for name, expected in (("one.sh", ("ok", "LOG_DIR is not set")), ("two.sh", unknown)):
        assert lines(look(room, f"source {name}\n{RUN}\n", text=True), "log_folder") == [expected]


# --- extensions ------------------------------------------------------------------------------------------------------


def test_the_overlay_s_own_extensions_are_fine(room: Room) -> None:
    own = f"{room.overlay}/torch_extensions"

    assert lines(look(room, RUN), "extensions") == [("ok", f"TORCH_EXTENSIONS_DIR={own}, the overlay's own")]


def test_what_a_killed_compiler_left_is_told(room: Room) -> None:
    build = room.overlay / "torch_extensions/some_op"
    build.mkdir()
    (build / "build.ninja").touch()
    (build / "lock").touch()
    found = look(room, RUN)

    assert [(one.grade, one.seen.partition(":")[0]) for one in found if one.name == "preflight.extensions"] == [
        ("warn", str(build / "lock")),
    ]  # fmt: skip


def test_any_other_folder_of_extensions_is_told(room: Room) -> None:
    own, used = f"{room.overlay}/torch_extensions", room.folder / "used"
    (used / "op").mkdir(parents=True)
    (used / "op/op.so").touch()
    for value, whose in ((used, "which holds extensions built elsewhere"),
                         (room.folder / "new", "which another torch_npu may use too")):  # fmt: skip
        seen = f"TORCH_EXTENSIONS_DIR={value}, {whose}: expected the overlay's own, {own}"
        assert lines(look(room, f"TORCH_EXTENSIONS_DIR={value} {RUN}"), "extensions") == [("fail", seen)]


def test_every_fault_says_what_to_do(room: Room) -> None:
    (room.folder / "out").mkdir()
    (room.folder / "out/it").touch()
    line = f"PYTHONPATH={{site}} LOG_DIR=out TORCHINDUCTOR_CACHE_DIR=out {RUN} --dump_folder=out"
    failed = [one for one in look(room, line) if one.grade == "fail"]

    assert [one.name.partition(".")[2] for one in failed] == ["dump_folder", "log_folder", "cache_folder", "extensions"]
    assert [one.do for one in failed][1] == (
        f"name another with LOG_DIR that is not there yet, or move this one away: mv {room.folder}/out "
        f"{room.folder}/out.before"
    )
    assert [one.do for one in failed][3] == f"set TORCH_EXTENSIONS_DIR={room.overlay}/torch_extensions"


def test_a_path_with_blanks_is_quoted(tmp_path: Path) -> None:
    from tests.unit.preflight.builders import make_room

    room = make_room(tmp_path / "my runs")
    found = look(room, f"PYTHONPATH='{{site}}' {RUN}")

    assert [one.do for one in found if one.name == "preflight.extensions"] == [
        f"set TORCH_EXTENSIONS_DIR='{room.overlay}/torch_extensions'",
    ]  # fmt: skip
