"""An input is not mutated by the kernel that still loads a view of it.

`old.copy_(old[1:2] + x)` as one DVM kernel has every block load the one row and store its own rows, nothing keeping the
block that stores that row from being first. Inductor fuses a load with a mutation only if both use the same index,
but looks for the load by the mutated buffer's own name; on this backend a slice or a permutation is an operator outside
the kernels, whose result has another.

On the host the kernel launches are judged, as the real DVM runtime asked for them (`verify.launches`): whether one
stores to an input and loads it from another address. Where the view is one of a single row or column, that is an
element of somebody else's. Updating an input by itself must stay the single kernel that it is, so that a fix which
forbids more than it has to is found out. On a device the numbers are compared with eager's on the CPU.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from verify import host, kernels
from verify.contract import Outcome, Request, broke, failed, passed
from verify.launches import Launch, learn_operations, read_launches

MUTATED = "old"
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Run:
    """What one compiled graph did: how many DVM kernels it has, its launches in words, and what is wrong with them.

    `unjudged` says why the launches tell nothing; it is "" where they do.
    """

    graph: str
    kernels: int
    launches: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    unjudged: str = ""


def first_row(old: Any, x: Any) -> None:
    """Every block loads the same row."""
    old.copy_(old[1:2] + x)


def transposed_column(old: Any, x: Any) -> None:
    """The view has strides of its own."""
    old.copy_(x * old[:, 1:2].transpose(0, 1))


def returned_beside(old: Any, x: Any) -> Any:
    """What is stored does not depend on what is loaded."""
    seen = old[1:2].exp() + x
    old.copy_(x.exp() * 3)
    return seen


def updated_by_itself(old: Any, x: Any) -> None:
    """The counter-example: each element is loaded where it is stored, so one kernel is right."""
    old.copy_(old * 2 + x)


VIEWING: Mapping[Callable[..., Any], tuple[int, ...]] = {
    first_row: (128, 256),
    transposed_column: (8, 8, 128),
    returned_beside: (128, 256),
}


def check(request: Request) -> Outcome:
    """Compile and launch each graph and judge what was launched."""
    host.prepare(request.runtime)
    host.load_backend("dvm")
    runs = [_run(graph, shape, request.runtime, views=True) for graph, shape in VIEWING.items()]
    return judge(runs, _run(updated_by_itself, (128, 256), request.runtime, views=False))


def judge(viewing: Sequence[Run], plain: Run) -> Outcome:
    """Judge by the faults, and the counter-example by its kernels; a graph that shows nothing is no verdict.

    One fault is the fault, whatever cannot be judged beside it; to be without it, every graph must be judged.
    """
    evidence = {run.graph: asdict(run) for run in (*viewing, plain)}
    faults = [f"{run.graph}: {fault}" for run in (*viewing, plain) for fault in run.faults]
    if faults:
        return failed("; ".join(faults), **evidence)
    unjudged = [f"{run.graph}: {run.unjudged}" for run in (*viewing, plain) if run.unjudged]
    unjudged += [f"{run.graph}: no DVM kernel" for run in (*viewing, plain) if not run.kernels]
    if unjudged:
        return broke("; ".join(unjudged), **evidence)
    if plain.kernels != 1:
        return failed(f"{plain.graph} became {plain.kernels} kernels, expected one: the fix is too broad", **evidence)
    return passed(f"{len(viewing)} graphs store no input whose view they load, and {plain.graph} is one", **evidence)


def judge_launches(launches: Sequence[Launch], *, views: bool) -> tuple[tuple[str, ...], str]:
    """Return the launches that load the mutated input from where they do not store it, and why none can be judged.

    `views` says that the graph loads a view of it, from another address than its first: one launch must.
    """
    faults, seen = [], False
    for number, launch in enumerate(launches, 1):
        if launch.accesses is None or launch.count("unknown", MUTATED):
            return (), f"launch {number} ({launch.function}) has words of an unknown form"
        touched = [access for access in launch.accesses if access.tensor == MUTATED]
        loaded = {access.address for access in touched if access.kind == "load"}
        stored = {access.address for access in touched if access.kind != "load"}
        seen |= bool(loaded)
        if stored and loaded - stored:
            faults.append(f"launch {number} stores {MUTATED} and loads it from another address")
    return tuple(faults), "" if seen or not views else f"no launch loads {MUTATED}"


def _run(graph: Callable[..., Any], shape: tuple[int, ...], runtime: str, *, views: bool) -> Run:
    torch = importlib.import_module("torch")
    torch._dynamo.reset()
    torch.manual_seed(0)
    given = {name: torch.rand(shape) + 0.5 for name in (MUTATED, "x")}
    used = {name: tensor.npu() for name, tensor in given.items()}
    with host.generated_code(), kernels.built() as found, _recorded(runtime) as lines:
        result = torch.compile(graph)(*used.values())
    if runtime != "host":
        return Run(graph.__name__, len(found), faults=_compare_numbers(graph, given, used, result))
    ranges = {name: (tensor.data_ptr(), tensor.nbytes) for name, tensor in used.items()}
    launches = read_launches(lines, ranges, learn_operations(lines, [kernel.kobj.das() for kernel in found]))
    faults, unjudged = judge_launches(launches, views=views)
    return Run(graph.__name__, len(found), tuple(map(str, launches)), faults, unjudged)


def _recorded(runtime: str) -> contextlib.AbstractContextManager[list[str]]:
    # Only the host sysroot records launches.
    return host.recorded_launches() if runtime == "host" else contextlib.nullcontext([])


def _compare_numbers(
    graph: Callable[..., Any], given: Mapping[str, Any], used: Mapping[str, Any], result: Any
) -> tuple[str, ...]:
    torch = importlib.import_module("torch")
    expected = {name: tensor.clone() for name, tensor in given.items()}
    pairs = {"the result": (result, graph(**expected))} | {name: (used[name], expected[name]) for name in expected}
    return tuple(
        f"{name} differs from eager's by up to {(found.cpu() - value).abs().max().item():.6g}"
        for name, (found, value) in pairs.items()
        if value is not None and not torch.allclose(found.cpu(), value, rtol=TOLERANCE, atol=TOLERANCE)
    )
