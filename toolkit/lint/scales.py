"""A matrix product that is scaled before it is cast to float32."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from toolkit.lint.findings import Hit
from toolkit.lint.flow import Names, Value, values_of
from toolkit.lint.outline import Function, dotted, last_name
from toolkit.lint.spelling import argument, has_float32, is_float32, is_function, is_power_of_two, operands

_PRODUCTS = {"matmul", "bmm", "mm", "einsum", "linear"}
_KEEPS_LAYOUT = {
    "transpose", "permute", "view", "reshape", "contiguous", "clone", "unsqueeze", "squeeze", "flatten", "unflatten",
    "masked_fill", "masked_fill_", "add", "add_", "sub", "sub_", "where", "cat", "concat", "tril", "triu", "expand",
    "relu", "relu_", "clamp", "clamp_", "detach",
}  # fmt: skip
_DEPTH = 12


def find_scales(function: Function, node: ast.expr, names: Names) -> Iterator[Hit]:
    inner = _cast_to_float32(node)
    if inner is None:
        return
    for scaled in _scaled_products(Value(inner, names), _DEPTH):
        cast = "" if scaled.lineno == node.lineno else f", which line {node.lineno} casts to float32"
        what = f"the product in `{_short(ast.unparse(scaled))}` is scaled before its cast to float32"
        if cast:
            what = f"the product in `{_short(ast.unparse(scaled))}` is scaled{cast} later"
        yield Hit(check="scale-before-float32", file=function.module.source.file, line=scaled.lineno, what=what)


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}…"


def _cast_to_float32(node: ast.expr) -> ast.expr | None:
    """Return what is cast: x.float(), x.to(torch.float32), softmax(x, dtype=torch.float32)."""
    if not isinstance(node, ast.Call):
        return None
    named = {keyword.arg: keyword.value for keyword in node.keywords}
    if last_name(node.func) in ("softmax", "log_softmax"):
        kinds = [*node.args[1:], *named.values()]
        return argument(node, 0) if any(dotted(kind) in ("torch.float32", "torch.float") for kind in kinds) else None
    return node.func.value if isinstance(node.func, ast.Attribute) and is_float32(node) else None


def _scaled_products(value: Value, depth: int) -> Iterator[ast.expr]:
    """Find products times a scale on the way to a cast, past masks, views and sums."""
    if depth == 0:
        return
    for one in values_of(value.node, value.names):
        node = one.node
        is_scaling = False
        for op, calls in ((ast.Mult, {"mul", "mul_"}), (ast.Div, {"div", "div_"})):
            for left, right in operands(node, op, calls, both=op is ast.Mult):
                if _is_product(Value(left, one.names)) and _is_scale(Value(right, one.names)):
                    is_scaling = True
        if is_scaling:
            yield node
            continue
        for inner in _passed_through(node):
            yield from _scaled_products(Value(inner, one.names), depth - 1)


def _passed_through(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield from (node.left, node.right)
    elif isinstance(node, ast.Tuple):
        yield from node.elts
    elif isinstance(node, ast.Subscript):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.Call) and last_name(node.func) in _KEEPS_LAYOUT:
        if not is_function(node) and isinstance(node.func, ast.Attribute):
            yield node.func.value
        for value in node.args:
            yield from value.elts if isinstance(value, (ast.List, ast.Tuple)) else (value,)


def _is_product(value: Value) -> bool:
    """Tell a matrix product that nothing shows to be float32 already."""
    for one in values_of(value.node, value.names):
        node = one.node
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            factors = [node.left, node.right]
        elif isinstance(node, ast.Call) and last_name(node.func) in _PRODUCTS:
            factors = list(node.args)
            factors += [node.func.value] if isinstance(node.func, ast.Attribute) and not is_function(node) else []
        elif isinstance(node, ast.Call) and last_name(node.func) in _KEEPS_LAYOUT and not is_function(node):
            inner = argument(node, 0)
            if inner is not None and _is_product(Value(inner, one.names)):
                return True
            continue
        else:
            continue
        if not any(has_float32(Value(factor, one.names)) for factor in factors):
            return True
    return False


def _is_scale(value: Value) -> bool:
    """Tell a factor that rounds: no mask, no other product, no power of two."""
    if "mask" in ast.unparse(value.node) or is_power_of_two(value):
        return False
    return not _is_product(value)
