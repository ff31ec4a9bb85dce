"""Run the numeric catalogue, planted faults and drawn graphs in this fresh process on a host sysroot.

`python -m tests.e2e.catalogue_run SIDE OUT [EXAMPLES [SEED]]`: SIDE is "base" or "overlay". On the base only those
graphs run that write an input in place, and the first drawn graph that is wrong is not made smaller. OUT is a JSON
file: {"catalogue": {name: [wrong value, ...]}, "findings": the same, "planted": {fault: {graph: [wrong value, ...]}},
"drawn": {"examples": int, "refused": [str, ...], "failure": str | null}}.
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.drawn_graphs import describe, drawn_graphs
from verify import host
from verify.catalogue import CATALOGUE
from verify.catalogue.findings import FINDINGS
from verify.catalogue.values import TrainingGraph
from verify.measured import measure
from verify.reference import operations
from verify.reference.paired import AlignmentError
from verify.reference.plan import PlanError
from verify.reference.program import Instruction

WIDE, WIDE_HALF = 64, 8
"""Room for the roundings of graphs that nobody has looked at; a lost accumulator is far beyond it."""


def main(side: str, out: Path, examples: int, number: int) -> None:
    """Run all of it and write what came of it."""
    warnings.simplefilter("ignore")
    host.prepare("host")
    host.load_backend("dvm")
    graphs = [graph for graph in CATALOGUE.values() if side == "overlay" or graph.mutated]
    found: dict[str, Any] = {"catalogue": measure_all(graphs), "findings": measure_all(FINDINGS), "planted": {}}
    if side == "overlay":
        found["planted"] = {name: _measure_planted(name) for name in FAULTS}
    shrunk = () if side == "base" else (Phase.shrink,)
    found["drawn"] = try_drawn(examples, number, phases=(Phase.generate, *shrunk))
    out.write_text(json.dumps(found, indent=1), encoding="utf-8")


def measure_all(graphs: Iterable[TrainingGraph]) -> dict[str, Sequence[str]]:
    """Return the wrong values of each graph, with values parked as recorded."""
    return {graph.name: [run.tell(name) for name in run.wrong] for graph in graphs for run in [_measure(graph)]}


def try_drawn(examples: int, number: int, *, phases: Sequence[Phase]) -> dict[str, Any]:
    """Draw graphs until one has a wrong value, and return how many there were and which that is.

    Where recorded launches cannot be read without a guess, the reference refuses: such graphs are told apart.
    """
    tried: list[TrainingGraph] = []
    refused: list[str] = []

    @seed(number)
    @settings(
        max_examples=examples, phases=phases, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(graph=drawn_graphs())
    def has_eagers_numbers(graph: TrainingGraph) -> None:
        tried.append(graph)
        try:
            run = measure(graph, mode="recorded", room=WIDE if graph.dtype == "float32" else WIDE_HALF)
        except (AlignmentError, PlanError) as fault:
            refused.append(f"{fault}\n{describe(graph)}")
            return
        assert not run.wrong, "\n".join([describe(graph), *map(run.tell, run.wrong)])

    failure = None
    try:
        has_eagers_numbers()
    except Exception as fault:  # whatever goes wrong in a drawn graph is what the caller is to show
        failure = f"{type(fault).__name__}: {fault}"
    return {"examples": len(tried), "refused": refused, "failure": failure}


def _measure(graph: TrainingGraph) -> Any:
    return measure(graph, mode="recorded")


def _sum_wrong_axis(compute: operations.Compute) -> operations.Compute:
    def wrong(instruction: Instruction, operands: Sequence[Any]) -> Any:
        x, dims, _ = operands
        turned = [(axis + 1) % x.dim() for axis in dims] if x.dim() > 1 else dims
        found = compute(instruction, [x, turned, True])
        right = compute(instruction, operands)
        return found.expand(x.shape).flatten()[: right.numel()].reshape(right.shape)

    return wrong


def _no_rounding(compute: operations.Compute) -> operations.Compute:
    def wrong(instruction: Instruction, operands: Sequence[Any]) -> Any:
        return operands[0] if instruction.dtype in ("bfloat16", "float16") else compute(instruction, operands)

    return wrong


FAULTS: dict[str, tuple[str, Callable[[operations.Compute], operations.Compute], tuple[str, ...]]] = {
    "a sum over the wrong axis": ("sum", _sum_wrong_axis, ("softmax", "moving_average", "layer_norm")),
    "a cast that does not round": ("cast", _no_rounding, ("half_between",)),
}


def _measure_planted(name: str) -> dict[str, Sequence[str]]:
    operation, plant, graphs = FAULTS[name]
    with planted(operation, plant):
        return measure_all(CATALOGUE[graph] for graph in graphs)


@contextlib.contextmanager
def planted(operation: str, plant: Callable[[operations.Compute], operations.Compute]) -> Iterator[None]:
    """Have the reference compute one operation wrongly while this is open."""
    find = operations.find

    def find_planted(name: str) -> operations.Compute:
        return plant(find(name)) if name == operation else find(name)

    operations.find = find_planted
    try:
        yield
    finally:
        operations.find = find


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int((sys.argv[3:4] or ["60"])[0]), int((sys.argv[4:5] or ["0"])[0]))
