"""The query of DeepSeek-V4's attention is normalized by one operator, which rounds once.

Unpatched, `q * torch.rsqrt(q.square().mean(-1, keepdim=True) + eps)` rounds to BF16 up to five times in eager mode; a
compiler that fuses the pieces rounds at other places, so that a compiled run and an eager one differ. Looked at are the
graph that Dynamo captures of the whole pre-attention, in which `rms_norm` alone must stand between the query's
projection and its split, and the values and gradients of that module against FP64, with large queries and with such
small ones that eps decides. The rotary angles are 0, so that the query comes out as it was normalized.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from verify.checks.titan_model import describe, load_model
from verify.contract import Outcome, Request, broke, failed_with, passed
from verify.witnesses.titan_numbers import (
    DTYPES,
    SEED,
    Error,
    describe_errors,
    largest_relative_error,
    leaf,
    rms_error,
)

BATCH, TOKENS, WIDTH, HEADS, HEAD_SIZE, ROTARY = 2, 32, 64, 4, 512, 64
EPS = 1e-6
SIZES = (1.0, 1e-3)
"""The root mean square of the queries; the square of the smaller one is EPS."""

ROUNDINGS = {"bfloat16": 1.01, "float32": 8.0}
"""How many roundings a value may be off by: one, and what arithmetic in float32 adds to it."""

GRADIENT_ROUNDINGS = {"bfloat16": 0.5, "float32": 8.0}
"""The same for the gradient's root mean square. One rounding is 0.43 of its largest error on average."""


@dataclass(frozen=True)
class Norm:
    """What one run gave: how far off it is, in roundings of its dtype, and the dtypes of query and result."""

    what: str
    errors: tuple[Error, ...]
    dtypes: tuple[str, str]


def check(request: Request) -> Outcome:
    """Capture the graph, run the module in both dtypes with both sizes of queries, and judge."""
    model = load_model(request)
    norms = [_run(model, dtype, size) for dtype in DTYPES for size in SIZES]
    return judge(_capture(model), norms, **describe(model))


def judge(names: Sequence[str], norms: Sequence[Norm], **evidence: Any) -> Outcome:
    """Judge by the names of the captured operations in their order, and by the errors."""
    errors = [error for norm in norms for error in norm.errors]
    evidence = {**evidence, "captured": list(names), "errors": [str(error) for error in errors]}
    found = operations_between(names, "unflatten", "split")
    if found is None or not norms:
        return broke("the graph has no projected query that is split" if norms else "nothing was compared", **evidence)
    faults = [] if found == ["rms_norm"] else [f"Dynamo captures {', '.join(found) or 'nothing'} for rms_norm"]
    faults += [f"{norm.what}: {norm.dtypes[0]} becomes {norm.dtypes[1]}" for norm in norms if len(set(norm.dtypes)) > 1]
    faults += [str(error) for error in errors if error.is_fault]
    if faults:
        return failed_with(faults, **evidence)
    return passed(f"Dynamo captures one rms_norm; {describe_errors(errors)}", **evidence)


def operations_between(names: Sequence[str], first: str, last: str) -> list[str] | None:
    """Return the names between the first `first` and the next `last`, None where there is no such pair."""
    if first not in names:
        return None
    after = list(names[names.index(first) + 1 :])
    return after[: after.index(last)] if last in after else None


def _run(model: Any, dtype: str, size: float) -> Norm:
    torch = importlib.import_module("torch")
    torch.manual_seed(SEED)
    module, x, angles = _pre_attention(model, dtype, size)
    projected: list[Any] = []
    module.wq_b.register_forward_hook(lambda _module, _inputs, output: projected.append(output))
    query = module(x, angles, torch.empty(0))[0]
    weight = torch.randn_like(query)
    (gradient,) = torch.autograd.grad(query, projected, weight)
    reference, reference_gradient = _reference(projected[0], weight)
    what = f"{dtype}, queries of {size:g}"
    unit = torch.finfo(projected[0].dtype).eps / 2
    value_error = largest_relative_error(query, reference) / unit
    gradient_error = rms_error(gradient, reference_gradient) / unit
    return Norm(
        what,
        (
            Error(f"{what}: value, in roundings,", value_error, ROUNDINGS[dtype]),
            Error(f"{what}: gradient, in roundings,", gradient_error, GRADIENT_ROUNDINGS[dtype]),
        ),
        (str(projected[0].dtype), str(query.dtype)),
    )


def _reference(projected: Any, weight: Any) -> tuple[Any, Any]:
    """Return the norm of a projected query, and its gradient, in FP64."""
    torch = importlib.import_module("torch")
    raw = leaf(projected, "float64")
    query = raw.unflatten(-1, (HEADS, HEAD_SIZE))
    query = query / (query.square().mean(-1, keepdim=True) + EPS).sqrt()
    (gradient,) = torch.autograd.grad(query, [raw], weight.double())
    return query, gradient


def _capture(model: Any) -> list[str]:
    """Return the names of the operations that Dynamo captures, in their order."""
    torch = importlib.import_module("torch")
    torch.manual_seed(SEED)
    module, x, angles = _pre_attention(model, "bfloat16", 1.0)
    names: list[str] = []

    def keep(captured: Any, _inputs: Any) -> Any:
        nodes = [node for node in captured.graph.nodes if node.op in ("call_function", "call_method")]
        names.extend(str(getattr(node.target, "__name__", node.target)) for node in nodes)
        return captured.forward

    torch.compile(module, backend=keep, fullgraph=True)(x, angles, torch.empty(0))
    return names


def _pre_attention(model: Any, dtype: str, size: float) -> tuple[Any, Any, Any]:
    """Return the module without compression, an input, and rotary angles of 0."""
    torch = importlib.import_module("torch")
    arguments = model.DeepSeekV4ModelArgs(
        dim=WIDTH, q_lora_rank=WIDTH, n_layers=1, n_heads=HEADS, head_dim=HEAD_SIZE, rope_head_dim=ROTARY,
        norm_eps=EPS, compress_ratios=(1,),
    )  # fmt: skip
    module = model.PreAttention(0, arguments)
    module.init_weights(0.02)
    # What these weights make of a normalized vector has a root mean square of `size`.
    torch.nn.init.normal_(module.wq_b.weight, std=size / math.sqrt(WIDTH))
    x = torch.randn(BATCH, TOKENS, WIDTH)
    angles = torch.polar(torch.ones(TOKENS, ROTARY // 2), torch.zeros(TOKENS, ROTARY // 2))
    return module.to(getattr(torch, dtype)), leaf(x, dtype), angles
