"""The program that a DVM kernel's builder writes down: what is loaded, made and stored, in which stage.

A value's stage is the number of `k.spec_next()` before it. Sizes and types are kept as the least that they may be,
since the backend computes some types in wider ones; what is not known stays None.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolkit.scan.trees import parse

BYTES = {"bool_": 1, "float16": 2, "bfloat16": 2, "float32": 4, "int32": 4, "int64": 8}
REDUCTIONS = frozenset({"sum", "max", "min"})
PRODUCTS = frozenset({"matmul", "grouped_matmul"})
PREDICATES = frozenset(
    {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and", "logical_or", "logical_not",
     "is_finite", "isfinite"}
)  # fmt: skip
LOADS = frozenset({"load", "view_load"})
SILENT = frozenset({"set_kernel_info", "spec_next"})

Shape = tuple[int, ...] | None
"""Sizes, -1 for one that is known at run time only; None where nothing is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """One value: the operation that makes it, from what, in which stage; `dtype` is the one that it has at least."""

    name: str
    operation: str
    operands: tuple[str, ...]
    stage: int
    shape: Shape
    dtype: str | None

    @property
    def is_reduction(self) -> bool:
        """Whether elements are put together: what a launch for itself may be needed for."""
        return self.operation in REDUCTIONS

    @property
    def least_bytes(self) -> int | None:
        """The bytes that it takes at least; None where a size or the type is not known."""
        if self.shape is None or self.dtype not in BYTES or any(size < 0 for size in self.shape):
            return None
        return math.prod(self.shape) * BYTES[self.dtype]


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """One output: the value that is stored, in which type and by the end of which stage."""

    index: int
    value: str
    dtype: str | None
    stage: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A whole builder; `inputs` are loads and scalars in the order of the call's arguments, outputs follow them.

    `unknown` names the statements that could not be read; with any, the rest may be incomplete.
    """

    values: Mapping[str, Value]
    inputs: Sequence[str]
    outputs: Sequence[Output]
    stages: int
    uses: Mapping[str, frozenset[int]]
    """The stages in which a value is an operand."""
    unknown: Sequence[str] = field(default_factory=tuple)

    def last_use(self, name: str) -> int:
        """Return the last stage that uses a value, its own store left out."""
        return max(self.uses.get(name, frozenset()), default=self.values[name].stage)

    def kept(self) -> list[Value]:
        """List the values that are in memory before the end: used in a later stage, or reductions that are stored.

        Loads are in memory anyhow.
        """
        stored = {output.value for output in self.outputs}
        return [
            value
            for value in self.values.values()
            if value.operation not in LOADS | {"scalar"}
            and (self.last_use(value.name) > value.stage or (value.is_reduction and value.name in stored))
        ]

    def stages_reading(self, load: str) -> frozenset[int]:
        """Return the stages that may read an input: those that use it, or use a value that can be made of it anew.

        What a reduction gives is not made anew. A load that is stored as it is counts for the last stage.
        """
        stages: set[int] = set()
        pending, seen = [load], {load}
        while pending:
            name = pending.pop()
            stages |= self.uses.get(name, frozenset())
            made = [one for one in self.values.values() if name in one.operands and one.name not in seen]
            again = [one.name for one in made if one.operation not in REDUCTIONS | PRODUCTS]
            seen.update(again)
            pending += again
        if any(output.value == load for output in self.outputs):
            stages.add(self.stages - 1)
        return frozenset(stages)


def read_program(body: Sequence[str], builder: str = "k") -> Program:
    """Read the lines of a builder's body; what is no statement of a builder is named in `unknown`."""
    reader = _Reader(builder)
    for line in body:
        for statement in parse(line.strip(" ")).body:
            if not reader.read(statement):
                reader.unknown.append(line.strip(" "))
    return reader.program()


