"""The numeric catalogue with the real release, unpatched and patched, computed by reference on the host sysroot."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.catalogue_run import FAULTS
from tests.e2e.conftest import ROOT, Place
from verify.catalogue import CATALOGUE
from verify.catalogue.findings import FINDINGS

pytestmark = pytest.mark.e2e

EXAMPLES = 40


def run_on(side: str, place: Place, folder: Path) -> dict[str, Any]:
    """Run the catalogue in a fresh process and return what it found."""
    bases = (place.folder / "store/base-site").glob("*/site/torch_npu-2.13.0.dist-info")
    site = place.current / "site" if side == "overlay" else next(bases).parent
    variables = json.loads(place.toolkit("sysroot", "--json").stdout)["variables"]
    environ = {
        **place.environ,
        **variables,
        "PYTHONPATH": f"{site}:{ROOT}",
        "TORCHINDUCTOR_NPU_BACKEND": "dvm",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
    }
    out = folder / "found.json"
    done = subprocess.run(
        [sys.executable, "-m", "tests.e2e.catalogue_run", side, str(out), str(EXAMPLES)],
        cwd=folder, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(out.read_text()))


@pytest.fixture(scope="module")
def on_both(place: Place, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run both sides beside each other."""
    with ThreadPoolExecutor(2) as pool:
        runs = {side: pool.submit(run_on, side, place, tmp_path_factory.mktemp(side)) for side in ("overlay", "base")}
    return {side: run.result() for side, run in runs.items()}


@pytest.fixture
def on_overlay(on_both: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return on_both["overlay"]


@pytest.fixture
def on_base(on_both: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return on_both["base"]


def test_every_graph_has_eagers_numbers_on_the_overlay(on_overlay: dict[str, Any]) -> None:
    assert on_overlay["catalogue"] == {name: [] for name in CATALOGUE}


def test_on_the_base_those_are_wrong_whose_accumulator_is_lost(on_base: dict[str, Any]) -> None:
    expected = {name: graph.on_base for name, graph in CATALOGUE.items() if graph.mutated}
    assert {name: "wrong" if wrong else "right" for name, wrong in on_base["catalogue"].items()} == expected


def test_what_is_wrong_for_another_reason_still_is(on_base: dict[str, Any], on_overlay: dict[str, Any]) -> None:
    for found in (on_base, on_overlay):
        assert set(found["findings"]) == {graph.name for graph in FINDINGS}
        assert all(found["findings"].values())


def test_a_fault_planted_in_the_reference_is_caught(on_overlay: dict[str, Any]) -> None:
    for fault, (_, _, graphs) in FAULTS.items():
        for graph in graphs:
            assert on_overlay["planted"][fault][graph], f"{fault} in {graph}"


def test_drawn_graphs_have_eagers_numbers_on_the_overlay(on_overlay: dict[str, Any]) -> None:
    assert on_overlay["drawn"]["failure"] is None
    assert on_overlay["drawn"]["examples"] >= EXAMPLES
    assert on_overlay["drawn"]["refused"] == []


def test_drawn_graphs_find_the_lost_accumulators_of_the_base(on_base: dict[str, Any]) -> None:
    assert re.match(r"AssertionError: def graph\(", on_base["drawn"]["failure"] or "none of them")
    assert "(recorded): " in on_base["drawn"]["failure"]
