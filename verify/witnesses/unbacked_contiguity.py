"""Whether a tensor of a data-dependent size is contiguous is not asked as a guard.

How many elements are not zero, how many rows a mask selects or what a tensor says that a size is cannot be known while
compiling. Whether a kernel's input of that size is contiguous can depend on whether the size is 1, and need not be
known: a load with strides is right in any case. Unpatched, the code generation of the DVM backend asks it all the same,
so that even `x.nonzero().float()` does not compile: `GuardOnDataDependentSymNode: Could not guard on data-dependent
expression Eq(u0, 1) | Eq(2*u0, 0)`. Products of matrices reach the same question, and whether one is transposed, in
another place, which is only there with DVM's matrix multiplication on.

No graph broadcasts tensors of such a size, where the guard of `symbolic-broadcast` would come first. On the host
nothing is computed, `nonzero` included, so a graph may fail as soon as it runs; what counts is its code.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from verify import host
from verify.contract import Outcome, Request, broke, failed, passed

FAULT = re.compile(r"GuardOnDataDependentSymNode: Could not guard on data-dependent expression \S.*?(?= \(unhinted)")
CAUSE = re.compile(r"Caused by: .*")
SIZE = 5
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Attempt:
    """What compiling one graph came to.

    `generated` says that its code was written and, on a device, ran; `error` what was raised, whenever, and `wrong`
    what is wrong with the result. They are "" where there is nothing to say.
    """

    graph: str
    generated: bool
    error: str = ""
    wrong: str = ""


def positions(x: Any, _sizes: Any) -> Any:
    """What `nonzero` returns has strides of its own, which name the size too."""
    return x.nonzero().float()


def selected(x: Any, _sizes: Any) -> Any:
    """The second half of the rows that a mask selects: they do not touch each other."""
    return x[x[:, 0] > 1].chunk(2, -1)[1].exp()


def batch(x: Any, sizes: Any) -> Any:
    """As many matrices as a size says, in half precision."""
    matrices = x.half().new_ones(sizes[0].item(), 4, 8)
    return matrices.bmm(matrices.transpose(1, 2))


def rows(x: Any, sizes: Any) -> Any:
    """A stride that matters is the size."""
    size, half = sizes[0].item(), x.half()
    return half.new_ones(4, 8, size)[:, :4].bmm(half.new_ones(4, size, 2))


def transposed_rows(x: Any, sizes: Any) -> Any:
    """The distance of two matrices is twice what it is in a batch of transposed ones."""
    size, half = sizes[0].item(), x.half()
    return half.new_ones(4, 8, size)[:, :4].transpose(1, 2).bmm(half.new_ones(4, 4, 2))


def columns(x: Any, sizes: Any) -> Any:
    """Transposed as a whole only if the size is that of the whole."""
    half = x.half()
    return half.t()[: sizes[0].item()] @ half.new_ones(16, 2)


GRAPHS = (positions, selected, batch, rows, transposed_rows, columns)


def check(request: Request) -> Outcome:
    """Compile each graph and judge what came of it."""
    host.prepare(request.runtime)
    host.load_backend("dvm")
    config = importlib.import_module("torch._dynamo").config
    config.capture_scalar_outputs = config.capture_dynamic_output_shape_ops = True
    return judge([_compile(graph, request.runtime) for graph in GRAPHS])


def judge(attempts: Sequence[Attempt]) -> Outcome:
    """Judge by the guard's own words and by wrong results; any other failure to generate code is no verdict."""
    evidence = {attempt.graph: asdict(attempt) for attempt in attempts}
    faults = [f"{attempt.graph}: {_quote_fault(attempt.error)}" for attempt in attempts if FAULT.search(attempt.error)]
    if faults:
        return failed("; ".join(faults), **evidence)
    stuck = [f"{attempt.graph} has no code: {attempt.error}" for attempt in attempts if not attempt.generated]
    if stuck or not attempts:
        return broke("; ".join(stuck), **evidence)
    wrong = [f"{attempt.graph} {attempt.wrong}" for attempt in attempts if attempt.wrong]
    if wrong:
        return failed("; ".join(wrong), **evidence)
    return passed(f"{len(attempts)} graphs of a data-dependent size compile without a guard", **evidence)


def _quote_fault(error: str) -> str:
    found = (FAULT.search(error), CAUSE.search(error))
    return ", ".join(match.group() for match in found if match)


def _compile(graph: Callable[..., Any], runtime: str) -> Attempt:
    torch = importlib.import_module("torch")
    torch._dynamo.reset()
    torch.manual_seed(0)
    given = torch.rand(16, 8) + 0.5, torch.full((1,), SIZE)
    error = wrong = ""
    with host.generated_code() as sources:
        try:
            found = torch.compile(graph)(*(tensor.npu() for tensor in given))
        except Exception as fault:  # whichever it is, judge() looks at its words
            error = f"{type(fault).__name__}: {fault}"
        else:
            # The host sysroot computes nothing, sizes included.
            wrong = "" if runtime == "host" else _compare(found.cpu(), graph(*given))
    generated = bool(sources) and (runtime == "host" or not error)
    return Attempt(graph.__name__, generated, error, wrong)


def _compare(found: Any, expected: Any) -> str:
    torch = importlib.import_module("torch")
    if found.shape != expected.shape:
        return f"gives shape {tuple(found.shape)}, expected {tuple(expected.shape)}"
    return "" if torch.allclose(found, expected, rtol=TOLERANCE) else "gives other numbers than eager"
