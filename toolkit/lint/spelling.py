"""Spellings of one operation: operator, function of torch, method; and casts that change no meaning."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from toolkit.lint.flow import Value, values_of
from toolkit.lint.outline import dotted, last_name

_CASTS = {"float", "half", "bfloat16", "double", "to", "type", "type_as", "contiguous", "detach", "clone"}
_FLOAT32 = {"torch.float32", "torch.float", "torch.double", "torch.float64"}
_VIEWS = {
    "transpose", "permute", "view", "reshape", "contiguous", "unsqueeze", "squeeze", "flatten", "unflatten", "expand",
    "t", "clone", "detach", "repeat_interleave",
}  # fmt: skip


def operands(
    node: ast.expr, operator: type[ast.operator], calls: set[str], *, both: bool
) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the two operands of `a op b`, `torch.call(a, b)` and `a.call(b)`; with `both` in the other order too."""
    pair: tuple[ast.expr, ast.expr] | None = None
    if isinstance(node, ast.BinOp) and isinstance(node.op, operator):
        pair = node.left, node.right
    elif isinstance(node, ast.Call) and last_name(node.func) in calls:
        first, second = argument(node, 0), argument(node, 1)
        pair = (first, second) if first is not None and second is not None else None
    if pair is not None:
        yield pair
        if both:
            yield pair[1], pair[0]


def argument(node: ast.expr, place: int) -> ast.expr | None:
    """Return an operand of a call: for a method, what it is called on comes first."""
    if not isinstance(node, ast.Call):
        return None
    values: list[ast.expr] = list(node.args)
    if isinstance(node.func, ast.Attribute) and dotted(node.func.value) not in ("torch", "F", "torch.nn.functional"):
        values.insert(0, node.func.value)
    values += [keyword.value for keyword in node.keywords if keyword.arg in ("input", "other", "exponent")]
    return values[place] if place < len(values) else None


def is_function(node: ast.Call) -> bool:
    """Tell `torch.mean(x)` from `x.mean()`."""
    return not isinstance(node.func, ast.Attribute) or dotted(node.func.value) in ("torch", "th", "F", "torch.linalg")


def power_of(value: Value, exponent: float, calls: set[str]) -> Value | None:
    """Return x of x ** exponent, pow(x, exponent), or a call of that meaning."""
    node = value.node
    for left, right in operands(node, ast.Pow, {"pow", "pow_", "float_power"}, both=False):
        if _number(right) == exponent:
            return Value(left, value.names)
    if isinstance(node, ast.Call) and last_name(node.func) in calls:
        inner = argument(node, 0)
        return Value(inner, value.names) if inner is not None else None
    return None


def strip_casts(node: ast.expr) -> ast.expr:
    """Take off `.float()`, `.to(…)`, `.type_as(…)` and what else leaves the elements as they are."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CASTS:
        node = node.func.value
    return node


def is_float32(node: ast.expr) -> bool:
    """Tell an expression that is cast to float32 (or float64) in so many words."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("float", "double") and not node.args:
        return dotted(node.func.value) != "torch"
    kinds = [*(node.args if last_name(node.func) in ("to", "type") else ())]
    kinds += [keyword.value for keyword in node.keywords if keyword.arg == "dtype"]
    return any(dotted(kind) in _FLOAT32 for kind in kinds)


def has_float32(value: Value) -> bool:
    """Tell a value that is float32 on every way that leads to it, as far as the text shows."""
    found = list(values_of(value.node, value.names))
    return bool(found) and all(_is_float32_value(one) for one in found)


def _is_float32_value(value: Value) -> bool:
    node = value.node
    if is_float32(node):
        return True
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        return any(
            has_float32(Value(side, value.names))
            for side in (node.left, node.right)
            if not isinstance(side, ast.Constant)
        )
    if isinstance(node, ast.Subscript):
        return has_float32(Value(node.value, value.names))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
        return has_float32(Value(node.func.value, value.names))
    return False


def same_tensor(one: Value, other: Value) -> bool:
    """Tell whether two expressions are the same elements, casts aside."""
    return _identity(one) == _identity(other)


def _identity(value: Value) -> object:
    """Follow names while they only stand for a cast of another."""
    node = strip_casts(value.node)
    if not isinstance(node, ast.Name):
        return ast.dump(node), tuple(_identity(Value(one, value.names)) for one in ast.walk(node) if one is not node
                                     and isinstance(one, ast.Name))  # fmt: skip
    found = value.names.get(node.id)
    if found is None:
        return node.id
    if len(found) == 1:
        inner = strip_casts(found[0].node)
        if isinstance(inner, ast.Name):
            return _identity(Value(inner, found[0].names))
    return node.id, tuple(id(one) for one in found)


def is_power_of_two(value: Value) -> bool:
    """Tell a number that scales without rounding."""
    number = _number(value.node)
    return number is not None and number > 0 and math.frexp(number)[0] == 0.5


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return float(node.value)
    return None
