"""That what `make bench` measures for patches is what it says: every patch goes in, a part of them at an offset."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bench.patches import make_long_series
from tests.looking_sample import Looking, toolkit_of


def test_the_long_series_stands_as_the_figure_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = make_long_series(tmp_path / "made", files=300, patches=20)
    assert len(long.patches) == 20
    ended = toolkit_of(Looking(root=long.root, home=long.commit), capsys)("status")
    assert ended.code == 0
    assert ended.out.endswith("20 patches: 15 applies, 5 offset\n")


def test_by_hand_the_same_series_goes_in(tmp_path: Path) -> None:
    long = make_long_series(tmp_path / "made", files=300, patches=20)
    subprocess.run(long.by_hand(tmp_path / "tree"), check=True, capture_output=True)
    log = subprocess.run(
        ["git", "-C", str(tmp_path / "tree"), "log", "--oneline"], check=True, capture_output=True
    ).stdout.splitlines()
    assert len(log) == 22
