"""The default recipe, built once for all tests of this folder, with the interpreter that runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
RECIPE = "dsv4-dvm-release"


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A place to build in: its own store and overlays."""

    folder: Path
    project: Path = ROOT
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def toolkit(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a toolkit command here and return how it ended."""
        environ = {
            **self.environ,
            "TOOLKIT_STORE": str(self.folder / "store"),
            "TOOLKIT_OVERLAYS": str(self.folder / "overlays"),
            "TOOLKIT_PROJECT": str(self.project),
            "PYTHONPATH": str(ROOT),
        }
        return subprocess.run(
            [sys.executable, "-m", "toolkit", *words],
            env=environ, cwd=self.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip

    @property
    def recipe_folder(self) -> Path:
        """The recipe's folder of overlays."""
        return self.folder / "overlays" / RECIPE

    @property
    def current(self) -> Path:
        """The current generation."""
        return self.recipe_folder / os.readlink(self.recipe_folder / "current")


@pytest.fixture(scope="session")
def caller() -> dict[str, str]:
    """Return the environment as it was when the tests began, before any test's own places were set."""
    return dict(os.environ)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, caller: dict[str, str]) -> tuple[Place, str]:
    """Build the default recipe, and return the place with what the command printed."""
    place = Place(folder=tmp_path_factory.mktemp("built"), environ=caller)
    done = place.toolkit("build")
    assert done.returncode == 0, done.stdout + done.stderr
    return place, done.stdout


@pytest.fixture(scope="session")
def place(built: tuple[Place, str]) -> Place:
    """Return the place where the default recipe is built."""
    return built[0]
