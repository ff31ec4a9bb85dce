"""What of a function the compiler sees: the nodes that run while it compiles, in order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from toolkit.lint.outline import FunctionNode, last_name

_COMPILING = re.compile(r"compiling|_tracing$")


@dataclass(frozen=True, slots=True)
class Seen:
    """A node; `is_fatal` where the block that it stands in ends in a raise."""

    node: ast.AST
    is_fatal: bool


Guards = Mapping[str, ast.expr]
"""Names of a function that stand for a condition about compiling, each with that condition."""


def seen_nodes(function: FunctionNode) -> Iterator[Seen]:
    """Yield the nodes of a body but what only eager runs reach, handlers of exceptions, and inner functions."""
    yield from _block(function.body, False, _guards_of(function))


def _guards_of(function: FunctionNode) -> Guards:
    """Find `eager = not torch.compiler.is_compiling() and …` of names that are assigned once."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    once = {name: values[0] for name, values in found.items() if len(values) == 1}
    return {
        name: value for name, value in once.items() if is_eager_if(value, holds=True) or is_eager_if(value, holds=False)
    }


def is_eager_if(test: ast.expr, *, holds: bool, guards: Guards = MappingProxyType({})) -> bool:
    """Tell whether a condition that holds (or does not) means that nothing is compiling."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_eager_if(test.operand, holds=not holds, guards=guards)
    if isinstance(test, ast.BoolOp):
        each = [is_eager_if(value, holds=holds, guards=guards) for value in test.values]
        return any(each) if isinstance(test.op, ast.And) == holds else all(each)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.comparators[0], ast.Constant):
        return _is_eager_if_compared(test, test.comparators[0].value, holds, guards)
    if isinstance(test, ast.Name) and test.id in guards:
        return is_eager_if(guards[test.id], holds=holds)
    name = last_name(test.func if isinstance(test, ast.Call) else test)
    return not holds and bool(_COMPILING.search(name)) and "jit" not in ast.dump(test)


def _is_eager_if_compared(test: ast.Compare, value: object, holds: bool, guards: Guards) -> bool:
    """Read `is_compiling() is False` and `== True`."""
    if not isinstance(value, bool):
        return False
    is_same = isinstance(test.ops[0], (ast.Is, ast.Eq))
    return is_eager_if(test.left, holds=holds == (value == is_same), guards=guards)


def _block(body: Sequence[ast.stmt], is_fatal: bool, guards: Guards) -> Iterator[Seen]:
    is_fatal = is_fatal or (bool(body) and isinstance(body[-1], ast.Raise))
    for statement in body:
        yield from _statement(statement, is_fatal, guards)
        if isinstance(statement, ast.If) and _leaves_while_compiling(statement, guards):
            return


def _leaves_while_compiling(node: ast.If, guards: Guards) -> bool:
    """Tell `if torch.compiler.is_compiling(): return`."""
    leaves = isinstance(node.body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))
    return leaves and is_eager_if(node.test, holds=False, guards=guards)


def _statement(node: ast.stmt, is_fatal: bool, guards: Guards) -> Iterator[Seen]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    yield Seen(node, is_fatal)
    if isinstance(node, ast.If):
        yield from _expression(node.test, is_fatal, guards)
        if not is_eager_if(node.test, holds=True, guards=guards) and last_name(node.test) != "TYPE_CHECKING":
            yield from _block(node.body, is_fatal, guards)
        if not is_eager_if(node.test, holds=False, guards=guards):
            yield from _block(node.orelse, is_fatal, guards)
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            is_message = isinstance(node, ast.Assert) and child is node.msg
            yield from _expression(child, is_fatal or is_message, guards)
        elif isinstance(child, ast.withitem):
            yield from _expression(child.context_expr, is_fatal, guards)
    for name in ("body", "orelse", "finalbody"):
        yield from _block(getattr(node, name, ()), is_fatal, guards)
    for case in getattr(node, "cases", ()):
        yield from _block(case.body, is_fatal, guards)


def _expression(node: ast.expr, is_fatal: bool, guards: Guards) -> Iterator[Seen]:
    yield Seen(node, is_fatal)
    if isinstance(node, ast.Lambda):
        return  # Whoever calls it, and when, is not told here.
    if isinstance(node, ast.IfExp):
        yield from _expression(node.test, is_fatal, guards)
        if not is_eager_if(node.test, holds=True, guards=guards):
            yield from _expression(node.body, is_fatal, guards)
        if not is_eager_if(node.test, holds=False, guards=guards):
            yield from _expression(node.orelse, is_fatal, guards)
        return
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from _expression(value, is_fatal, guards)
            if is_eager_if(value, holds=isinstance(node.op, ast.And), guards=guards):
                return
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from _expression(child, is_fatal, guards)
        elif isinstance(child, (ast.keyword, ast.comprehension)):
            yield from _expression(child.value if isinstance(child, ast.keyword) else child.iter, is_fatal, guards)
