"""CANN, planted whole and then spoilt in one way at a time."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.doctor_machines import ASCEND, HOME, NPU, TORCH, Machine, plant_machine, wanting
from toolkit.doctor.cann import examine_cann
from toolkit.doctor.places import HOST_HINT
from toolkit.sysroot import MARK


@pytest.fixture
def machine(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return plant_machine(tmp_path, tmp_path_factory)


def test_a_whole_cann_that_is_sourced_is_well(machine: Machine) -> None:
    home = machine.home

    assert machine.look(examine_cann, wanted=wanting(cann="8.5")) == [
        ("ok", "cann.environment", f"set_env.sh is sourced: ASCEND_HOME_PATH is {home}", ""),
        ("ok", "cann.version", f"CANN 8.5.0 in {home}", ""),
        ("ok", "libraries.torch", f"libc10.so of torch found in {machine.torch}/lib", ""),
        ("ok", "libraries.driver", f"libascend_hal.so of the driver found in {machine.driver}/lib64/driver", ""),
        ("ok", "libraries.cann", f"libascendcl.so, libhccl.so of CANN found in {home}/lib64", ""),
        ("ok", "libraries.nnal", f"libatb.so of NNAL found in {machine.ascend}/nnal/atb/lib", ""),
    ]


def test_the_link_latest_is_the_same_cann(machine: Machine) -> None:
    latest = machine.home.with_name("latest")
    machine.environ["ASCEND_HOME_PATH"] = machine.environ["ASCEND_TOOLKIT_HOME"] = str(latest)
    machine.environ["ASCEND_OPP_PATH"] = str(latest / "opp")
    machine.environ["PYTHONPATH"] = str(latest / "python/site-packages")

    assert machine.faults(examine_cann) == []


def test_latest_as_a_folder_of_links_is_the_same_cann(machine: Machine) -> None:
    """So CANN 8 installs itself: `latest` is a folder whose members lead into the version's own."""
    version, latest = machine.home, machine.home.with_name("latest")
    (version / "x86_64-linux/lib64").mkdir()
    for library in (version / "lib64").iterdir():
        library.rename(version / "x86_64-linux/lib64" / library.name)
    (version / "lib64").rmdir()
    (version / "runtime/lib64").symlink_to("../x86_64-linux/lib64")
    latest.unlink()
    latest.mkdir()
    for name in ("opp", "compiler", "runtime", "python", "x86_64-linux"):
        (latest / name).symlink_to(f"../{version.name}/{name}")
    (latest / "lib64").symlink_to(f"../{version.name}/x86_64-linux/lib64")
    machine.environ["ASCEND_HOME_PATH"] = machine.environ["ASCEND_TOOLKIT_HOME"] = str(latest)
    machine.environ["ASCEND_OPP_PATH"] = str(latest / "opp")
    machine.environ["PYTHONPATH"] = str(latest / "python/site-packages")
    machine.environ["LD_LIBRARY_PATH"] = machine.environ["LD_LIBRARY_PATH"].replace(version.name, "latest")

    assert machine.look(examine_cann)[:2] == [
        ("ok", "cann.environment", f"set_env.sh is sourced: ASCEND_HOME_PATH is {latest}", ""),
        ("ok", "cann.version", f"CANN 8.5.0 in {latest}", ""),
    ]
    assert machine.faults(examine_cann) == []
    assert [one[1] for one in machine.look(examine_cann) if one[1] == "cann.installed"] == []


def test_where_there_is_no_cann_the_host_sysroot_is_named(machine: Machine) -> None:
    shutil.rmtree(machine.ascend)
    shutil.rmtree(machine.root / "dev")
    machine.environ.clear()

    assert machine.look(examine_cann) == [
        ("warn", "cann.environment", f"no CANN: ASCEND_HOME_PATH is not set, and {machine.ascend} has none", HOST_HINT),
        ("ok", "libraries.torch", f"libc10.so of torch found in {machine.torch}/lib", ""),
        (
            "warn",
            "libraries.cann",
            "2 libraries of CANN are not found",
            "see cann.environment",
        ),
    ]


def test_a_host_sysroot_is_told_from_a_cann(machine: Machine) -> None:
    (machine.home / MARK).touch()
    shutil.rmtree(machine.root / "dev")

    assert machine.look(examine_cann)[0] == (
        "ok",
        "cann.environment",
        f"ASCEND_HOME_PATH is a host sysroot, {machine.home}: code is generated there, no kernel runs",
        "",
    )


# --- the environment -------------------------------------------------------------------------------------------


