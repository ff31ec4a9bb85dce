"""Graphs of an optimizer's step: parameters and their states are written in place."""

from __future__ import annotations

from typing import Any

from verify.catalogue.values import Input, TrainingGraph

MATRIX = Input(shape=(64, 256))
POSITIVE = Input(shape=(64, 256), kind="uniform")


def adamw_step(p: Any, m: Any, v: Any, gradient: Any) -> None:
    """The gradient is scaled by its own norm first."""
    norm = (gradient * gradient).sum().sqrt()
    gradient = gradient * (1 / (norm + 1e-6)).clamp(max=1.0)
    m.copy_(m * 0.9 + gradient * 0.1)
    v.copy_(v * 0.999 + gradient * gradient * 0.001)
    p.copy_(p * (1 - 0.01) - 0.001 * m / (v.sqrt() + 1e-8))


def adamw_corrected(p: Any, m: Any, v: Any, step: Any, gradient: Any) -> None:
    """With the corrections for the first steps, by a counter that is written too."""
    step.add_(1)
    m.lerp_(gradient, 0.1)
    v.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
    size = 0.001 / (1 - 0.9**step)
    p.mul_(1 - 0.01).sub_(size * m / ((v / (1 - 0.999**step)).sqrt() + 1e-8))


def momentum_step(p: Any, m: Any, gradient: Any) -> Any:
    """Nesterov's momentum; the step's length is returned."""
    m.mul_(0.9).add_(gradient)
    step = gradient + 0.9 * m
    p.sub_(0.01 * step)
    return step.square().sum().sqrt()


def clipped_gradients(a: Any, b: Any, c: Any) -> Any:
    """Three gradients are scaled in place by their common norm."""
    norm = ((a * a).sum() + (b * b).sum() + (c * c).sum()).sqrt()
    scale = (1.0 / (norm + 1e-6)).clamp(max=1.0)
    a.mul_(scale)
    b.mul_(scale)
    c.mul_(scale)
    return norm


def unit_columns(p: Any) -> None:
    """Every column is scaled to length one."""
    p.copy_(p / (p.square().sum(0, keepdim=True).sqrt() + 1e-6))


def master_weights(p: Any, master: Any, gradient: Any) -> None:
    """Half-precision parameters follow those that are kept in FP32."""
    master.sub_(0.01 * gradient.float())
    p.copy_(master)


GRAPHS = (
    TrainingGraph(
        name="adamw_step",
        function=adamw_step,
        inputs={"p": MATRIX, "m": MATRIX, "v": POSITIVE, "gradient": MATRIX},
        mutated=("p", "m", "v"),
        proof=True,
        halves=("bfloat16",),
    ),
    TrainingGraph(
        name="adamw_corrected",
        function=adamw_corrected,
        inputs={
            "p": MATRIX,
            "m": MATRIX,
            "v": POSITIVE,
            "step": Input(shape=(), kind="one", dtype="float32"),
            "gradient": MATRIX,
        },
        mutated=("p", "m", "v", "step"),
    ),
    TrainingGraph(
        name="momentum_step",
        function=momentum_step,
        inputs={"p": MATRIX, "m": MATRIX, "gradient": MATRIX},
        mutated=("p", "m"),
    ),
    TrainingGraph(
        name="clipped_gradients",
        function=clipped_gradients,
        inputs={"a": MATRIX, "b": Input(shape=(256,)), "c": Input(shape=(16, 8, 32))},
        mutated=("a", "b", "c"),
        proof=True,
    ),
    TrainingGraph(name="unit_columns", function=unit_columns, inputs={"p": MATRIX}, mutated=("p",)),
    TrainingGraph(
        name="master_weights",
        function=master_weights,
        inputs={
            "p": Input(shape=(64, 256), dtype="bfloat16"),
            "master": Input(shape=(64, 256), dtype="float32"),
            "gradient": Input(shape=(64, 256), dtype="bfloat16"),
        },
        mutated=("p", "master"),
    ),
)
