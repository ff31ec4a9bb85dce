from __future__ import annotations

import json
import os
import stat
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from toolkit.errors import ContractMismatchError, TargetError
from toolkit.model import Contract, Interpreter, Overlay, Target
from toolkit.target import choose_target, inspect_interpreter, installed_cann, require_fit, require_torch

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def answering(path: Path, **changes: object) -> Path:
    """Make a program that answers the probe as this interpreter would, but for the changes."""
    facts = {
        "version": [3, 11, 7], "implementation": "cpython", "system": "linux", "libc": "glibc 2.31", "bits": 64,
        "machine": "x86_64", "free_threaded": False, "torch": None, "executable": str(path), "prefix": "/nonexistent",
        "torch_metadata": None,
    }  # fmt: skip
    return program(path, f"cat <<'END'\n{json.dumps({**facts, **changes})}\nEND")


def add_torch(site: Path, version: str) -> Path:
    metadata = site / f"torch-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    return metadata


def interpreter(torch: str | None = "2.13.0", *, tag: str = "cp311", platforms: tuple[str, ...] = ()) -> Interpreter:
    return Interpreter(
        executable=Path("/usr/bin/python3"), version="3.11.7", python_tag=tag,
        platforms=platforms or ("manylinux_2_35_x86_64", "manylinux_2_28_x86_64", "manylinux_2_17_x86_64"), torch=torch,
    )  # fmt: skip


def contract(torch: str = "2.13.0", *platforms: str) -> Contract:
    return Contract(
        python_tags=("cp310", "cp311", "cp312"),
        platforms=platforms or ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64"),
        torch=torch,
    )


def message_of(path: Path, **options: float) -> str:
    with pytest.raises(TargetError) as caught:
        inspect_interpreter(path, env=ENV, **options)
    return caught.value.message


def test_this_interpreter_is_described() -> None:
    found = inspect_interpreter(Path(sys.executable), env=ENV)
    assert found.executable == Path(sys.executable)
    assert found.version == ".".join(map(str, sys.version_info[:3]))
    assert found.python_tag == f"cp{sys.version_info[0]}{sys.version_info[1]}"
    glibc = os.confstr("CS_GNU_LIBC_VERSION")
    assert glibc is not None
    machine = sysconfig.get_platform().rpartition("-")[2]
    assert found.platforms[0] == f"manylinux_{glibc.split()[1].replace('.', '_')}_{machine}"
    assert Path(sys.executable).resolve() in found.files


def test_torch_is_read_from_its_metadata_without_importing_it(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", symlinks=True)
    site = next((tmp_path / "env" / "lib").glob("python*")) / "site-packages"
    metadata = add_torch(site, "2.13.0+cpu")
    (site / "torch.py").write_text("raise SystemExit('imported')")
    found = inspect_interpreter(tmp_path / "env" / "bin" / "python", env=ENV)
    assert found.torch == "2.13.0+cpu"
    assert found.executable == tmp_path / "env" / "bin" / "python"
    assert set(found.files) >= {metadata, tmp_path / "env" / "pyvenv.cfg"}


def test_neither_the_callers_folder_nor_pythonpath_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_torch(tmp_path, "9.9")
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.chdir(tmp_path)
    venv.create(tmp_path / "env", symlinks=True)
    found = inspect_interpreter(tmp_path / "env" / "bin" / "python", env={**ENV, "PYTHONPATH": str(tmp_path)})
    assert found.torch is None


def test_a_bare_name_is_looked_up_on_the_path(tmp_path: Path) -> None:
    path = answering(tmp_path / "python9")
    found = inspect_interpreter(Path("python9"), env={**ENV, "PATH": f"{tmp_path}:{ENV['PATH']}"})
    assert found.executable == path


def test_the_glibc_says_which_platforms_can_be_used(tmp_path: Path) -> None:
    found = inspect_interpreter(answering(tmp_path / "p", libc="glibc 2.18", machine="aarch64"), env=ENV)
    assert found.platforms == ("manylinux_2_18_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")


def test_what_the_interpreter_prints_as_it_starts_is_no_answer(tmp_path: Path) -> None:
    quiet = answering(tmp_path / "python")
    noisy = program(tmp_path / "noisy", f"echo distutils: patched; {quiet}; echo bye")

    assert inspect_interpreter(noisy, env=ENV).version == "3.11.7"


def test_a_missing_interpreter_is_named() -> None:
    assert message_of(Path("/nonexistent/python")) == "the interpreter '/nonexistent/python' does not exist"
    assert message_of(Path("python-of-nobody")) == "the interpreter 'python-of-nobody' does not exist"


def test_a_file_that_cannot_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "python").write_text("")
    assert message_of(tmp_path / "python") == f"the interpreter '{tmp_path}/python' is not executable"


