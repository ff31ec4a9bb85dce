"""Measure a training graph: its compiled code's numbers against eager's and against FP64.

    measured = measure(graph, mode="recorded")      # on the host sysroot, by reference
    measured = measure(graph, mode="device")        # compiled and run on an NPU, against eager on the CPU
    measured.wrong                                  # names of the values that differ beyond what their dtype allows
    measured.rows(), measured.program()             # evidence, as plain values

Every output, every input after the run and every gradient is a value. It is compared with eager's of the same dtype,
and with what eager computes in FP64, rounded to the dtype. A value is wrong when it is beyond the gate of both, and
further from FP64 than eager may itself be: where compiled code keeps FP32 between two operators that eager rounds to
BF16, it may be far from eager and be the better one; where FP64 has another result altogether (an index that a tie
decides), eager's is right by definition; and where eager in half precision is beyond the gate of FP64, so may others.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verify import host, kernels
from verify.catalogue.values import TrainingGraph, make_inputs
from verify.generated import FALLBACK, GeneratedRun, Kernel, run_generated
from verify.numbers import Difference, Gate, compare, gate_of

WORSE = 2.0
DEVICE = "device"
"""The mode of what was computed by an NPU; the others are run_generated's hazards."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Values:
    """What one run of a graph gave, by names such as "result 0", "old" and "gradient of x", in order."""

    results: Sequence[Any]
    inputs: Sequence[Any]
    gradients: Sequence[Any]

    def named(self, graph: TrainingGraph) -> dict[str, Any]:
        """Return the tensors by name; inputs that the graph does not write stand there too, for they must stay."""
        gradients = {f"gradient of {name}": one for name, one in zip(graph.inputs, self.gradients, strict=True)}
        found = {
            **{f"result {number}": one for number, one in enumerate(self.results)},
            **dict(zip(graph.inputs, self.inputs, strict=True)),
            **gradients,
        }
        return {name: one for name, one in found.items() if hasattr(one, "untyped_storage")}


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """One graph's numbers. `differences` holds, for each value by name, the difference from each reference.

    `of_eager` is how far eager's own values are from FP64's. `values` and `expected` are the tensors found and eager's.
    `listings` are the stages and disassembly of each kernel that was built; `seconds` those of compiling and running.
    `read_only` names the inputs that eager leaves as they were: they are compared, but nobody computed them.
    """

    graph: str
    mode: str
    values: Mapping[str, Any]
    expected: Mapping[str, Any]
    differences: Mapping[str, Mapping[str, Difference]]
    of_eager: Mapping[str, Difference]
    kernels: tuple[Kernel, ...]
    sources: tuple[str, ...]
    listings: tuple[str, ...]
    seconds: Mapping[str, float]
    read_only: frozenset[str] = frozenset()

    @property
    def wrong(self) -> tuple[str, ...]:
        """The values that are beyond the gate of every reference, and further from FP64 than eager may be."""
        return tuple(name for name in self.differences if not self._is_right(name))

    def _is_right(self, name: str) -> bool:
        by = self.differences[name]
        return any(one.within for one in by.values()) or is_no_worse(by["float64"], self.of_eager[name])

    @property
    def unjudged(self) -> tuple[str, ...]:
        """Why its numbers are not those of the real launches, by kernel; none where they are."""
        return tuple(f"{self.graph}: {one.name}: {reason}" for one in self.kernels for reason in one.unjudged)

    @property
    def told_kernels(self) -> str:
        """How many kernels it ran, those that fell back to FX apart."""
        return tell_kernels([self])

    @property
    def bit_equal(self) -> bool:
        """Whether every value has eager's bits."""
        return all(by["eager"].bit_equal for by in self.differences.values())

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of evidence "numbers"; those of inputs that are only read say that nobody wrote them."""
        found = [
            difference.row(graph=self.graph, mode=self.mode, value=name, reference=reference)
            for name, by in self.differences.items()
            for reference, difference in by.items()
        ]
        of_eager = [
            difference.row(graph=self.graph, mode="eager", value=name, reference="float64")
            for name, difference in self.of_eager.items()
        ]
        unwritten = {"written": False}
        return [row | (unwritten if row["value"] in self.read_only else {}) for row in (*found, *of_eager)]

    def program(self) -> dict[str, Any]:
        """Return the row of evidence "programs"."""
        listed = [{"name": one.name, "type": one.type, "launches": list(one.launches)} for one in self.kernels]
        return {"graph": self.graph, "kernels": listed, "seconds": dict(self.seconds)}

    def tell(self, name: str) -> str:
        """Say how one value differs from eager's."""
        return f"{self.graph} ({self.mode}): {name} is {self.differences[name]['eager']}"


