"""What a program's instructions become in the DVM compiler's listings, as terms that can be compared.

    terms = Terms(program, numbers={}, shapes=shapes)
    terms.of[instruction.number]            # the number of its term
    terms.matching(node)                    # the terms that have a listed node's name and number

Instructions with equal terms compute the same, in the same way, but for a change of shape or element type. These are
no terms of their own: the compiler inserts and drops casts, broadcasts and reshapes as it likes. What it makes of the
other operations was observed on torch_npu 2.13.0 (`x - 2` is Add<-2>, `1 / x` is ScalarDiv<1>, `2 ** x` is
exp(x log 2), a power by a whole number is products).
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from verify.reference.listing import Node
from verify.reference.program import Instruction, Program, Value

INPUT = "input"
SAME = {
    "sqrt": "Sqrt", "abs": "Abs", "log": "Log", "exp": "Exp", "round": "Round", "floor": "Floor", "ceil": "Ceil",
    "trunc": "Trunc", "isfinite": "IsFinite", "logical_and": "LogicalAnd", "logical_or": "LogicalOr", "add": "Add",
    "mul": "Mul", "div": "Div", "maximum": "Maximum", "minimum": "Minimum", "sub": "Sub", "pow": "Power",
}  # fmt: skip
COMPARED = {"equal": 0, "not_equal": 1, "greater": 2, "greater_equal": 3, "less": 4, "less_equal": 5}
REDUCED = frozenset(("sum", "max", "min"))
COMMUTATIVE = frozenset(("Add", "Mul", "Maximum", "Minimum", "LogicalAnd", "LogicalOr"))
TRANSPARENT = frozenset(("Cast", "Broadcast", "Reshape", "Copy", "RemovePad"))
"""Nodes that leave a term as it is."""

CLOSE = 1e-3
"""Relative. A number is listed with six digits, as its element type holds it."""


class Term(NamedTuple):
    """One operation. `extra` and `size` tell terms apart that a listing does not: the kind of a reduction, of a

    comparison, and how many elements there are: an outer sum and the sum of the same vectors are two terms.
    """

    name: str
    number: float | None
    operands: tuple[int, ...]
    extra: str = ""
    size: int = 0


class Terms:
    """The terms of a program, with the scalars of the launch and the shapes of all values, by instruction number."""

    def __init__(self, program: Program, numbers: Mapping[int, float], shapes: Mapping[int, tuple[int, ...]]) -> None:
        self.of: dict[int, int] = {}
        self.all: list[Term] = []
        self._known: dict[Term, int] = {}
        self._by_name: dict[str, list[int]] = {}
        self._types: dict[int, str] = {one.number: one.dtype for one in program.instructions}
        self._numbers = numbers
        self._size = 0
        for one in program.instructions:
            if one.operation not in ("store", "spec_next", "scalar"):
                self._size = math.prod(shapes[one.number])
                self.of[one.number] = self._term(one)

    def matching(self, node: Node) -> list[int]:
        """Return the terms of a node's name and number."""
        return [one for one in self._by_name.get(node.name, ()) if _fits(self.all[one], node)]

    def instructions_of(self, term: int) -> list[int]:
        """Return the numbers of the instructions that have a term."""
        return [number for number, one in self.of.items() if one == term]

    def _term(self, one: Instruction) -> int:
        operation, operands = one.operation, one.operands
        if operation in ("load", "view_load"):
            return self._make(INPUT, extra=str(one.number))
        if operation in ("cast", "broadcast", "reshape", "copy"):
            return self._same_value(one)
        if operation in REDUCED:
            extra = f"{operation} <{list(operands[1])}, {operands[2]}>"
            return self._make("Reduce", self._operand(operands[0]), extra=extra)
        if operation in ("concat", "matmul", "full"):
            return self._structural(one)
        if operation == "select":
            condition, x, y = (self._operand(operand) for operand in operands)
            return self._make("Select", x, y, condition)
        if operation == "reciprocal":
            return self._make("ScalarDiv", self._operand(operands[0]), number=1.0)
        if operation == "logical_not":
            negative = self._make("Mul", self._operand(operands[0]), number=-1.0)
            return self._make("Add", negative, number=1.0)
        if len(operands) == 1:
            return self._make(SAME.get(operation, operation), self._operand(operands[0]))
        return self._binary(operation, *operands)

    def _structural(self, one: Instruction) -> int:
        if one.operation == "full":
            return self._make("BroadcastS", number=self._number(one.operands[0]))
        name = {"concat": "Concat", "matmul": "MatMul"}[one.operation]
        return self._make(name, *(self.of[value.number] for value in one.values if value.number in self.of))

    def _same_value(self, one: Instruction) -> int:
        source = one.operands[0]
        number = self._number(source)
        if number is not None:
            return self._make("BroadcastS", number=number)
        if one.operation == "cast" and one.dtype == "bool" and self._types[source.number] != "bool":
            return self._make("CompareS", self._operand(source), number=0.0, extra="not_equal")
        return self._operand(source)

    def _binary(self, operation: str, left: Any, right: Any) -> int:
        x, y = self._number(left), self._number(right)
        if operation in COMPARED:
            return self._compare(operation, left, right)
        if x is None and y is None:
            return self._make(SAME[operation], self._operand(left), self._operand(right))
        if operation == "pow":
            return self._power(left, right)
        if operation == "sub":
            if y is not None:
                return self._make("Add", self._operand(left), number=-y)
            return self._make("Add", self._make("Mul", self._operand(right), number=-1.0), number=x)
        if operation == "div" and x is not None:
            return self._make("ScalarDiv", self._operand(right), number=x)
        return self._make(SAME[operation], self._operand(right if y is None else left), number=x if y is None else y)

    def _compare(self, operation: str, left: Any, right: Any) -> int:
        x, y = self._number(left), self._number(right)
        if x is None and y is None:
            number = float(COMPARED[operation])
            return self._make("Compare", self._operand(left), self._operand(right), number=number)
        extra = operation if x is None else f"number {operation}"
        return self._make("CompareS", self._operand(right if y is None else left), number=y if x is None else x,
                          extra=extra)  # fmt: skip

    def _power(self, left: Any, right: Any) -> int:
        base, exponent = self._number(left), self._number(right)
        if base is not None:
            if base > 0:
                return self._make("Exp", self._make("Mul", self._operand(right), number=math.log(base)))
            return self._make("Power", self._make("BroadcastS", number=base), self._operand(right))
        rounded = ctypes.c_float(exponent or 0.0).value
        if not rounded.is_integer():
            return self._make("Power", self._operand(left), self._make("BroadcastS", number=exponent))
        result, square, rest = None, self._operand(left), abs(int(rounded))
        while rest:
            if rest & 1:
                result = square if result is None else self._make("Mul", result, square)
            rest >>= 1
            square = self._make("Mul", square, square) if rest else square
        if result is None:
            return self._make("BroadcastS", number=1.0)
        return result if rounded > 0 else self._make("ScalarDiv", result, number=1.0)

    def _operand(self, operand: Any) -> int:
        number = self._number(operand)
        return self.of[operand.number] if number is None else self._make("BroadcastS", number=number)

    def _number(self, operand: Any) -> float | None:
        if not isinstance(operand, Value):
            return float(operand)
        return float(self._numbers[operand.number]) if operand.number in self._numbers else None

    def _make(self, name: str, *operands: int, number: float | None = None, extra: str = "") -> int:
        term = Term(name, number, operands, extra, self._size if operands else 0)
        if term not in self._known:
            self._known[term] = len(self.all)
            self._by_name.setdefault(name, []).append(len(self.all))
            self.all.append(term)
        return self._known[term]


def _fits(term: Term, node: Node) -> bool:
    if len(term.operands) != len(node.operands):
        return False
    if term.number is None:
        if term.name == "Reduce":
            return _reduces(term, node)
        return node.name not in COMMUTATIVE or not node.attributes
    try:
        listed = float(node.attributes)
    except ValueError:
        return False
    if math.isnan(listed) or math.isnan(term.number):
        return math.isnan(listed) and math.isnan(term.number)
    return listed == term.number or abs(listed - term.number) <= CLOSE * abs(term.number)


def _reduces(term: Term, node: Node) -> bool:
    """Tell whether a listed reduction may be a term's: over the same axes, where the program counts them from 0."""
    _, _, wanted = term.extra.partition(" ")
    if "-" in wanted or "[]" in wanted:
        return True
    return wanted.lower().replace(" ", "") == f"<{node.attributes}>".replace(" ", "")