@pytest.mark.parametrize(
    "text", ["exit 0", "echo hello", "echo '[]'", "echo 3", "echo '{\"version\": [3, 11, 7]}'; exit 1"]
)
def test_what_is_not_python_is_said_to_be_none(tmp_path: Path, text: str) -> None:
    path = program(tmp_path / "p", text)
    assert message_of(path) == f"{path} is not a Python that works"


def test_one_that_hangs_is_stopped(tmp_path: Path) -> None:
    path = program(tmp_path / "p", "sleep 60")
    assert message_of(path, timeout=0.2) == (
        f"{path} cannot be asked what it is: {path} did not end within 0.2 s and was stopped"
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        pytest.param({"implementation": "pypy"}, "is pypy, expected CPython", id="implementation"),
        pytest.param(
            {"free_threaded": True}, "is a free-threaded build, expected one with the GIL", id="free-threaded"
        ),
        pytest.param({"system": "darwin"}, "runs on darwin, expected Linux", id="system"),
        pytest.param({"libc": None}, "does not use glibc, expected a Linux with it", id="musl"),
        pytest.param({"machine": "riscv64"}, "runs on riscv64, expected x86_64 or aarch64", id="machine"),
        pytest.param({"bits": 32}, "is a 32-bit build, expected 64 bits", id="32 bits"),
    ],
)
def test_an_interpreter_that_no_wheel_is_made_for_is_refused(
    tmp_path: Path, changes: dict[str, object], why: str
) -> None:
    path = answering(tmp_path / "p", **changes)
    assert message_of(path) == f"{path} {why}"


def test_an_old_python_says_only_what_it_is(tmp_path: Path) -> None:
    path = program(tmp_path / "p", """echo '{"version": [2, 7, 18]}'""")
    assert message_of(path) == f"{path} is Python 2.7.18, expected 3.10 or newer"


