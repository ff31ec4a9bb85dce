"""Every shipped series that is written on a release: from patches to commits on it and back gives the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.personal import make_personal_git
from toolkit.project import find_project
from toolkit.series import load_series, read_line
from toolkit.store import Store
from toolkit.upkeep.bases import find_base, lay_out_base, this_interpreter
from toolkit.upkeep.roundtrip import round_trip_faults
from toolkit.work import Means

pytestmark = pytest.mark.e2e

PROJECT = find_project(start=Path(__file__), environ={})
ON_RELEASES = [
    name
    for name in PROJECT.series_names()
    if not read_line(PROJECT.series_folder(name), name=name).home.startswith(("git:", "installed:"))
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a store for all of them: two lines may begin at the same release."""
    return Store(tmp_path_factory.mktemp("round-trip") / "store")


@pytest.mark.parametrize("name", ON_RELEASES)
def test_a_shipped_series_comes_back_byte_for_byte_whatever_is_configured(
    name: str, store: Store, caller: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = PROJECT.series_folder(name)
    series, line = load_series(folder, name=name), read_line(folder, name=name)
    means = Means(project=PROJECT, store=store, environ=caller)
    found = find_base(
        line.home, line, component=name.partition("/")[0], means=means, interpreter=this_interpreter(means),
        scratch=tmp_path / "clone",
    )  # fmt: skip
    tree = lay_out_base(found, series.paths, tmp_path / "base").tree
    for variable, value in make_personal_git(tmp_path / "home").items():
        monkeypatch.setenv(variable, value)

    assert round_trip_faults(series, tree) == []


def test_there_is_a_series_on_a_release() -> None:
    assert {"torch_npu/2.12", "torch_npu/2.13"} <= set(ON_RELEASES)
