"""What each operation computes, with torch on the CPU, each in its own element type and rounded by it.

    compute = operations.find("mul")
    result = compute(instruction, [x, 2])       # tensors and numbers in the places of the operands

Half-precision arithmetic is that of torch's CPU kernels: computed in FP32 and rounded once an operation. Sums of
FP16 are accumulated in FP32; in which order a reduction adds is not defined, on the device as here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from verify.reference.program import Instruction, UnknownOperationError

Compute = Callable[[Instruction, Sequence[Any]], Any]

TORCH_NAMES = {
    "sqrt": "sqrt", "abs": "abs", "log": "log", "exp": "exp", "reciprocal": "reciprocal", "isfinite": "isfinite",
    "logical_not": "logical_not", "round": "round", "floor": "floor", "ceil": "ceil", "trunc": "trunc",
    "copy": "clone", "add": "add", "sub": "sub", "mul": "mul", "div": "div", "pow": "pow",
    "logical_and": "logical_and", "logical_or": "logical_or", "maximum": "maximum", "minimum": "minimum",
    "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne",
}  # fmt: skip


def find(operation: str) -> Compute:
    """Return how an operation is computed; raise UnknownOperationError for one that is not known."""
    if operation in TORCH_NAMES:
        return _elementwise
    if operation in OTHERS:
        return OTHERS[operation]
    raise UnknownOperationError(f"there is no operation {operation!r} in the reference")


def element_type(name: str) -> Any:
    """Return torch's dtype of a name."""
    return getattr(_torch(), name)


def _torch() -> Any:
    return importlib.import_module("torch")


def _elementwise(instruction: Instruction, operands: Sequence[Any]) -> Any:
    # A number takes the tensors' element type before anything is computed, as on the device.
    torch = _torch()
    dtype = next(one.dtype for one in operands if isinstance(one, torch.Tensor))
    tensors = [one if isinstance(one, torch.Tensor) else torch.tensor(one, dtype=dtype) for one in operands]
    return getattr(torch, TORCH_NAMES[instruction.operation])(*tensors)


def _cast(instruction: Instruction, operands: Sequence[Any]) -> Any:
    return operands[0].to(element_type(instruction.dtype))


def _broadcast(instruction: Instruction, operands: Sequence[Any]) -> Any:
    torch = _torch()
    value, shape = operands
    given = value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=element_type(instruction.dtype))
    return given.expand(shape)


def _reshape(instruction: Instruction, operands: Sequence[Any]) -> Any:
    return operands[0].reshape(operands[1])


def _select(instruction: Instruction, operands: Sequence[Any]) -> Any:
    torch = _torch()
    condition, *branches = operands
    dtype = element_type(instruction.dtype)
    x, y = (one if isinstance(one, torch.Tensor) else torch.tensor(one, dtype=dtype) for one in branches)
    return torch.where(condition, x, y)


def _sum(instruction: Instruction, operands: Sequence[Any]) -> Any:
    x, dims, keepdim = operands
    return _torch().sum(x, dim=list(dims) or None, keepdim=keepdim, dtype=x.dtype)


def _max(instruction: Instruction, operands: Sequence[Any]) -> Any:
    x, dims, keepdim = operands
    return _torch().amax(x, dim=list(dims), keepdim=keepdim)


def _min(instruction: Instruction, operands: Sequence[Any]) -> Any:
    x, dims, keepdim = operands
    return _torch().amin(x, dim=list(dims), keepdim=keepdim)


def _concat(instruction: Instruction, operands: Sequence[Any]) -> Any:
    values, dim = operands
    return _torch().cat(list(values), dim)


def _full(instruction: Instruction, operands: Sequence[Any]) -> Any:
    number, shape = operands
    return _torch().full(shape, number, dtype=element_type(instruction.dtype))


def _matmul(instruction: Instruction, operands: Sequence[Any]) -> Any:
    torch = _torch()
    a, b, trans_a, trans_b, bias = operands
    left, right = (a.mT if trans_a else a).float(), (b.mT if trans_b else b).float()
    product = torch.matmul(left, right)
    return (product if bias is None else product + bias.float()).to(element_type(instruction.dtype))


OTHERS: dict[str, Compute] = {
    "cast": _cast, "broadcast": _broadcast, "reshape": _reshape, "select": _select, "sum": _sum, "max": _max,
    "min": _min, "concat": _concat, "full": _full, "matmul": _matmul,
}  # fmt: skip
