"""What `make` does with variables that a careless caller sets: it never removes what it did not make."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parent.parent.parent / "Makefile"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    shutil.copy(MAKEFILE, tmp_path)
    (tmp_path / "overlays").mkdir()
    return tmp_path


def make(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(["make", *words], cwd=checkout, env=own, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("value", ["", "my venv", "/ tmp"], ids=["empty", "a space", "the root and more"])
def test_a_venv_that_is_not_one_path_is_refused(checkout: Path, value: str) -> None:
    done = make(checkout, "clean", f"VENV={value}")
    assert done.returncode == 2
    assert f"VENV is '{value}', expected one path without spaces" in done.stderr


def test_an_empty_interpreter_is_refused(checkout: Path) -> None:
    done = make(checkout, "setup", "PYTHON=")
    assert done.returncode == 2
    assert "PYTHON is empty, expected an interpreter" in done.stderr


def test_clean_removes_a_virtual_environment_and_no_other_folder(checkout: Path) -> None:
    for name in ("mine", "venv"):
        (checkout / name).mkdir()
    (checkout / "venv" / "pyvenv.cfg").touch()
    for name in ("mine", "venv"):
        assert make(checkout, "clean", f"VENV={name}").returncode == 0
    assert (checkout / "mine").is_dir()
    assert not (checkout / "venv").exists()


def test_setup_leaves_a_folder_that_is_no_virtual_environment_alone(checkout: Path) -> None:
    (checkout / "mine").mkdir()
    (checkout / "pyproject.toml").touch()
    done = make(checkout, "setup", "VENV=mine", "PYTHON=false")
    assert done.returncode == 2
    assert "VENV=mine is there already and no virtual environment: name another" in done.stderr
    assert (checkout / "mine").is_dir()
