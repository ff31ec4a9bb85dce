"""Operators that the user names in NPU_INDUCTOR_FALLBACK_LIST are fallbacks.

Unpatched, the overload `aten.max.dim` is on the list of fallbacks and yet lowers through the `reduce_max` that is
registered after it; `aten.sum.dim_IntList`, which nothing overrides, is honoured. Judged by the generated code, which
calls the operator (`torch.ops.aten.max.dim(...)`) or a kernel in its place (`triton_per_fused_max...`).

Needs triton-ascend: without it the Triton backend, whose lowerings these are, is not loaded at all. On the host a
stand-in takes the place of its driver (`verify.triton_host`).
"""

from __future__ import annotations

import importlib
import os
import re
from typing import Any

from verify import host, triton_host
from verify.contract import Outcome, Request, broke, failed, passed

VARIABLE = "NPU_INDUCTOR_FALLBACK_LIST"
NAMED = ("aten.max.dim", "aten.sum.dim_IntList")
KERNEL_CALL = re.compile(r"^\s*(triton_\w+)\.run\(", re.MULTILINE)
OPERATOR_CALL = re.compile(r"^\s*\w+ = torch\.ops\.(\w+\.\w+\.\w+)\(", re.MULTILINE)


def check(request: Request) -> Outcome:
    """Generate the Triton backend's code for the operators that are named, and judge it."""
    if missing := triton_host.skip_without():
        return missing
    listed = os.environ.get(VARIABLE, "")
    if not set(NAMED) <= set(listed.split(",")):
        return broke(f"{VARIABLE} is {listed!r}, expected it to name {' and '.join(NAMED)}")
    scheduling = triton_host.load_backend(request.runtime)
    code = _generate()
    kept = request.scratch / "user-fallbacks.py"
    kept.write_text(code, encoding="utf-8")
    return judge_code(code, scheduling=scheduling, code_file=str(kept))


def judge_code(code: str, **evidence: Any) -> Outcome:
    """Judge by which of the named operators the generated code calls."""
    called, kernels = OPERATOR_CALL.findall(code), KERNEL_CALL.findall(code)
    evidence = {"operators": called, "kernels": kernels, **evidence}
    if not called and not kernels:
        return broke("the generated code calls nothing", **evidence)
    lost = [name for name in NAMED if name not in called]
    if lost:
        instead = ", ".join(kernels) or "no kernel"
        return failed(f"{' and '.join(lost)} was named for fallback, yet the code calls {instead}", **evidence)
    return passed(f"the generated code calls {' and '.join(NAMED)}", **evidence)


def _generate() -> str:
    torch = importlib.import_module("torch")
    with host.generated_code() as sources, triton_host.code_only():
        try:
            torch.compile(_reduce_twice)(torch.rand(128, 256).npu())
        except Exception:
            if not sources:
                raise
    return "\n".join(sources)


def _reduce_twice(x: Any) -> Any:
    largest = x.max(dim=-1)
    return largest.values, largest.indices, x.sum(0)
