"""What the witnesses of the DeepSeek-V4 model make of what they measured: pure judgements, without torch."""

from __future__ import annotations

import math

import pytest

from verify.witnesses.titan_numbers import Error, judge_errors
from verify.witnesses.titan_query_norm import Norm, judge, operations_between

PIECES = ["square", "mean", "add", "rsqrt", "mul"]
BEFORE = ["linear", "float", *PIECES, "to", "linear", "unflatten"]
AFTER = ["split", "getitem", "float", "unflatten", "mul", "flatten", "split", "cat"]
CLOSE = Error("bfloat16 output", 0.004, 0.0078125)
CLOSER = Error("float32 output", 4e-6, 1e-5)
FAR = Error("bfloat16 gradient of the keys", 0.0126, 0.005)
NORM = Norm("bfloat16", (CLOSER, CLOSE), ("torch.bfloat16", "torch.bfloat16"))


def test_errors_within_their_bounds_pass_and_the_closest_is_named() -> None:
    outcome = judge_errors([CLOSER, CLOSE], file="model.py")
    detail = "2 comparisons, the closest: bfloat16 output off by 0.004, allowed 0.00781"
    assert (outcome.status, outcome.detail) == ("pass", detail)
    assert outcome.evidence == {
        "file": "model.py",
        "errors": ["float32 output off by 4e-06, allowed 1e-05", "bfloat16 output off by 0.004, allowed 0.00781"],
    }


def test_each_error_beyond_its_bound_is_named() -> None:
    outcome = judge_errors([FAR, CLOSE, Error("choice", 0.02, 0.0)])
    assert outcome.status == "fail"
    assert outcome.evidence["faults"] == [
        "bfloat16 gradient of the keys off by 0.0126, allowed 0.005",
        "choice off by 0.02, allowed 0",
    ]


@pytest.mark.parametrize(
    ("found", "allowed", "is_fault"),
    [(0.0, 0.0, False), (1.0, 1.0, False), (1.1, 1.0, True), (math.nan, 1.0, True), (math.inf, 1.0, True)],
    ids=["none", "equal", "more", "nan", "infinite"],
)
def test_what_is_not_known_to_be_small_enough_is_a_fault(found: float, allowed: float, is_fault: bool) -> None:
    assert Error("it", found, allowed).is_fault is is_fault
    assert judge_errors([CLOSE, Error("it", found, allowed)]).status == ("fail" if is_fault else "pass")


def test_nothing_compared_is_no_verdict() -> None:
    outcome = judge_errors([])
    assert (outcome.status, outcome.detail) == ("error", "nothing was compared")


def test_one_rms_norm_passes() -> None:
    outcome = judge([*BEFORE, "rms_norm", *AFTER], [NORM], file="model.py")
    detail = "Dynamo captures one rms_norm; 2 comparisons, the closest: bfloat16 output off by 0.004, allowed 0.00781"
    assert (outcome.status, outcome.detail) == ("pass", detail)
    assert outcome.evidence["captured"] == [*BEFORE, "rms_norm", *AFTER]
    assert outcome.evidence["file"] == "model.py"


@pytest.mark.parametrize(
    ("norm", "captured"),
    [
        (PIECES, "square, mean, add, rsqrt, mul"),
        (["rms_norm", "rms_norm"], "rms_norm, rms_norm"),
        (["float", "rms_norm", "to"], "float, rms_norm, to"),
        ([], "nothing"),
    ],
    ids=["pieces", "twice", "casts", "none"],
)
def test_anything_else_in_its_place_fails(norm: list[str], captured: str) -> None:
    outcome = judge([*BEFORE, *norm, *AFTER], [NORM])
    assert (outcome.status, outcome.detail) == ("fail", f"Dynamo captures {captured} for rms_norm")


def test_an_rms_norm_elsewhere_does_not_count() -> None:
    assert judge(["rms_norm", *BEFORE, *PIECES, *AFTER, "rms_norm"], [NORM]).status == "fail"


def test_a_changed_dtype_fails() -> None:
    norm = Norm("bfloat16, queries of 1", (CLOSE,), ("torch.bfloat16", "torch.float32"))
    outcome = judge([*BEFORE, "rms_norm", *AFTER], [norm, NORM])
    detail = "bfloat16, queries of 1: torch.bfloat16 becomes torch.float32"
    assert (outcome.status, outcome.detail) == ("fail", detail)


def test_an_error_fails_although_the_graph_is_right() -> None:
    outcome = judge([*BEFORE, "rms_norm", *AFTER], [Norm("it", (FAR,), ("torch.bfloat16", "torch.bfloat16"))])
    assert (outcome.status, outcome.detail) == ("fail", "bfloat16 gradient of the keys off by 0.0126, allowed 0.005")


@pytest.mark.parametrize(
    ("names", "norms", "detail"),
    [
        ([*BEFORE], [NORM], "the graph has no projected query that is split"),
        ([*AFTER[:1]], [NORM], "the graph has no projected query that is split"),
        ([], [NORM], "the graph has no projected query that is split"),
        ([*BEFORE, "rms_norm", *AFTER], [], "nothing was compared"),
    ],
    ids=["no-split", "no-projection", "no-graph", "no-runs"],
)
def test_what_could_not_be_looked_at_is_no_verdict(names: list[str], norms: list[Norm], detail: str) -> None:
    outcome = judge(names, norms)
    assert (outcome.status, outcome.detail) == ("error", detail)


def test_operations_are_those_up_to_the_next_end() -> None:
    names = ["split", "unflatten", "a", "unflatten", "b", "split", "c", "split"]
    assert operations_between(names, "unflatten", "split") == ["a", "unflatten", "b"]
