"""The operations of a kernel as the backend has them, and the stages into which it cuts them.

A statement of the builder may need several operations, and some need none: a store that converts, a store of an
input, arithmetic in bfloat16, and the first use of a reduction that gives up its axes add one; a conversion to the same
type is none. An operation belongs to the stage in which it was asked for; an input to that of its first user; an output
to that of its value. Comparisons yield their operands' type. Each connected part of a stage is then a stage of its own.

docs/patch-cost.md says how far that was held against the real compiler.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from toolkit.scan.program import LOADS, REDUCTIONS, Output, Program, Shape, Value

COMPARISONS = frozenset({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"})
ARITHMETIC = COMPARISONS | frozenset(
    {"sqrt", "abs", "log", "exp", "reciprocal", "logical_not", "round", "floor", "ceil", "trunc", "add", "sub", "mul",
     "div", "pow", "maximum", "minimum", "logical_and", "logical_or", "select"}
)  # fmt: skip
"""What is not computed in bfloat16, as reductions are not."""
ELEMENTWISE = ARITHMETIC | {"copy", "isfinite", "is_finite", "cast", "reshape"}
TESTED = ELEMENTWISE | REDUCTIONS | LOADS | {"broadcast", "scalar"}
"""The operations of which it is known what the backend makes of them."""


@dataclass(eq=False, slots=True)
class Node:
    """An operation of the backend's; `value` is the builder's value that it is a part of.

    `stage` counts the builder's stages until `split_stages` has been there, then the backend's own.
    """

    value: str
    operation: str
    inputs: tuple[Node, ...]
    dtype: str | None
    shape: Shape
    stage: int
    axes: tuple[int, ...] | None = ()
    keeps_axes: bool = True
    reshaped: Node | None = None
    outputs: list[int] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many elements it has; no number of any use with sizes of run time."""
        return math.prod(self.shape or ())

    @property
    def is_load(self) -> bool:
        """Whether it is an input."""
        return self.operation in LOADS


def has_bfloat16(program: Program) -> bool:
    """Tell whether a setting of the backend decides about types: whether results are cast back to bfloat16."""
    return any(value.dtype == "bfloat16" for value in program.values.values())


def lower(program: Program, *, casts_back: bool) -> list[Node]:
    """Return the backend's operations in the builder's order."""
    lowering = _Lowering(casts_back)
    outputs = list(program.outputs)
    for number, value in enumerate(program.values.values()):
        while outputs and outputs[0].before <= number:
            lowering.store(outputs.pop(0))
        lowering.add(value)
    for output in outputs:
        lowering.store(output)
    return lowering.nodes


class _Lowering:
    """Turns values into nodes, one after the other."""

    def __init__(self, casts_back: bool) -> None:
        self._casts_back = casts_back
        self.nodes: list[Node] = []
        self._made: dict[str, Node] = {}
        self._types: dict[str, str | None] = {}
        """The builder's types, which differ from the backend's where something is compared."""

    def add(self, value: Value) -> None:
        """Add what a value needs."""
        operation = value.operation
        if operation == "scalar":
            return
        if operation in LOADS:
            self._keep(value, self._append(value, operation, (), value.dtype, -1), value.dtype)
            return
        if operation == "cast" and value.operands and self._made[value.operands[0]].dtype == value.dtype:
            self._keep(value, self._made[value.operands[0]], value.dtype)  # nothing to convert
            return
        promoted = [name for name in value.operands if self._is_promoted(operation, name)]
        converted = {name: self._convert(value, self._made[name], "float32") for name in dict.fromkeys(promoted)}
        inputs = [converted.get(name) or self._operand(self._made[name], value.stage) for name in value.operands]
        typed = [("float32" if name in converted else self._types[name]) for name in value.operands]
        if operation == "select":
            inputs, typed = [*inputs[1:], *inputs[:1]], typed[1:]
        dtype = value.dtype or (typed[0] if typed else None)
        node = self._append(value, operation, tuple(inputs), dtype, value.stage)
        if operation in COMPARISONS:
            node.dtype, dtype = inputs[0].dtype if inputs else None, "bool_"
        node.axes, node.keeps_axes = value.axes, value.keeps_axes
        if promoted and self._casts_back:
            node, dtype = self._convert(value, node, "bfloat16"), "bfloat16"
        self._keep(value, node, dtype)

    def store(self, output: Output) -> None:
        """Add what an output needs: converted, or an input copied, it is an operation of the stage at hand."""
        node = self._made[output.value]
        dtype = output.dtype or self._types[output.value]
        if node.dtype != dtype or node.is_load:
            source = self._operand(node, output.stage)
            node = Node(output.value, "cast", (source,), dtype, source.shape, output.stage)
            self.nodes.append(node)
        node.outputs.append(output.index)

    def _is_promoted(self, operation: str, name: str) -> bool:
        return operation in ARITHMETIC | REDUCTIONS and self._types[name] == "bfloat16"

    def _convert(self, value: Value, node: Node, dtype: str) -> Node:
        source = self._operand(node, value.stage)
        made = Node(value.name, "cast", (source,), dtype, source.shape, value.stage)
        self.nodes.append(made)
        return made

    def _append(self, value: Value, operation: str, inputs: tuple[Node, ...], dtype: str | None, stage: int) -> Node:
        node = Node(value.name, operation, inputs, dtype, value.shape, stage)
        self.nodes.append(node)
        return node

    def _keep(self, value: Value, node: Node, dtype: str | None) -> None:
        self._made[value.name], self._types[value.name] = node, dtype

    def _operand(self, node: Node, stage: int) -> Node:
        """Return what an operation really reads: inputs belong to their first user, reductions are reshaped for it."""
        if node.is_load and node.stage < 0:
            node.stage = stage
        if node.keeps_axes:
            return node
        if node.reshaped is None:
            node.reshaped = Node(node.value, "reshape", (node,), node.dtype, node.shape, stage)
            self.nodes.append(node.reshaped)
        return node.reshaped


def split_stages(nodes: Sequence[Node]) -> int:
    """Give each connected part of a stage a stage of its own, in the order of the launches; return their number."""
    parents = {node: node for node in nodes}

    def root(node: Node) -> Node:
        while parents[node] is not node:
            node = parents[node]
        return node

    for node in nodes:
        for one in node.inputs:
            if one.stage == node.stage:
                parents[root(node)] = root(one)
    order = sorted((node for node in nodes if node.stage >= 0), key=lambda node: node.stage)
    roots = [root(node) for node in order]
    numbers = {top: number for number, top in enumerate(dict.fromkeys(roots))}
    for node, top in zip(order, roots, strict=True):
        node.stage = numbers[top]
    return len(numbers)
