"""Check of Meta and fake functions: sizes are integers, so they are divided with `//`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from toolkit.lint.findings import Hit
from toolkit.lint.flow import Names, Value, follow, values_of
from toolkit.lint.outline import CodeBase, Function, dotted, last_name
from toolkit.lint.reaching import Reach
from toolkit.lint.spelling import operands

_MAKES = {
    "empty", "zeros", "ones", "full", "rand", "randn", "empty_strided", "new_empty", "new_zeros", "new_ones",
    "new_full", "new_empty_strided", "Size", "view", "reshape", "expand", "repeat", "broadcast_to", "unflatten",
    "as_strided",
}  # fmt: skip
_ROUNDS = {"ceil", "floor", "sym_int", "round"}
"""Of these torch keeps a size symbolic; `int` binds it to a number."""

_NAMED_SO = re.compile(r"(^|_)(meta|fake|abstract)(_impl|_fn|_kernel)?$|^(meta|abstract)_")
_DEPTH = 8


def check_shapes(base: CodeBase, reached: Sequence[Reach]) -> Iterator[Hit]:
    """Look at what is registered as Meta or fake, what that calls, and functions whose name says that they are one."""
    functions = dict.fromkeys(one.function for one in reached if "fake" in one.kinds)
    functions.update(dict.fromkeys(one for one in base.functions() if _NAMED_SO.search(one.node.name)))
    for function in functions:
        if "/" in function.module.source.text or "div" in function.module.source.text:
            yield from dict.fromkeys(_hits(base, function))


def _hits(base: CodeBase, function: Function) -> Iterator[Hit]:
    found: list[Hit] = []
    file = function.module.source.file

    def visit(statement: ast.stmt, names: Names) -> None:
        for node in _calls(statement):
            for size in _sizes(node):
                for division, is_bound in _divisions(base, function, Value(size, names), _DEPTH):
                    where = f"a size of `{last_name(node.func)}`"
                    where += "" if division.lineno == node.lineno else f" in line {node.lineno}"
                    what = f"`{ast.unparse(division)}` is {where} in {function.name.partition('@')[0]}"
                    what += ", an int() of a float" if is_bound else ""
                    found.append(Hit(check="float-shape-in-fake", file=file, line=division.lineno, what=what,
                                     right=f"`{_with_floor(division)}`"))  # fmt: skip

    follow(function.node, visit)
    yield from found


def _with_floor(node: ast.expr) -> str:
    pair = next(operands(node, ast.Div, {"div", "truediv", "true_divide"}, both=False), None)
    return ast.unparse(ast.BinOp(pair[0], ast.FloorDiv(), pair[1])) if pair is not None else ast.unparse(node)


def _calls(statement: ast.stmt) -> Iterator[ast.Call]:
    pending: list[ast.AST] = [one for one in ast.iter_child_nodes(statement) if not isinstance(one, ast.stmt)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call) and last_name(node.func) in _MAKES:
            yield node
        pending += [one for one in ast.iter_child_nodes(node) if not isinstance(one, ast.stmt)]


def _sizes(node: ast.Call) -> Iterator[ast.expr]:
    """Yield what a call takes for sizes; for one that also takes a value, its first argument alone."""
    name = last_name(node.func)
    is_of_torch = dotted(node.func).startswith("torch.")
    values: list[ast.expr] = list(node.args)
    if name in ("full", "new_full"):
        values = values[:1]
    elif name in ("broadcast_to", "reshape", "as_strided", "unflatten") and is_of_torch:
        values = values[1:]
    yield from values
    yield from (keyword.value for keyword in node.keywords if keyword.arg in ("size", "shape", "stride", "sizes"))


def _divisions(
    base: CodeBase, function: Function, value: Value, depth: int, is_bound: bool = False
) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the true divisions in a size, and whether an int() is around them."""
    if depth == 0:
        return
    for one in values_of(value.node, value.names):
        node = one.node
        if any(True for _ in operands(node, ast.Div, {"truediv"}, both=False)):
            yield node, is_bound
            continue
        inner: list[ast.expr] = []
        if isinstance(node, (ast.Tuple, ast.List)):
            inner = node.elts
        elif isinstance(node, ast.Starred):
            inner = [node.value]
        elif isinstance(node, ast.BinOp):
            inner = [node.left, node.right] if not isinstance(node.op, ast.FloorDiv) else []
        elif isinstance(node, ast.IfExp):
            inner = [node.body, node.orelse]
        elif isinstance(node, ast.Call):
            yield from _divisions_in_call(base, function, one, node, depth)
        for part in inner:
            yield from _divisions(base, function, Value(part, one.names), depth - 1, is_bound)


def _divisions_in_call(
    base: CodeBase, function: Function, value: Value, node: ast.Call, depth: int
) -> Iterator[tuple[ast.expr, bool]]:
    name = last_name(node.func)
    if name in _ROUNDS:
        return
    if name in ("int", "max", "min", "tuple", "list", "Size"):
        for part in node.args:
            yield from _divisions(base, function, Value(part, value.names), depth - 1, name == "int")
        return
    called = base.called(function, dotted(node.func))
    if called is None or called.module is not function.module:
        return
    found: list[tuple[ast.expr, bool]] = []

    def visit(statement: ast.stmt, names: Names) -> None:
        if isinstance(statement, ast.Return) and statement.value is not None:
            found.extend(_divisions(base, called, Value(statement.value, names), depth - 1))

    follow(called.node, visit)
    yield from found