def test_a_cann_that_is_not_sourced(machine: Machine) -> None:
    machine.unset("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "LD_LIBRARY_PATH")

    found = machine.faults(examine_cann)

    assert found[0] == (
        "fail",
        "cann.environment",
        f"CANN is installed in {machine.home}, but its set_env.sh is not sourced: ASCEND_HOME_PATH is not set",
        f"source {machine.home}/set_env.sh",
    )
    assert found[1] == (
        "fail",
        "libraries.cann",
        "libraries of CANN that libtorch_npu.so needs are not found: libascendcl.so, libhccl.so",
        "source the set_env.sh of CANN",
    )


def test_nodes_without_any_cann(machine: Machine) -> None:
    shutil.rmtree(machine.ascend / "ascend-toolkit")
    machine.unset("ASCEND_HOME_PATH")

    assert machine.faults(examine_cann)[0] == (
        "fail",
        "cann.environment",
        "there are device nodes (davinci0, davinci1), but no CANN: ASCEND_HOME_PATH is not set, and "
        f"{machine.ascend} has none",
        "install CANN's toolkit and kernels, and source its set_env.sh",
    )


@pytest.mark.parametrize(
    ("lost", "fault"),
    [
        pytest.param(".", "which does not exist", id="gone"),
        pytest.param("lib64", "which is no CANN home: it has no lib64/libascendcl.so", id="no runtime library"),
        pytest.param("compiler", "which lacks compiler/: torch_npu refuses it", id="no compiler"),
    ],
)
def test_a_home_that_is_none(machine: Machine, lost: str, fault: str) -> None:
    shutil.rmtree(machine.home / lost)

    assert machine.look(examine_cann)[0][:3] == (
        "fail",
        "cann.environment",
        f"ASCEND_HOME_PATH is {machine.home}, {fault}",
    )


@pytest.mark.parametrize(
    ("name", "value", "grade", "line", "seen"),
    [
        ("ASCEND_OPP_PATH", None, "fail", "cann.opp", "ASCEND_OPP_PATH is not set: torch_npu refuses to load"),
        ("ASCEND_OPP_PATH", "/nowhere/opp", "fail", "cann.opp",
         "ASCEND_OPP_PATH is /nowhere/opp, which does not exist: torch_npu refuses to load"),
        ("ASCEND_OPP_PATH", "/usr", "fail", "cann.opp",
         "ASCEND_OPP_PATH is /usr, outside ASCEND_HOME_PATH, {home}: two CANNs are mixed"),
        ("ASCEND_TOOLKIT_HOME", "/usr", "fail", "cann.toolkit_home",
         "ASCEND_TOOLKIT_HOME is /usr, ASCEND_HOME_PATH is {home}: two CANNs are mixed"),
        ("PYTHONPATH", None, "warn", "cann.python_path",
         "PYTHONPATH lacks {home}/python/site-packages: operators that CANN compiles while training runs fail"),
        ("LD_LIBRARY_PATH", None, "fail", "cann.library_path",
         "LD_LIBRARY_PATH has no folder with libascendcl.so: of set_env.sh only a part was taken over"),
    ],
)  # fmt: skip
def test_a_variable_that_set_env_would_have_set_otherwise(
    machine: Machine, name: str, value: str | None, grade: str, line: str, seen: str
) -> None:
    if value is None:
        machine.unset(name)
    else:
        machine.environ[name] = value

    source = f"source {machine.home}/set_env.sh in a fresh shell"
    more = ", then activate the overlay again" if name == "PYTHONPATH" else ""
    assert machine.faults(examine_cann)[0] == (grade, line, seen.format(home=machine.home), source + more)


def test_several_canns_and_the_other_one_first_on_the_library_path(machine: Machine) -> None:
    other = machine.ascend / "cann-9.1.0"
    shutil.copytree(machine.home, other)
    (other / "x86_64-linux/ascend_toolkit_install.info").write_text("version=9.1.0\n", encoding="utf-8")
    machine.environ["LD_LIBRARY_PATH"] = f"{other}/lib64:{machine.environ['LD_LIBRARY_PATH']}"

    assert machine.look(examine_cann)[:3] == [
        (
            "fail",
            "cann.library_path",
            f"LD_LIBRARY_PATH has {other}/lib64 first, of another CANN than ASCEND_HOME_PATH, {machine.home}",
            f"source {machine.home}/set_env.sh in a fresh shell",
        ),
        ("ok", "cann.version", f"CANN 8.5.0 in {machine.home}", ""),
        (
            "ok",
            "cann.installed",
            f"2 CANNs are installed: {machine.home} (8.5.0), {other} (9.1.0); sourced: {machine.home}",
            "",
        ),
    ]


def test_a_cann_that_the_recipe_is_not_for(machine: Machine) -> None:
    assert machine.faults(examine_cann, wanted=wanting(cann="9.1")) == [
        (
            "fail",
            "cann.version",
            f"CANN 8.5.0 in {machine.home}; the recipe sample is for 9.1",
            "source the set_env.sh of CANN 9.1, or choose another recipe: toolkit recipe list",
        )
    ]


def test_a_cann_that_does_not_say_its_version(machine: Machine) -> None:
    for file in [*machine.home.glob("*/*.info")]:
        file.unlink()

    assert machine.faults(examine_cann) == [
        (
            "warn",
            "cann.version",
            f"{machine.home} does not say its version: there is no ascend_*_install.info and no version.info",
            "see whether the installation is whole; no recipe can be held against it",
        )
    ]


# --- libraries -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lost", "grade", "line", "seen", "do"),
    [
        (f"{HOME}/lib64/libhccl.so", "fail", "libraries.cann",
         "libraries of CANN that libtorch_npu.so needs are not found: libhccl.so", "source the set_env.sh of CANN"),
        (f"{ASCEND}/driver/lib64/driver/libascend_hal.so", "fail", "libraries.driver",
         "libraries of the driver that libascendcl.so needs are not found: libascend_hal.so",
         "install the driver, or mount /usr/local/Ascend/driver into the container"),
        (f"{ASCEND}/nnal/atb/lib/libatb.so", "warn", "libraries.nnal",
         "libraries of NNAL that libop_plugin_atb.so needs are not found: libatb.so",
         "install the NNAL of this CANN's release, and source nnal/atb/set_env.sh"),
        (f"{NPU}/lib/libtorch_npu.so", "fail", "libraries.torch_npu",
         "libraries of torch_npu that _C.so needs are not found: libtorch_npu.so",
         "torch_npu is not whole: install it again, or build the overlay again: toolkit build"),
        (f"{TORCH}/lib/libc10.so", "fail", "libraries.torch",
         "libraries of torch that libtorch_npu.so needs are not found: libc10.so",
         "install the torch that this torch_npu was built for, into the same environment"),
    ],
)  # fmt: skip
def test_a_library_that_is_not_found(machine: Machine, lost: str, grade: str, line: str, seen: str, do: str) -> None:
    (machine.place / lost).unlink()

    assert machine.faults(examine_cann) == [(grade, line, seen, do)]


