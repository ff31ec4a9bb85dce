"""A compiled function's generated code holds DVM kernels and no Triton kernel."""

from __future__ import annotations

import importlib
import re
from typing import Any

from verify import host
from verify.contract import Outcome, Request, failed, passed

# At a line's start, so that a traced source quoted in a comment does not count.
DVM_KERNEL = re.compile(r"^\s*@dvm\.kernel\(.*", re.MULTILINE)
TRITON_KERNEL = re.compile(r"^\s*@triton\.jit\b.*", re.MULTILINE)
CODE_LENGTH = 20_000


def check(request: Request) -> Outcome:
    """Compile a small function for npu with the DVM backend and look at what Inductor wrote."""
    host.prepare(request.runtime)
    scheduling = host.load_backend("dvm")
    torch = importlib.import_module("torch")
    x, y = (torch.ones(8, 16, device="npu") for _ in range(2))
    with host.generated_code() as sources:
        torch.compile(_scaled_sum)(x, y)
    return judge_code("\n".join(sources), scheduling=scheduling)


def judge_code(code: str, **evidence: Any) -> Outcome:
    """Judge generated code by the kernels that it defines."""
    dvm, triton = ([line.strip() for line in kind.findall(code)] for kind in (DVM_KERNEL, TRITON_KERNEL))
    evidence = {"dvm_kernels": dvm, "triton_kernels": triton, "code": code[:CODE_LENGTH], **evidence}
    if not code:
        return failed("torch.compile wrote no code", **evidence)
    if not dvm:
        return failed(f"the generated code has no @dvm.kernel and {len(triton)} @triton.jit", **evidence)
    if triton:
        return failed(f"the generated code has {len(triton)} @triton.jit beside {len(dvm)} @dvm.kernel", **evidence)
    return passed(f"{len(dvm)} @dvm.kernel, no @triton.jit: {dvm[0]}", **evidence)


def _scaled_sum(x: Any, y: Any) -> Any:
    return (x * 2 + y).relu()
