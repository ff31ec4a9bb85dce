"""The operations of a kernel as DVM has them, and the stages into which it cuts them.

An instruction of the builder may need several operations, and some need none: a store that converts, a store of an
input, and the first use of a reduction without `keepdim` add one; a conversion to the same type is none. An operation
belongs to the stage in which it was asked for; an input to that of its first user; an output to that of its value.
Comparisons yield their operands' type. Each connected part of a stage is then a stage of its own.

Read off the stages that the compiler of torch_npu 2.13.0 prints; see verify.reference.parking.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from verify.reference.program import BINARY, REDUCTIONS, UNARY, Instruction, Program, Scalar, Value
from verify.reference.rules import COMPARISONS

LOADS = frozenset(("load", "view_load"))
ELEMENTWISE = UNARY | BINARY | COMPARISONS | frozenset(("cast", "select", "reshape"))

Shape = tuple[int, ...]


class UnknownParkingError(ValueError):
    """The program holds something that the rule was not tested on."""


@dataclass(eq=False, slots=True)
class Node:
    """An operation of DVM's. One instruction may need several of them, and some need none."""

    number: int
    operation: str
    inputs: tuple[Node, ...]
    dtype: str
    shape: Shape
    stage: int
    axes: tuple[int, ...] = ()
    keepdim: bool = True
    reshaped: Node | None = None
    store: Store | None = None

    @property
    def size(self) -> int:
        """How many elements the result has."""
        return math.prod(self.shape)


@dataclass(eq=False, slots=True)
class Store:
    """What a stage stores of a node. `output` is the store's instruction, None while only other stages load it."""

    node: Node
    output: int | None = None
    users: list[int] = field(default_factory=list)
    placed: bool = False
    place: int | None = None
    others: tuple[int, ...] = ()

    @property
    def offers(self) -> int | None:
        """The output in which a value of an earlier stage may lie until this one is stored, if there is one."""
        return self.place if self.placed else self.output


def lower(program: Program) -> tuple[list[Node], list[Store]]:
    """Return DVM's operations and the outputs, in the builder's order, each operation with the stage it belongs to."""
    lowering = _Lowering(is_dynamic(program))
    for instruction in program.instructions:
        lowering.add(instruction)
    return lowering.nodes, lowering.stores


def is_dynamic(program: Program) -> bool:
    """Tell whether a size of the kernel's inputs is only known at the launch."""
    loads = (one.operands[0] for one in program.instructions if one.operation in LOADS)
    return any(not isinstance(size, int) or size < 0 for shape in loads for size in shape)


class _Lowering:
    """Turns instructions into nodes, one after the other."""

    def __init__(self, dynamic: bool) -> None:
        self._dynamic = dynamic
        self.nodes: list[Node] = []
        self.stores: list[Store] = []
        self._values: dict[int, Node] = {}

    def add(self, instruction: Instruction) -> None:
        """Add what an instruction needs."""
        operation, number = instruction.operation, instruction.number
        if operation in ("spec_next", "scalar"):
            return
        if operation == "store":
            self._store(instruction)
            return
        if operation in LOADS:
            node = self._append(instruction, ())
        elif operation == "cast" and self._values[instruction.values[0].number].dtype == instruction.dtype:
            node = self._values[instruction.values[0].number]  # nothing to convert
        else:
            inputs = tuple(self._operand(self._values[value.number], instruction) for value in _tensors(instruction))
            node = self._append(instruction, inputs)
            if operation in COMPARISONS:
                node.dtype = inputs[0].dtype  # DVM's comparisons yield ones and zeros of their operands' type
            if operation in REDUCTIONS:
                node.keepdim = bool(instruction.operands[2])
                node.axes = () if self._dynamic else _axes(instruction, inputs[0].shape)
        self._values[number] = node

    def _append(self, instruction: Instruction, inputs: tuple[Node, ...]) -> Node:
        shape = () if self._dynamic else _shape_of(instruction, [one.shape for one in inputs])
        stage = -1 if instruction.operation in LOADS else instruction.stage  # a load's stage is its first user's
        node = Node(instruction.number, instruction.operation, inputs, instruction.dtype, shape, stage)
        self.nodes.append(node)
        return node

    def _operand(self, node: Node, user: Instruction) -> Node:
        """Return what an operation really reads: loads belong to their first user, reductions are reshaped for it."""
        if node.operation in LOADS and node.stage < 0:
            node.stage = user.stage
        if node.keepdim:
            return node
        if node.reshaped is None:
            node.reshaped = Node(node.number, "reshape", (node,), node.dtype, node.shape, user.stage)
            self.nodes.append(node.reshaped)
        return node.reshaped

    def _store(self, instruction: Instruction) -> None:
        node = self._values[instruction.values[0].number]
        if node.dtype != instruction.dtype or node.operation in LOADS:  # converted or copied, in the current stage
            source = self._operand(node, instruction)
            node = Node(instruction.number, "cast", (source,), instruction.dtype, source.shape, instruction.stage)
            self.nodes.append(node)
        if node.store is not None:
            raise UnknownParkingError(f"%{node.number} is stored as two outputs")
        node.store = Store(node, output=instruction.number)
        self.stores.append(node.store)


def split_stages(nodes: Sequence[Node]) -> int:
    """Give each connected part of a stage a stage of its own, and return how many there are."""
    parent = {id(node): node for node in nodes}

    def root(node: Node) -> Node:
        while parent[id(node)] is not node:
            node = parent[id(node)]
        return node

    for node in nodes:
        for one in node.inputs:
            if one.stage == node.stage:
                parent[id(root(node))] = root(one)
    order = sorted((node for node in nodes if node.stage >= 0), key=lambda node: node.stage)
    roots = [root(node) for node in order]
    numbers = {id(one): number for number, one in enumerate(dict.fromkeys(roots))}
    for node, top in zip(order, roots, strict=True):
        node.stage = numbers[id(top)]
    return len(numbers)


def _tensors(instruction: Instruction) -> Iterator[Value]:
    """Yield the operands that are tensors, in the order in which DVM takes them: a condition comes last."""
    operands = instruction.operands
    if instruction.operation == "select":
        operands = (*operands[1:], operands[0])
    yield from (one for one in operands if isinstance(one, Value) and not isinstance(one, Scalar))


def _shape_of(instruction: Instruction, shapes: Sequence[Shape]) -> Shape:
    operation, operands = instruction.operation, instruction.operands
    if operation in LOADS:
        return _static(operands[0])
    if operation in ("broadcast", "reshape", "full"):
        return _static(operands[1])
    if operation in REDUCTIONS:
        axes = _axes(instruction, shapes[0])
        kept = tuple(1 if axis in axes else size for axis, size in enumerate(shapes[0]))
        return kept if operands[2] else tuple(size for axis, size in enumerate(shapes[0]) if axis not in axes)
    if operation not in ELEMENTWISE:
        raise UnknownParkingError(f"{operation} in a spec kernel was not tested")
    return broadcast(shapes)


def _axes(instruction: Instruction, shape: Shape) -> tuple[int, ...]:
    return tuple(axis % len(shape) for axis in instruction.operands[1]) or tuple(range(len(shape)))


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Return the shape to which all of these are repeated, where they can be."""
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(max(sizes) if 0 not in sizes else 0 for sizes in zip(*padded, strict=True))


def _static(shape: object) -> Shape:
    sizes = tuple(shape) if isinstance(shape, tuple) else (shape,)
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise UnknownParkingError(f"the shape {sizes!r} is not static, or empty")
    return sizes
