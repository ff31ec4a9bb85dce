"""The command with the overlay's variables in front of it."""

from __future__ import annotations

from pathlib import Path

from tests.unit.preflight.builders import Room
from toolkit.preflight import filled_command, filled_variables, started_environment


def test_the_overlay_s_variables_are_filled_in_and_the_command_s_own_win(room: Room) -> None:
    subject = room.subject(
        "B=2 TORCHINDUCTOR_CACHE_DIR=/mine ./run.sh", environ={"A": "1", "PYTHONPATH": "/more", "B": "0"}
    )
    environ = started_environment(subject)

    assert (environ["A"], environ["B"], environ["TORCHINDUCTOR_CACHE_DIR"]) == ("1", "2", "/mine")
    assert environ["PYTHONPATH"] == f"{room.site}:/more"
    assert environ["TORCHINDUCTOR_NPU_BACKEND"] == "dvm"
    assert environ["TORCH_EXTENSIONS_DIR"] == f"{room.overlay}/torch_extensions"


def test_a_caller_s_environment_that_has_the_overlay_stays_as_it_is(room: Room) -> None:
    environ = {"PYTHONPATH": f"/more:{room.site}", "TORCHINDUCTOR_CACHE_DIR": "/fresh"}
    subject = room.subject("./run.sh", environ=environ)

    assert subject.stands_alone
    assert {name: started_environment(subject)[name] for name in environ} == environ


def test_variables_of_an_overlay_that_was_active_before_are_not_told_as_lost(room: Room) -> None:
    environ = {"TOOLKIT_OVERLAY": "/other", "TORCH_EXTENSIONS_DIR": "/other/torch_extensions", "TRITON_CACHE_DIR": "/t"}

    assert room.subject("./run.sh", environ=environ).replaced == ("TRITON_CACHE_DIR",)


def test_the_command_is_written_for_a_shell() -> None:
    variables = {"PATH": "/my venv/bin", "A": "it's", "B": ""}
    argv = ["nohup", "./run.sh", "--x.y", "1 2", "--z", "-1", "--w=$HOME"]

    assert filled_command(variables, argv) == (
        "PATH='/my venv/bin':\"$PATH\" \\\n  A='it'\"'\"'s' \\\n  B='' \\\n  nohup ./run.sh \\\n"
        "  --x.y '1 2' \\\n  --z -1 \\\n  '--w=$HOME'"
    )


def test_the_interpreter_s_folder_goes_first_on_path(room: Room) -> None:
    subject = room.subject("./run.sh", interpreter=Path("/opt/venv/bin/python"))

    assert filled_variables(subject)["PATH"] == "/opt/venv/bin"
    assert started_environment(subject)["PATH"] == "/opt/venv/bin:/usr/bin:/bin"
