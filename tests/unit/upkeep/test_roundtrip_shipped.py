"""The patches that this project ships are in normal form, as far as that can be seen without their bases."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.project import find_project
from toolkit.series import load_series
from toolkit.upkeep.roundtrip import round_trip_faults

PROJECT = find_project(start=Path(__file__), environ={})


@pytest.mark.parametrize("name", PROJECT.series_names())
def test_every_shipped_series_is_in_normal_form(name: str) -> None:
    assert round_trip_faults(load_series(PROJECT.series_folder(name), name=name), None) == []
