"""What is run and compared: a program as it is, or with its stages tapped."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from verify.divergence.graph_taps import Traced, UntraceableError, plan_nodes, trace
from verify.divergence.program import Program
from verify.divergence.report import Kind
from verify.divergence.runs import copy_tensors, leaves_of, make_tangents, same_randomness
from verify.divergence.taps import Recorder, Tap

By = Literal["auto", "modules", "nodes"]
Key = tuple[Kind, str]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A function of tensors to run on both sides, and what its values are called.

    `make` gives the function for one run, while it is open. `results` are the names of the results, None for what is
    no number; after them come the values of the `taps`. The tensors are the program's, by `names`, then the probes.
    """

    make: Callable[[], contextlib.AbstractContextManager[Callable[..., Any]]]
    tensors: tuple[Any, ...]
    names: tuple[str, ...]
    results: tuple[str | None, ...]
    taps: tuple[Tap, ...]
    tangents: tuple[Any, ...]

    def name_values(self, run: Any) -> dict[Key, Any]:
        """Return a run's numbers by kind and name, in the order in which they are compared."""
        count = len(self.names)
        outputs, expected = list(run.results), len(self.results) + len(self.taps)
        if len(outputs) != expected:
            raise ValueError(f"{len(outputs)} values came out where {expected} were expected")
        tapped = zip(self.taps, outputs[len(self.results) :], strict=True)
        probed = [one.name for one in self.taps if one.probe is not None]
        gradients = list(zip(probed, run.gradients[count:], strict=True))[::-1]
        named = [pair for pair in zip(self.results, outputs, strict=False) if pair[0] is not None]
        pairs: list[tuple[Any, Any]] = [
            *((("value", one.name), value) for one, value in tapped),
            *((("result", name), value) for name, value in named),
            *((("input", name), value) for name, value in zip(self.names, run.inputs, strict=False)),
            *((("gradient", name), value) for name, value in gradients),
            *((("input gradient", name), value) for name, value in zip(self.names, run.gradients, strict=False)),
        ]
        return {key: _on_cpu(value) for key, value in pairs if value is not None}


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A tapped subject, the graph whose nodes are tapped if it is one, and what could not be done."""

    subject: Subject
    traced: Traced | None
    notes: tuple[str, ...]


def subject_of(program: Program, seed: int) -> Subject:
    """Return a program as it is. What it raises, eager raises."""
    tree = importlib.import_module("torch.utils._pytree")
    with same_randomness(seed):
        found = tree.tree_flatten_with_path(program.make(None)(*copy_tensors(program.tensors)))[0]
    results = [leaf for _, leaf in found]
    return Subject(
        make=lambda: contextlib.nullcontext(program.make(None)),
        tensors=program.tensors,
        names=program.names,
        results=tuple(tree.keystr(path) if _is_number(leaf) else None for path, leaf in found),
        taps=(),
        tangents=tuple(make_tangents(results, seed)),
    )


def plan_stages(program: Program, subject: Subject, by: By, seed: int) -> Planned:
    """Tap a program's stages: submodules and named values, or nodes where there are none or they are asked for."""
    planned = None if by == "nodes" else _plan_recorded(program, subject, seed)
    if planned is not None or by == "modules":
        return planned or Planned(subject=subject, traced=None, notes=("there is no submodule and no named tap",))
    try:
        traced = trace(program.make(None), program.tensors)
        return _plan_nodes(traced, subject, seed)
    except UntraceableError as fault:
        return Planned(subject=subject, traced=None, notes=(f"no nodes to tap: {fault}",))


def _plan_recorded(program: Program, subject: Subject, seed: int) -> Planned | None:
    """Tap submodules and named values; None where there are none."""
    learning = Recorder()
    with same_randomness(seed), learning.listen():
        program.make(learning)(*copy_tensors(program.tensors))
    taps, probes = learning.plan(), learning.make_probes()

    @contextlib.contextmanager
    def make() -> Iterator[Callable[..., Any]]:
        recorder = Recorder(taps)
        with recorder.listen():
            yield program.make(recorder)

    tapped = Subject(
        make=make,
        tensors=(*program.tensors, *probes),
        names=subject.names,
        results=subject.results,
        taps=taps,
        tangents=subject.tangents,
    )
    return Planned(subject=tapped, traced=None, notes=()) if taps else None


def _plan_nodes(traced: Traced, subject: Subject, seed: int) -> Planned:
    """Tap the nodes. A traced graph has the results that are tensors, and not those that are the same twice."""
    with same_randomness(seed):
        tapped = plan_nodes(traced, subject.tensors)
    given = copy_tensors([*subject.tensors, *tapped.probes])
    with same_randomness(seed):
        results = leaves_of(tapped.function(*given)[0])
    tangents = make_tangents(results, seed)
    same = len(results) == len(subject.results)
    aligned = [one.shape for one in tangents] == [one.shape for one in subject.tangents]
    notes = () if aligned else ("the traced graph has other results than the function, and gradients of its own",)
    made = Subject(
        make=lambda: contextlib.nullcontext(tapped.function),
        tensors=(*subject.tensors, *tapped.probes),
        names=subject.names,
        results=subject.results if same else (None,) * len(results),
        taps=tapped.taps,
        tangents=subject.tangents if aligned else tuple(tangents),
    )
    return Planned(subject=made, traced=traced, notes=notes)


def _is_number(value: Any) -> bool:
    return isinstance(value, (importlib.import_module("torch").Tensor, bool, int, float))


def _on_cpu(value: Any) -> Any:
    torch = importlib.import_module("torch")
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
