"""What is decided before an environment is made; tests/integration/test_build_environment.py makes some."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wheels import CP311
from toolkit.build.environment import obtain_environment
from toolkit.errors import ContractMismatchError, FetchError, StorageError
from toolkit.model import Interpreter, Requirement, Target
from toolkit.store import Store

X86, ARM = "manylinux_2_28_x86_64", "manylinux_2_28_aarch64"
NINJA = Requirement(distribution="ninja", version="1.0", file="ninja-1.0-py3-none-any.whl", sha256="ab" * 32)


def interpreter(python_tag: str, *platforms: str) -> Interpreter:
    return Interpreter(
        executable=Path("/opt/python"), version="3.11.7", python_tag=python_tag, platforms=platforms, torch=None
    )


def obtain(made_by: Interpreter, target: Target, store: Store) -> Path:
    return obtain_environment(
        [NINJA], interpreter=made_by, target=target, store=store, offline=True, env={}, component="c"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("made_by", "what"),
    [
        pytest.param(interpreter("cp312", X86), "cp312 on manylinux_2_28_x86_64", id="another Python"),
        pytest.param(interpreter("cp311", ARM), "cp311 on manylinux_2_28_aarch64", id="another machine"),
        pytest.param(
            interpreter("cp311", "manylinux_2_17_x86_64"), "cp311 on manylinux_2_17_x86_64", id="an old glibc"
        ),
        pytest.param(interpreter("cp311"), "cp311 on no manylinux platform", id="no platform"),
    ],
)
def test_a_build_is_made_by_an_interpreter_that_it_is_for(made_by: Interpreter, what: str, tmp_path: Path) -> None:
    with pytest.raises(ContractMismatchError) as caught:
        obtain(made_by, CP311, Store(tmp_path))
    assert caught.value.message == (
        f"a build for cp311-manylinux_2_28_x86_64 needs an interpreter of that kind, /opt/python is {what}"
    )
    assert caught.value.hint == "name the interpreter that it is for with --python, on a machine that it is for"


def test_a_wheel_that_cannot_be_had_is_told_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(FetchError) as caught:
        obtain(interpreter("cp311", X86), CP311, Store(tmp_path))
    assert caught.value.message == (
        f"c: ninja-1.0-py3-none-any.whl is not in the store at {tmp_path}, and offline nothing is downloaded"
    )
    assert list((tmp_path / "build-env").iterdir()) == []


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
        "Error: [Errno 122] Disk quota exceeded: 'x'",
    ],
)
def test_a_full_disk_is_the_file_systems_fault(line: str, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "{line}" >&2\nexit 1\n')
    python.chmod(0o755)
    made_by = Interpreter(executable=python, version="3.11.7", python_tag="cp311", platforms=(X86,), torch=None)

    with pytest.raises(StorageError) as caught:
        obtain_environment(
            [], interpreter=made_by, target=CP311, store=Store(tmp_path / "store"), offline=True, env={}, component="c"
        )

    assert caught.value.message == (f"c: the build environment for {CP311} cannot be made: the disk is full: {line}")
    assert caught.value.hint == "free some space, or choose another place with --store"
