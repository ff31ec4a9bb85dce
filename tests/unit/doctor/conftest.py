"""A virtual environment for each test that asks for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doctor_sites import Planted, plant


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    """Return an empty virtual environment and a sound way to start it."""
    return plant(tmp_path)
