"""Compilers that are there, missing, or there and not to be run: real ones, and scripts in their places."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.doctor_machines import Machine, own_interpreter, plant_machine
from toolkit.doctor.compilers import examine_compilers

NEEDED = ("cc", "c++", "ninja", "as", "ld")


@pytest.fixture
def machine(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """Return a planted machine whose PATH has one folder, with links to what a build needs and a ninja that runs."""
    machine = plant_machine(tmp_path, tmp_path_factory)
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("cc", "c++", "as", "ld"):
        (folder / name).symlink_to(shutil.which(name) or name)
    script(folder / "ninja", "echo 1.11.1")
    machine.environ["PATH"] = (
        f"{folder}:/nowhere:{machine.home}/tools/bishengir/bin:{machine.home}/tools/ccec_compiler/bin"
    )
    return machine


def script(path: Path, text: str, interpreter: str = "/bin/sh") -> Path:
    path.write_text(f"#!{interpreter}\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_all_that_run(machine: Machine) -> None:
    folder, home = machine.place / "bin", machine.home

    assert machine.look(examine_compilers) == [
        ("ok", "compiler.c", f"cc ({folder}/cc) compiles and links", ""),
        ("ok", "compiler.cxx", f"c++ ({folder}/c++) compiles and links", ""),
        ("ok", "compiler.ninja", f"ninja 1.11.1 ({folder}/ninja) runs", ""),
        ("ok", "compiler.bishengir-compile", f"{home}/tools/bishengir/bin/bishengir-compile runs", ""),
        ("ok", "compiler.bisheng", f"{home}/tools/ccec_compiler/bin/bisheng runs", ""),
    ]


def test_compilers_that_are_not_there(machine: Machine) -> None:
    (machine.place / "bin/cc").unlink()
    machine.environ["CXX"] = "ccache clang++-99"

    assert machine.faults(examine_compilers) == [
        ("fail", "compiler.c", "cc: there is no such compiler on PATH", "install one (Debian: apt install g++)"),
        (
            "fail",
            "compiler.cxx",
            "CXX=ccache clang++-99: there is no such compiler on PATH",
            "install one (Debian: apt install g++), or unset CXX",
        ),
    ]


def test_a_compiler_that_is_there_and_cannot_link(machine: Machine) -> None:
    """gcc without libc6-dev, or another machine's."""
    compiler = script(machine.place / "bin/my-cc", "echo 'ld: cannot find crt1.o' >&2; exit 1")
    machine.environ["CC"] = f"{compiler} -m64"

    assert machine.faults(examine_compilers) == [
        (
            "fail",
            "compiler.c",
            f"CC={compiler} -m64 ({compiler}) does not compile and link a program of two lines: ld: cannot find crt1.o",
            f"see what it says: echo 'int main() {{}}' | {compiler} -m64 -x c - -o /dev/null",
        )
    ]


# --- ninja -----------------------------------------------------------------------------------------------------


def test_no_ninja(machine: Machine) -> None:
    (machine.place / "bin/ninja").unlink()
    lonely = script(machine.place / "python", "")
    asked = replace(machine.asked(), interpreter=replace(own_interpreter(), executable=lonely))

    found = examine_compilers(asked)[2]

    assert (found.grade, found.name, found.seen, found.do) == (
        "fail",
        "compiler.ninja",
        "no ninja on PATH: no extension can be built",
        f"{lonely} -m pip install ninja",
    )


def test_a_ninja_whose_module_is_gone(machine: Machine) -> None:
    """pip's `ninja` is a script: it stays on PATH when another environment is active, and fails there."""
    ninja = script(machine.place / "bin/ninja", "import ninja_that_is_not_there", sys.executable)

    assert machine.faults(examine_compilers) == [
        (
            "fail",
            "compiler.ninja",
            f"{ninja} does not run: ModuleNotFoundError: No module named 'ninja_that_is_not_there'",
            f"install it again in the environment that it belongs to, or take {ninja.parent} off PATH",
        )
    ]


def test_a_ninja_whose_interpreter_is_gone(machine: Machine) -> None:
    ninja = script(machine.place / "bin/ninja", "", "/gone/venv/bin/python")

    found = machine.faults(examine_compilers)

    assert found == [
        (
            "fail",
            "compiler.ninja",
            f"{ninja} does not run: cannot start '{ninja}': No such file or directory",
            f"install it again in the environment that it belongs to, or take {ninja.parent} off PATH",
        )
    ]


def test_an_environment_whose_programs_are_not_on_path(machine: Machine) -> None:
    (machine.place / "bin/ninja").unlink()
    venv = machine.place / "venv/bin"
    venv.mkdir(parents=True)
    script(venv / "ninja", "echo 1.13")
    asked = replace(machine.asked(), interpreter=replace(own_interpreter(), executable=venv / "python"))

    found = examine_compilers(asked)[2]

    assert (found.grade, found.name, found.seen, found.do) == (
        "fail",
        "compiler.ninja",
        f"ninja is in {venv}, which is not on PATH: no extension can be built",
        f"activate that environment, or: export PATH={venv}:$PATH",
    )


def test_without_an_npu_want_of_ninja_is_no_failure(machine: Machine) -> None:
    (machine.place / "bin/ninja").unlink()
    shutil.rmtree(machine.root / "dev")
    machine.unset("ASCEND_HOME_PATH")

    assert [one[:2] for one in machine.faults(examine_compilers)] == [("warn", "compiler.ninja")]


# --- CANN's ----------------------------------------------------------------------------------------------------


def test_cann_without_its_compilers(machine: Machine) -> None:
    (machine.home / "tools/bishengir/bin/bishengir-compile").unlink()

    assert machine.faults(examine_compilers) == [
        (
            "warn",
            "compiler.bishengir-compile",
            f"no bishengir-compile on PATH nor in {machine.home}: NPU Triton's kernels are not compiled (DVM needs "
            "none)",
            "install CANN's toolkit whole, and source its set_env.sh",
        )
    ]


def test_compilers_that_triton_does_not_find(machine: Machine) -> None:
    folder = machine.home / "tools/ccec_compiler/bin"
    machine.environ["PATH"] = machine.environ["PATH"].replace(f":{folder}", "")
    (folder / "bisheng").rename(folder / "ccec")

    assert machine.faults(examine_compilers) == [
        (
            "warn",
            "compiler.bisheng",
            f"bisheng or ccec is in {folder}, which is not on PATH: NPU Triton does not find it",
            f"export PATH={folder}:$PATH",
        )
    ]


def test_cann_for_another_machine(machine: Machine) -> None:
    bisheng = machine.home / "tools/ccec_compiler/bin/bisheng"
    bisheng.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\x15\x00" + bytes(44))

    assert machine.faults(examine_compilers) == [
        (
            "fail",
            "compiler.bisheng",
            f"{bisheng} does not run: cannot start '{bisheng}': Exec format error",
            "install the CANN that is for this machine again",
        )
    ]
