"""What `first_difference` returns: plain values that print as a few aligned lines and go into JSON as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from verify.numbers import Difference

Kind = Literal["value", "result", "input", "gradient", "input gradient"]
CauseKind = Literal[
    "rounding boundary", "order of reduction", "operations", "unexplained", "nearer to FP64", "fault", "unknown"
]

SHOWN_STEPS = ("0", "1", "2", "3-4", "5-8", "nonfinite")


@dataclass(frozen=True, kw_only=True)
class Cause:
    """What a difference is of.

    "rounding boundary": the compiled value is what eager computes where it keeps a 16-bit intermediate in FP32.
    "order of reduction": it is within what another order of the terms of the sums changes. "operations": it is within
    what contraction and other approximations of functions change. "unexplained": it is none of these, and within its
    gate. "nearer to FP64": it is none of these, and beyond it, but no further from FP64 than eager's own value, up to
    the usual factor. "fault": it is none of these. "unknown": the shadow that would tell could not be computed.
    The errors are relative L2 to eager in FP64, None where that has no value.
    """

    kind: CauseKind
    detail: str
    eager_error: float | None = None
    compiled_error: float | None = None


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One value on both sides: a tapped "value" or its "gradient", a "result", an "input" afterwards or its gradient.

    `cause` is there where it was asked for. `as_near` tells that both sides are as near to FP64, where they differ by
    more than the gate of their type.
    """

    kind: Kind
    name: str
    difference: Difference
    cause: Cause | None = None
    as_near: bool = False

    @property
    def within(self) -> bool:
        """Whether the difference is within its gate, or eager is no nearer to FP64 than the compiled value."""
        return self.difference.within or self.as_near

    @property
    def title(self) -> str:
        """The name with what it is of."""
        return title_of(self.kind, self.name)


def title_of(kind: str, name: str) -> str:
    """Name a value with what it is: `attention`, `result[0]`, `old afterwards`, `gradient of x`."""
    before = {"value": "", "result": "result", "gradient": "gradient of ", "input gradient": "gradient of "}
    return f"{name} afterwards" if kind == "input" else before[kind] + name


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One side that raised: "eager" or "compiled", in which run, and the error's class and first line."""

    side: Literal["eager", "compiled"]
    run: str
    error: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """Eager against compiled.

    `ends` are the results, the inputs afterwards and the gradients, without any tap. `stages` are the values in the
    order in which eager computes them, gradients after results and backwards, with taps; they end with the same ends.
    `isolated` are the stages each compiled by itself on eager's inputs. `first` is the first stage beyond its gate, and
    `earliest` the first whose bits differ. Where all stages are within and an end is not, `first` is that end.
    `disagreements` say where the taps have changed what comes out; `notes` what was left out, and why.
    """

    ends: tuple[Stage, ...]
    stages: tuple[Stage, ...]
    isolated: tuple[Stage, ...]
    first: Stage | None
    earliest: Stage | None
    disagreements: tuple[str, ...]
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether both sides ran and everything is within its gate, or as near to FP64 as eager is."""
        everything = (*self.ends, *self.stages, *self.isolated)
        return not self.failures and bool(everything) and all(stage.within for stage in everything)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, without NaN."""
        return {**asdict(self), "ok": self.ok}

    def __str__(self) -> str:
        lines = [self._headline(), *_list_failures(self.failures)]
        for title, stages in (
            ("without taps", self.ends),
            ("with taps", self.stages),
            ("each by itself", self.isolated),
        ):
            if stages:
                lines += ["", f"{title}:", *_tabulate(stages)]
        for title, sentences in (("the taps change what comes out", self.disagreements), ("notes", self.notes)):
            if sentences:
                lines += ["", f"{title}:", *(f"  {sentence}" for sentence in sentences)]
        return "\n".join(lines)

    def _headline(self) -> str:
        if self.first is not None:
            cause = self.first.cause
            return f"first difference: {_describe(self.first)}" + (f"\n  {_explain(cause)}" if cause else "")
        if self.failures:
            return " and ".join(dict.fromkeys(failure.side for failure in self.failures)) + " failed"
        if self.earliest is not None:
            cause = self.earliest.cause
            near = any(stage.as_near for stage in (*self.ends, *self.stages, *self.isolated))
            gates = "within the gates or as near to FP64" if near else "within the gates"
            line = f"{gates}; the bits differ first in {_describe(self.earliest)}"
            return line + (f"\n  {_explain(cause)}" if cause else "")
        return "no difference: all bits are equal"


def _list_failures(failures: Sequence[Failure]) -> list[str]:
    return [f"{failure.side} failed ({failure.run}): {failure.error}" for failure in failures]


def _describe(stage: Stage) -> str:
    found, shape = stage.difference, ", ".join(map(str, stage.difference.shape))
    line = f"{stage.title}, {found.dtype} ({shape})"
    if found.mismatch is not None:
        return f"{line}: {found.mismatch}"
    place = f" (at {list(found.worst)})" if found.worst else ""
    largest = f"max abs {_show(found.maximum_absolute_error)}{place}"
    return f"{line}\n  {largest}, relative L2 {_show(found.relative_l2)}, ULPs {_steps(found)}"


def _explain(cause: Cause) -> str:
    known = cause.eager_error is not None and cause.compiled_error is not None
    errors = f"; off FP64 by {cause.eager_error:.2g} (eager), {cause.compiled_error:.2g} (compiled)" if known else ""
    return f"{cause.kind}: {cause.detail}{errors}"


def _tabulate(stages: Sequence[Stage]) -> list[str]:
    head = ("", "stage", "dtype", "shape", "max abs", "rel L2", "ULPs", "cause")
    rows = [head, *(_cells(stage) for stage in stages)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return [f"  {line}".rstrip() for line in lines]


def _cells(stage: Stage) -> tuple[str, ...]:
    found = stage.difference
    mark = "=" if found.bit_equal else ("~" if stage.within else "X")
    shape = "x".join(map(str, found.shape)) or "0-d"
    if found.mismatch is not None:
        return (mark, stage.title, found.dtype, shape, "", "", found.mismatch, "")
    numbers = ("", "", "") if found.bit_equal else (_show(found.maximum_absolute_error), _show(found.relative_l2))
    return (mark, stage.title, found.dtype, shape, *numbers[:2], _steps(found), stage.cause.kind if stage.cause else "")


def _steps(found: Difference) -> str:
    if found.bit_equal:
        return ""
    shown = {steps: count for steps, count in found.ulps.items() if steps in SHOWN_STEPS}
    further = sum(found.ulps.values()) - sum(shown.values())
    kinds = [f"{steps}:{count}" for steps, count in shown.items()] + ([f">8:{further}"] if further else [])
    return " ".join(kinds) + ("" if found.nonfinite_equal else " (NaN or infinity elsewhere)")


def _show(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}"
