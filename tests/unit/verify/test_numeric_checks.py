"""What the numeric checks make of the numbers that they saw: pure judgements, and the catalogue that they try."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from verify.catalogue import CATALOGUE, for_proof
from verify.catalogue.layers import SINKHORN
from verify.catalogue.values import TrainingGraph, make_inputs
from verify.checks import catalogue_values, item_sizes, sinkhorn_values
from verify.generated import Kernel
from verify.measured import Measured, evidence_of, is_no_worse, keep_program, make_tangents, run_eager, run_in_float64
from verify.numbers import compare
from verify.witnesses import accumulated_values

SPEC = Kernel("dvm_fused_0", "spec", ("40 blocks: load x",))
EMPTY = Kernel("dvm_fused_1", "spec", unjudged=("launch 2 is empty",))
X = torch.full((4, 8), 0.5)
SUM = 32.0  # of x * 2
RIGHT, WRONG = 3.0 + SUM / 32, SUM + SUM / 32
ONE_STEP_MORE = torch.full((2,), 1.0 + 2**-23)


def measured(
    graph: str = "softmax",
    mode: str = "recorded",
    values: Mapping[str, Any] | None = None,
    expected: Mapping[str, Any] | None = None,
    kernels: tuple[Kernel, ...] = (SPEC,),
    sources: tuple[str, ...] = ("@dvm.kernel(ktype='spec')",),
) -> Measured:
    values = {"result 0": torch.ones(3)} if values is None else values
    expected = values if expected is None else expected
    return Measured(
        graph=graph,
        mode=mode,
        values=values,
        expected=expected,
        differences={
            name: {"eager": compare(one, expected[name]), "float64": compare(one, expected[name])}
            for name, one in values.items()
        },
        of_eager={name: compare(one, one) for name, one in expected.items()},
        kernels=kernels,
        sources=sources,
        listings=("vgraph",),
        seconds={"compile": 0.5, "run": 0.25},
    )


def summed(graph: str = "running_mean", mode: str = "recorded", old: float = RIGHT) -> Measured:
    values = {"old": torch.tensor(old), "x": X}
    return measured(graph, mode, values, {"old": torch.tensor(RIGHT), "x": X})


def plain(mode: str = "recorded", dst: float = 63.5, kernels: int = 1) -> Measured:
    values = {"dst": torch.tensor(dst)}
    return measured("plain_sum", mode, values, {"dst": torch.tensor(63.5)}, kernels=(SPEC,) * kernels)


# --- accumulated-values -----------------------------------------------------------------------------------------------


def test_right_numbers_in_both_modes_pass() -> None:
    outcome = accumulated_values.judge([summed(), summed(mode="separate"), plain(), plain("separate")])

    assert outcome.status == "pass"
    assert outcome.detail == "2 graphs have eager's numbers, and dst.copy_(x.sum()) is 63.5 as one kernel"


def test_a_graph_that_its_launches_do_not_compute_is_named() -> None:
    outcome = accumulated_values.judge([summed(), measured("moving_average", kernels=(EMPTY,)), plain()])

    assert outcome.status == "pass"
    assert outcome.detail == (
        "2 graphs have eager's numbers, and dst.copy_(x.sum()) is 63.5 as one kernel; "
        "not judged: moving_average: dvm_fused_1: launch 2 is empty"
    )
    assert outcome.evidence["unjudged"] == ["moving_average: dvm_fused_1: launch 2 is empty"]


def test_without_the_accumulator_s_own_launches_there_is_no_verdict() -> None:
    outcome = accumulated_values.judge([measured("running_mean", kernels=(EMPTY,)), plain()])

    assert (outcome.status, outcome.detail) == ("error", "running_mean: dvm_fused_1: launch 2 is empty")


@pytest.mark.parametrize(
    ("judge", "told"),
    [
        pytest.param(
            lambda run: catalogue_values.judge([run]), "none of 1 graphs can be judged: ", id="catalogue-values"
        ),
        pytest.param(sinkhorn_values.judge, "the numbers cannot be judged: ", id="sinkhorn-values"),
        pytest.param(lambda run: item_sizes.judge(run, [[1]]), "the numbers cannot be judged: ", id="item-sizes"),
    ],
)
def test_where_no_launches_compute_the_numbers_there_is_no_verdict(judge: Any, told: str) -> None:
    outcome = judge(measured(kernels=(EMPTY,)))

    assert (outcome.status, outcome.detail) == ("error", f"{told}softmax: dvm_fused_1: launch 2 is empty")


def test_the_catalogue_names_the_graphs_that_it_does_not_try() -> None:
    outcome = catalogue_values.judge([measured("rms_norm")], ["batch_norm: it ends the process"])

    assert outcome.detail == (
        "1 values of 1 graphs are eager's, computed by 1 DVM kernels; not tried: batch_norm: it ends the process"
    )
    assert outcome.evidence["untried"] == ["batch_norm: it ends the process"]


def test_the_catalogue_names_the_graphs_that_it_cannot_judge() -> None:
    outcome = catalogue_values.judge([measured("rms_norm"), measured(kernels=(EMPTY,))])

    assert (outcome.status, outcome.detail) == (
        "pass",
        "1 values of 1 graphs are eager's, computed by 1 DVM kernels; "
        "not judged: softmax: dvm_fused_1: launch 2 is empty",
    )


def test_a_sum_in_the_place_of_the_accumulator_is_the_fault() -> None:
    outcome = accumulated_values.judge([summed(old=WRONG), summed(mode="separate"), plain()])

    assert (outcome.status, outcome.detail) == (
        "fail",
        "running_mean (recorded): old is 33 by the first stage's sum, expected 4",
    )
    (row,) = [
        row
        for row in outcome.evidence["numbers"]
        if (row["mode"], row["value"], row["reference"]) == ("recorded", "old", "eager")
    ]
    assert (row["maximum_absolute_error"], row["within"]) == (29.0, False)


def test_another_graphs_wrong_number_is_the_fault_too() -> None:
    wrong = measured("moving_average", values={"e": torch.zeros(2)}, expected={"e": torch.ones(2)})

    outcome = accumulated_values.judge([wrong, plain()])

    assert outcome.status == "fail"
    assert outcome.detail.startswith("moving_average (recorded): e is float32 (2): max abs 1, relative L2 1, ")


@pytest.mark.parametrize(
    ("runs", "detail"),
    [
        pytest.param(
            [summed(), summed(mode="separate", old=WRONG), plain()],
            "running_mean (separate): old is ",
            id="the reference",
        ),
        pytest.param(
            [summed(old=7.0), summed(mode="separate"), plain()],
            "running_mean (recorded): old is float32 (): max abs 3, relative L2 0.75, >2^22 ULP, "
            "beyond the gate; 7.0 is not 33.0 in the place of old",
            id="a number that the fault does not give",
        ),
        pytest.param(
            [measured("carrier", values={"result 0": ONE_STEP_MORE}, expected={"result 0": torch.ones(2)}), plain()],
            "carrier (recorded): result 0 is float32 (2): max abs 1.19e-07, ",
            id="the carrier's own work",
        ),
    ],
)  # fmt: skip
def test_numbers_that_are_the_references_own_fault_are_no_verdict(runs: list[Measured], detail: str) -> None:
    outcome = accumulated_values.judge(runs)

    assert outcome.status == "error"
    assert outcome.detail.startswith(detail)


@pytest.mark.parametrize(
    ("run", "detail"),
    [
        pytest.param(
            plain(kernels=2),
            "dst.copy_(x.sum()) (recorded) became 2 kernels, expected one: the fix is too broad",
            id="two kernels",
        ),
        pytest.param(
            plain(dst=63.500004), "dst.copy_(x.sum()) (recorded) is 63.500003814697266, expected 63.5", id="another sum"
        ),
    ],
)
def test_a_plain_sum_must_stay_one_kernel_and_exact(run: Measured, detail: str) -> None:
    outcome = accumulated_values.judge([summed(), run])

    assert (outcome.status, outcome.detail) == ("fail", detail)


def test_on_a_device_a_wrong_number_is_the_fault_whatever_it_is() -> None:
    outcome = accumulated_values.judge([summed(mode="device", old=7.0), plain("device")])

    assert outcome.status == "fail"
    assert outcome.detail.startswith("running_mean (device): old is float32 (): max abs 3, ")


# --- catalogue-values, sinkhorn-values, item-sizes --------------------------------------------------------------------


def test_a_catalogue_that_is_right_passes_with_its_counts() -> None:
    outcome = catalogue_values.judge([measured(), measured("rms_norm", kernels=(SPEC, SPEC))])

    assert outcome.status == "pass"
    assert outcome.detail == "2 values of 2 graphs are eager's, computed by 3 DVM kernels"
    assert [program["graph"] for program in outcome.evidence["programs"]] == ["softmax", "rms_norm"]
    assert outcome.evidence["programs"][0]["kernels"] == [
        {"name": "dvm_fused_0", "type": "spec", "launches": ["40 blocks: load x"]}
    ]


def test_each_wrong_value_of_the_catalogue_is_named() -> None:
    wrong = measured("rms_norm", values={"gradient of x": torch.zeros(2)}, expected={"gradient of x": torch.ones(2)})

    outcome = catalogue_values.judge([measured(), wrong])

    assert outcome.status == "fail"
    assert outcome.detail.startswith("rms_norm (recorded): gradient of x is float32 (2): max abs 1, ")


def test_a_catalogue_without_kernels_proves_nothing() -> None:
    outcome = catalogue_values.judge([measured(kernels=())])

    assert (outcome.status, outcome.detail) == ("error", "1 graphs ran no DVM kernel, nothing to judge")


def test_sinkhorn_is_told_with_its_errors_and_kernels() -> None:
    y = torch.full((4096, 4), 0.25)

    outcome = sinkhorn_values.judge(measured("sinkhorn", values={"result 0": y, "x": y}, kernels=(SPEC,) * 82))

    assert outcome.status == "pass"
    assert outcome.detail == ("82 DVM kernels, no Triton; against FP64 result 0 max abs 0, relative L2 0, 1 - cosine 0")


@pytest.mark.parametrize(
    ("run", "status", "detail"),
    [
        pytest.param(
            measured(sources=("@dvm.kernel\n@triton.jit\n",)),
            "fail", "the generated code has 1 @triton.jit, expected DVM kernels alone", id="Triton",
        ),
        pytest.param(measured(kernels=()), "error", "no DVM kernel ran, nothing to judge", id="nothing"),
        pytest.param(
            measured("sinkhorn", values={"result 0": torch.zeros(1)}, expected={"result 0": torch.ones(1)}),
            "fail", "sinkhorn (recorded): result 0 is float32 (1): max abs 1, relative L2 1, "
            ">2^29 ULP, beyond the gate", id="wrong",
        ),
    ],
)  # fmt: skip
def test_a_sinkhorn_that_is_not_right_is_told(run: Measured, status: str, detail: str) -> None:
    outcome = sinkhorn_values.judge(run)

    assert (outcome.status, outcome.detail) == (status, detail)


def test_sizes_from_items_are_judged_by_their_numbers() -> None:
    right, wrong = list(range(1, 9)), list(range(8))

    assert item_sizes.judge(measured("item_sizes"), [right, right]).detail == (
        "[1, 2, 3, 4, 5, 6, 7, 8] twice, by 1 DVM kernels"
    )
    outcome = item_sizes.judge(measured("item_sizes"), [right, wrong])
    assert (outcome.status, outcome.detail) == (
        "fail",
        "the results are [1, 2, 3, 4, 5, 6, 7, 8] and [0, 1, 2, 3, 4, 5, 6, 7], "
        "expected [1, 2, 3, 4, 5, 6, 7, 8] twice",
    )


# --- what they rest on ------------------------------------------------------------------------------------------------


def test_a_value_is_right_when_eager_is_as_far_from_float64() -> None:
    exact = torch.ones(1000)
    eager, found = exact + 0.01, exact - 0.015

    difference, of_eager = compare(found, exact), compare(eager, exact)

    assert not difference.within
    assert is_no_worse(difference, of_eager)
    assert not is_no_worse(compare(exact - 0.03, exact), of_eager)
    assert not is_no_worse(compare(torch.full((1000,), float("nan")), exact), of_eager)


def test_evidence_is_plain_and_says_eagers_own_error_once() -> None:
    runs = [measured(mode="recorded"), measured(mode="separate")]

    evidence = evidence_of(runs)

    json.dumps(evidence, allow_nan=False)
    assert [(row["mode"], row["reference"]) for row in evidence["numbers"]] == [
        ("recorded", "eager"), ("recorded", "float64"), ("eager", "float64"), ("separate", "eager"),
        ("separate", "float64"),
    ]  # fmt: skip
    assert evidence["programs"][0]["seconds"] == {"compile": 0.5, "run": 0.25}


def test_programs_are_kept_under_the_checks_and_the_graphs_name(tmp_path: Path) -> None:
    keep_program(measured("rms_norm"), tmp_path, "catalogue-values")

    assert (tmp_path / "catalogue-values-rms_norm.py").read_text() == "@dvm.kernel(ktype='spec')"
    assert (tmp_path / "catalogue-values-rms_norm.das").read_text() == "vgraph"


@pytest.mark.parametrize("graph", [*CATALOGUE.values(), SINKHORN], ids=lambda graph: graph.name)
def test_a_graph_writes_what_it_says_and_eager_is_near_float64(graph: TrainingGraph) -> None:
    inputs = make_inputs(graph)
    tangents = make_tangents(graph, inputs)

    eager = run_eager(graph, inputs, tangents).named(graph)
    wide = run_in_float64(graph, inputs, tangents).named(graph)

    written = {name for name, before in zip(graph.inputs, inputs, strict=True) if not torch.equal(eager[name], before)}
    # A step of 0.1% of a BF16 number rounds to that number again.
    assert written == set(graph.mutated) or (graph.dtype != "float32" and written < set(graph.mutated))
    for name, value in eager.items():
        if value.is_floating_point():
            expected = wide[name].to(value.dtype)
            difference = compare(value, expected)
            assert difference.nonfinite_equal
            assert difference.relative_l2 is not None
            assert difference.relative_l2 < 0.05, f"{name}: {difference}"


def test_the_two_graphs_that_are_wrong_on_the_base_are_in_every_proof_and_in_the_witness() -> None:
    assert {"two_accumulators", "moving_average"} <= {graph.name for graph in for_proof()}
    assert {"two_accumulators", "moving_average"} <= set(accumulated_values.GRAPHS)
    assert {graph.dtype for graph in CATALOGUE.values()} == {"float32", "float16", "bfloat16"}
    assert any(graph.dynamic for graph in CATALOGUE.values())
