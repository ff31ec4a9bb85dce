"""Small training graphs that update an input in place beside a reduction.

float32 throughout. The unpatched DVM backend of torch_npu 2.13.0 loses an input of each graph in ACCUMULATING, as its
recorded launches show, and is right in PLAIN_SUM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

ROWS, COLUMNS = 128, 256
X = (ROWS, COLUMNS)


@dataclass(frozen=True)
class Graph:
    """A function with the shapes of its parameters, by name and in their order."""

    name: str
    function: Callable[..., Any]
    shapes: Mapping[str, tuple[int, ...]]


def running_mean(old: Any, x: Any) -> None:
    """The shape in which the fault was found: gradient norms and losses kept as running sums."""
    old.copy_(old + (x * 2).mean().detach())


def two_accumulators(a: Any, b: Any, x: Any) -> None:
    """Each reduction is parked in its own accumulator."""
    a.copy_(a + x.sum())
    b.copy_(b * 2 + x.amax())


def moving_average(e: Any, x: Any) -> None:
    """The statistics of a normalization layer: a vector, reduced over the first axis."""
    e.copy_(e * 0.9 + x.mean(0) * 0.1)


def weighted_sum(dst: Any, x: Any) -> None:
    """The input is read before the reduction, and filled with zeros before that."""
    dst.copy_((dst * x).sum())


def normalized_step(p: Any, x: Any) -> None:
    """A whole tensor is parked, not only a reduction's result: exp(x) crosses the stages in p."""
    e = x.exp()
    p.copy_(p + e / e.sum())


def through_view(old: Any, z: Any, x: Any) -> None:
    """The reader knows the accumulator by another name, which an operator outside the kernels has returned."""
    old.copy_(x.sum(0) * z + old.as_strided((COLUMNS,), (1,)))


def sibling(old: Any, x: Any) -> Any:
    """The update depends on no reduction and shares only x with them: horizontal fusion."""
    e = x.exp()
    s = e.sum()
    old.copy_(old * e)
    return (x * s).sum()


def plain_sum(dst: Any, x: Any) -> None:
    """The counter-example: dst is overwritten without a look at it, so one kernel is right."""
    dst.copy_(x.sum())


ACCUMULATING = (
    Graph("running_mean", running_mean, {"old": (), "x": X}),
    Graph("two_accumulators", two_accumulators, {"a": (), "b": (), "x": X}),
    Graph("moving_average", moving_average, {"e": (COLUMNS,), "x": X}),
    Graph("weighted_sum", weighted_sum, {"dst": (), "x": X}),
    Graph("normalized_step", normalized_step, {"p": X, "x": X}),
    Graph("through_view", through_view, {"old": (COLUMNS,), "z": (COLUMNS,), "x": X}),
    Graph("sibling", sibling, {"old": X, "x": X}),
)
PLAIN_SUM = Graph("plain_sum", plain_sum, {"dst": (), "x": X})
