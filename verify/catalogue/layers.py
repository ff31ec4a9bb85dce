"""Graphs of a model's layers, forward and with gradients: normalizations, activations, attention, routing, losses."""

from __future__ import annotations

from typing import Any

from verify.catalogue.values import Input, TrainingGraph

ROWS, COLUMNS = 128, 256
HALVES = ("float16", "bfloat16")
X = Input(shape=(ROWS, COLUMNS), gradient=True)
WEIGHT = Input(shape=(COLUMNS,), gradient=True)
HEADS = Input(shape=(2, 4, 32, 64), gradient=True)
SINKHORN_ROUNDS = 20


def softmax(x: Any, w: Any) -> Any:
    """Normalized over the last axis and weighed."""
    return x.softmax(-1) * w


def softmax_over_rows(x: Any) -> Any:
    """Normalized over the first axis, so that every reduction is over the outermost one."""
    return x.softmax(0)


def softmax_in_place(x: Any) -> None:
    """The input becomes its own softmax."""
    x.copy_(x.softmax(-1))


def rms_norm(x: Any, w: Any) -> Any:
    """Computed in FP32 and rounded once, as models write it."""
    wide = x.float() if x.dtype.itemsize == 2 else x
    return (wide * (wide.square().mean(-1, keepdim=True) + 1e-6).rsqrt()).to(x.dtype) * w


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    """By hand, with the variance of the differences."""
    centred = x - x.mean(-1, keepdim=True)
    return centred * (centred.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * w + b


def native_layer_norm(x: Any, w: Any, b: Any) -> Any:
    """By torch's own operator, as the backend lowers it."""
    from torch.nn import functional

    return functional.layer_norm(x, x.shape[-1:], w, b)


def batch_norm(mean: Any, variance: Any, x: Any) -> Any:
    """Running statistics are updated in place beside the normalization."""
    m, v = x.mean(0), x.var(0)
    y = (x - m) / (v + 1e-5).sqrt()
    mean.copy_(mean * 0.9 + m.detach() * 0.1)
    variance.copy_(variance * 0.9 + v.detach() * 0.1)
    return y


def attention(q: Any, k: Any, v: Any, mask: Any) -> Any:
    """Scores, a mask, softmax, and the sum of values."""
    scores = (q @ k.transpose(-1, -2)) * 0.125
    return scores.masked_fill(mask, float("-inf")).softmax(-1) @ v


def masked_scores(scores: Any, mask: Any) -> Any:
    """The part of attention between its matrix products."""
    return (scores * 0.125).masked_fill(mask, float("-inf")).softmax(-1)


def top_two_gate(x: Any, w: Any) -> Any:
    """Experts are chosen by sigmoid scores, whose two largest are normalized."""
    scores, experts = (x @ w).sigmoid().topk(2, -1)
    return scores / (scores.sum(-1, keepdim=True) + 1e-20), experts


def balance(scores: Any, load: Any) -> Any:
    """A gate's loss of balance, with the experts' load kept by an exponential average in place."""
    share = scores.softmax(-1).mean(0)
    load.copy_(load * 0.9 + share.detach() * 0.1)
    return (share * load).sum() * scores.shape[-1]


def swiglu(x: Any, gate: Any, up: Any, down: Any) -> Any:
    """A gated feed-forward block."""
    opened = x @ gate
    return (opened * opened.sigmoid() * (x @ up)) @ down


def swiglu_pointwise(gate: Any, up: Any) -> Any:
    """The part of the block between its matrix products, with the clamp that some models have."""
    return gate * gate.sigmoid() * up.clamp(-1.0, 1.0)


def rotary(x: Any, cos: Any, sin: Any) -> Any:
    """Halves of the last axis are rotated by position."""
    from torch import cat

    first, second = x.chunk(2, -1)
    return cat((first * cos - second * sin, first * sin + second * cos), -1)


def residual_block(x: Any, w: Any, a: Any, b: Any) -> Any:
    """Norm, feed-forward with GELU by tanh, and the way around them."""
    h = x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w
    h = h @ a
    h = 0.5 * h * (1.0 + (0.7978845608 * (h + 0.044715 * h * h * h)).tanh())
    return x + h @ b


def cross_entropy(logits: Any, target: Any) -> Any:
    """The mean over tokens, by logsumexp."""
    top = logits.amax(-1, keepdim=True).detach()
    total = (logits - top).exp().sum(-1).log() + top.squeeze(-1)
    return (total - logits.gather(-1, target.unsqueeze(-1)).squeeze(-1)).mean()


def native_cross_entropy(logits: Any, target: Any) -> Any:
    """By torch's own operator, with the z-loss that some models add."""
    from torch.nn import functional

    return functional.cross_entropy(logits, target) + 1e-4 * logits.logsumexp(-1).square().mean()


def squared_error(x: Any, y: Any) -> Any:
    """A scalar loss over all elements."""
    return (x - y).square().mean()


def half_between(x: Any) -> Any:
    """BF16 for one exact operation: the rounding to it is all that happens, and may not be left out."""
    return (x.bfloat16() * 2).float()


def quantized(x: Any) -> Any:
    """Rounded to 8 bits and back, as training for quantization does."""
    scale = x.abs().amax(-1, keepdim=True) / 127
    return (x / scale).round().clamp(-128, 127) * scale


def sinkhorn(x: Any) -> Any:
    """Rows by softmax, then columns and rows by turns: 20 rounds of both."""
    y = (x - x.amax(-1, keepdim=True)).exp()
    y = y / y.sum(-1, keepdim=True)
    y = y / (y.sum(-2, keepdim=True) + 1e-6)
    for _ in range(SINKHORN_ROUNDS - 1):
        y = y / (y.sum(-1, keepdim=True) + 1e-6)
        y = y / (y.sum(-2, keepdim=True) + 1e-6)
    return y


def sinkhorn_start(x: Any) -> Any:
    """Two rounds of it, over small matrices in a batch."""
    y = (x - x.amax(-1, keepdim=True)).exp()
    y = y / y.sum(-1, keepdim=True)
    y = y / (y.sum(-2, keepdim=True) + 1e-6)
    y = y / (y.sum(-1, keepdim=True) + 1e-6)
    return y / (y.sum(-2, keepdim=True) + 1e-6)


SINKHORN = TrainingGraph(name="sinkhorn", function=sinkhorn, inputs={"x": Input(shape=(4096, 4), gradient=True)})

GRAPHS = (
    TrainingGraph(name="softmax", function=softmax, inputs={"x": X, "w": WEIGHT}, proof=True, halves=HALVES),
    TrainingGraph(
        name="softmax_of_transposed",
        function=softmax,
        inputs={"x": Input(shape=(ROWS, COLUMNS), layout="transposed", gradient=True), "w": WEIGHT},
    ),
    TrainingGraph(name="softmax_over_rows", function=softmax_over_rows, inputs={"x": X}, halves=("bfloat16",)),
    TrainingGraph(
        name="softmax_in_place",
        function=softmax_in_place,
        inputs={"x": Input(shape=(ROWS, COLUMNS))},
        mutated=("x",),
        proof=True,
        halves=("bfloat16",),
    ),
    TrainingGraph(name="rms_norm", function=rms_norm, inputs={"x": X, "w": WEIGHT}, proof=True, halves=HALVES),
    TrainingGraph(
        name="layer_norm",
        function=layer_norm,
        inputs={"x": X, "w": WEIGHT, "b": WEIGHT},
        proof=True,
        halves=HALVES,
    ),
    TrainingGraph(name="native_layer_norm", function=native_layer_norm, inputs={"x": X, "w": WEIGHT, "b": WEIGHT}),
    TrainingGraph(
        name="batch_norm",
        function=batch_norm,
        inputs={
            "mean": Input(shape=(COLUMNS,)),
            "variance": Input(shape=(COLUMNS,), kind="uniform"),
            "x": Input(shape=(ROWS, COLUMNS)),
        },
        mutated=("mean", "variance"),
        proof=True,
        ends_process_on=("2.12.",),
    ),
    TrainingGraph(
        name="batch_norm_trained",
        function=batch_norm,
        inputs={
            "mean": Input(shape=(COLUMNS,)),
            "variance": Input(shape=(COLUMNS,), kind="uniform"),
            "x": X,
        },
        mutated=("mean", "variance"),
    ),
    TrainingGraph(
        name="attention",
        function=attention,
        inputs={"q": HEADS, "k": HEADS, "v": HEADS, "mask": Input(shape=(32, 32), kind="causal")},
        halves=HALVES,
    ),
    TrainingGraph(
        name="masked_scores",
        function=masked_scores,
        inputs={"scores": Input(shape=(8, 32, 32), gradient=True), "mask": Input(shape=(32, 32), kind="causal")},
        proof=True,
        halves=HALVES,
    ),
    TrainingGraph(
        name="top_two_gate",
        function=top_two_gate,
        inputs={"x": Input(shape=(64, 32), gradient=True), "w": Input(shape=(32, 8), gradient=True)},
        proof=True,
    ),
    TrainingGraph(
        name="balance",
        function=balance,
        inputs={"scores": Input(shape=(64, 16), gradient=True), "load": Input(shape=(16,), kind="uniform")},
        mutated=("load",),
    ),
    TrainingGraph(
        name="swiglu",
        function=swiglu,
        inputs={
            "x": Input(shape=(64, 32), gradient=True),
            "gate": Input(shape=(32, 64), gradient=True),
            "up": Input(shape=(32, 64), gradient=True),
            "down": Input(shape=(64, 32), gradient=True),
        },
        halves=HALVES,
    ),
    TrainingGraph(
        name="swiglu_pointwise",
        function=swiglu_pointwise,
        inputs={"gate": X, "up": X},
        halves=HALVES,
    ),
    TrainingGraph(
        name="swiglu_strided",
        function=swiglu_pointwise,
        inputs={"gate": Input(shape=(ROWS, COLUMNS), layout="strided", gradient=True), "up": X},
    ),
    TrainingGraph(
        name="rotary",
        function=rotary,
        inputs={
            "x": Input(shape=(2, 16, 4, 64), gradient=True),
            "cos": Input(shape=(16, 1, 32)),
            "sin": Input(shape=(16, 1, 32)),
        },
        halves=HALVES,
    ),
    TrainingGraph(
        name="residual_block",
        function=residual_block,
        inputs={
            "x": Input(shape=(64, 32), gradient=True),
            "w": Input(shape=(32,), gradient=True),
            "a": Input(shape=(32, 64), gradient=True),
            "b": Input(shape=(64, 32), gradient=True),
        },
        halves=("bfloat16",),
    ),
    TrainingGraph(
        name="cross_entropy",
        function=cross_entropy,
        inputs={
            "logits": Input(shape=(64, 128), gradient=True),
            "target": Input(shape=(64,), kind="index", below=128),
        },
        proof=True,
        halves=("bfloat16",),
    ),
    TrainingGraph(
        name="native_cross_entropy",
        function=native_cross_entropy,
        inputs={
            "logits": Input(shape=(64, 128), gradient=True),
            "target": Input(shape=(64,), kind="index", below=128),
        },
    ),
    TrainingGraph(name="squared_error", function=squared_error, inputs={"x": X, "y": Input(shape=(ROWS, COLUMNS))}),
    TrainingGraph(name="half_between", function=half_between, inputs={"x": Input(shape=(ROWS, COLUMNS))}, proof=True),
    TrainingGraph(name="quantized", function=quantized, inputs={"x": Input(shape=(ROWS, COLUMNS))}),
    TrainingGraph(
        name="sinkhorn_start",
        function=sinkhorn_start,
        inputs={"x": Input(shape=(64, 4, 4), gradient=True)},
    ),
)
