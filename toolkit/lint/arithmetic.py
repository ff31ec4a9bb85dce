"""Checks of numbers: an RMS norm by hand, and a product that is scaled before it is float32."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from toolkit.lint.findings import Hit
from toolkit.lint.flow import Names, Value, follow, values_of
from toolkit.lint.outline import CodeBase, Function, dotted, last_name
from toolkit.lint.spelling import (
    argument,
    has_float32,
    is_float32,
    is_power_of_two,
    operands,
    power_of,
    same_tensor,
    strip_casts,
)

_MAY_NORM = re.compile(r"sqrt|0\.5")
_MAY_CAST = re.compile(r"float|softmax")
_MAY_MULTIPLY = re.compile(r"@|matmul|bmm|einsum|\bmm\b|F\.linear|functional\.linear")
_PRODUCTS = {"matmul", "bmm", "mm", "einsum", "linear"}
_KEEPS_LAYOUT = {
    "transpose", "permute", "view", "reshape", "contiguous", "clone", "unsqueeze", "squeeze", "flatten", "unflatten",
    "masked_fill", "masked_fill_", "add", "add_", "sub", "sub_", "where", "cat", "concat", "tril", "triu", "expand",
    "relu", "relu_", "clamp", "clamp_", "detach",
}  # fmt: skip
_REFERENCE = re.compile(r"(^|_)(ref|reference|golden|naive|expected|test|backward|bwd)(_|\d|$)")
_DEPTH = 12


def check_arithmetic(base: CodeBase) -> Iterator[Hit]:
    """Look at every function but references that a test compares with, backwards, and kernels in their own language."""
    for function in base.functions():
        if _REFERENCE.search(function.node.name) or _is_kernel(function):
            continue
        text = _text_of(function)
        may_scale = _MAY_CAST.search(text) and _MAY_MULTIPLY.search(text)
        if may_scale or (_MAY_NORM.search(text) and ("mean" in text or "sum" in text)):
            yield from dict.fromkeys(_hits(function))


def _text_of(function: Function) -> str:
    return "\n".join(function.module.source.lines[function.node.lineno - 1 : function.node.end_lineno])


def _is_kernel(function: Function) -> bool:
    decorators = (one.func if isinstance(one, ast.Call) else one for one in function.node.decorator_list)
    return any(last_name(one) in ("jit", "kernel") for one in decorators)


def _hits(function: Function) -> Iterator[Hit]:
    found: list[Hit] = []

    def visit(statement: ast.stmt, names: Names) -> None:
        for node in _expressions(statement):
            found.extend(_norms(function, node, names))
            found.extend(_scales(function, node, names))

    follow(function.node, visit)
    yield from found


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield the expressions of a statement itself, not those of the statements below it."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        left = ast.copy_location(ast.Name(statement.target.id, ast.Load()), statement.target)
        yield ast.copy_location(ast.BinOp(left, statement.op, statement.value), statement)
    pending: list[ast.AST] = [one for one in ast.iter_child_nodes(statement) if not isinstance(one, ast.stmt)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.expr):
            yield node
        if not isinstance(node, (ast.Lambda, ast.stmt)):
            pending += ast.iter_child_nodes(node)


# --- RMS norm ----------------------------------------------------------------------------------------------------


def _norms(function: Function, node: ast.expr, names: Names) -> Iterator[Hit]:
    for left, factor in _scaled_by_root(node, names):
        squared = _mean_square(factor)
        if squared is None or not same_tensor(Value(left, names), squared) or _is_centred(squared):
            continue
        is_upcast = has_float32(Value(left, names)) or has_float32(squared)
        note = " in float32, so its values stay; one operator is what a backend can fuse" if is_upcast else ""
        what = f"an RMS norm of `{ast.unparse(left)}` by hand in {function.name.partition('@')[0]}{note}"
        why = "the compiler sees five operations where a backend has one with its own backward" if is_upcast else ""
        yield Hit(check="hand-written-rms-norm", file=function.module.source.file, line=node.lineno, what=what, why=why)


def _scaled_by_root(node: ast.expr, names: Names) -> Iterator[tuple[ast.expr, Value]]:
    """Yield x and what stands below the root, for x * rsqrt(…), x / sqrt(…) and the like."""
    for left, right in operands(node, ast.Mult, {"mul", "mul_", "multiply"}, both=True):
        for value in values_of(strip_casts(right), names):
            if (inner := _reciprocal_root(value)) is not None:
                yield left, inner
    for left, right in operands(node, ast.Div, {"div", "div_", "divide", "true_divide"}, both=False):
        for value in values_of(strip_casts(right), names):
            if (inner := power_of(value, 0.5, {"sqrt", "sqrt_"})) is not None:
                yield left, inner


def _reciprocal_root(value: Value) -> Value | None:
    inner = power_of(value, -0.5, {"rsqrt", "rsqrt_"})
    if inner is not None:
        return inner
    for one, below in operands(value.node, ast.Div, {"div"}, both=False):
        if isinstance(one, ast.Constant) and one.value in (1, 1.0):
            return next(filter(None, (power_of(it, 0.5, {"sqrt"}) for it in values_of(below, value.names))), None)
    if isinstance(value.node, ast.Call) and last_name(value.node.func) == "reciprocal":
        whole = argument(value.node, 0)
        return power_of(Value(whole, value.names), 0.5, {"sqrt"}) if whole is not None else None
    return None


def _mean_square(value: Value) -> Value | None:
    """Return x of mean(x², -1, keepdim=True) [+ eps]."""
    for one in values_of(strip_casts(value.node), value.names):
        candidates = [one.node]
        for left, right in operands(one.node, ast.Add, {"add", "add_"}, both=False):
            candidates += [left, right]
        if isinstance(one.node, ast.Call) and last_name(one.node.func) in ("clamp", "clamp_min", "clamp_", "maximum"):
            candidates += filter(None, [argument(one.node, 0)])
        for candidate in candidates:
            for mean in values_of(strip_casts(candidate), one.names):
                if (found := _squared_in_mean(mean)) is not None:
                    return found
    return None


def _squared_in_mean(value: Value) -> Value | None:
    node = value.node
    for total, _ in operands(node, ast.Div, {"div"}, both=False):  # sum(x², -1) / n
        for one in values_of(total, value.names):
            if _is_over_last(one.node, "sum"):
                return _square(one)
    for total, factor in operands(node, ast.Mult, {"mul"}, both=True):  # sum(x², -1) * (1 / n)
        if isinstance(factor, ast.BinOp):
            for one in values_of(total, value.names):
                if _is_over_last(one.node, "sum"):
                    return _square(one)
    return _square(value) if _is_over_last(node, "mean") else None


def _is_over_last(node: ast.expr, name: str) -> bool:
    """Tell mean(…, -1, keepdim=True), by position or by name."""
    if not isinstance(node, ast.Call) or last_name(node.func) != name:
        return False
    is_method = not _is_function(node)
    places = node.args if is_method else node.args[1:]
    named = {keyword.arg: keyword.value for keyword in node.keywords}
    dim = named.get("dim", named.get("axis", places[0] if places else None))
    keep = named.get("keepdim", named.get("keepdims", places[1] if len(places) > 1 else None))
    if not (isinstance(keep, ast.Constant) and keep.value is True) or dim is None:
        return False
    text = ast.unparse(dim).strip("()[], ").split(",")[-1].strip()
    return text in ("-1", "2", "3") or text.endswith(("ndim - 1", "dim() - 1"))


def _is_function(node: ast.Call) -> bool:
    """Tell `torch.mean(x)` from `x.mean()`."""
    return not isinstance(node.func, ast.Attribute) or dotted(node.func.value) in ("torch", "th", "F", "torch.linalg")


def _square(value: Value) -> Value | None:
    """Return x of the x² that is summed up."""
    whole = argument(value.node, 0) if isinstance(value.node, ast.Call) else None
    if whole is None:
        return None
    for one in values_of(strip_casts(whole), value.names):
        inner = power_of(one, 2, {"square", "square_"})
        if inner is not None:
            return inner
        for left, right in operands(one.node, ast.Mult, {"mul"}, both=False):
            if same_tensor(Value(left, one.names), Value(right, one.names)):
                return Value(left, one.names)
    return None


def _is_centred(value: Value) -> bool:
    """Tell x - mean(x): a layer norm."""
    return any(
        "mean" in ast.unparse(right) or any("mean" in ast.unparse(it.node) for it in values_of(right, one.names))
        for one in values_of(strip_casts(value.node), value.names)
        for _, right in operands(one.node, ast.Sub, {"sub"}, both=False)
    )


# --- scale before the cast ---------------------------------------------------------------------------------------


def _scales(function: Function, node: ast.expr, names: Names) -> Iterator[Hit]:
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
    elif isinstance(node, ast.Subscript):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.Call) and last_name(node.func) in _KEEPS_LAYOUT:
        if not _is_function(node) and isinstance(node.func, ast.Attribute):
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
            factors += [node.func.value] if isinstance(node.func, ast.Attribute) and not _is_function(node) else []
        elif isinstance(node, ast.Call) and last_name(node.func) in _KEEPS_LAYOUT and not _is_function(node):
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
