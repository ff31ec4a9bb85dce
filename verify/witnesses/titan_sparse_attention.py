"""The logits of DeepSeek-V4's attention are not rounded to BF16 between the product and the softmax.

Unpatched, the product of query and keys is scaled, masked, put beside the sinks and lessened by its maximum in BF16,
and only then cast to FP32. The scale of a head of 512 is no power of two: a logit near 12 may be off by 0.03 from
scaling alone, which is percents of a probability. What BF16 must lose is two roundings, of the probabilities and of the
result: 2**-7 for values of 1. Output and gradients are compared with FP64, where two keys of the window, the compressed
ones and the sink have logits close to each other.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from verify.checks.titan_model import describe, load_model
from verify.contract import Outcome, Request
from verify.witnesses.titan_numbers import (
    DTYPES,
    SEED,
    Error,
    judge_errors,
    largest_error,
    leaf,
    npu_is_cpu,
    rms_error,
    signs,
)

TOKENS, HEADS, HEAD_SIZE, WINDOW, RATIO = 64, 8, 512, 2, 4
SINK = 8.0
ALLOWED = {"bfloat16": 2.0**-7, "float32": 1e-5}
ALLOWED_GRADIENT = {"bfloat16": 5e-3, "float32": 1e-5}


def check(request: Request) -> Outcome:
    """Run the module in both dtypes and judge its output and its gradients."""
    model = load_model(request)
    errors = [error for dtype in DTYPES for error in compare(model, dtype)]
    return judge_errors(errors, **describe(model))


def compare(model: Any, dtype: str) -> Iterator[Error]:
    """Yield how far the module's output and gradients are from FP64."""
    torch = importlib.import_module("torch")
    torch.manual_seed(SEED)
    around = signs(HEAD_SIZE)
    shapes = {"query": (1, TOKENS, HEADS), "keys": (1, TOKENS), "compressed keys": (1, TOKENS // RATIO)}
    values = {name: signs(*shape, HEAD_SIZE, around=around, differing=0.2) for name, shape in shapes.items()}
    values["sinks"] = (torch.randn(HEADS) + SINK).bfloat16()
    inputs = {name: leaf(value, dtype) for name, value in values.items()}
    output = _attend(model, *inputs.values())
    weight = torch.randn_like(output)
    gradients = torch.autograd.grad(output, list(inputs.values()), weight)
    exact = {name: leaf(value, "float64") for name, value in values.items()}
    reference = _attend_in_fp64(*exact.values())
    references = torch.autograd.grad(reference, list(exact.values()), weight.double())
    yield Error(f"{dtype} output", largest_error(output, reference), ALLOWED[dtype])
    for name, found, wanted in zip(inputs, gradients, references, strict=True):
        yield Error(f"{dtype} gradient of the {name}", rms_error(found, wanted), ALLOWED_GRADIENT[dtype])


def _attend(model: Any, query: Any, keys: Any, compressed: Any, sinks: Any) -> Any:
    arguments = model.DeepSeekV4ModelArgs(
        n_layers=1, n_heads=HEADS, head_dim=HEAD_SIZE, window_size=WINDOW, compress_ratios=(RATIO,)
    )
    with npu_is_cpu():
        return model.SparseAttention(0, arguments)(query, keys, sinks, compressed)


def _attend_in_fp64(query: Any, keys: Any, compressed: Any, sinks: Any) -> Any:
    """Attend to the keys of the window and to what was compressed of keys up to here; a sink takes its share."""
    torch = importlib.import_module("torch")
    at, of = torch.arange(TOKENS).unsqueeze(1), torch.arange(TOKENS)
    ends = (torch.arange(TOKENS // RATIO) + 1) * RATIO - 1
    seen = torch.cat([(of <= at) & (of > at - WINDOW), ends <= at], dim=1)
    every = torch.cat([keys, compressed], dim=1)
    logits = torch.einsum("bshd,btd->bhst", query, every) / HEAD_SIZE**0.5
    logits = logits.masked_fill(~seen, float("-inf"))
    logits = torch.cat([logits, sinks.view(1, HEADS, 1, 1).expand(1, HEADS, TOKENS, 1)], dim=-1)
    return torch.einsum("bhst,btd->bshd", logits.softmax(-1)[..., :-1], every)