def tell_kernels(runs: Sequence[Measured]) -> str:
    """Say how many DVM kernels ran, and how many of torch's FX graphs in the place of one."""
    fallbacks = sum(kernel.type == FALLBACK for run in runs for kernel in run.kernels)
    own = sum(len(run.kernels) for run in runs) - fallbacks
    return f"{own} DVM kernels" + (f" and {fallbacks} that fell back to FX" if fallbacks else "")


def is_no_worse(difference: Difference, of_eager: Difference) -> bool:
    """Tell whether a value's errors are at most `WORSE` times eager's: another order of as many roundings."""
    found = (difference.maximum_absolute_error, difference.relative_l2)
    allowed = (of_eager.maximum_absolute_error, of_eager.relative_l2)
    return difference.nonfinite_equal and all(
        one is not None and other is not None and one <= WORSE * other
        for one, other in zip(found, allowed, strict=True)
    )


def measure(graph: TrainingGraph, *, mode: str, seed: int = 0, room: int = 1) -> Measured:
    """Compile a graph, run it in a mode, and compare what it gave with eager and FP64.

    `room` widens the gates that many times, for graphs of which nobody knows how their roundings add up.
    """
    inputs = make_inputs(graph, seed=seed)
    tangents = make_tangents(graph, inputs)
    expected = {name: run(graph, inputs, tangents).named(graph) for name, run in _REFERENCE_RUNS.items()}
    found, run, listings, seconds = _run(graph, inputs, tangents, mode)
    values = found.named(graph)
    return Measured(
        graph=graph.name,
        mode=mode,
        values=values,
        expected=expected["eager"],
        differences={name: _compare(name, value, expected, room) for name, value in values.items()},
        of_eager={name: _compare(name, value, expected, room)["float64"] for name, value in expected["eager"].items()},
        kernels=run.kernels,
        sources=run.sources,
        listings=listings,
        seconds=seconds,
        read_only=_read_only(graph, inputs, expected["eager"]),
    )


def _read_only(graph: TrainingGraph, inputs: Sequence[Any], after: Mapping[str, Any]) -> frozenset[str]:
    """Name the inputs that have the same bits after a run."""
    given = zip(graph.inputs, inputs, strict=True)
    return frozenset(name for name, one in given if name in after and compare(after[name], one).bit_equal)


def evidence_of(runs: Sequence[Measured]) -> dict[str, Any]:
    """Return the evidence of runs: rows of numbers, and the programs that gave them."""
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in (row for run in runs for row in run.rows()):
        rows.setdefault(tuple(row[key] for key in ("graph", "mode", "value", "reference")), row)
    unjudged = {"unjudged": list(tell_unjudged(runs))} if any(run.unjudged for run in runs) else {}
    return {"numbers": list(rows.values()), "programs": [run.program() for run in runs], **unjudged}


def tell_unjudged(runs: Sequence[Measured]) -> tuple[str, ...]:
    """Say of which graphs the host's numbers are not those of the real launches, and why."""
    return tuple(dict.fromkeys(reason for run in runs for reason in run.unjudged))


def keep_program(measured: Measured, folder: Path, check: str) -> None:
    """Write `<check>-<graph>.py`, the generated code, and `.das`, the kernels' stages and disassembly."""
    stem = folder / f"{check}-{measured.graph}"
    stem.with_suffix(".py").write_text("\n".join(measured.sources), encoding="utf-8")
    stem.with_suffix(".das").write_text("\n".join(measured.listings), encoding="utf-8")


def run_eager(graph: TrainingGraph, inputs: Sequence[Any], tangents: Sequence[Any]) -> Values:
    """Run a graph's function on copies of CPU tensors."""
    return _run_function(graph, [_copy(one) for one in inputs], tangents)


def run_in_float64(graph: TrainingGraph, inputs: Sequence[Any], tangents: Sequence[Any]) -> Values:
    """Run a graph's function on FP64 copies."""
    return _run_function(graph, [_widen(one) for one in inputs], [_widen(one) for one in tangents])


_REFERENCE_RUNS = {"eager": run_eager, "float64": run_in_float64}


def _run_function(graph: TrainingGraph, given: Sequence[Any], tangents: Sequence[Any]) -> Values:
    results = _flatten(graph.function(*given))
    return Values(results=results, inputs=given, gradients=_differentiate(results, given, tangents))


