"""Broadcasting data-dependent sizes needs no guard on them.

Eight sizes are read from a tensor and summed, and two tensors of that size are added. Whether the sum is 1 cannot be
known while compiling, and need not be: the shapes are equal. Unpatched, the lowering asks it as a guard:
`GuardOnDataDependentSymNode: Could not guard on data-dependent expression Eq(u0 + ... + u7, 1)`. A second graph adds a
column to a tensor of that size, so that one is expanded to a size that is not known. Ordinary broadcasts must lower as
ever; what they are to give is asked of eager.

torch_npu has the same code twice. The DVM backend's copy is compiled here. The other is reached on the Triton backend
with INDUCTOR_ASCEND_DUMP_FX_GRAPH set, both of which are fixed when torch_npu's inductor package is imported, so it is
compiled in a child process, `python -m verify.witnesses.symbolic_broadcast`, and judged by whether it lowers: the
Triton backend of torch_npu 2.12 has no tiling for a size that is not known (`TypeError: cannot determine truth value
of Relational: u0 + ... >= 40`), and no lowering for the assertion that such a size is not negative. Where triton-ascend
is not installed that copy cannot even be imported, and the outcome says that it was left out.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from verify import host, triton_host
from verify.contract import Outcome, Request, broke, failed, passed

FAULT = re.compile(r"GuardOnDataDependentSymNode: Could not guard on data-dependent expression Eq\(.*?, 1\)")
CAUSE = re.compile(r"Caused by: .*")
FX_ENVIRONMENT = {
    "INDUCTOR_ASCEND_DUMP_FX_GRAPH": "1",
    host.BACKEND_VARIABLE: "default",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}
SIZES = 8


@dataclass(frozen=True)
class Attempt:
    """What compiling one graph came to.

    `lowered` says that code was generated, or, of the Triton backend's copy, that generating it began; `error` what was
    raised, whenever, and `wrong` in what the result differs. They are "" where there is nothing to say.
    """

    graph: str
    lowered: bool
    error: str = ""
    wrong: str = ""


def check(request: Request) -> Outcome:
    """Compile data-dependent and ordinary broadcasts with both copies of the lowering and judge what came of it."""
    host.prepare(request.runtime)
    host.load_backend("dvm")
    attempts = [*_compile_data_dependent("dvm"), *_compile_ordinary("dvm")]
    if not triton_host.is_installed():
        return judge(attempts, left_out="the Triton backend's copy was left out, triton-ascend is not installed")
    return judge([*attempts, *_compile_in_child(request)])


def judge(attempts: Sequence[Attempt], left_out: str = "") -> Outcome:
    """Judge by the guard's own words and by wrong shapes; any other failure to lower is no verdict."""
    evidence = {attempt.graph: asdict(attempt) for attempt in attempts} | ({"left_out": left_out} if left_out else {})
    faults = [f"{attempt.graph}: {_quote_fault(attempt.error)}" for attempt in attempts if FAULT.search(attempt.error)]
    if faults:
        return failed("; ".join(faults), **evidence)
    stuck = [attempt for attempt in attempts if not attempt.lowered]
    if stuck or not attempts:
        return broke("; ".join(f"{attempt.graph} did not lower: {attempt.error}" for attempt in stuck), **evidence)
    wrong = [f"{attempt.graph}: {attempt.wrong}" for attempt in attempts if attempt.wrong]
    if wrong:
        return failed("; ".join(wrong), **evidence)
    lowered = f"{len(attempts)} broadcasts lower without a guard"
    return passed(f"{lowered}; {left_out}" if left_out else lowered, **evidence)


def _quote_fault(error: str) -> str:
    found = (FAULT.search(error), CAUSE.search(error))
    return ", ".join(match.group() for match in found if match)


def _compile_data_dependent(backend: str, *, whole: bool = True) -> list[Attempt]:
    torch = importlib.import_module("torch")
    torch._dynamo.config.capture_scalar_outputs = True
    sizes = torch.full((SIZES,), 2).npu()
    graphs = (equal_sums, expanded_sum)
    return [_compile(f"{backend}, {graph.__name__}", graph, [sizes], whole=whole) for graph in graphs]


