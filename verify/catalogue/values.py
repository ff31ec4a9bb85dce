"""A training graph as a value: a function, and what its inputs look like.

graph = TrainingGraph(name="softmax", function=softmax, inputs={"x": Input((128, 256), gradient=True)})
inputs = make_inputs(graph)             # CPU tensors in the order of the parameters, the same in every process
"""

from __future__ import annotations

import importlib
import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

Verdict = Literal["right", "wrong"]
Kind = Literal["normal", "uniform", "index", "causal", "one", "ramp"]
Layout = Literal["contiguous", "transposed", "strided"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    """What one parameter is given.

    `kind` is what stands in it: "normal" numbers, "uniform" ones in [0.5, 1.5), an "index" of numbers below `below`, a
    "causal" mask (True above the diagonal), "one"s, or a "ramp", where each row holds its number divided by the count
    of all elements, so that 128 rows of any length sum to 63.5. `dtype` None means the graph's own. `layout` is how it
    lies in memory: "contiguous", "transposed" (the last two axes exchanged) or "strided" (every other element of the
    last axis). `gradient` asks for its gradient.
    """

    shape: tuple[int, ...]
    kind: Kind = "normal"
    dtype: str | None = None
    layout: Layout = "contiguous"
    gradient: bool = False
    below: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingGraph:
    """A function with the inputs that it is tried on.

    `mutated` names the parameters that it writes in place. `on_base` is what is known of the unpatched DVM backend of
    torch_npu 2.13.0: whether the numbers come out right there. `dynamic` is torch.compile's. With `proof` it is part of
    every proof; the others are tried by the tests only. `halves` are the other dtypes that it is fit for.
    `ends_process_on` is what the versions of torch_npu begin with whose DVM ends the process as it builds a kernel.
    """

    name: str
    function: Callable[..., Any]
    inputs: Mapping[str, Input]
    mutated: tuple[str, ...] = ()
    dtype: str = "float32"
    on_base: Verdict = "right"
    dynamic: bool | None = None
    proof: bool = False
    halves: tuple[str, ...] = ()
    ends_process_on: tuple[str, ...] = ()


def in_dtype(graph: TrainingGraph, dtype: str) -> TrainingGraph:
    """Return the same graph in another dtype, which its name then says."""
    return replace(graph, name=f"{graph.name}-{dtype}", dtype=dtype, proof=False, halves=())


def with_sizes_unknown(graph: TrainingGraph) -> TrainingGraph:
    """Return the same graph compiled for sizes that are only known when it is launched.

    Such kernels were seen to park in a workspace what those of known sizes park in an output, so none is wrong.
    """
    return replace(graph, name=f"{graph.name}-dynamic", dynamic=True, proof=False, halves=(), on_base="right")


def make_inputs(graph: TrainingGraph, *, seed: int = 0) -> list[Any]:
    """Return CPU tensors for a graph's parameters, in their order; equal seeds give equal numbers."""
    torch = importlib.import_module("torch")
    generator = torch.Generator().manual_seed(seed + zlib.crc32(graph.name.partition("-")[0].encode()))
    return [_make(one, graph.dtype, generator) for one in graph.inputs.values()]


def _make(one: Input, graph_dtype: str, generator: Any) -> Any:
    torch = importlib.import_module("torch")
    laid_out = _lay_out(_fill(one, generator), one.layout)
    if laid_out.is_floating_point():
        laid_out = laid_out.to(getattr(torch, one.dtype or graph_dtype))
    return laid_out.requires_grad_(one.gradient)


def _fill(one: Input, generator: Any) -> Any:
    torch = importlib.import_module("torch")
    if one.kind == "index":
        return torch.randint(0, one.below, one.shape, generator=generator)
    if one.kind == "causal":
        return torch.ones(one.shape, dtype=torch.bool).triu(1)
    if one.kind == "one":
        return torch.ones(one.shape, dtype=getattr(torch, one.dtype or "float32"))
    if one.kind == "ramp":
        rows = torch.arange(one.shape[0]) / math.prod(one.shape)
        return rows.reshape(-1, *[1] * (len(one.shape) - 1)).expand(one.shape).contiguous()
    if one.kind == "uniform":
        return torch.rand(one.shape, generator=generator) + 0.5
    return torch.randn(one.shape, generator=generator)


def _lay_out(tensor: Any, layout: Layout) -> Any:
    torch = importlib.import_module("torch")
    if layout == "transposed":
        return tensor.mT.contiguous().mT
    if layout == "strided":
        wide = torch.zeros((*tensor.shape[:-1], 2 * tensor.shape[-1]), dtype=tensor.dtype)
        wide[..., ::2] = tensor
        return wide[..., ::2]
    return tensor
