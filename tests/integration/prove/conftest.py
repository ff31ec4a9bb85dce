"""Prove a small overlay with checks of our own in real interpreters."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.prove_cases import FakeVerify, make_site
from toolkit.model import Contract, Interpreter, Overlay, OverlayPackage, Proof, Target
from toolkit.prove import prove


@pytest.fixture
def fake_verify(tmp_path: Path) -> FakeVerify:
    return FakeVerify(tmp_path / "checkout" / "verify")


@pytest.fixture
def base_site(tmp_path: Path) -> Path:
    return make_site(tmp_path / "base-site", fault=True)


@pytest.fixture
def overlay(tmp_path: Path) -> Overlay:
    root = tmp_path / "overlay"
    make_site(root / "site", fault=False)
    (root / "manifest.json").write_text('{"files": {}}')
    return Overlay(
        recipe="fake",
        key="0123456789abcdef",
        root=root,
        target=Target(python_tag="cp311", platform="manylinux_2_28_x86_64"),
        contract=Contract(python_tags=("cp311",), platforms=("manylinux_2_28_x86_64",), torch="2.13.0", cann="9.1"),
        packages=(
            OverlayPackage(
                component="subject", import_name="subject", distribution="subject", version="1.0+p1.k0",
                base_version="1.0", wheel="subject.whl", wheel_sha256="0" * 64, patches=("0001-mend",),
            ),
        ),
        env={"FROM_RECIPE": "recipe", "FROM_BOTH": "recipe"},
    )  # fmt: skip


@pytest.fixture
def interpreter() -> Interpreter:
    return Interpreter(executable=Path(sys.executable), version="3.11.7", python_tag="cp311", platforms=(), torch=None)


@pytest.fixture
def prove_checks(
    tmp_path: Path, fake_verify: FakeVerify, overlay: Overlay, base_site: Path, interpreter: Interpreter
) -> Callable[..., Proof]:
    def run(*names: str, **changed: Any) -> Proof:
        witnesses = [name for name in names if fake_verify.entries[name].get("witness")]
        usual: dict[str, Any] = {
            "overlay": overlay,
            "base_site": base_site,
            "verify_folder": fake_verify.folder,
            "interpreter": interpreter,
            "runtime": "host",
            "runtime_env": {},
            "wanted": [name for name in names if name not in witnesses],
            "witnesses": witnesses,
            "scratch": tmp_path / "scratch",
            "logs": tmp_path / "logs",
            "environ": dict(os.environ),
            "timeout": 20.0,
        }
        return prove(**{**usual, **changed})

    return run
