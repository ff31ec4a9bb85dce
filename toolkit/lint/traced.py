"""What of a function the compiler sees: the nodes that run while it compiles, in order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolkit.lint.outline import FunctionNode, last_name

_COMPILING = re.compile(r"compiling|_tracing$")


@dataclass(frozen=True, slots=True)
class Seen:
    """A node; `is_fatal` where the block that it stands in ends in a raise."""

    node: ast.AST
    is_fatal: bool


def seen_nodes(function: FunctionNode) -> Iterator[Seen]:
    """Yield the nodes of a body but what only eager runs reach, handlers of exceptions, and inner functions."""
    yield from _block(function.body, False)


def is_eager_if(test: ast.expr, *, holds: bool) -> bool:
    """Tell whether a condition that holds (or does not) means that nothing is compiling."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_eager_if(test.operand, holds=not holds)
    if isinstance(test, ast.BoolOp):
        each = [is_eager_if(value, holds=holds) for value in test.values]
        return any(each) if isinstance(test.op, ast.And) == holds else all(each)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.comparators[0], ast.Constant):
        return _is_eager_if_compared(test, test.comparators[0].value, holds)
    name = last_name(test.func if isinstance(test, ast.Call) else test)
    return not holds and bool(_COMPILING.search(name)) and "jit" not in ast.dump(test)


def _is_eager_if_compared(test: ast.Compare, value: object, holds: bool) -> bool:
    """Read `is_compiling() is False` and `== True`."""
    if not isinstance(value, bool):
        return False
    is_same = isinstance(test.ops[0], (ast.Is, ast.Eq))
    return is_eager_if(test.left, holds=holds == (value == is_same))


def _block(body: Sequence[ast.stmt], is_fatal: bool) -> Iterator[Seen]:
    is_fatal = is_fatal or (bool(body) and isinstance(body[-1], ast.Raise))
    for statement in body:
        yield from _statement(statement, is_fatal)
        if isinstance(statement, ast.If) and _leaves(statement.body) and is_eager_if(statement.test, holds=False):
            return  # `if torch.compiler.is_compiling(): return`


def _leaves(body: Sequence[ast.stmt]) -> bool:
    return isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def _statement(node: ast.stmt, is_fatal: bool) -> Iterator[Seen]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    yield Seen(node, is_fatal)
    if isinstance(node, ast.If):
        yield from _expression(node.test, is_fatal)
        if not is_eager_if(node.test, holds=True) and last_name(node.test) != "TYPE_CHECKING":
            yield from _block(node.body, is_fatal)
        if not is_eager_if(node.test, holds=False):
            yield from _block(node.orelse, is_fatal)
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from _expression(child, is_fatal)
        elif isinstance(child, ast.withitem):
            yield from _expression(child.context_expr, is_fatal)
    for name in ("body", "orelse", "finalbody"):
        yield from _block(getattr(node, name, ()), is_fatal)
    for case in getattr(node, "cases", ()):
        yield from _block(case.body, is_fatal)


def _expression(node: ast.expr, is_fatal: bool) -> Iterator[Seen]:
    yield Seen(node, is_fatal)
    if isinstance(node, ast.IfExp):
        yield from _expression(node.test, is_fatal)
        if not is_eager_if(node.test, holds=True):
            yield from _expression(node.body, is_fatal)
        if not is_eager_if(node.test, holds=False):
            yield from _expression(node.orelse, is_fatal)
        return
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            yield from _expression(value, is_fatal)
            if is_eager_if(value, holds=isinstance(node.op, ast.And)):
                return
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from _expression(child, is_fatal)
        elif isinstance(child, (ast.keyword, ast.comprehension)):
            yield from _expression(child.value if isinstance(child, ast.keyword) else child.iter, is_fatal)
