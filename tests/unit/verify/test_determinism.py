"""The determinism check's verdicts, from listings as the DVM compiler of torch_npu 2.13.0 prints them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from verify.checks.determinism import Builds, Listing, judge_builds, judge_runs
from verify.contract import passed

ATOMIC = Listing(
    2, ("dummy_load", "BroadcastS", "store", "load", "Muls", "ClrPad", "SumX", "AtomicCum", "store_atomic")
)
ORDERED = Listing(1, ("load", "Muls", "ClrPad", "SumX", "SumJoin", "store_cond"))
RIGHT = Builds("whole_sum", off=ATOMIC, kept=ATOMIC, recompiled=ORDERED, on=ORDERED, warning=ORDERED)


def test_the_flag_that_reaches_new_kernels_only_passes() -> None:
    outcome = judge_builds([RIGHT, replace(RIGHT, graph="column_sums")])

    assert (outcome.status, outcome.detail) == (
        "pass",
        "2 sums add in order (SumJoin, store_cond) if the flag is set before torch.compile; a kernel built before "
        "keeps AtomicCum, store_atomic",
    )
    assert outcome.evidence["whole_sum"]["off"]["stages"] == 2


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        (replace(RIGHT, on=ATOMIC), "a kernel built with the flag on does not add in order"),
        (replace(RIGHT, on=replace(ORDERED, stages=2)), "a kernel built with the flag on does not add in order"),
        (replace(RIGHT, warning=ATOMIC), "a kernel built with warn_only=True does not add in order"),
        (replace(RIGHT, kept=ORDERED), "a kernel that was built before the flag was set has changed"),
        (
            replace(RIGHT, recompiled=ATOMIC),
            "after the flag was switched the next call did not run a kernel that adds in order",
        ),
    ],
    ids=["ignored", "still filled", "warn only ignored", "changed behind its back", "not compiled anew"],
)
def test_each_way_in_which_the_flag_fails_is_named(changed: Builds, fault: str) -> None:
    outcome = judge_builds([changed])

    assert (outcome.status, outcome.detail) == ("fail", f"whole_sum: {fault}")


def test_sums_that_never_add_atomically_show_nothing() -> None:
    outcome = judge_builds([replace(RIGHT, off=ORDERED, kept=ORDERED)])

    assert (outcome.status, outcome.detail) == (
        "error",
        "whole_sum: with the flag off the kernel does not add atomically, so it shows nothing",
    )


def test_runs_on_a_device_are_judged_by_each_hash() -> None:
    equal, other = {"loss": "aa", "x.grad": "bb"}, {"loss": "aa", "x.grad": "cc"}

    assert judge_runs([equal] * 3, passed("built")).detail == "built; 3 runs on the device are equal, bit for bit"
    outcome = judge_runs([equal, equal, other], passed("built"))
    assert (outcome.status, outcome.detail) == ("fail", "3 runs give different x.grad")
    assert judge_runs([equal, {"loss": "aa"}], passed("built")).status == "fail"


def test_a_step_that_dies_is_an_error_with_its_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from verify.checks import determinism

    dying = tmp_path / "python"
    dying.write_text("#!/bin/sh\necho no device\nexit 3\n", encoding="utf-8")
    dying.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(dying))

    with pytest.raises(RuntimeError, match=r"python -m verify\.hashed_step ended with 3: no device"):
        determinism._hash_runs(tmp_path)