def test_a_library_that_is_cut_short(machine: Machine) -> None:
    library = machine.home / "lib64/libhccl.so"
    library.write_bytes(library.read_bytes()[:5000])

    assert machine.faults(examine_cann) == [
        (
            "fail",
            "libraries.cann",
            f"a library of CANN cannot be used: {library} is cut short",
            "install CANN again",
        )
    ]


def test_libraries_are_found_through_the_loaders_cache_too(machine: Machine) -> None:
    """The driver's installer writes its folder to /etc/ld.so.conf.d; the real ldconfig makes the cache."""
    etc = machine.root / "etc"
    (etc / "ld.so.conf").write_text("/usr/local/Ascend/driver/lib64/driver\n", encoding="utf-8")
    subprocess.run(["/sbin/ldconfig", "-r", machine.root], check=True, capture_output=True)
    machine.environ["LD_LIBRARY_PATH"] = machine.environ["LD_LIBRARY_PATH"].rpartition(":")[0]

    assert machine.faults(examine_cann) == []


# --- names -----------------------------------------------------------------------------------------------------


def test_a_cann_without_a_name_that_torch_npu_needs(machine: Machine) -> None:
    machine.compile(f"{HOME}/lib64/libascendcl.so", "int aclInit(void) { return 0; }")

    assert machine.faults(examine_cann) == [
        (
            "fail",
            "symbols.cann",
            f"CANN in {machine.home}/lib64 lacks 1 name: libtorch_npu.so needs MsprofSysCycleTime",
            "this torch_npu was built for another CANN: source the set_env.sh of the one that its release names",
        )
    ]


def test_a_torch_that_torch_npu_was_not_built_for(machine: Machine) -> None:
    machine.compile(f"{TORCH}/lib/libc10.so", "int other(void) { return 0; }")

    assert machine.faults(examine_cann) == [
        (
            "fail",
            "symbols.torch",
            f"torch in {machine.torch}/lib lacks 1 name: libtorch_npu.so needs _ZN3c105ErrorEv",
            "torch and torch_npu were not built for each other: install the torch that torch_npu's metadata requires, "
            "of the same release to the last .postN",
        )
    ]


def test_an_nnal_of_another_release(machine: Machine) -> None:
    machine.compile(f"{ASCEND}/nnal/atb/lib/libatb.so", "int other(void) { return 0; }")

    assert machine.faults(examine_cann) == [
        (
            "fail",
            "symbols.nnal",
            f"NNAL in {machine.ascend}/nnal/atb/lib lacks 1 name: libop_plugin_atb.so needs _ZN3atb3RunEv",
            "source the set_env.sh of the NNAL of this CANN's release",
        )
    ]


def test_files_of_two_torch_npu(machine: Machine) -> None:
    machine.compile(f"{NPU}/lib/libtorch_npu.so", "int other(void) { return 0; }")

    assert machine.faults(examine_cann) == [
        (
            "fail",
            "symbols.torch_npu",
            f"torch_npu in {machine.npu}, {machine.npu}/lib lacks 1 name: _C.so needs _ZN6at_npu4loadEv",
            "files of two torch_npu lie in one folder: remove it and install torch_npu again",
        )
    ]


def test_an_optional_name_is_not_missed(machine: Machine) -> None:
    machine.compile(
        f"{NPU}/_C.so", "__attribute__((weak)) int aclFuture(void); int f(void) { return aclFuture ? aclFuture() : 0; }"
    )

    assert machine.faults(examine_cann) == []
