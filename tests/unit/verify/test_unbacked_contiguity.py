"""What the witness `unbacked-contiguity` makes of what it saw: pure judgements, without torch."""

from __future__ import annotations

import pytest

from verify.witnesses.unbacked_contiguity import Attempt, judge

GUARD = (
    "InductorError: GuardOnDataDependentSymNode: Could not guard on data-dependent expression "
    "Eq(u0, 1) | Eq(2*u0, 0) (unhinted: Eq(u0, 1) | Eq(2*u0, 0)).  (Size-like symbols: u0)\n\n"
    "Caused by: (base/torch_npu/_inductor/dvm/op_emitter.py:79 in _is_last2_transpose_tensor)\nFor more information"
)
COMPILED = Attempt("batch", generated=True)
STUCK = Attempt("rows", generated=False, error="OSError: no space")


def test_code_without_a_guard_passes_whatever_became_of_its_run() -> None:
    ran_badly = Attempt("positions", generated=True, error="IndexError: no dimensions")
    outcome = judge([COMPILED, ran_badly])
    assert (outcome.status, outcome.detail) == (
        "pass", "2 graphs of a data-dependent size compile without a guard",
    )  # fmt: skip


def test_the_guard_fails_in_its_own_words_whatever_else_did_not_compile() -> None:
    outcome = judge([COMPILED, STUCK, Attempt("positions", generated=False, error=GUARD)])
    assert (outcome.status, outcome.detail) == (
        "fail",
        "positions: GuardOnDataDependentSymNode: Could not guard on data-dependent expression "
        "Eq(u0, 1) | Eq(2*u0, 0), "
        "Caused by: (base/torch_npu/_inductor/dvm/op_emitter.py:79 in _is_last2_transpose_tensor)",
    )
    assert outcome.evidence["positions"]["error"] == GUARD


def test_another_result_than_eagers_fails() -> None:
    outcome = judge([COMPILED, Attempt("rows", generated=True, wrong="gives shape (1,), expected (2,)")])
    assert (outcome.status, outcome.detail) == ("fail", "rows gives shape (1,), expected (2,)")


@pytest.mark.parametrize(
    ("attempts", "detail"),
    [
        pytest.param([COMPILED, STUCK], "rows has no code: OSError: no space", id="another fault"),
        pytest.param([], "", id="no graph"),
    ],
)
def test_no_code_for_another_reason_is_an_error(attempts: list[Attempt], detail: str) -> None:
    outcome = judge(attempts)
    assert (outcome.status, outcome.detail) == ("error", detail)
