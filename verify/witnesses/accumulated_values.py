"""What a fused reduction adds to an accumulator is the number that eager adds.

The numbers of the fault that `aliased-reduction` shows by its launches. Graphs of the numeric catalogue are compiled by
the real backend, and their own generated code is computed by reference (`verify.generated`), twice: with every value
that crosses a kernel's stages parked where the recorded launches of the DVM runtime put it ("recorded"), and with each
in memory of its own ("separate"). Unpatched, `old.copy_(old + (x * 2).mean())` gives sum + sum/N instead of
old + sum/N when the sum is parked in `old`, and the right number when it is not; so the fault is the parking's, not the
reference's. What is wrong without any parking would be the reference's own error, and says nothing about torch_npu.

The layer beside the accumulator (`carrier`) must have eager's outputs and gradients to the bit in any case, and
`dst.copy_(x.sum())`, which overwrites its input without a look at it, must stay one kernel, whose number is 63.5.

On a device there is nothing to interpret: the compiled graphs' numbers are compared with eager's on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from verify import host
from verify.catalogue import CATALOGUE
from verify.contract import Outcome, Request, broke, failed, passed
from verify.measured import DEVICE, Measured, evidence_of, keep_program, measure, tell_unjudged

CHECK = "accumulated-values"
GRAPHS = ("running_mean", "carrier", "two_accumulators", "moving_average", "weighed_by_accumulator", "plain_sum")
SUMMED = ("running_mean", "carrier")
"""Graphs whose wrong value is known by arithmetic: the first stage's sum stands where `old` is to be read."""

PLAIN_SUM, PLAIN_RESULT = "plain_sum", 63.5
MUST_JUDGE = (*SUMMED, PLAIN_SUM)
"""Graphs without which there is no verdict; of the others it is said where the launches do not tell."""

TOLERANCE = 1e-4


def check(request: Request) -> Outcome:
    """Compute each graph in each mode and judge the numbers."""
    host.prepare(request.runtime)
    host.load_backend("dvm")
    modes = ("recorded", "separate") if request.runtime == "host" else (DEVICE,)
    runs = [measure(CATALOGUE[name], mode=mode) for name in GRAPHS for mode in modes]
    for run in runs:
        if run.mode == modes[0]:
            keep_program(run, request.scratch, CHECK)
    return judge(runs)


def judge(runs: Sequence[Measured]) -> Outcome:
    """Judge by the numbers with the recorded parking, once those without any have shown that the reference is right."""
    evidence = evidence_of(runs)
    told = tell_unjudged(runs)
    unfit = [one for one in told if one.partition(":")[0] in MUST_JUDGE]
    unfit += [*_faults_of_reference(runs), *_unexplained(runs)]
    if unfit:
        return broke("; ".join(unfit), **evidence)
    wrong = [_tell_wrong(run, name) for run in runs for name in run.wrong]
    if wrong:
        return failed("; ".join(wrong), **evidence)
    if faults := _faults_of_plain_sum(runs):
        return failed("; ".join(faults), **evidence)
    graphs = len({run.graph for run in runs} - {run.graph for run in runs if run.unjudged})
    right = f"{graphs} graphs have eager's numbers, and dst.copy_(x.sum()) is {PLAIN_RESULT} as one kernel"
    return passed("; ".join((right, *(f"not judged: {one}" for one in told))), **evidence)


def _faults_of_reference(runs: Iterable[Measured]) -> list[str]:
    """Say what is wrong without any parking, and where the carrier's own work is not eager's to the bit."""
    return [
        *(run.tell(name) for run in runs if run.mode == "separate" for name in run.wrong),
        *(
            f"{run.tell(name)}, expected eager's bits"
            for run in runs
            if run.graph == "carrier" and run.mode != DEVICE
            for name, by in run.differences.items()
            if name != "old" and not by["eager"].bit_equal
        ),
    ]


def _unexplained(runs: Iterable[Measured]) -> list[str]:
    """Say where parking gave another wrong number than the one that the first stage's sum gives."""
    return [
        f"{run.tell('old')}; {float(run.values['old'])} is not {first_stage_sum(run.values)} in the place of old"
        for run in runs
        if run.mode == "recorded" and run.graph in SUMMED and "old" in run.wrong and not is_first_stage_sum(run)
    ]


def is_first_stage_sum(run: Measured) -> bool:
    """Tell whether `old` is sum + sum/N, which reading the parked sum for the accumulator gives."""
    wrong = first_stage_sum(run.values)
    return abs(float(run.values["old"]) - wrong) <= TOLERANCE * abs(wrong)


def first_stage_sum(values: Mapping[str, Any]) -> float:
    """Return sum + sum/N of `old.copy_(old + (x * 2).mean())`."""
    x = values["x"].double()
    return float((x * 2).sum() + (x * 2).mean())


def _tell_wrong(run: Measured, name: str) -> str:
    if run.graph in SUMMED and name == "old" and run.mode != DEVICE:
        found, expected = float(run.values[name]), float(run.expected[name])
        return f"{run.graph} ({run.mode}): old is {found:.6g} by the first stage's sum, expected {expected:.6g}"
    return run.tell(name)


def _faults_of_plain_sum(runs: Iterable[Measured]) -> list[str]:
    plain = [run for run in runs if run.graph == PLAIN_SUM]
    faults = [
        f"dst.copy_(x.sum()) ({run.mode}) became {len(run.kernels)} kernels, expected one: the fix is too broad"
        for run in plain
        if len(run.kernels) != 1
    ]
    numbers = [(run.mode, float(run.values["dst"])) for run in plain]
    return faults + [
        f"dst.copy_(x.sum()) ({mode}) is {number}, expected {PLAIN_RESULT}"
        for mode, number in numbers
        if number != PLAIN_RESULT
    ]
