"""Backwards that raise because a gradient is there, or is not."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from toolkit.lint.findings import Hit
from toolkit.lint.outline import Function, FunctionNode, dotted, last_name, own_nodes


def find_raises(backward: Function) -> Iterator[Hit]:
    arguments = backward.node.args
    names = set(backward.parameters[1:]) | ({arguments.vararg.arg} if arguments.vararg else set())
    names |= set(_loop_names(backward.node, names))
    takes_none = _takes_none(backward)
    for node, condition, holds in _conditions_of_raises(backward.node):
        name = _refused(condition, names, holds)
        what = f"a gradient for `{name}`"
        if not name and takes_none and len(backward.parameters) > 2:
            name = _refused(condition, names, not holds)
            what = f"None for `{name}`, which set_materialize_grads(False) makes of an unused output"
        if name:
            yield Hit(
                check="raise-on-placeholder-gradient", file=backward.module.source.file, line=node.lineno,
                what=f"{backward.name} raises on {what}",
            )  # fmt: skip


def _conditions_of_raises(backward: FunctionNode) -> Iterator[tuple[ast.stmt, ast.expr, bool]]:
    """Yield each statement that raises on a condition, and whether that is when the condition holds."""
    for node in own_nodes(backward):
        if isinstance(node, ast.Assert):
            yield node, node.test, False
        elif isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise):
            yield node, node.test, True
        elif isinstance(node, ast.If) and node.orelse and isinstance(node.orelse[-1], ast.Raise):
            yield node, node.test, False
        elif isinstance(node, ast.Expr) and (condition := condition_of_check(node)) is not None:
            yield node, condition, False


def condition_of_check(node: ast.stmt) -> ast.expr | None:
    """Return the condition of `torch._check(condition, …)`."""
    call = node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    return call.args[0] if call is not None and dotted(call.func) == "torch._check" and call.args else None


def _loop_names(backward: FunctionNode, names: set[str]) -> Iterator[str]:
    """Name what goes through the gradients in a loop."""
    for node in own_nodes(backward):
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and _gradient(node.iter, names):
            yield node.target.id


def _takes_none(backward: Function) -> bool:
    methods: Sequence[Function] = list(backward.owner.methods.values()) if backward.owner is not None else ()
    return any(
        isinstance(node, ast.Call) and last_name(node.func) == "set_materialize_grads"
        for method in methods
        for node in ast.walk(method.node)
    )


def _refused(test: ast.expr, names: set[str], holds: bool) -> str:
    """Return the gradient whose being there makes a condition hold (or not), "" if none does."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _refused(test.operand, names, not holds)
    if isinstance(test, ast.BoolOp):
        found = [name for value in test.values if (name := _refused(value, names, holds))]
        is_all = isinstance(test.op, ast.And) == holds
        asked = [node.id for node in ast.walk(test) if isinstance(node, ast.Name) and node.id in found]
        return found[0] if found and not (is_all and len(asked) > len(found)) else ""
    if isinstance(test, ast.Compare) and isinstance(test.comparators[0], ast.Constant):
        is_none = test.comparators[0].value is None and isinstance(test.ops[0], ast.Is)
        is_some = test.comparators[0].value is None and isinstance(test.ops[0], ast.IsNot)
        name = _gradient(test.left, names)
        return name if (is_some and holds) or (is_none and not holds) else ""
    if isinstance(test, ast.Call) and last_name(test.func) in ("any", "all") and len(test.args) == 1:
        return _refused_among(test.args[0], names, holds)
    return _gradient(test, names) if holds else ""


def _refused_among(argument: ast.expr, names: set[str], holds: bool) -> str:
    """Read `any(g is not None for g in gradients[1:])`."""
    if not isinstance(argument, (ast.GeneratorExp, ast.ListComp)):
        return ""
    loop = argument.generators[0]
    name = _gradient(loop.iter.value if isinstance(loop.iter, ast.Subscript) else loop.iter, names)
    if not name or not isinstance(loop.target, ast.Name):
        return ""
    return name if _refused(argument.elt, {loop.target.id}, holds) else ""


def _gradient(node: ast.expr, names: set[str]) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) and node.id in names else ""
