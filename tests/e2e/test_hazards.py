"""Hazards with the real release, unpatched and patched: the numbers of each mode, and where values are parked."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import ROOT, Place

pytestmark = pytest.mark.e2e

LOST = (
    "running_mean",
    "two_accumulators",
    "moving_average",
    "weighted_sum",
    "normalized_step",
    "through_view",
    "sibling",
)
KEPT = ("plain_sum", "kept_apart", "softmax_in_place", "adamw", "batch_norm")
RACING = ("row_added",)
PARKED = {
    "running_mean": ["%3 = sum(%2, [0, 1], False) float32 in output 0"],
    "two_accumulators": [
        "%3 = sum(%0, [0, 1], False) float32 in output 0",
        "%5 = max(%0, [0, 1], False) float32 in output 1",
    ],
    "moving_average": ["%2 = sum(%0, [0], False) float32 in output 0"],
    "kept_apart": ["%2 = sum(%0, [0, 1], False) float32 in a workspace"],
    "softmax_in_place": [],
    "adamw": ["%5 = sum(%4, [0, 1], False) float32 in a workspace"],
}


def run_on(site: Path, place: Place, folder: Path) -> dict[str, Any]:
    """Run the cases in a fresh process with the packages of one site, and return what they found."""
    environ = {
        **place.environ,
        **json.loads(place.toolkit("sysroot", "--json").stdout)["variables"],
        "PYTHONPATH": f"{site}:{ROOT}",
        "TORCHINDUCTOR_NPU_BACKEND": "dvm",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
    }
    out = folder / "found.json"
    done = subprocess.run(
        [sys.executable, "-m", "tests.e2e.hazard_cases", str(out)],
        cwd=folder, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(out.read_text()))


@pytest.fixture(scope="module")
def on_both(place: Place, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run both sides beside each other."""
    sites = {"base": next((place.folder / "store/base-site").glob("*/site")), "overlay": place.current / "site"}
    with ThreadPoolExecutor(2) as pool:
        runs = {side: pool.submit(run_on, site, place, tmp_path_factory.mktemp(side)) for side, site in sites.items()}
    return {side: run.result() for side, run in runs.items()}


@pytest.fixture
def on_base(on_both: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return on_both["base"]


@pytest.fixture
def on_overlay(on_both: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return on_both["overlay"]


def rights(found: dict[str, Any], mode: str) -> dict[str, bool]:
    return {name: graph[mode]["right"] for name, graph in found["graphs"].items()}


def test_on_the_base_the_recorded_launches_lose_inputs(on_base: dict[str, Any]) -> None:
    expected = {**dict.fromkeys((*LOST, *RACING), False), **dict.fromkeys(KEPT, True)}
    assert rights(on_base, "recorded") == expected


def test_on_the_base_nothing_is_wrong_but_by_parking(on_base: dict[str, Any]) -> None:
    assert all(rights(on_base, "separate").values())


def test_the_worst_case_is_wrong_wherever_the_recorded_one_is(on_base: dict[str, Any]) -> None:
    worst = rights(on_base, "worst case")
    assert [name for name, right in worst.items() if right] == ["plain_sum"]
    told = [hazard for graph in on_base["graphs"].values() for hazard in graph["worst case"]["hazards"]]
    assert all(hazard.startswith("supposed, not recorded: ") for hazard in told)


@pytest.mark.parametrize("mode", ["recorded", "separate", "worst case"])
def test_on_the_overlay_all_are_right(on_overlay: dict[str, Any], mode: str) -> None:
    assert rights(on_overlay, mode) == dict.fromkeys((*LOST, *KEPT, *RACING), True)
    assert [hazard for graph in on_overlay["graphs"].values() for hazard in graph[mode]["hazards"]] == []


@pytest.mark.parametrize("graph", PARKED)
def test_values_are_parked_where_the_launches_put_them(on_base: dict[str, Any], graph: str) -> None:
    assert on_base["graphs"][graph]["recorded"]["parked"] == PARKED[graph]


def test_launches_are_told_in_words(on_base: dict[str, Any]) -> None:
    assert on_base["graphs"]["running_mean"]["recorded"]["launches"] == [
        "1 blocks: store input 1 = output 0",
        "40 blocks: load input 0, atomic input 1 = output 0",
        "1 blocks: load input 1 = output 0, load input 1 = output 0, store input 1 = output 0",
    ]


def test_every_recording_is_matched_and_foretold_by_the_rule(
    on_base: dict[str, Any], on_overlay: dict[str, Any]
) -> None:
    remarks = [
        f"{name}: {remark}"
        for found in (on_base, on_overlay)
        for name, graph in found["graphs"].items()
        for remark in graph["recorded"]["remarks"]
    ]
    assert remarks == []


def test_a_row_that_other_blocks_store_is_told_as_a_race(on_base: dict[str, Any]) -> None:
    assert on_base["graphs"]["row_added"]["recorded"]["hazards"] == [
        "race: launch 1 loads input 0 where its other blocks store output 0"
    ]


def test_one_compilation_serves_many_sizes(on_base: dict[str, Any]) -> None:
    found = on_base["runs"]["many_sizes"]
    assert (found["right"], found["sources"]) == ([True] * 4, 1)
    assert found["again"] < 0.5


def test_modules_keywords_and_nested_results_are_taken(on_overlay: dict[str, Any]) -> None:
    assert on_overlay["runs"]["module"] == {
        "result": True,
        "gradients": {f"{part}.{name}": True for part in range(3) for name in ("weight", "bias")},
        "state": True,
        "unchanged": True,
    }
    assert on_overlay["runs"]["nested"] == {"y": True, "others": [None, 3], "gradient": True}


def test_a_kernel_that_never_ends_is_not_tried(on_base: dict[str, Any], on_overlay: dict[str, Any]) -> None:
    assert on_base["runs"]["endless"] == [
        "not launched: the real runtime was seen never to come back from a kernel that stores "
        "%5 = add(%2, %4) float32 as two outputs"
    ]
    assert on_overlay["runs"]["endless"] == []


def test_what_fails_inside_leaves_torch_npu_as_it_was(on_base: dict[str, Any]) -> None:
    assert on_base["runs"]["broken"] == {
        "told": ["Unsupported: Call to `torch._dynamo.graph_break()`", "InductorError: ValueError: no loads today"],
        "restored": True,
        "after": [4.0, 4.0, 4.0],
    }
    assert on_base["runs"]["unmatched"] == ("hazards 'guessed', expected one of 'recorded', 'separate', 'worst case'")
