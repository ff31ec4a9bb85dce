"""The series that this project ships are what a series has to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.series import load_series

PATCHES = Path(__file__).parents[2] / "patches"
SERIES = sorted(path.relative_to(PATCHES).as_posix() for path in PATCHES.glob("*/*") if path.is_dir())


@pytest.mark.parametrize("name", SERIES)
def test_a_shipped_series_is_read_without_fault(name: str) -> None:
    series = load_series(PATCHES / name, name=name)
    assert [patch.number for patch in series.patches] == list(range(1, len(series.patches) + 1))
    assert all(patch.subject and patch.body for patch in series.patches)
