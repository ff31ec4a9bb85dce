"""Whether torch_npu can be loaded where preflight is run: a doubt where it only looks, a fault where it starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.preflight.builders import Room
from toolkit.doctor.places import HOST_HINT
from toolkit.preflight import Subject, examine_launch
from toolkit.preflight.runtime import examine_runtime


def npu_subject(room: Room, line: str, **environ: str) -> Subject:
    """Return a command with an overlay that has torch_npu."""
    subject = room.subject(line, environ={"HOME": str(room.folder), **environ})
    packages = (replace(subject.overlay.packages[0], import_name="torch_npu"),)
    return replace(subject, overlay=replace(subject.overlay, packages=packages))


@pytest.mark.parametrize(("is_started", "grade"), [(False, "warn"), (True, "fail")], ids=["looked at", "started"])
def test_a_machine_without_cann(is_started: bool, grade: str, room: Room, tmp_path: Path) -> None:
    found = examine_launch(npu_subject(room, "python train.py"), is_started=is_started, root=tmp_path)

    seen = f"no CANN: ASCEND_HOME_PATH is not set, and {tmp_path / 'usr/local/Ascend'} has none"
    assert [(one.grade, one.seen, one.do) for one in found if one.name == "cann.environment"] == [
        (grade, seen, HOST_HINT)
    ]
    assert "toolkit run --host -- " in HOST_HINT


def test_an_environment_that_claims_a_device_is_a_fault_in_any_case(room: Room, tmp_path: Path) -> None:
    subject = npu_subject(room, "ASCEND_HOME_PATH=/nowhere/cann python train.py")

    assert [(one.name, one.grade) for one in examine_runtime(subject, is_started=False, root=tmp_path)] == [
        ("cann.environment", "fail")
    ]


def test_a_script_that_may_source_cann_leaves_it_unknown(room: Room, tmp_path: Path) -> None:
    (room.folder / "set_env.sh").write_text("export ASCEND_HOME_PATH=/opt/cann\n")
    (room.folder / "run.sh").write_text('source set_env.sh\npython -m trainer "$@"\n')
    subject = npu_subject(room, "bash run.sh")

    assert [(one.grade, one.seen) for one in examine_runtime(subject, is_started=True, root=tmp_path)] == [
        ("warn", "what ASCEND_HOME_PATH will be cannot be known from the command's text")
    ]


def test_an_overlay_without_torch_npu_needs_nothing(room: Room, tmp_path: Path) -> None:
    assert examine_runtime(room.subject("python train.py"), is_started=True, root=tmp_path) == []
