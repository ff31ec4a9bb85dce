"""Small training graphs of every kind come out as eager computes them, forward, in place and with gradients.

Those graphs of the numeric catalogue (`verify.catalogue`) that are marked for every proof: on the host their generated
code is computed by reference, with values parked as the recorded launches show it; on a device it runs there.
"""

from __future__ import annotations

from collections.abc import Sequence

from verify import host
from verify.catalogue import for_proof
from verify.contract import Outcome, Request, broke, failed_with, passed
from verify.measured import DEVICE, Measured, evidence_of, keep_program, measure

CHECK = "catalogue-values"


def check(request: Request) -> Outcome:
    """Compute each graph of the proof and judge its numbers."""
    host.prepare(request.runtime)
    host.load_backend("dvm")
    mode = "recorded" if request.runtime == "host" else DEVICE
    runs = [measure(graph, mode=mode) for graph in for_proof()]
    for run in runs:
        keep_program(run, request.scratch, CHECK)
    return judge(runs)


def judge(runs: Sequence[Measured]) -> Outcome:
    """Judge by the values that are beyond the gates of eager and of FP64; graphs without any kernel prove nothing."""
    evidence = evidence_of(runs)
    kernels = sum(len(run.kernels) for run in runs)
    if not kernels:
        return broke(f"{len(runs)} graphs ran no DVM kernel, nothing to judge", **evidence)
    wrong = [run.tell(name) for run in runs for name in run.wrong]
    if wrong:
        return failed_with(wrong, **evidence)
    values = sum(len(run.differences) for run in runs)
    return passed(f"{values} values of {len(runs)} graphs are eager's, computed by {kernels} DVM kernels", **evidence)
