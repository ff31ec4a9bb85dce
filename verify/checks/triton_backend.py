"""The Triton backend is loaded when it is asked for, and a compiled function's code holds its kernels.

torch_npu calls this backend `default`, and loads nothing but a warning where Triton is not installed.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from verify import host, triton_host
from verify.checks.dvm_codegen import CODE_LENGTH, DVM_KERNEL, TRITON_KERNEL
from verify.contract import Outcome, Request, failed, passed

SCHEDULING = re.compile(r"torch_npu\._inductor\.codegen\.\w+\.NPU\w*Scheduling")


def check(request: Request) -> Outcome:
    """Ask for the backend, compile a small function, and judge by what is registered and what Inductor wrote."""
    if missing := triton_host.skip_without():
        return missing
    scheduling = triton_host.load_backend(request.runtime)
    if not SCHEDULING.fullmatch(scheduling):
        return failed(
            f"asking for default installed {scheduling} for npu, expected a scheduling of NPU Triton",
            scheduling=scheduling,
        )
    return judge_code(_generate(), scheduling=scheduling)


def judge_code(code: str, **evidence: Any) -> Outcome:
    """Judge generated code by the kernels that it defines."""
    dvm, triton = (kind.findall(code) for kind in (DVM_KERNEL, TRITON_KERNEL))
    evidence = {"code": code[:CODE_LENGTH], **evidence}
    if not code:
        return failed("torch.compile wrote no code", **evidence)
    if not triton or dvm:
        return failed(f"the generated code has {len(triton)} @triton.jit and {len(dvm)} @dvm.kernel", **evidence)
    return passed(f"{len(triton)} @triton.jit, no @dvm.kernel", **evidence)


def _generate() -> str:
    torch = importlib.import_module("torch")
    x, y = (torch.ones(8, 16).npu() for _ in range(2))
    with host.generated_code() as sources, triton_host.code_only():
        try:
            torch.compile(_scaled_sum)(x, y)
        except Exception:  # the code is written, and judged; where it is not, nothing can be
            if not sources:
                raise
    return "\n".join(sources)


def _scaled_sum(x: Any, y: Any) -> Any:
    return (x * 2 + y).relu()
