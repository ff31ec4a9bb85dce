"""What names stand for at each statement of a function: the expressions that may have been assigned last."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from toolkit.lint.outline import FunctionNode

MAX_VALUES = 6
"""Values of one name that are kept where branches meet."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """An expression, with what its names stood for where it was written."""

    node: ast.expr
    names: Names


Names = Mapping[str, tuple[Value, ...]]
"""Possible values by name; a name that is missing is a parameter or from outside, an empty tuple is unknown."""

Visit = Callable[[ast.stmt, Names], None]


def follow(function: FunctionNode, visit: Visit) -> None:
    """Call `visit` with every statement of a body and what the names stand for before it."""
    _block(function.body, {}, visit)


def values_of(node: ast.expr, names: Names) -> Iterator[Value]:
    """Yield what an expression may be, names looked up until they are none; an unknown name is itself."""
    pending = [Value(node, names)]
    seen: set[int] = set()
    while pending:
        value = pending.pop()
        found = value.names.get(value.node.id) if isinstance(value.node, ast.Name) else None
        if not found:
            yield value
            continue
        pending += [one for one in found if id(one) not in seen]
        seen.update(map(id, found))


def _block(body: Sequence[ast.stmt], names: Names, visit: Visit) -> Names | None:
    """Go through a body; None where its end is never reached."""
    at: Names | None = names
    for statement in body:
        if at is None:
            return None
        visit(statement, at)
        at = _after(statement, at, visit)
    return at


def _after(node: ast.stmt, names: Names, visit: Visit) -> Names | None:
    if isinstance(node, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
        return None
    if isinstance(node, ast.If):
        return _merged(_block(node.body, names, visit), _block(node.orelse, names, visit))
    if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        inside = names if isinstance(node, ast.While) else _bound(node.target, None, names)
        return _merged(names, _block(node.body, inside, visit))
    if isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            names = names if item.optional_vars is None else _bound(item.optional_vars, None, names)
        return _block(node.body, names, visit)
    if isinstance(node, ast.Try):
        ends = [_block([*node.body, *node.orelse], names, visit)]
        ends += [_block(handler.body, names, visit) for handler in node.handlers]
        merged = ends[0]
        for end in ends[1:]:
            merged = _merged(merged, end)
        return merged if merged is None else _block(node.finalbody, merged, visit)
    return _assigned(node, names)


def _assigned(node: ast.stmt, names: Names) -> Names:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            names = _bound(target, node.value, names)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        names = _bound(node.target, node.value, names)
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        left = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        names = _bound(node.target, ast.copy_location(ast.BinOp(left, node.op, node.value), node), names)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        names = _changed_in_place(node.value, names)
    return names


def _changed_in_place(call: ast.Call, names: Names) -> Names:
    """Take `x.mul_(s)` as a new value of x, and `x.append(y)` as x with y in it."""
    method = call.func
    if not isinstance(method, ast.Attribute) or not isinstance(method.value, ast.Name):
        return names
    if method.attr.endswith("_"):
        return {**names, method.value.id: (Value(call, names),)}
    return _with_items(method.value, call.args, names) if method.attr in ("append", "extend", "insert") else names


def _with_items(whole: ast.Name, items: Sequence[ast.expr], names: Names) -> Names:
    before = ast.copy_location(ast.Name(whole.id, ast.Load()), whole)
    return {**names, whole.id: (Value(ast.copy_location(ast.Tuple([before, *items], ast.Load()), whole), names),)}


def _bound(target: ast.expr, value: ast.expr | None, names: Names) -> Names:
    if isinstance(target, ast.Name):
        return {**names, target.id: () if value is None else (Value(value, names),)}
    if isinstance(target, (ast.Tuple, ast.List)):
        values: Sequence[ast.expr | None] = [None] * len(target.elts)
        if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
            values = value.elts
        bound = names
        for one, its in zip(target.elts, values, strict=True):
            inner = one.value if isinstance(one, ast.Starred) else one
            if isinstance(inner, ast.Name):
                bound = {**bound, inner.id: () if its is None else (Value(its, names),)}
            else:
                bound = _bound(inner, None, bound)
        return bound
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        return _with_items(target.value, [] if value is None else [value], names)
    return names


def _merged(one: Names | None, other: Names | None) -> Names | None:
    if one is None or other is None or one is other:
        return other if one is None else one
    merged = dict(one)
    for name, values in other.items():
        if name not in one:
            merged[name] = values
        elif one[name] is not values:
            both = dict.fromkeys((*one[name], *values)) if one[name] and values else ()
            merged[name] = tuple(both)[:MAX_VALUES]
    return merged
