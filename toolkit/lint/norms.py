"""An RMS norm that is written out by hand, in any of its spellings."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from toolkit.lint.findings import Hit
from toolkit.lint.flow import Names, Value, values_of
from toolkit.lint.outline import Function, last_name
from toolkit.lint.spelling import argument, has_float32, is_function, operands, power_of, same_tensor, strip_casts


def find_norms(function: Function, node: ast.expr, names: Names) -> Iterator[Hit]:
    for left, factor, keeps in _scaled_by_root(node, names):
        squared = _mean_square(factor, keeps)
        if squared is None or not same_tensor(Value(left, names), squared) or _is_centred(squared):
            continue
        is_upcast = has_float32(Value(left, names)) or has_float32(squared)
        note = " in float32, so its values stay; one operator is what a backend can fuse" if is_upcast else ""
        what = f"an RMS norm of `{ast.unparse(left)}` by hand in {function.name.partition('@')[0]}{note}"
        why = "the compiler sees five operations where a backend has one with its own backward" if is_upcast else ""
        yield Hit(check="hand-written-rms-norm", file=function.module.source.file, line=node.lineno, what=what, why=why)


def _scaled_by_root(node: ast.expr, names: Names) -> Iterator[tuple[ast.expr, Value, bool]]:
    """Yield x, what stands below the root, and whether an axis is put back after it: x * rsqrt(…), x / sqrt(…)."""
    for one, right in operands(node, ast.Mult, {"mul", "mul_", "multiply"}, both=True):
        for value, keeps in _with_axis_taken_off(right, names):
            if (inner := _reciprocal_root(value)) is not None:
                yield from ((left, inner, keeps) for left in _factors(one))
    for one, right in operands(node, ast.Div, {"div", "div_", "divide", "true_divide"}, both=False):
        for value, keeps in _with_axis_taken_off(right, names):
            for root in (value, *_summands(value)):  # sqrt(…) + eps
                if (inner := power_of(root, 0.5, {"sqrt", "sqrt_"})) is not None:
                    yield from ((left, inner, keeps) for left in _factors(one))


def _with_axis_taken_off(node: ast.expr, names: Names) -> Iterator[tuple[Value, bool]]:
    for value in values_of(strip_casts(node), names):
        whole = _without_axis(value)
        yield whole or value, whole is not None


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    yield node
    for left, right in operands(node, ast.Mult, {"mul"}, both=False):
        yield from _factors(left)
        yield from _factors(right)


def _summands(value: Value) -> Iterator[Value]:
    for pair in operands(value.node, ast.Add, {"add", "add_"}, both=False):
        yield from (Value(one, value.names) for one in pair)


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


def _mean_square(value: Value, keeps: bool) -> Value | None:
    """Return x of mean(x², -1, keepdim=True) [+ eps]; `keeps` where the axis is put back later."""
    for one in values_of(strip_casts(value.node), value.names):
        candidates = [one.node, *(part.node for part in _summands(one))]
        if isinstance(one.node, ast.Call) and last_name(one.node.func) in ("clamp", "clamp_min", "clamp_", "maximum"):
            candidates += filter(None, [argument(one.node, 0)])
        for candidate in candidates:
            for mean in values_of(strip_casts(candidate), one.names):
                whole = _without_axis(mean)
                if (found := _squared_in_mean(whole or mean, keeps=keeps or whole is not None)) is not None:
                    return found
    return None


def _without_axis(value: Value) -> Value | None:
    """Take off `.unsqueeze(-1)` or `[..., None]`, which stands for keepdim=True; None where there is none."""
    node = value.node
    if isinstance(node, ast.Call) and last_name(node.func) in ("unsqueeze", "unsqueeze_"):
        inner = argument(node, 0)
        return next(values_of(strip_casts(inner), value.names), None) if inner is not None else None
    if isinstance(node, ast.Subscript) and ast.unparse(node.slice).rstrip(")").endswith("None"):
        return next(values_of(strip_casts(node.value), value.names), None)
    return None


def _squared_in_mean(value: Value, *, keeps: bool) -> Value | None:
    node = value.node
    for total, _ in operands(node, ast.Div, {"div"}, both=False):  # sum(x², -1) / n
        for one in values_of(total, value.names):
            if _is_over_last(one.node, "sum", keeps):
                return _square(one)
    for total, factor in operands(node, ast.Mult, {"mul"}, both=True):  # sum(x², -1) * (1 / n)
        if isinstance(factor, ast.BinOp):
            for one in values_of(total, value.names):
                if _is_over_last(one.node, "sum", keeps):
                    return _square(one)
    return _square(value) if _is_over_last(node, "mean", keeps) else None


def _is_over_last(node: ast.expr, name: str, keeps: bool) -> bool:
    """Tell mean(…, -1, keepdim=True), by position or by name; `keeps` where the axis is put back later."""
    if not isinstance(node, ast.Call) or last_name(node.func) != name:
        return False
    is_method = not is_function(node)
    places = node.args if is_method else node.args[1:]
    named = {keyword.arg: keyword.value for keyword in node.keywords}
    dim = named.get("dim", named.get("axis", places[0] if places else None))
    keep = named.get("keepdim", named.get("keepdims", places[1] if len(places) > 1 else None))
    if not (keeps or (isinstance(keep, ast.Constant) and keep.value is True)) or dim is None:
        return False
    text = ast.unparse(dim).strip("()[], ").split(",")[-1].strip()
    return text in ("-1", "2", "3") or text.endswith(("ndim - 1", "dim() - 1"))


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
    """Tell x - mean(x), as it stands or times a mask: a layer norm."""
    for one in values_of(strip_casts(value.node), value.names):
        for node in ast.walk(one.node):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
                if "mean" in ast.unparse(node.right):
                    return True
                if any("mean" in ast.unparse(it.node) for it in values_of(node.right, one.names)):
                    return True
    return False
