"""What the witness `mutated-view` makes of launches and of runs: pure judgements, without torch."""

from __future__ import annotations

import pytest

from verify.launches import Access, Kind, Launch
from verify.witnesses.mutated_view import Run, judge, judge_launches

OLD, ROW, X = 0x1000, 0x1400, 0x9000
ELSEWHERE = "launch 1 stores old and loads it from another address"


def access(kind: Kind, address: int, tensor: str = "old") -> Access:
    return Access(kind, address, tensor)


def launch(*accesses: Access) -> Launch:
    return Launch("dvm_aiv", 32, accesses)


LOAD_X = access("load", X, "x")
FUSED = launch(access("load", ROW), LOAD_X, access("store", OLD))
APART = (
    launch(access("load", ROW), LOAD_X, access("store", X, "temporary")),
    launch(access("load", X, "temporary"), access("store", OLD)),
)


@pytest.mark.parametrize(
    ("launches", "faults"),
    [
        pytest.param((FUSED,), (ELSEWHERE,), id="one row for all blocks"),
        pytest.param((launch(access("load", OLD), access("load", ROW), access("store", OLD)),), (ELSEWHERE,),
                     id="the element itself and another"),
        pytest.param((launch(access("load", ROW), access("atomic", OLD)),), (ELSEWHERE,), id="added to"),
        pytest.param(APART, (), id="loaded before it is stored"),
        pytest.param((launch(access("load", OLD), LOAD_X, access("store", OLD)),), (), id="the element itself"),
        pytest.param((*APART, FUSED), ("launch 3 stores old and loads it from another address",), id="a later launch"),
    ],
)  # fmt: skip
def test_a_launch_that_stores_the_input_may_load_it_only_from_there(
    launches: tuple[Launch, ...], faults: tuple[str, ...]
) -> None:
    assert judge_launches(launches, views=True) == (faults, "")


@pytest.mark.parametrize(
    "unknown",
    [
        pytest.param(Launch("dvm_mix", 1, None), id="words of another form"),
        pytest.param(launch(access("unknown", OLD)), id="an operation of another form"),
    ],
)
def test_a_launch_that_is_not_understood_tells_nothing(unknown: Launch) -> None:
    assert judge_launches([FUSED, unknown], views=True) == (
        (), f"launch 2 ({unknown.function}) has words of an unknown form",
    )  # fmt: skip


def test_a_view_that_no_launch_loads_tells_nothing() -> None:
    copied = launch(access("load", X, "temporary"), access("store", OLD))
    assert judge_launches([copied], views=True) == ((), "no launch loads old")
    assert judge_launches([copied], views=False) == ((), "")


FIRST_ROW = Run("first_row", 2, ("32 blocks: load old, store temporary", "40 blocks: load temporary, store old"))
PLAIN = Run("updated_by_itself", 1, ("40 blocks: load old, store old",))


def test_loads_apart_from_stores_and_one_kernel_pass() -> None:
    outcome = judge([FIRST_ROW], PLAIN)
    assert (outcome.status, outcome.detail) == (
        "pass", "1 graphs store no input whose view they load, and updated_by_itself is one",
    )  # fmt: skip


def test_a_fault_fails_whatever_cannot_be_judged_beside_it() -> None:
    unjudged = Run("transposed_column", 1, unjudged="no launch loads old")
    outcome = judge([unjudged, Run("first_row", 1, faults=(ELSEWHERE,))], PLAIN)
    assert (outcome.status, outcome.detail) == ("fail", f"first_row: {ELSEWHERE}")
    assert outcome.evidence["first_row"]["faults"] == (ELSEWHERE,)


def test_a_fix_that_forbids_too_much_fails() -> None:
    outcome = judge([FIRST_ROW], Run("updated_by_itself", 2))
    assert (outcome.status, outcome.detail) == (
        "fail", "updated_by_itself became 2 kernels, expected one: the fix is too broad",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("viewing", "plain", "detail"),
    [
        pytest.param(Run("first_row", 2, unjudged="no launch loads old"), PLAIN, "first_row: no launch loads old",
                     id="launches"),
        pytest.param(Run("first_row", 0), PLAIN, "first_row: no DVM kernel", id="kernels"),
        pytest.param(FIRST_ROW, Run("updated_by_itself", 0), "updated_by_itself: no DVM kernel", id="counter-example"),
    ],
)  # fmt: skip
def test_nothing_to_judge_is_an_error(viewing: Run, plain: Run, detail: str) -> None:
    outcome = judge([viewing], plain)
    assert (outcome.status, outcome.detail) == ("error", detail)
