"""What each operation computes, with torch on the CPU, each in its own element type and rounded by it.

    compute = operations.find("mul")
    result = compute(instruction, [x, 2])       # tensors and numbers in the places of the operands

A number takes the tensors' element type before anything is computed, as the real builder has it: FP16 times 100000 is
FP16 times infinity, and an int32 is compared with 2 where 2.5 is written. Half-precision arithmetic is that of torch's
CPU kernels: computed in FP32 and rounded once an operation. In which order a reduction adds is not defined, on the
device as here. Powers are made of the products that the real compiler makes of them (`_pow`). A float becomes an
integer by truncation; one that does not fit has no value that is defined.
"""

from __future__ import annotations

import ctypes
import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

from verify.reference.program import Instruction, UnknownOperationError, Value

Compute = Callable[[Instruction, Sequence[Any]], Any]

TORCH_NAMES = {
    "sqrt": "sqrt", "abs": "abs", "log": "log", "exp": "exp", "reciprocal": "reciprocal", "round": "round",
    "floor": "floor", "ceil": "ceil", "trunc": "trunc", "copy": "clone",
    "add": "add", "sub": "sub", "mul": "mul", "div": "div", "maximum": "maximum", "minimum": "minimum",
    "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne",
    "isfinite": "isfinite", "logical_not": "logical_not", "logical_and": "logical_and", "logical_or": "logical_or",
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


def _number(value: Any, dtype: Any, device: Any = None) -> Any:
    """Return a number as a tensor of an element type, rounded to it; an integer loses its fraction."""
    torch = _torch()
    if not dtype.is_floating_point and isinstance(value, float):
        value = int(value)
    return torch.tensor(value, dtype=dtype, device=device)


def _same_type(operands: Sequence[Any]) -> list[Any]:
    torch = _torch()
    first = next(one for one in operands if isinstance(one, torch.Tensor))
    return [one if isinstance(one, torch.Tensor) else _number(one, first.dtype, first.device) for one in operands]


def _elementwise(instruction: Instruction, operands: Sequence[Any]) -> Any:
    # What answers true or false answers in the result's type: promoted BF16 comparisons are floats of 0 and 1.
    result = getattr(_torch(), TORCH_NAMES[instruction.operation])(*_same_type(operands))
    return result.to(element_type(instruction.dtype))


def _pow(instruction: Instruction, operands: Sequence[Any]) -> Any:
    """Compute as the real compiler does: x by a whole number as products, a positive number by x as exp(x log n).

    It does so for numbers that it knows; one that a launch passes is a power like any other.
    """
    torch = _torch()
    base, exponent = operands
    known_base, known_exponent = (not isinstance(one, Value) for one in instruction.operands)
    if known_exponent:
        rounded = ctypes.c_float(exponent).value  # FP32 holds it, whatever the operand's type
        if rounded.is_integer():
            return _whole_power(base, int(rounded))
    elif known_base and base > 0:
        logarithm = _number(math.log(base), torch.float32, exponent.device)
        return torch.exp(exponent.float() * logarithm).to(exponent.dtype)
    x, y = _same_type(operands)
    return torch.pow(x.float(), y.float()).to(x.dtype)


def _whole_power(base: Any, exponent: int) -> Any:
    torch = _torch()
    result, square, rest = None, base, abs(exponent)
    while rest:
        if rest & 1:
            result = square if result is None else result * square
        rest >>= 1
        square = square * square if rest else square
    if result is None:
        return torch.ones_like(base)
    return result.clone() if exponent > 0 else torch.reciprocal(result)


def _cast(instruction: Instruction, operands: Sequence[Any]) -> Any:
    return operands[0].to(element_type(instruction.dtype))


def _broadcast(instruction: Instruction, operands: Sequence[Any]) -> Any:
    return operands[0].expand(operands[1])


def _reshape(instruction: Instruction, operands: Sequence[Any]) -> Any:
    return operands[0].reshape(operands[1])


def _select(instruction: Instruction, operands: Sequence[Any]) -> Any:
    condition, x, y = operands
    return _torch().where(condition != 0, x, y)


def _sum(instruction: Instruction, operands: Sequence[Any]) -> Any:
    x, dims, keepdim = operands
    return _torch().sum(x, dim=list(dims) or None, keepdim=keepdim)


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
    return _number(number, element_type(instruction.dtype)).expand(shape)


def _matmul(instruction: Instruction, operands: Sequence[Any]) -> Any:
    torch = _torch()
    a, b, trans_a, trans_b, bias = operands
    left, right = (a.mT if trans_a else a).float(), (b.mT if trans_b else b).float()
    product = torch.matmul(left, right)
    return (product if bias is None else product + bias.float()).to(element_type(instruction.dtype))


OTHERS: dict[str, Compute] = {
    "pow": _pow, "cast": _cast, "broadcast": _broadcast, "reshape": _reshape, "select": _select, "sum": _sum,
    "max": _max, "min": _min, "concat": _concat, "full": _full, "matmul": _matmul,
}  # fmt: skip
