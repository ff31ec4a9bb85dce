"""A fused reduction does not overwrite the accumulator that it still needs.

`old.copy_(old + (x * 2).mean())` as one DVM kernel parks the sum of the first stage in `old`, its output, and then
loads `old` as if nothing had happened: sum + sum/N instead of old + sum/N.

On the host the kernel launches are judged, as the real DVM runtime asked for them (`verify.launches`): whether a stage
writes to a mutated input before a later one loads it for its own value. That a kernel gets one buffer both as input
and as output says nothing: `dst.copy_(x.sum())` does, and is right. It must also stay the single kernel that it is, so
that a fix which forbids more than it has to is found out. On a device the numbers are compared with eager's on the CPU.
"""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from verify import graphs, host, kernels
from verify.contract import Outcome, Request, broke, failed, passed
from verify.graphs import Graph
from verify.launches import (
    UnreadableLaunchError,
    learn_operations,
    needed_inputs,
    overwritten_before_read,
    read_launches,
)

KERNEL = re.compile(r"^\s*@dvm\.kernel\(ktype='([^']+)'", re.MULTILINE)
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Run:
    """What one compiled graph did: its kernels' types, its launches in words, and the inputs it lost, with reasons.

    `unjudged` says why its launches do not tell which inputs those are; it is "" where they do.
    """

    graph: str
    kernels: tuple[str, ...]
    launches: tuple[str, ...]
    lost: Mapping[str, str]
    unjudged: str = ""


def check(request: Request) -> Outcome:
    """Compile and launch each graph and judge what was launched."""
    host.prepare(request.runtime)
    host.load_backend("dvm")
    runs = [_run_graph(graph, request) for graph in (*graphs.ACCUMULATING, graphs.PLAIN_SUM)]
    return judge_runs(runs, launches_expected=request.runtime == "host")


def judge_runs(runs: Sequence[Run], launches_expected: bool) -> Outcome:
    """Judge by the lost inputs, and the counter-example by its kernels; what shows neither is no verdict.

    One lost input is the fault, whatever cannot be judged beside it; to be without it, every graph must be judged.
    """
    evidence = {run.graph: asdict(run) for run in runs}
    for run in runs:
        if not run.kernels or (launches_expected and not run.launches):
            return broke(
                f"{run.graph}: {len(run.kernels)} DVM kernels and {len(run.launches)} launches, nothing to judge",
                **evidence,
            )
    lost = [f"{run.graph} loses {name} ({reason})" for run in runs for name, reason in run.lost.items()]
    if lost:
        return failed("; ".join(lost), **evidence)
    unjudged = [f"{run.graph}: {run.unjudged}" for run in runs if run.unjudged]
    if unjudged:
        return broke("; ".join(unjudged), **evidence)
    plain = next(run for run in runs if run.graph == graphs.PLAIN_SUM.name)
    if plain.kernels != ("spec",):
        return failed(
            f"dst.copy_(x.sum()) became {' + '.join(plain.kernels)}, expected one spec kernel: the fix is too broad",
            **evidence,
        )
    return passed(f"{len(runs) - 1} graphs keep their inputs, and dst.copy_(x.sum()) is one kernel", **evidence)


def _run_graph(graph: Graph, request: Request) -> Run:
    torch = importlib.import_module("torch")
    torch._dynamo.reset()
    torch.manual_seed(0)
    given = {name: torch.rand(shape) + 0.5 for name, shape in graph.shapes.items()}
    used = {name: tensor.npu() for name, tensor in given.items()}
    compiled = torch.compile(graph.function)
    with host.generated_code() as sources, kernels.built() as found, _recorded(request.runtime) as lines:
        result = compiled(*used.values())
    _keep_evidence(request.scratch / f"aliased-reduction-{graph.name}", sources, found)
    types = tuple(KERNEL.findall("\n".join(sources)))
    if request.runtime != "host":
        return Run(graph.name, types, (), _compare_numbers(graph, given, {**used, "the result": result}))
    ranges = {name: (tensor.data_ptr(), tensor.nbytes) for name, tensor in used.items()}
    operations = learn_operations(lines, [kernel.kobj.das() for kernel in found])
    launches = read_launches(lines, ranges, operations)
    told = tuple(map(str, launches))
    try:
        return Run(graph.name, types, told, overwritten_before_read(launches, needed_inputs(graph.function, given)))
    except UnreadableLaunchError as fault:
        return Run(graph.name, types, told, {}, unjudged=str(fault))


def _recorded(runtime: str) -> contextlib.AbstractContextManager[list[str]]:
    # Only the host sysroot records launches.
    return host.recorded_launches() if runtime == "host" else contextlib.nullcontext([])


def _compare_numbers(graph: Graph, given: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, str]:
    torch = importlib.import_module("torch")
    expected = {name: tensor.clone() for name, tensor in given.items()}
    expected["the result"] = graph.function(**expected)
    pairs = {name: (found[name].cpu(), value) for name, value in expected.items() if value is not None}
    return {
        name: f"largest difference {(actual - value).abs().max().item():.6g} from eager"
        for name, (actual, value) in pairs.items()
        if not torch.allclose(actual, value, rtol=TOLERANCE, atol=TOLERANCE)
    }


def _keep_evidence(stem: Path, sources: Sequence[str], found: Sequence[Any]) -> None:
    """Keep the generated code and, of each DVM kernel that it defines, the stages and the disassembly."""
    listings = [f"{kernel.__name__}\n{kernel.kobj.dump()}\n{kernel.kobj.das()}" for kernel in found]
    stem.with_suffix(".py").write_text("\n".join(sources), encoding="utf-8")
    stem.with_suffix(".das").write_text("\n".join(listings), encoding="utf-8")
