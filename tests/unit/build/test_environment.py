"""What is decided before an environment is made; tests/integration/test_build_environment.py makes some."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wheels import CP311
from toolkit.build.environment import obtain_environment
from toolkit.errors import ContractMismatchError, FetchError
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
