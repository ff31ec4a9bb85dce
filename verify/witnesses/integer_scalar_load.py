"""An element at a fixed place is loaded as a scalar, whatever the number of axes.

Unpatched, torch_npu 2.12 generates `tl.load(in_ptr1 + tl.arange(0,1) + (2))` for `s[2]`, which has one axis, and then
`tl.broadcast_to(tmp1, [1, 1 ])` in a kernel of two: `Cannot broadcast, rank mismatch: [1], [1, 1]`. torch_npu 2.13
generates `tl.reshape` there, which is right and would be wrong for a scalar. Judged by Triton's front end, and by the
values in its interpreter.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from verify import triton_host, ttir
from verify.contract import Outcome, Request, broke, failed, passed
from verify.ttir import Attempt, Graph

FAULT = re.compile(r"Cannot broadcast, rank mismatch: \[1\], \[1(?:, 1)+\]")
SIZE = 16


def check(request: Request) -> Outcome:
    """Compile graphs that scale by one element, and judge the TTIR and the values."""
    if missing := triton_host.skip_without():
        return missing
    scheduling = triton_host.load_backend(request.runtime)
    attempts = ttir.try_graphs(_graphs(), request)
    return judge(attempts, scheduling=scheduling, files=str(request.scratch))


def judge(attempts: Sequence[Attempt], **evidence: Any) -> Outcome:
    """Judge by the front end's own words and by the values; any other error is no verdict."""
    evidence = {attempt.graph: asdict(attempt) for attempt in attempts} | evidence
    refused = {attempt.graph: FAULT.search(attempt.error) for attempt in attempts}
    if faults := [f"{graph}: {found.group()}" for graph, found in refused.items() if found]:
        return failed("; ".join(faults), **evidence)
    stuck = [f"{attempt.graph}: {attempt.reason}" for attempt in attempts if not attempt.ttir]
    if stuck or not attempts:
        return broke("; ".join(stuck) or "there is nothing to judge", **evidence)
    if wrong := [f"{attempt.graph} {attempt.wrong}" for attempt in attempts if attempt.wrong]:
        return failed("; ".join(wrong), **evidence)
    return passed(f"the element is loaded, and its value is right: {'; '.join(refused)}", **evidence)


def _graphs() -> list[Graph]:
    torch = importlib.import_module("torch")
    # Small enough for float16 to hold every product.
    square, elements = (torch.arange(SIZE * SIZE) % 13).reshape(SIZE, SIZE).float(), torch.arange(SIZE) + 2.5
    return [
        Graph("two axes", _scale_transposed, (square, elements)),
        Graph("two axes, 0-d", _scale_transposed_by, (square, elements[1].clone())),
        Graph("two axes, float16", _scale_transposed, (square.half(), elements.half())),
        Graph("one axis", _scale, (elements + 1, elements)),
    ]


def _scale_transposed(x: Any, s: Any) -> Any:
    return x.transpose(0, 1).contiguous() * s[2] + 1


def _scale_transposed_by(x: Any, s: Any) -> Any:
    return x.transpose(0, 1).contiguous() * s + 1


def _scale(x: Any, s: Any) -> Any:
    return x * s[2] + 1