def _differentiate(results: Sequence[Any], given: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    torch = importlib.import_module("torch")
    wanted = [one for one in given if one.requires_grad and one.is_leaf]
    sources = [one for one in results if one.requires_grad]
    if not wanted or not sources:
        return [None] * len(given)
    found = dict(zip(map(id, wanted), torch.autograd.grad(sources, wanted, tangents, allow_unused=True), strict=True))
    return [found.get(id(one)) for one in given]


def make_tangents(graph: TrainingGraph, inputs: Sequence[Any]) -> list[Any]:
    """Return random gradients of those results that have one: ones would cancel in a softmax."""
    torch = importlib.import_module("torch")
    generator = torch.Generator().manual_seed(len(graph.name))
    results = _flatten(graph.function(*(_copy(one) for one in inputs)))
    return [torch.randn(one.shape, generator=generator).to(one.dtype) for one in results if one.requires_grad]


def _compare(name: str, value: Any, expected: Mapping[str, Mapping[str, Any]], room: int) -> dict[str, Difference]:
    dtype = expected["eager"][name].dtype
    usual = gate_of(dtype)
    gate = Gate(relative_l2=usual.relative_l2 * room, ulps=usual.ulps * room)
    return {reference: compare(value, tensors[name].to(dtype), gate=gate) for reference, tensors in expected.items()}


def _run(
    graph: TrainingGraph, inputs: Sequence[Any], tangents: Sequence[Any], mode: str
) -> tuple[Values, Any, tuple[str, ...], dict[str, float]]:
    began = time.monotonic()
    with kernels.built() as built, _timed_calls() as spent:
        if mode == DEVICE:
            run = run_on_device(graph, inputs, tangents)
        else:
            run = run_generated(graph.function, *inputs, hazards=mode, tangents=tangents or None, dynamic=graph.dynamic)
    ran = sum(spent)
    seconds = {"compile": round(time.monotonic() - began - ran, 3), "run": round(ran, 3)}
    listings = tuple(f"{one.__name__}\n{one.kobj.dump()}\n{one.kobj.das()}" for one in built)
    return Values(results=run.results, inputs=run.inputs, gradients=run.gradients), run, listings, seconds


def run_on_device(graph: TrainingGraph, inputs: Sequence[Any], tangents: Sequence[Any]) -> GeneratedRun:
    """Compile a graph for npu and run it there; its tensors come back to the CPU."""
    torch = importlib.import_module("torch")
    torch._dynamo.reset()
    given = [one.detach().npu().requires_grad_(one.requires_grad) for one in inputs]
    with host.generated_code() as sources, kernels.built() as built:
        results = _flatten(torch.compile(graph.function, fullgraph=True, dynamic=graph.dynamic)(*given))
        gradients = _differentiate(results, given, [one.npu() for one in tangents])
        torch.npu.synchronize()
    return GeneratedRun(
        hazards=DEVICE,
        results=tuple(one.detach().cpu() for one in results),
        inputs=tuple(one.detach().cpu() for one in given),
        gradients=tuple(None if one is None else one.cpu() for one in gradients),
        kernels=tuple(Kernel(one.__name__.removesuffix("_build"), "") for one in built),
        sources=tuple(sources),
    )


@contextlib.contextmanager
def _timed_calls() -> Iterator[list[float]]:
    """Collect the seconds that each call of generated code takes."""
    cache = importlib.import_module("torch._inductor.codecache").PyCodeCache
    load = cache.load_by_key_path
    spent: list[float] = []

    def load_timed(*args: Any, **options: Any) -> Any:
        module = load(*args, **options)
        if hasattr(module, "call"):
            module.call = _timed(module.call, spent)
        return module

    cache.load_by_key_path = load_timed
    try:
        yield spent
    finally:
        cache.load_by_key_path = load


def _timed(call: Any, spent: list[float]) -> Any:
    def timed(*args: Any, **options: Any) -> Any:
        began = time.monotonic()
        try:
            return call(*args, **options)
        finally:
            spent.append(time.monotonic() - began)

    return timed


def _flatten(results: Any) -> list[Any]:
    leaves = importlib.import_module("torch.utils._pytree").tree_leaves(results)
    return [one for one in leaves if hasattr(one, "untyped_storage")]


def _copy(one: Any) -> Any:
    return copy.deepcopy(one.detach()).requires_grad_(one.requires_grad)


def _widen(one: Any) -> Any:
    return (one.detach().double() if one.is_floating_point() else one.clone()).requires_grad_(one.requires_grad)
