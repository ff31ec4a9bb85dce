"""Checks of numbers: an RMS norm by hand, and a product that is scaled before it is float32."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from toolkit.lint.findings import Hit
from toolkit.lint.flow import Names, follow
from toolkit.lint.norms import find_norms
from toolkit.lint.outline import CodeBase, Function, last_name
from toolkit.lint.scales import find_scales

_MAY_NORM = re.compile(r"sqrt|0\.5")
_MAY_CAST = re.compile(r"float|softmax")
_MAY_MULTIPLY = re.compile(r"@|matmul|bmm|einsum|\bmm\b|F\.linear|functional\.linear")
_REFERENCE = re.compile(r"(^|_)(ref|reference|golden|naive|expected|test|backward|bwd)(_|\d|$)")


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
            found.extend(find_norms(function, node, names))
            found.extend(find_scales(function, node, names))

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
