"""What would be imported: the program, the import path, and what may change it on the way."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.unit.preflight.builders import Room, lines
from toolkit.model import Observation
from toolkit.preflight.origins import examine_origins


def look(room: Room, line: str, **given: object) -> list[Observation]:
    return examine_origins(room.subject(line, **given))  # type: ignore[arg-type]


def test_the_overlay_that_does_not_fit_is_told(room: Room) -> None:
    found = look(room, "python train.py", misfit=("it is for cp312", "name another"))

    assert lines(found, "versions") == [("fail", "it is for cp312")]


# --- the program ---------------------------------------------------------------------------------------------------


def test_the_python_of_the_overlay_is_found_first(room: Room) -> None:
    assert lines(look(room, "python train.py"), "program") == [("ok", f"{Path(sys.executable).parent}/python")]


def test_another_python_is_told(room: Room) -> None:
    other = room.folder / "bin/python3"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    found = look(room, "./bin/python3 train.py")

    seen = f"./bin/python3 is {other}, and the overlay was checked for {sys.executable}"
    assert lines(found, "program") == [("fail", seen)]
    assert [one.do for one in found if one.name == "preflight.program"] == [
        "name it without its folder, or check the overlay for that one: --python PATH"
    ]


@pytest.mark.parametrize(
    ("name", "head", "instead"),
    [
        ("python3.9", "#!/bin/sh\n", f"start {sys.executable}"),
        ("torchrun", "#!{folder}/bin/python3.9\n", f"start {sys.executable} -m torch.distributed.run"),
    ],
)
def test_a_program_that_the_overlay_s_environment_lacks_is_named_by_another(
    name: str, head: str, instead: str, room: Room, tmp_path: Path
) -> None:
    own = tmp_path / "own/bin/python"
    own.parent.mkdir(parents=True)
    (own.parents[1] / "pyvenv.cfg").touch()
    own.symlink_to(sys.executable)
    folder = room.folder / "bin"
    folder.mkdir()
    for one in ("python3.9", name):
        (folder / one).write_text(head.format(folder=room.folder))
        (folder / one).chmod(0o755)
    found = look(room, f"{name} train.py", environ={"PATH": str(folder)}, interpreter=own)

    assert [(one.grade, one.do) for one in found if one.name == "preflight.program"] == [
        ("fail", f"{instead.replace(sys.executable, str(own))}, or check the overlay for that one: --python PATH")
    ]


def test_the_torchrun_of_another_environment_is_told(room: Room) -> None:
    (room.folder / "venv/bin").mkdir(parents=True)
    (room.folder / "venv/pyvenv.cfg").touch()
    python, torchrun = room.folder / "venv/bin/python", room.folder / "venv/bin/torchrun"
    python.symlink_to(sys.executable)
    torchrun.write_text(f"#!{python}\nimport sys\n")
    torchrun.chmod(0o755)
    found = look(room, f"{torchrun} -m trainer.main")

    seen = f"{torchrun} is {torchrun}, of {python}, and the overlay was checked for {sys.executable}"
    assert lines(found, "program") == [("fail", seen)]


def test_a_script_that_is_not_there_is_told_and_may_come(room: Room) -> None:
    seen = f"there is no {room.folder / './run.sh'}: what it sets and passes on cannot be read"

    assert lines(look(room, "./run.sh --x.y"), "program") == [("warn", seen)]


def test_a_script_that_cannot_be_run_is_told(room: Room) -> None:
    (room.folder / "run.sh").write_text('python -m trainer.main "$@"\n')

    assert lines(look(room, "./run.sh"), "program")[0] == ("fail", "./run.sh cannot be run by this user")
    assert lines(look(room, "bash run.sh"), "program")[0] == ("ok", f"{room.folder}/run.sh")


@pytest.mark.parametrize("flags", ["-I", "-E", "-uE", "-u -I"])
def test_a_python_that_is_deaf_to_its_variables_is_told(flags: str, room: Room) -> None:
    found = look(room, f"python {flags} -m trainer.main -E")

    deaf = flags.split()[-1]
    assert lines(found, "program")[-1] == ("fail", f"python {deaf} ignores PYTHONPATH, and so the overlay")


def test_a_python_that_is_not_deaf_is_left_alone(room: Room) -> None:
    assert [grade for grade, _ in lines(look(room, "python -u -m trainer.main -E -I"), "program")] == ["ok"]


def test_a_script_that_keeps_its_arguments_is_told(room: Room) -> None:
    (room.folder / "run.sh").write_text("python -m trainer.main\n")
    found = look(room, "bash run.sh --training.steps=10")

    seen = f"{room.folder}/run.sh does not hand all of its arguments on to trainer.main: some options are lost"
    assert lines(found, "script") == [("fail", seen)]


# --- the import path -----------------------------------------------------------------------------------------------


def test_the_overlay_is_put_first_and_empty_entries_of_the_caller_go(room: Room) -> None:
    found = look(room, "python train.py", environ={"PYTHONPATH": f":{room.folder}:"})

    assert lines(found, "import_path") == [
        ("ok", f"PYTHONPATH has the overlay's {room.site} first, then {room.folder}"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "grade", "seen"),
    [
        ("{site}:{titan}", "ok", "PYTHONPATH has the overlay's {site} first, then {titan}"),
        ("{titan}", "fail", "PYTHONPATH={titan} does not have the overlay's {site}"),
        ("{titan}:{site}", "fail", "PYTHONPATH has {titan} before the overlay's {site}"),
        ("{system}:{site}", "fail",
         "PYTHONPATH has {system} (a folder of system packages) before the overlay's {site}"),
        ("{titan}::{site}", "fail", "PYTHONPATH has {titan} before the overlay's {site}"),
        (":{site}", "fail",
         "PYTHONPATH=:{site} has an empty entry: Python takes it for the folder where the run starts"),
        ("{site}:/none/such", "warn", "PYTHONPATH has /none/such, which is not there"),
    ],
)  # fmt: skip
def test_a_command_s_own_import_path_is_judged(value: str, grade: str, seen: str, room: Room) -> None:
    for name in ("titan", "lib/dist-packages"):
        (room.folder / name).mkdir(parents=True)
    names = {"site": room.site, "titan": room.folder / "titan", "system": room.folder / "lib/dist-packages"}
    found = look(room, f"PYTHONPATH={value.format(**names)} python train.py")

    assert lines(found, "import_path") == [(grade, seen.format(**names))]


def test_the_overlay_counts_under_any_name(room: Room) -> None:
    (room.folder / "current").symlink_to(room.overlay)
    found = look(room, "PYTHONPATH=current/site python train.py")

    assert lines(found, "import_path") == [("ok", "PYTHONPATH has the overlay's current/site first")]


def test_a_source_tree_where_the_run_starts_is_told(room: Room) -> None:
    (room.folder / "sample_npu").mkdir()
    (room.folder / "sample_npu/__init__.py").touch()
    seen = f"{room.folder}/sample_npu comes before the overlay's sample_npu: Python looks in {room.folder} first"

    assert ("fail", seen) in lines(look(room, "python -m trainer.main"), "import_path")
    assert ("fail", seen) in lines(look(room, "python train.py"), "import_path")
    (room.folder / "deep").mkdir()
    assert [grade for grade, _ in lines(look(room, "python deep/train.py"), "import_path")] == ["ok"]


def test_a_script_that_puts_others_before_the_overlay_is_told(room: Room) -> None:
    (room.folder / "set_env.sh").write_text("export PYTHONPATH=/opt/cann/python:$PYTHONPATH\n")
    (room.folder / "harmless.sh").write_text("# PYTHONPATH=none\nulimit -n 100\n")
    text = "source {}\npython -m trainer.main --x.y\n"

    grade, seen = lines(look(room, text.format("set_env.sh"), text=True), "import_path")[-1]
    assert (grade, seen) == (
        "fail", "the run script sources set_env.sh, which sets PYTHONPATH, after the overlay was put first",
    )  # fmt: skip
    grade, seen = lines(look(room, text.format("gone.sh"), text=True), "import_path")[-1]
    assert (grade, seen) == (
        "warn",
        "the run script sources gone.sh, which cannot be read and may set anything, after the overlay was put first",
    )
    for fine in ("harmless.sh", "set_env.sh\nsource {overlay}/env.sh"):
        assert [grade for grade, _ in lines(look(room, text.format(fine), text=True), "import_path")] == ["ok"]
