"""Run a subject on both sides and compare what came out, value by value."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from verify.divergence.causes import Explainer
from verify.divergence.graph_taps import first_line
from verify.divergence.program import Program
from verify.divergence.report import Failure, Stage, title_of
from verify.divergence.runs import run_eager, same_randomness
from verify.divergence.shadows import Shadow, World, run_shadow
from verify.divergence.subjects import Key, Subject
from verify.numbers import Gate, compare

Value = TypeVar("Value")
Side = Literal["eager", "compiled"]
Explain = Literal["first", "all", "nothing"]
Gates = Gate | Mapping[str, Gate] | None

NARROW = ("float16", "bfloat16")
"""The types that a kernel may keep in FP32 between its operations."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The stages of a subject, and the values on both sides."""

    stages: tuple[Stage, ...]
    eager: Mapping[Key, Any]
    compiled: Mapping[Key, Any]


@dataclass(kw_only=True)
class Comparison:
    """How both sides are run and compared; what failed on the way, and what is to be said, gathers here."""

    run: Callable[..., Any]
    gates: Gates
    explain: Explain
    seed: int
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def compare_tapped(self, subject: Subject, ends: Compared | None) -> Compared | None:
        """Compare a tapped subject. Where a side fails with taps alone, that is a note, and no word on the program."""
        failed, what = len(self.failures), "with taps"
        compared = self.compare(subject, what)
        if ends is not None and compared is None:
            self.excuse_since(failed, "the taps cannot be made, so that no stages are compared")
        return compared

    def excuse_since(self, failed: int, what: str) -> None:
        """Make notes of the failures after the first `failed`."""
        self.notes.extend(f"{what}: {one.side}: {one.error}" for one in self.failures[failed:])
        del self.failures[failed:]

    def compare(self, subject: Subject, what: str) -> Compared | None:
        """Run both sides, each also where the other fails; None where one did."""
        eager = self.attempt("eager", what, lambda: self._run(run_eager, subject))
        before = _count_graphs()
        compiled = self.attempt("compiled", what, lambda: self._run(self.run, subject))
        if compiled is not None and _count_graphs() == before:
            self.notes.append(f"{what}: Dynamo has compiled no graph, so that eager was compared with itself")
        if eager is None or compiled is None:
            return None
        self._note_missing(eager, compiled, what)
        keys = [key for key in eager if key in compiled and not _is_untouched(key, subject, eager, compiled)]
        stages = []
        for key in keys:
            difference = compare(compiled[key], eager[key], gate=self._find_gate(key, eager[key]))
            stages.append(Stage(kind=key[0], name=key[1], difference=difference))
        explainer = self._make_explainer(subject, keys, _find_settled(subject, stages))
        for number in self._find_excusable(stages, eager):
            key = keys[number]
            as_near = explainer.is_as_near(key, compiled[key], eager[key])
            stages[number] = replace(stages[number], as_near=as_near)
        for number in self._find_asked(stages):
            key, within = keys[number], stages[number].difference.within
            cause = explainer.explain(key, compiled[key], eager[key], within=within)
            stages[number] = replace(stages[number], cause=cause)
        if unknown := explainer.unknown_operators():
            self.notes.append(f"causes rest on eager's own values for {', '.join(unknown)}")
        return Compared(stages=tuple(stages), eager=eager, compiled=compiled)

    def _find_asked(self, stages: Sequence[Stage]) -> list[int]:
        """Return the numbers of the stages whose cause is asked for."""
        differ = [number for number, stage in enumerate(stages) if not stage.difference.bit_equal]
        near = [number for number in differ if stages[number].as_near]
        beyond = [number for number in differ if not stages[number].within]
        asked = {"nothing": [], "first": [*differ[:1], *near[:1], *beyond[:1]], "all": differ}[self.explain]
        return sorted(set(asked))

    def _find_excusable(self, stages: Sequence[Stage], eager: Mapping[Key, Any]) -> list[int]:
        """Return the numbers of the stages beyond the gate of their type: FP64 may tell that eager is no better.

        A gate of the caller's own is the caller's word.
        """
        if self.explain == "nothing":
            return []
        keys: list[Key] = [(stage.kind, stage.name) for stage in stages]
        beyond = [number for number, stage in enumerate(stages) if not stage.difference.within]
        return [number for number in beyond if self._find_gate(keys[number], eager[keys[number]]) is None]

    def attempt(self, side: Side, what: str, act: Callable[[], Value]) -> Value | None:
        """Do something that one side's code may refuse, and note its error."""
        try:
            return act()
        except Exception as fault:  # the module's own code and the compiler run here: any error is an answer
            self.failures.append(Failure(side=side, run=what, error=first_line(fault)))
            return None

    def try_compiled(self, program: Program) -> None:
        """See whether what eager refuses also fails compiled."""
        with same_randomness(self.seed):
            self.attempt("compiled", "without taps", lambda: self.run(program.make(None), *program.tensors))

    def _run(self, run: Callable[..., Any], subject: Subject) -> dict[Key, Any]:
        with same_randomness(self.seed), subject.make() as function, warnings.catch_warnings():
            # Dynamo instantiates the taps' autograd function when it traces it, which torch warns of.
            warnings.filterwarnings("ignore", ".*should not be instantiated", DeprecationWarning)
            return subject.name_values(run(function, *subject.tensors, tangents=subject.tangents))

    def _make_explainer(self, subject: Subject, keys: list[Key], settled: frozenset[int]) -> Explainer:
        def shadow(world: World) -> Shadow:
            with same_randomness(self.seed), subject.make() as function:
                return run_shadow(function, subject.tensors, subject.tangents, world)

        def pick(found: Shadow) -> dict[Key, Any]:
            values = subject.name_values(found.run)
            return {key: values[key] for key in keys if key in values}

        return Explainer(shadow=shadow, values=pick, taps=[one.name for one in subject.taps], settled=settled)

    def _find_gate(self, key: Key, expected: Any) -> Gate | None:
        if self.gates is None or isinstance(self.gates, Gate):
            return self.gates
        names = (title_of(*key), key[1], str(expected.dtype).removeprefix("torch."))
        return next((self.gates[name] for name in names if name in self.gates), None)

    def _note_missing(self, eager: Mapping[Key, Any], compiled: Mapping[Key, Any], what: str) -> None:
        for key in eager.keys() ^ compiled.keys():
            side: Side = "compiled" if key in eager else "eager"
            self.failures.append(Failure(side=side, run=what, error=f"there is no {title_of(*key)}"))


def _find_settled(subject: Subject, stages: Sequence[Stage]) -> frozenset[int]:
    """Return the numbers of the taps that have the same bits, in a type that no kernel keeps wider for itself."""
    differences = {stage.name: stage.difference for stage in stages if stage.kind == "value"}
    equal = {name for name, found in differences.items() if found.bit_equal and found.dtype not in NARROW}
    return frozenset(number for number, one in enumerate(subject.taps) if one.name in equal)


def _is_untouched(key: Key, subject: Subject, eager: Mapping[Key, Any], compiled: Mapping[Key, Any]) -> bool:
    """Tell whether a value is an input that neither side has changed."""
    if key[0] != "input":
        return False
    before = subject.tensors[subject.names.index(key[1])].detach().cpu()
    return compare(eager[key], before).bit_equal and compare(compiled[key], before).bit_equal


def _count_graphs() -> int:
    counters = importlib.import_module("torch._dynamo.utils").counters
    return int(counters["stats"]["unique_graphs"])
