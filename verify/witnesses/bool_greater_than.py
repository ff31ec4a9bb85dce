"""A bool is greater than a bool where the one is true and the other is not, without comparing them.

Unpatched, `(x > 0) > (y > 0)` becomes `tmp2 > tmp4`, and Triton's front end makes `arith.cmpi ugt` on i1 of it, an
unsigned comparison that HFusion has no function for (`CompareFn::vugt`). Judged by the TTIR, because the compiler that
refuses it comes with CANN: there is no unsigned comparison of i1, the values are those of eager (Triton's interpreter
runs the kernel), and all other types compare as ever. Loaded bools are i8 and compare as such in some releases; their
values must be right all the same.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from verify import triton_host, ttir
from verify.contract import Outcome, Request, broke, failed, passed
from verify.ttir import Attempt, Graph

UNSIGNED = re.compile(r"arith\.cmpi u[gl][te], .* : (?:tensor<(?:\d+x)*i1>|i1)(?= |$)", re.MULTILINE)
COMPARISONS = {"float32": "arith.cmpf ogt", "int32": "arith.cmpi sgt", "uint8": "arith.cmpi ugt"}
SIZE = 16


def check(request: Request) -> Outcome:
    """Compile comparisons of bools and of other types, and judge the TTIR and the values."""
    if missing := triton_host.skip_without():
        return missing
    scheduling = triton_host.load_backend(request.runtime)
    attempts = ttir.try_graphs(_graphs(), request)
    return judge(attempts, scheduling=scheduling, files=str(request.scratch))


def judge(attempts: Sequence[Attempt], **evidence: Any) -> Outcome:
    """Judge by the comparison's own words; a graph is named by the type that it compares, bools by how they come."""
    evidence = {attempt.graph: asdict(attempt) for attempt in attempts} | evidence
    kept = {attempt: _comparison_of(attempt) for attempt in attempts}
    compared = {attempt.graph: UNSIGNED.search(attempt.ttir) for attempt in attempts if not kept[attempt]}
    if faults := [f"{graph}: {found.group()}" for graph, found in compared.items() if found]:
        return failed("; ".join(faults), **evidence)
    if not compared or len(compared) == len(attempts):
        return broke("there are no bools, or nothing else, to judge", **evidence)
    if stuck := [f"{attempt.graph}: {attempt.reason}" for attempt in attempts if not attempt.ttir]:
        return broke("; ".join(stuck), **evidence)
    if faults := [*_changed(kept), *(f"{attempt.graph} {attempt.wrong}" for attempt in attempts if attempt.wrong)]:
        return failed("; ".join(faults), **evidence)
    others = ", ".join(attempt.graph for attempt, comparison in kept.items() if comparison)
    return passed(
        f"bools ({', '.join(compared)}) need no unsigned comparison of i1, and {others} compare as ever", **evidence
    )


def _comparison_of(attempt: Attempt) -> str:
    """Return the comparison that a graph's type has upstream, or "" for bools."""
    return COMPARISONS.get(attempt.graph.removesuffix(ttir.WITHOUT_LOOPS), "")


def _changed(kept: Mapping[Attempt, str]) -> list[str]:
    return [
        f"{attempt.graph} is no longer compared by {comparison}: the fix is too broad"
        for attempt, comparison in kept.items()
        if comparison and comparison not in attempt.ttir
    ]


def _graphs() -> list[Graph]:
    torch = importlib.import_module("torch")
    # All four pairs of negative and positive, and of unequal and equal.
    numbers = torch.arange(SIZE)
    x, y = (numbers % 2 * 2 - 1).float(), (numbers // 2 % 2 * 2 - 1).float()
    bools = [
        Graph("computed", _greater_signs, (x, y)),
        Graph("computed and loaded", _greater_sign, (x, y > 0)),
        Graph("loaded and computed", _greater_than_sign, (x > 0, y)),
        Graph("loaded", torch.gt, (x > 0, y > 0)),
    ]
    pairs = {name: [(side + 1).to(getattr(torch, name)) for side in (x, y)] for name in COMPARISONS}
    return [*bools, *(Graph(name, torch.gt, pair) for name, pair in pairs.items())]


def _greater_signs(x: Any, y: Any) -> Any:
    return (x > 0) > (y > 0)


def _greater_sign(x: Any, y: Any) -> Any:
    return (x > 0) > y


def _greater_than_sign(x: Any, y: Any) -> Any:
    return x > (y > 0)