class _Reader:
    """Follows a builder statement by statement."""

    def __init__(self, builder: str) -> None:
        self._builder = builder
        self._values: dict[str, Value] = {}
        self._names: dict[str, str] = {}
        self._inputs: list[str] = []
        self._stored: list[tuple[str, str | None]] = []
        self._uses: dict[str, set[int]] = {}
        self._stage = 0
        self.unknown: list[str] = []

    def read(self, statement: ast.stmt) -> bool:
        """Take one statement in; say whether it was understood."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other)):
                self._names[name] = self._named(other)
                return True
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                made = self._operation(call, name)
                if made is not None:
                    self._names[name] = made
                return made is not None
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant()):
                return True
            case ast.Expr(value=ast.Call() as call):
                return self._effect(call)
            case ast.Pass():
                return True
        return False

    def program(self) -> Program:
        """Return what was read."""
        outputs = [
            Output(index=index, value=name, dtype=dtype, stage=self._store_stage(name))
            for index, (name, dtype) in enumerate(self._stored)
        ]
        return Program(
            values=self._values,
            inputs=self._inputs,
            outputs=outputs,
            stages=self._stage + 1,
            uses={name: frozenset(stages) for name, stages in self._uses.items()},
            unknown=self.unknown,
        )

    def _store_stage(self, name: str) -> int:
        value = self._values.get(name)
        return self._stage if value is None or value.operation in LOADS else value.stage

    def _effect(self, call: ast.Call) -> bool:
        operation = self._operation_name(call)
        if operation == "spec_next":
            self._stage += 1
        elif operation == "store" and call.args:
            stored = self._operand(call.args[0])
            if stored is None:
                return False
            self._stored.append((stored, _dtype(call.args[1]) if len(call.args) > 1 else None))
        elif operation not in SILENT:
            return False
        return True

    def _operation(self, call: ast.Call, name: str) -> str | None:
        """Take in a value that an operation makes; return its name, or None for what is no operation."""
        operation = self._operation_name(call)
        if operation is None or operation in SILENT | {"store"}:
            return None
        operands = [
            made for argument in _flat(call.args) if (made := self._operand(argument, need=operation)) is not None
        ]
        if name in self._values:
            name = f"{name}@{len(self._values)}"
        for operand in operands if operation not in LOADS else ():
            self._uses.setdefault(operand, set()).add(self._stage)
        shape, dtype = self._form(operation, call, [self._values[one] for one in operands])
        self._values[name] = Value(
            name=name, operation=operation, operands=tuple(operands), stage=self._stage, shape=shape, dtype=dtype
        )
        if operation in LOADS | {"scalar"}:
            self._inputs.append(name)
        return name

    def _operation_name(self, call: ast.Call) -> str | None:
        match call.func:
            case ast.Attribute(value=ast.Name(id=builder), attr=operation) if builder == self._builder:
                return operation
        return None

    def _operand(self, node: ast.expr, need: str = "") -> str | None:
        """Return the value that an argument names or makes; None for a number, a list, a type."""
        if isinstance(node, ast.Name):
            name = self._named(node.id)
            return name if name in self._values else None
        if isinstance(node, ast.Call):
            return self._operation(node, f"({need or 'stored'} {len(self._values)})")
        return None

    def _named(self, name: str) -> str:
        return self._names.get(name, name)

    def _form(self, operation: str, call: ast.Call, operands: list[Value]) -> tuple[Shape, str | None]:
        """Say the sizes and the least type of what an operation makes."""
        first = operands[0] if operands else None
        arguments = call.args
        if operation in LOADS:
            return _sizes(arguments[0]) if arguments else None, _dtype(arguments[-1]) if arguments else None
        if operation == "scalar":
            return (), _dtype(arguments[0]) if arguments else None
        if operation in ("broadcast", "reshape") and first is not None:
            return _sizes(arguments[1]) if len(arguments) > 1 else None, first.dtype
        if operation == "cast" and first is not None:
            return first.shape, _dtype(arguments[1]) if len(arguments) > 1 else None
        if operation in REDUCTIONS and first is not None:
            return _reduced(first.shape, arguments), first.dtype
        if operation in PRODUCTS or operation == "concat" or first is None:
            return None, first.dtype if first is not None else None
        if operation in PREDICATES:
            return _joined(operands), "bool_"
        typed = operands[1:] if operation == "select" and len(operands) > 1 else operands
        return _joined(operands), _least_dtype(typed)


# --- sizes and types ---------------------------------------------------------------------------------------------


def _flat(arguments: Sequence[ast.expr]) -> list[ast.expr]:
    """List arguments, those in a list (as `concat` takes them) one by one."""
    found: list[ast.expr] = []
    for one in arguments:
        found += one.elts if isinstance(one, (ast.List, ast.Tuple)) else [one]
    return found


def _sizes(node: ast.expr) -> Shape:
    if not isinstance(node, (ast.List, ast.Tuple)):
        return None
    return tuple(one.value if isinstance(one, ast.Constant) and isinstance(one.value, int) else -1 for one in node.elts)


def _dtype(node: ast.expr) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else None


def _reduced(shape: Shape, arguments: Sequence[ast.expr]) -> Shape:
    dims = _sizes(arguments[1]) if len(arguments) > 1 else ()
    keeps = arguments[2] if len(arguments) > 2 else None
    keep = keeps.value if isinstance(keeps, ast.Constant) else False
    if shape is None or dims is None:
        return None
    gone = {dim % len(shape) for dim in dims} if dims and shape else set(range(len(shape)))
    if keep:
        return tuple(1 if at in gone else size for at, size in enumerate(shape))
    return tuple(size for at, size in enumerate(shape) if at not in gone)


def _joined(operands: Sequence[Value]) -> Shape:
    """Return the sizes of an operation by element: the largest of its operands', which the backend has made equal."""
    shapes = [one.shape for one in operands if one.operation != "scalar"]
    if not shapes or any(shape is None for shape in shapes):
        return None
    return max((shape for shape in shapes if shape is not None), key=lambda shape: (len(shape), shape))


def _least_dtype(operands: Sequence[Value]) -> str | None:
    known = [one.dtype for one in operands if one.operation != "scalar" and one.dtype is not None]
    return min(known, key=lambda dtype: BYTES.get(dtype, 0), default=None)
