"""Graphs that keep a sum, a mean or an extreme in an input: metrics, running statistics, exponential averages."""

from __future__ import annotations

from typing import Any

from verify import graphs
from verify.catalogue.values import Input, TrainingGraph

ROWS, COLUMNS = 128, 256
SCALAR = Input(shape=(), kind="uniform")
VECTOR = Input(shape=(COLUMNS,), kind="uniform")
X = Input(shape=(ROWS, COLUMNS), kind="uniform")


def carrier(old: Any, x: Any, w: Any) -> Any:
    """A layer that keeps a running mean of its input beside its own work, which that must not touch."""
    old.copy_(old + (x * 2).mean().detach())
    return x * w


def weighed_by_accumulator(old: Any, x: Any) -> Any:
    """The result needs the accumulator's new value."""
    old.copy_(old + x.sum())
    return x * old


def exponential_average(e: Any, p: Any) -> None:
    """The average of parameters over the steps: no reduction."""
    e.copy_(e * 0.999 + p * 0.001)


def extremes(low: Any, high: Any, x: Any) -> None:
    """An observer's range with a margin, by which an extreme in the place of the old range shows."""
    low.copy_(low.minimum(x.amin() + 4.5))
    high.copy_(high.maximum(x.amax() - 2))


def summed_by_column(total: Any, count: Any, x: Any) -> None:
    """A counter and a sum by column."""
    total.add_(x.sum(0))
    count.add_(x.shape[0])


def summed_by_row(total: Any, x: Any) -> Any:
    """Reductions along the last axis need no second stage."""
    total.add_(x.sum(1))
    return total * 2


def squared_norm(total: Any, x: Any, y: Any) -> Any:
    """The squares of two gradients added to one scalar."""
    total.add_((x * x).sum() + (y * y).sum())
    return x / (total.sqrt() + 1e-6)


def accumulated_through_view(old: Any, x: Any) -> None:
    """Only half of the accumulator is written, by a view of it."""
    half = old[:COLUMNS]
    half.copy_(half + x.sum(0))


def gathered(total: Any, index: Any, x: Any) -> Any:
    """Rows are added to those that an index names, and read back by it."""
    total.index_add_(0, index, x)
    return total[index] * 2


def scattered(total: Any, index: Any, x: Any) -> Any:
    """Elements are added to those that an index names, beside a sum of them all."""
    total.scatter_add_(0, index, x * x)
    return total.sum()


GRAPHS = (
    *(
        TrainingGraph(
            name=graph.name,
            function=graph.function,
            inputs={name: Input(shape=shape, kind="uniform") for name, shape in graph.shapes.items()},
            mutated=tuple(name for name in graph.shapes if name not in ("x", "z")),
            on_base="wrong",
            proof=graph.name in ("two_accumulators", "moving_average"),
        )
        for graph in graphs.ACCUMULATING
    ),
    TrainingGraph(
        name="plain_sum",
        function=graphs.plain_sum,
        inputs={"dst": SCALAR, "x": Input(shape=(ROWS, COLUMNS), kind="ramp")},
        mutated=("dst",),
        proof=True,
    ),
    TrainingGraph(
        name="carrier",
        function=carrier,
        inputs={
            "old": SCALAR,
            "x": Input(shape=(ROWS, COLUMNS), kind="uniform", gradient=True),
            "w": Input(shape=(COLUMNS,), gradient=True),
        },
        mutated=("old",),
        on_base="wrong",
    ),
    TrainingGraph(
        name="weighed_by_accumulator",
        function=weighed_by_accumulator,
        inputs={"old": SCALAR, "x": X},
        mutated=("old",),
        proof=True,
        halves=("bfloat16",),
    ),
    TrainingGraph(
        name="exponential_average",
        function=exponential_average,
        inputs={"e": Input(shape=(64, 256)), "p": Input(shape=(64, 256))},
        mutated=("e",),
        proof=True,
        halves=("float16", "bfloat16"),
    ),
    TrainingGraph(
        name="extremes",
        function=extremes,
        inputs={"low": SCALAR, "high": SCALAR, "x": Input(shape=(ROWS, COLUMNS))},
        mutated=("low", "high"),
        on_base="wrong",
    ),
    TrainingGraph(
        name="summed_by_column",
        function=summed_by_column,
        inputs={"total": VECTOR, "count": Input(shape=(), kind="one", dtype="int64"), "x": X},
        mutated=("total", "count"),
        on_base="wrong",
    ),
    TrainingGraph(
        name="summed_by_row",
        function=summed_by_row,
        inputs={"total": Input(shape=(ROWS,), kind="uniform"), "x": X},
        mutated=("total",),
        halves=("bfloat16",),
    ),
    TrainingGraph(
        name="squared_norm",
        function=squared_norm,
        inputs={"total": SCALAR, "x": Input(shape=(64, 256)), "y": Input(shape=(32, 128))},
        mutated=("total",),
    ),
    TrainingGraph(
        name="accumulated_through_view",
        function=accumulated_through_view,
        inputs={"old": Input(shape=(2 * COLUMNS,), kind="uniform"), "x": X},
        mutated=("old",),
    ),
    TrainingGraph(
        name="gathered",
        function=gathered,
        inputs={
            "total": Input(shape=(32, 64)),
            "index": Input(shape=(100,), kind="index", below=32),
            "x": Input(shape=(100, 64)),
        },
        mutated=("total",),
        proof=True,
    ),
    TrainingGraph(
        name="scattered",
        function=scattered,
        inputs={
            "total": Input(shape=(32, 64)),
            "index": Input(shape=(100, 64), kind="index", below=32),
            "x": Input(shape=(100, 64)),
        },
        mutated=("total",),
    ),
)
