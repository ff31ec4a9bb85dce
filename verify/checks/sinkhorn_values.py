"""Twenty rounds of Sinkhorn normalization keep their numbers, forward and with gradients.

Row maximum, exponential, sum and division, then columns and rows by turns: the longest chain of reductions that a
DeepSeek-V4 layer has (`verify.catalogue.layers.sinkhorn`). Each rounds, so errors could pile up over the rounds; the
result is compared with eager's and with FP64, and so are the gradients.
"""

from __future__ import annotations

from verify import host
from verify.catalogue.layers import SINKHORN
from verify.contract import Outcome, Request, broke, failed, passed
from verify.generated import FALLBACK
from verify.measured import DEVICE, Measured, evidence_of, keep_program, measure
from verify.numbers import Difference

CHECK = "sinkhorn-values"
TRITON = "@triton.jit"


def check(request: Request) -> Outcome:
    """Compute the graph and judge its numbers and its kernels."""
    host.prepare(request.runtime)
    host.load_backend("dvm")
    run = measure(SINKHORN, mode="recorded" if request.runtime == "host" else DEVICE)
    keep_program(run, request.scratch, CHECK)
    return judge(run)


def judge(run: Measured) -> Outcome:
    """Judge by the values, and by the backend that computed them."""
    evidence = evidence_of([run])
    triton = sum(source.count(TRITON) for source in run.sources)
    if triton:
        return failed(f"the generated code has {triton} {TRITON}, expected DVM kernels alone", **evidence)
    if not any(kernel.type != FALLBACK for kernel in run.kernels):
        return broke("no DVM kernel ran, nothing to judge", **evidence)
    if run.unjudged:
        return broke(f"the numbers cannot be judged: {'; '.join(run.unjudged)}", **evidence)
    if run.wrong:
        return failed("; ".join(map(run.tell, run.wrong)), **evidence)
    told = "; ".join(f"{name} {_tell(by['float64'])}" for name, by in run.differences.items() if name != "x")
    return passed(f"{run.told_kernels}, no Triton; against FP64 {told}", **evidence)


def _tell(difference: Difference) -> str:
    errors = {
        "max abs": difference.maximum_absolute_error,
        "relative L2": difference.relative_l2,
        "1 - cosine": None if difference.cosine is None else 1 - difference.cosine,
    }
    return ", ".join(f"{name} {'not finite' if error is None else f'{error:.2g}'}" for name, error in errors.items())
