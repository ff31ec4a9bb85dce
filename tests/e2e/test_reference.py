"""The reference interpreter on the real torch_npu: what it compiles and builds is computed as eager computes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import ROOT, Place

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def told(place: Place, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run all cases in one process on the overlay and return what it says."""
    scratch = tmp_path_factory.mktemp("reference")
    script = Path(__file__).with_name("reference_cases.py")
    done = place.toolkit("run", "--host", "--", "python", str(script), str(ROOT), str(scratch))
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads(lines[0].removeprefix("RESULT ")))


def test_generated_code_computes_what_eager_computes(told: dict[str, Any]) -> None:
    assert len(told["cases"]) > 50
    assert {name: fault for name, fault in told["cases"].items() if fault} == {}


def test_both_builders_agree_on_every_operation_of_every_type(told: dict[str, Any]) -> None:
    assert told["builders"]["faults"] == {}
    assert told["builders"]["agreed"] > 300


def test_the_real_builder_dies_of_what_the_reference_refuses(told: dict[str, Any]) -> None:
    assert told["dies"] is True


def test_a_file_runs_twice_to_the_same_hashes(told: dict[str, Any]) -> None:
    first, second = told["files"]["twice"]
    assert first == second
    lines = first.splitlines()
    assert lines[0] == "0 good.py: 2 kernels ran"
    assert lines[1].startswith("  result 0: float32 [] sha256 ")
    assert lines[3].startswith("  result 2: int64 [12, 34] sha256 ")
    assert told["files"]["equal"] is True
    assert told["files"]["kernels"] == ["spec", "spec"]


def test_a_file_that_cannot_be_run_says_where_and_why(told: dict[str, Any]) -> None:
    files = told["files"]
    assert files["cut"] == "1 cut.py: it defines no call(args): cut short, or no code of Inductor's\n"
    assert files["version"].startswith(
        "1 version.py: line 1 in <module>: ImportError: cannot import name 'copy_if_crooked'"
    )
    assert "; it was written by another version than torch 2.13.0" in files["version"]
    assert (
        "_build: UnknownOperationError: the builder has no operation 'argmax' that is known here" in files["operation"]
    )
    assert files["graph"].endswith("; the FX graph that it falls back to is not in TORCHINDUCTOR_CACHE_DIR\n")
    assert files["shape"].endswith(
        "%0 = load([12, 34]) float32 was given a tensor of shape [12, 35], expected [12, 34]"
    )


def test_operators_without_a_meaning_are_named(told: dict[str, Any]) -> None:
    assert told["operators"] == {
        "unknown": "UnknownOperatorError: npu.npu_rms_norm.default on npu tensors: "
        "torch has no kernel of it for the CPU",
        "mixed": "MixedDevicesError: aten.add.Tensor got tensors of the CPU and of the npu, expected one device",
    }