def test_the_target_is_the_newest_platform_that_both_know() -> None:
    wanted = contract("2.13.0", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64")
    assert choose_target(interpreter(), wanted) == Target(python_tag="cp311", platform="manylinux_2_28_x86_64")


def test_another_tag_is_answered_with_those_that_do() -> None:
    with pytest.raises(ContractMismatchError) as caught:
        choose_target(interpreter(tag="cp39"), contract())
    assert caught.value.message == "/usr/bin/python3 is cp39, expected cp310, cp311 or cp312"


def test_another_platform_is_answered_with_those_that_do() -> None:
    with pytest.raises(ContractMismatchError) as caught:
        choose_target(interpreter(platforms=("manylinux_2_17_x86_64", "manylinux2014_x86_64")), contract())
    assert caught.value.message == (
        "/usr/bin/python3 runs on manylinux_2_17_x86_64 at most, "
        "expected manylinux_2_28_x86_64 or manylinux_2_28_aarch64"
    )


@pytest.mark.parametrize(
    ("found", "wanted"),
    [("2.13.0", "2.13.0"), ("2.13.0+cpu", "2.13.0"), ("2.13.0+cpu", "2.13.0+cpu")],
)
def test_any_build_of_the_release_will_do_unless_one_is_named(found: str, wanted: str) -> None:
    require_torch(interpreter(found), contract(wanted))


@pytest.mark.parametrize(
    ("found", "wanted"), [("2.13.1", "2.13.0"), ("2.13.0", "2.13.0+cpu"), ("2.13.0+cu126", "2.13.0+cpu")]
)
def test_another_torch_is_refused(found: str, wanted: str) -> None:
    with pytest.raises(ContractMismatchError) as caught:
        require_torch(interpreter(found), contract(wanted))
    assert caught.value.message == f"/usr/bin/python3 has torch {found}, expected {wanted}"
    assert caught.value.hint == (
        f"give it an interpreter of its own: python3 -m venv .venv-torch-{wanted} && .venv-torch-{wanted}/bin/pip "
        f"install torch=={wanted}, then --python .venv-torch-{wanted}/bin/python"
    )


def test_no_torch_is_refused() -> None:
    with pytest.raises(TargetError) as caught:
        require_torch(interpreter(None), contract())
    assert caught.value.message == "/usr/bin/python3 has no torch, expected 2.13.0"
    assert caught.value.hint == "install it: /usr/bin/python3 -m pip install torch==2.13.0"


def overlay(*, cann: str | None = None, platform: str = "manylinux_2_28_x86_64") -> Overlay:
    wanted = Contract(python_tags=("cp311",), platforms=(platform,), torch="2.13.0", cann=cann)
    return Overlay(
        recipe="r", key="k", root=Path("o"), target=Target(python_tag="cp311", platform=platform), contract=wanted,
        packages=(), env={},
    )  # fmt: skip


def cann_home(path: Path, version: str) -> dict[str, str]:
    info = path / "x86_64-linux" / "ascend_toolkit_install.info"
    info.parent.mkdir(parents=True)
    info.write_text(f"package_name=Ascend-cann-toolkit\nversion={version}\narch=x86_64\n")
    return {"ASCEND_HOME_PATH": str(path)}


def test_an_overlay_fits_the_interpreter_it_was_built_for(tmp_path: Path) -> None:
    require_fit(overlay(), interpreter(), {})
    require_fit(overlay(cann="9.1"), interpreter(), {})
    require_fit(overlay(cann="9.1"), interpreter(), {"ASCEND_HOME_PATH": str(tmp_path)})
    require_fit(overlay(cann="9.1"), interpreter(), cann_home(tmp_path / "cann", "9.1.RC1"))


@pytest.mark.parametrize(
    ("built", "found", "is_on"),
    [
        pytest.param(overlay(), interpreter(tag="cp312"), "cp312 on manylinux_2_35_x86_64", id="tag"),
        pytest.param(
            overlay(), interpreter(platforms=("manylinux_2_17_x86_64",)), "cp311 on manylinux_2_17_x86_64", id="glibc"
        ),
    ],
)
def test_an_overlay_for_another_interpreter_is_refused(built: Overlay, found: Interpreter, is_on: str) -> None:
    with pytest.raises(ContractMismatchError) as caught:
        require_fit(built, found, {})
    assert caught.value.message == (
        f"the overlay of 'r' is for cp311-manylinux_2_28_x86_64, /usr/bin/python3 is {is_on}"
    )


def test_an_overlay_for_another_torch_is_refused() -> None:
    with pytest.raises(ContractMismatchError, match=r"^/usr/bin/python3 has torch 2\.12\.0, expected 2\.13\.0$"):
        require_fit(overlay(), interpreter("2.12.0"), {})


def test_another_cann_is_refused(tmp_path: Path) -> None:
    environ = cann_home(tmp_path, "9.10.0")
    assert installed_cann(environ) == "9.10.0"
    with pytest.raises(ContractMismatchError) as caught:
        require_fit(overlay(cann="9.1"), interpreter(), environ)
    assert caught.value.message == f"{tmp_path} has CANN 9.10.0, expected 9.1"
