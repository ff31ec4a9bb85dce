"""Operators that torch_npu keeps whole and torch's CPU kernels do not have, by their definition.

torch_npu's autograd leaves some backward steps in a graph as one operator each, where torch's own takes them apart.
Here each is computed by the formula of its derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def find(name: str) -> Callable[..., Any] | None:
    """Return how the operator of that name is computed on CPU tensors; None for one that is not among these."""
    return _COMPUTED.get(name)


def _matmul_backward(gradient: Any, one: Any, other: Any, mask: Sequence[bool]) -> tuple[Any, Any]:
    """Return the gradients of `one @ other`, each where the mask asks for it."""
    left = one.unsqueeze(0) if one.dim() == 1 else one
    right = other.unsqueeze(-1) if other.dim() == 1 else other
    gradient = gradient.unsqueeze(-1) if other.dim() == 1 else gradient
    gradient = gradient.unsqueeze(-2) if one.dim() == 1 else gradient
    # Axes along which an operand was repeated are summed.
    first = (gradient @ right.mT).sum_to_size(left.shape).reshape(one.shape) if mask[0] else None
    second = (left.mT @ gradient).sum_to_size(right.shape).reshape(other.shape) if mask[1] else None
    return first, second


def _gather_backward(gradient: Any, size: Sequence[int], dim: int, index: Any, sparse: bool) -> Any:
    """Return the gradient of `x.gather(dim, index)`, where x has that size."""
    return gradient.new_zeros(tuple(size)).scatter_add_(dim, index, gradient)


_COMPUTED: Mapping[str, Callable[..., Any]] = {
    "aten::matmul_backward": _matmul_backward,
    "npu::npu_gather_backward": _gather_backward,
}
