"""Tell which values of a program are the same elements in memory, whatever their shapes.

    contents = Contents(program, shapes)        # shapes of all values, by instruction number
    contents.of[3] == contents.of[5]            # one lies in memory as the other does, but for the element type

Equal contents are certain: each is computed by the same operations of equal contents. A reshape, a copy, a broadcast
that repeats nothing and a cast that loses nothing leave a content as it is. Different contents may still hold the same
elements by chance, or by a law of arithmetic that is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from verify.reference.program import REDUCTIONS, Instruction, Program, Value

WIDTHS = {"bool": 0, "bfloat16": 1, "float16": 1, "float32": 2, "int32": 2, "int64": 3}
"""Which element type holds more than which."""

FLOATING = frozenset(("bfloat16", "float16", "float32"))
SHAPED = frozenset(("concat", "matmul", "full", "broadcast"))
"""Operations that go by their operands' shapes even where these are all alike."""

Shape = tuple[int, ...]


class Contents:
    """What lies in memory of each value, by instruction number, as numbers that can be compared."""

    def __init__(self, program: Program, shapes: Mapping[int, Shape]) -> None:
        self.of: dict[int, int] = {}
        self._shapes = shapes
        self._types: dict[int, str] = {one.number: one.dtype for one in program.instructions}
        self._exact: dict[int, str] = {}
        self._known: dict[tuple[Any, ...], int] = {}
        for one in program.instructions:
            if one.operation not in ("store", "spec_next"):
                self._add(one)

    def _add(self, one: Instruction) -> None:
        """Note the content of a value, and the element type that holds it and that it was rounded to."""
        source = one.operands[0] if one.operands and isinstance(one.operands[0], Value) else None
        if source is not None and self._keeps(one, source):
            self.of[one.number] = self.of[source.number]
            self._exact[one.number] = self._exact[source.number]
            return
        self.of[one.number] = self._known.setdefault(self._key(one), one.number)
        self._exact[one.number] = one.dtype

    def _keeps(self, one: Instruction, source: Value) -> bool:
        if one.operation in ("reshape", "copy"):
            return True
        if one.operation == "broadcast":
            return math.prod(self._shapes[one.number]) == math.prod(self._shapes[source.number])
        if one.operation != "cast":
            return False
        held = self._exact[source.number]
        return one.dtype == held or ({one.dtype, held} <= FLOATING and not rounds(held, one.dtype))

    def _key(self, one: Instruction) -> tuple[Any, ...]:
        if one.operation in ("load", "view_load", "scalar"):
            return (one.operation, one.number)
        shapes = [self._shapes[value.number] for value in one.values]
        if one.operation in REDUCTIONS:
            return (one.operation, one.dtype, self._resolve(one.operands[:2]), *shapes)  # a kept axis changes nothing
        own = self._shapes[one.number]
        if one.operation not in SHAPED and all(shape == own for shape in shapes):
            return (one.operation, one.dtype, self._resolve(one.operands))
        return (one.operation, one.dtype, self._resolve(one.operands), *shapes, own)

    def _resolve(self, operand: Any) -> Any:
        if isinstance(operand, Value):
            return ("content", self.of[operand.number], self._types[operand.number])
        if isinstance(operand, (tuple, list)):
            return tuple(map(self._resolve, operand))
        return (type(operand).__name__, operand)


def rounds(source: str, target: str) -> bool:
    """Tell whether a cast between element types loses digits; to and from bool none does, as a listing has it."""
    if "bool" in (source, target):
        return False
    return WIDTHS[target] < WIDTHS[source] or {source, target} == {"float16", "bfloat16"}
