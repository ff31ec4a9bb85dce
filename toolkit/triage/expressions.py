"""The conditions and sums that a rule may write about numbers: `reserved - allocated > 0.1 * capacity`.

Python's own grammar, of which only numbers, names, arithmetic, comparisons, `and`, `or` and `not` are allowed.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

BINARY: Mapping[type[ast.operator], Callable[[float, float], float]] = MappingProxyType(
    {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
)
COMPARING: Mapping[type[ast.cmpop], Callable[[float, float], bool]] = MappingProxyType(
    {
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
    }
)

LONGEST = 500
"""Of characters in an expression: a longer one would be nested deeper than Python follows."""

UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
SIZE = re.compile(r"(-?\d+(?:\.\d+)?)\s*(?:([KMGT])?(?:iB|B|b)?)?", re.IGNORECASE)


def number_of(text: str) -> float | None:
    """Return a number as a log writes it, sizes (`53.29 GiB`, `512 MB`) in bytes; None for what is none."""
    found = SIZE.fullmatch(text.strip().replace(",", ""))
    return None if found is None else float(found[1]) * UNITS[(found[2] or "").lower()]


def evaluate(expression: str, numbers: Mapping[str, float]) -> float | None:
    """Return what an expression comes to; None where a name in it is not known, or nothing divides.

    Raises ValueError for what is no such expression.
    """
    try:
        return _value(parse(expression), numbers)
    except (KeyError, ZeroDivisionError):
        return None


@lru_cache(maxsize=1024)
def parse(expression: str) -> ast.expr:
    """Return an expression's tree; ValueError for what is no expression of ours."""
    if len(expression) > LONGEST:
        raise ValueError(f"an expression has {len(expression)} characters, expected at most {LONGEST}")
    try:
        body = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError) as fault:
        raise ValueError(f"{expression!r} is no expression") from fault
    _value_or_name(body, expression)
    return body


def names_in(expression: str) -> frozenset[str]:
    """Return the names that an expression needs."""
    return frozenset(node.id for node in ast.walk(parse(expression)) if isinstance(node, ast.Name))


def _value(node: ast.expr, numbers: Mapping[str, float]) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.Name):
        return numbers[node.id]
    if isinstance(node, ast.BinOp):
        return BINARY[type(node.op)](_value(node.left, numbers), _value(node.right, numbers))
    if isinstance(node, ast.UnaryOp):
        value = _value(node.operand, numbers)
        return float(not value) if isinstance(node.op, ast.Not) else -value
    if isinstance(node, ast.BoolOp):
        values = (_value(one, numbers) for one in node.values)
        return float(all(values) if isinstance(node.op, ast.And) else any(values))
    assert isinstance(node, ast.Compare)
    terms = [_value(one, numbers) for one in (node.left, *node.comparators)]
    pairs = zip(node.ops, terms, terms[1:], strict=False)
    return float(all(COMPARING[type(op)](left, right) for op, left, right in pairs))


def _value_or_name(node: ast.AST, expression: str) -> None:
    """Raise ValueError for a tree with anything else in it than what is evaluated."""
    allowed = (
        ast.Name, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Not, ast.USub, ast.And, ast.Or, ast.Load,
        *BINARY, *COMPARING,
    )  # fmt: skip
    for one in ast.walk(node):
        is_number = isinstance(one, ast.Constant) and type(one.value) in (int, float)
        if is_number and not _is_finite(one):
            raise ValueError(f"{expression!r} has a number in it that is too large")
        if not (is_number or isinstance(one, allowed)):
            raise ValueError(f"{expression!r} has {type(one).__name__} in it, expected numbers, names and comparisons")


def _is_finite(node: Any) -> bool:
    try:
        return math.isfinite(float(node.value))
    except OverflowError:
        return False
