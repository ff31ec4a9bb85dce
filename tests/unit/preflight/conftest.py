"""The folders of a run and an overlay."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.preflight.builders import Room, make_room


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return make_room(tmp_path)
