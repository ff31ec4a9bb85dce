"""The program that a DVM kernel's builder writes down: what is loaded, made and stored, in which stage.

A value's stage is the number of `k.spec_next()` before it. Types are those that statements name: what the backend makes
of them, and of the rest, is told in toolkit.scan.lowering. What is not known stays None.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolkit.scan.trees import parse

REDUCTIONS = frozenset({"sum", "max", "min"})
PRODUCTS = frozenset({"matmul", "grouped_matmul", "concat"})
"""Operations that give sizes of their own."""
LOADS = frozenset({"load", "view_load"})
SILENT = frozenset({"set_kernel_info", "spec_next"})

Shape = tuple[int, ...] | None
"""Sizes, -1 for one that is known at run time only; None where nothing is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """One value: the operation that makes it, of which tensors, in which stage; `dtype` where the statement names it.

    `axes` are those that a reduction takes away, each from 0 on, None where they are not known.
    """

    name: str
    operation: str
    operands: tuple[str, ...]
    stage: int
    shape: Shape
    dtype: str | None
    axes: tuple[int, ...] | None = ()
    keeps_axes: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """One output: the value that is stored, in which type, and the stage and number of values at its statement."""

    index: int
    value: str
    dtype: str | None
    stage: int
    before: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A whole builder; `inputs` are loads and scalars in the order of the call's arguments, outputs follow them.

    `unknown` names the statements that could not be read; with any, the rest may be incomplete.
    """

    values: Mapping[str, Value]
    inputs: Sequence[str]
    outputs: Sequence[Output]
    stages: int
    unknown: Sequence[str] = field(default_factory=tuple)

    @property
    def is_dynamic(self) -> bool:
        """Whether a size of an input is known at run time only."""
        loads = (self.values[name].shape for name in self.inputs if self.values[name].operation in LOADS)
        return any(size < 0 for shape in loads if shape is not None for size in shape)


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
        self._outputs: list[Output] = []
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
        return Program(
            values=self._values,
            inputs=self._inputs,
            outputs=self._outputs,
            stages=self._stage + 1,
            unknown=self.unknown,
        )

    def _effect(self, call: ast.Call) -> bool:
        operation = self._operation_name(call)
        if operation == "spec_next":
            self._stage += 1
        elif operation == "store" and call.args:
            stored = self._operand(call.args[0])
            if stored is None:
                return False
            dtype = _dtype(call.args[1]) if len(call.args) > 1 else None
            self._outputs.append(
                Output(index=len(self._outputs), value=stored, dtype=dtype, stage=self._stage, before=len(self._values))
            )
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
        tensors = [one for one in operands if self._values[one].operation != "scalar"]
        self._values[name] = self._value(name, operation, call.args, () if operation in LOADS else tuple(tensors))
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

    def _value(self, name: str, operation: str, arguments: Sequence[ast.expr], operands: tuple[str, ...]) -> Value:
        """Return a value with its sizes, and the type if the statement names one."""
        shapes = [self._values[one].shape for one in operands]
        shape: Shape = None
        dtype: str | None = None
        axes: tuple[int, ...] | None = ()
        keeps = True
        if operation in LOADS:
            shape = _sizes(arguments[0]) if arguments else None
            dtype = _dtype(arguments[-1]) if arguments else None
        elif operation == "scalar":
            shape, dtype = (), _dtype(arguments[0]) if arguments else None
        elif operation in ("broadcast", "reshape", "full"):
            shape = _sizes(arguments[1]) if len(arguments) > 1 else None
            dtype = _dtype(arguments[2]) if operation == "full" and len(arguments) > 2 else None
        elif operation in REDUCTIONS and shapes:
            keeps = len(arguments) > 2 and isinstance(arguments[2], ast.Constant) and bool(arguments[2].value)
            axes = _axes(shapes[0], arguments)
            shape = _reduced(shapes[0], axes, keeps)
        elif operation not in PRODUCTS:
            shape = _joined(shapes)
            dtype = _dtype(arguments[1]) if operation == "cast" and len(arguments) > 1 else None
        return Value(
            name=name, operation=operation, operands=operands, stage=self._stage, shape=shape, dtype=dtype, axes=axes,
            keeps_axes=keeps,
        )  # fmt: skip


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


def _axes(shape: Shape, arguments: Sequence[ast.expr]) -> tuple[int, ...] | None:
    """Return the axes that a reduction names, all where it names none."""
    if shape is None:
        return None
    try:
        named = ast.literal_eval(arguments[1]) if len(arguments) > 1 else []
        axes = {axis % len(shape) for axis in named} if shape else set()
    except (ValueError, TypeError):
        return None
    return tuple(sorted(axes)) if axes else tuple(range(len(shape)))


def _reduced(shape: Shape, axes: tuple[int, ...] | None, keeps: bool) -> Shape:
    if shape is None or axes is None:
        return None
    if keeps:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def _joined(shapes: Sequence[Shape]) -> Shape:
    known = [shape for shape in shapes if shape is not None]
    return broadcast(known) if len(known) == len(shapes) and shapes else None


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the sizes to which all of these are repeated; -1 where one of them is known at run time only."""
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(-1 if -1 in sizes else max(sizes) for sizes in zip(*padded, strict=True))
