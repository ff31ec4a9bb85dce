"""Small training graphs of every kind come out as eager computes them, forward, in place and with gradients.

Those graphs of the numeric catalogue (`verify.catalogue`) that are marked for every proof: on the host their generated
code is computed by reference, with values parked as the recorded launches show it; on a device it runs there. A graph
whose recorded launches do not compute it cannot be judged on the host, and one that ends the process is not tried: both
are named.
"""

from __future__ import annotations

from collections.abc import Sequence

from verify import host
from verify.catalogue import for_proof
from verify.contract import Outcome, Request, broke, failed_with, passed
from verify.generated import FALLBACK
from verify.measured import DEVICE, Measured, evidence_of, keep_program, measure, tell_kernels, tell_unjudged

CHECK = "catalogue-values"


def check(request: Request) -> Outcome:
    """Compute each graph of the proof and judge its numbers."""
    release = str(host.prepare(request.runtime)["torch_npu"])
    host.load_backend("dvm")
    mode = "recorded" if request.runtime == "host" else DEVICE
    survived = [graph for graph in for_proof() if not release.startswith(graph.ends_process_on)]
    runs = [measure(graph, mode=mode) for graph in survived]
    for run in runs:
        keep_program(run, request.scratch, CHECK)
    untried = [graph.name for graph in for_proof() if graph not in survived]
    return judge(runs, [f"{name}: DVM of {release} ends the process as it builds its kernels" for name in untried])


def judge(runs: Sequence[Measured], untried: Sequence[str] = ()) -> Outcome:
    """Judge by the values that are beyond the gates of eager and of FP64; graphs without any kernel prove nothing."""
    evidence = evidence_of(runs) | ({"untried": list(untried)} if untried else {})
    if not any(kernel.type != FALLBACK for run in runs for kernel in run.kernels):
        return broke(f"{len(runs)} graphs ran no DVM kernel, nothing to judge", **evidence)
    wrong = [run.tell(name) for run in runs for name in run.wrong]
    if wrong:
        return failed_with(wrong, **evidence)
    judged, unjudged = [run for run in runs if not run.unjudged], tell_unjudged(runs)
    if not judged:
        return broke(f"none of {len(runs)} graphs can be judged: {'; '.join(unjudged)}", **evidence)
    values = sum(len(run.differences) for run in judged)
    told = f"{values} values of {len(judged)} graphs are eager's, computed by {tell_kernels(judged)}"
    left = (*(f"not tried: {one}" for one in untried), *(f"not judged: {one}" for one in unjudged))
    return passed("; ".join((told, *left)), **evidence)