def _compile_ordinary(backend: str) -> list[Attempt]:
    torch = importlib.import_module("torch")
    shapes = {
        "equal": ((8, 16), (8, 16)),
        "singleton": ((8, 1), (1, 16)),
        "another rank": ((4, 8, 16), (16,)),
        "0-d": ((8, 16), ()),
    }
    ordinary = {name: [torch.rand(shape).npu() for shape in pair] for name, pair in shapes.items()}
    return [
        _compile(f"{backend}, {name}, dynamic={dynamic}", _multiply_and_add, tensors, dynamic=dynamic)
        for name, tensors in ordinary.items()
        for dynamic in (False, True)
    ]


def _compile(
    name: str, graph: Callable[..., Any], tensors: Sequence[Any], *, dynamic: bool | None = None, whole: bool = True
) -> Attempt:
    """Compile and call one graph; with `whole`, it counts as lowered when its code is written, else before that."""
    torch = importlib.import_module("torch")
    torch._dynamo.reset()
    error, wrong = "", ""
    with host.generated_code() as sources, _lowered_graphs() as lowered:
        try:
            found = tuple(torch.compile(graph, dynamic=dynamic)(*tensors).shape)
        except Exception as fault:  # whichever it is, judge() looks at its words
            error = f"{type(fault).__name__}: {fault}"
        else:
            expected = tuple(graph(*(tensor.cpu() for tensor in tensors)).shape)
            wrong = f"gives shape {found}, expected {expected}" if found != expected else ""
    return Attempt(name, bool(sources if whole else lowered), error, wrong)


@contextlib.contextmanager
def _lowered_graphs() -> Iterator[list[Any]]:
    """Collect the graphs that Inductor has lowered and goes on to generate code for."""
    graph_lowering = importlib.import_module("torch._inductor.compile_fx").GraphLowering
    graphs: list[Any] = []
    generate = graph_lowering.compile_to_module

    def keep(graph: Any) -> Any:
        graphs.append(graph)
        return generate(graph)

    graph_lowering.compile_to_module = keep
    try:
        yield graphs
    finally:
        graph_lowering.compile_to_module = generate


def _compile_in_child(request: Request) -> list[Attempt]:
    answer = request.scratch / "symbolic-broadcast-fx.json"
    command = [sys.executable, "-m", "verify.witnesses.symbolic_broadcast", request.runtime, str(answer)]
    log = answer.with_suffix(".log")
    with log.open("wb") as output:
        subprocess.run(command, env={**os.environ, **FX_ENVIRONMENT}, stdout=output, stderr=output, check=True)
    return [Attempt(**attempt) for attempt in json.loads(answer.read_text(encoding="utf-8"))]


def _answer_parent(runtime: str, answer: Path) -> None:
    triton_host.load_backend(runtime)
    importlib.import_module("torch._dynamo").config.do_not_emit_runtime_asserts = True
    with triton_host.code_only():
        attempts = _compile_data_dependent("fx", whole=False)
    answer.write_text(json.dumps([asdict(attempt) for attempt in attempts]), encoding="utf-8")


def _sum_sizes(sizes: Any) -> Any:
    total = sizes[0].item()
    for position in range(1, SIZES):
        total = total + sizes[position].item()
    return total


def equal_sums(sizes: Any) -> Any:
    """Both tensors have the same data-dependent size."""
    total = _sum_sizes(sizes)
    return sizes.new_zeros(total) + sizes.new_ones(total)


def expanded_sum(sizes: Any) -> Any:
    """A realized tensor of that size is expanded to a second dimension."""
    return sizes.new_ones(_sum_sizes(sizes)).sort()[0] + sizes.new_ones(3, 1)


def _multiply_and_add(one: Any, other: Any) -> Any:
    return one * other + one


if __name__ == "__main__":
    _answer_parent(sys.argv[1], Path(sys.argv[2]))
