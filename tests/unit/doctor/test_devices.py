"""Device nodes, the driver, and the variables that choose among the NPUs."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.doctor_machines import Machine, plant_machine
from tests.limits import ordinary_user
from toolkit.doctor.devices import INTO_CONTAINER, examine_devices, read_visible
from toolkit.sysroot import MARK


@pytest.fixture
def machine(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return plant_machine(tmp_path, tmp_path_factory)


def test_two_npus_and_their_driver(machine: Machine) -> None:
    assert machine.look(examine_devices) == [
        ("ok", "device.nodes", f"2 NPUs in {machine.root}/dev: davinci0, davinci1", ""),
        ("ok", "device.driver", f"driver 25.5.0: {machine.driver}/lib64/driver/libascend_hal.so", ""),
        ("ok", "device.visible", "ASCEND_RT_VISIBLE_DEVICES is not set: all 2 NPUs are seen", ""),
    ]


def test_a_machine_without_any(machine: Machine) -> None:
    shutil.rmtree(machine.root / "dev")
    machine.environ.clear()

    assert machine.look(examine_devices) == [
        ("warn", "device.nodes", f"no NPU: {machine.root}/dev has no davinci0", "see cann.environment")
    ]


def test_a_host_sysroot_stands_in_for_one(machine: Machine) -> None:
    shutil.rmtree(machine.root / "dev")
    (machine.home / MARK).touch()

    assert machine.look(examine_devices) == [
        ("warn", "device.nodes", f"no NPU: {machine.root}/dev has no davinci0, the host sysroot stands in for one", "")
    ]


def test_cann_without_nodes(machine: Machine) -> None:
    shutil.rmtree(machine.root / "dev")

    assert machine.faults(examine_devices) == [
        (
            "fail",
            "device.nodes",
            f"no NPU: {machine.root}/dev has no davinci0, while ASCEND_HOME_PATH names CANN",
            f"{INTO_CONTAINER}; where there is no NPU on purpose, unset ASCEND_HOME_PATH and use `toolkit run --host`",
        )
    ]


def test_a_container_that_was_given_only_the_npus(machine: Machine) -> None:
    (machine.root / "dev/davinci_manager").unlink()
    (machine.root / "dev/hisi_hdc").unlink()

    assert machine.faults(examine_devices) == [
        (
            "fail",
            "device.nodes",
            f"{machine.root}/dev has davinci0, davinci1, but lacks davinci_manager, hisi_hdc: the driver cannot be "
            "reached",
            INTO_CONTAINER,
        )
    ]


def test_nodes_of_another_group(machine: Machine, open_folder: Path) -> None:
    """Whoever is not in the group that owns them gets a device count of 0, and no reason."""
    dev = open_folder / "dev"
    shutil.copytree(machine.root / "dev", dev)
    for node in dev.iterdir():
        node.chmod(0o640 if node.name == "davinci1" else 0o666)
    dev.chmod(0o755)
    status = (dev / "davinci1").stat()
    machine.environ.clear()
    asked = replace(machine.asked(), root=open_folder)

    with ordinary_user():
        found = examine_devices(asked)[0]

    assert (found.grade, found.name, found.seen, found.do) == (
        "fail",
        "device.nodes",
        f"{dev}/davinci1: not to be read and written by this user (mode 640, owner {status.st_uid}, group "
        f"{status.st_gid})",
        "join the group that owns them (as a rule HwHiAiUser's), or run as a user who may",
    )


# --- driver ----------------------------------------------------------------------------------------------------


def test_a_driver_that_is_not_there(machine: Machine) -> None:
    shutil.rmtree(machine.driver)

    assert machine.faults(examine_devices) == [
        (
            "fail",
            "device.driver",
            f"no libascend_hal.so in {machine.driver}, on LD_LIBRARY_PATH or in ld.so.cache: CANN cannot reach an NPU",
            f"install the driver; in a container, mount {machine.driver} into it",
        )
    ]


def test_a_driver_without_its_version(machine: Machine) -> None:
    (machine.driver / "version.info").unlink()

    assert machine.faults(examine_devices) == [
        (
            "warn",
            "device.driver",
            f"{machine.driver}/lib64/driver/libascend_hal.so is there, but no {machine.driver}/version.info: the "
            "driver's version is not known",
            f"in a container, mount {machine.driver}/version.info into it",
        )
    ]


def test_a_driver_in_a_place_of_its_own(machine: Machine) -> None:
    other = machine.root / "opt/npu/driver"
    shutil.copytree(machine.driver, other)
    info = machine.root / "etc/ascend_install.info"
    info.write_text("Driver_Install_Path_Param=/opt/npu\n", encoding="utf-8")

    assert machine.look(examine_devices)[1] == (
        "ok",
        "device.driver",
        f"driver 25.5.0: {other}/lib64/driver/libascend_hal.so",
        "",
    )


# --- choosing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "fault", "meant"),
    [
        ("1,0", "NPU 0 stands behind 1, and CANN wants them in ascending order", "0,1"),
        ("0,0", "NPU 0 stands twice", "0"),
        ("0,4", "there is no NPU 4 (there are 2, from 0); CANN stops there and sees only 0", "0"),
        ("4", "there is no NPU 4 (there are 2, from 0); CANN stops there and sees none", "0,1"),
        ("0, 1", "id 2 has a blank (' 1'); CANN stops there and sees only 0", "0,1"),
        ("0,,1", "id 2 is empty; CANN stops there and sees only 0", "0,1"),
        ("0,1,", "id 3 is empty; CANN stops there and sees only 0, 1", "0,1"),
        ("", "id 1 is empty; CANN stops there and sees none", "0,1"),
        ("npu0", "id 1 is 'npu0'; CANN stops there and sees none", "0"),
        ("-1", "id 1 is '-1'; CANN stops there and sees none", "1"),
        ("0.5", "id 1 is '0.5'; CANN stops there and sees none", "0"),
    ],
)
def test_a_choice_that_cann_does_not_take(machine: Machine, value: str, fault: str, meant: str) -> None:
    machine.environ["ASCEND_RT_VISIBLE_DEVICES"] = value

    assert machine.faults(examine_devices) == [
        (
            "fail",
            "device.visible",
            f"ASCEND_RT_VISIBLE_DEVICES={value!r}: {fault}",
            "list each NPU once, as plain numbers in ascending order without blanks: "
            f"export ASCEND_RT_VISIBLE_DEVICES={meant}",
        )
    ]


def test_a_choice_that_is_right(machine: Machine) -> None:
    machine.environ["ASCEND_RT_VISIBLE_DEVICES"] = "1"

    assert machine.look(examine_devices)[2] == (
        "ok",
        "device.visible",
        "ASCEND_RT_VISIBLE_DEVICES=1: 1 of 2 NPUs, set before any process starts",
        "",
    )


def test_a_choice_among_none(machine: Machine) -> None:
    shutil.rmtree(machine.root / "dev")
    machine.environ.clear()
    machine.environ["ASCEND_RT_VISIBLE_DEVICES"] = "0,1"

    assert machine.faults(examine_devices)[1] == (
        "warn",
        "device.visible",
        "ASCEND_RT_VISIBLE_DEVICES=0,1, and there is no NPU to choose",
        "unset ASCEND_RT_VISIBLE_DEVICES",
    )


def test_how_many_there_are_need_not_be_known() -> None:
    assert read_visible("3,5,12", None) == ([3, 5, 12], "")


@pytest.mark.parametrize("value", ["0-1", "0,1", "Ascend910-0,Ascend910-1", "void"])
def test_what_the_container_runtime_read_is_left_alone(machine: Machine, value: str) -> None:
    machine.environ["ASCEND_VISIBLE_DEVICES"] = value

    assert machine.faults(examine_devices) == []


def test_the_container_runtimes_variable_chooses_nothing_here(machine: Machine) -> None:
    machine.environ["ASCEND_VISIBLE_DEVICES"] = "1"

    assert machine.faults(examine_devices) == [
        (
            "warn",
            "device.container",
            "ASCEND_VISIBLE_DEVICES=1 names 1, 2 NPUs are there: only the container runtime reads it, when a container "
            "starts",
            "to choose NPUs for a process, set ASCEND_RT_VISIBLE_DEVICES",
        )
    ]
