"""A DVM kernel as its builder wrote it: the instructions, in order, as plain values.

    builder = Builder()
    x = builder.load([128, 256], "float32")
    builder.store(builder.mul(x, 2))
    program = builder.program("vector")

The operations and what they take are those that torch_npu's op emitter can write (`_inductor/dvm/op_emitter.py` and
`graph_build.py` of 2.13.0); one that is not among them is an `UnknownOperationError`, never a guess. BF16 operands are
promoted as that package does it before the compiler sees them, so a program says every rounding that there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from verify.reference.rules import COMPARISONS, TYPES, ProgramError, UnknownOperationError, known_type, result_type

__all__ = ["TYPES", "Builder", "Instruction", "Program", "ProgramError", "Scalar", "UnknownOperationError", "Value"]

UNARY = frozenset(
    ("sqrt", "abs", "log", "exp", "reciprocal", "isfinite", "logical_not", "round", "floor", "ceil", "trunc", "copy")
)
BINARY = frozenset(("add", "sub", "mul", "div", "pow", "maximum", "minimum", "logical_and", "logical_or"))
REDUCTIONS = frozenset(("sum", "max", "min"))

KEEPS_BF16 = frozenset(("isfinite", "copy"))
"""Operations of one operand that torch_npu does not promote."""


@dataclass(frozen=True)
class Value:
    """What the builder returns for an instruction, to be an operand of later ones."""

    number: int
    element_type: str

    def dtype(self) -> str:
        """Return the element type, as the real builder's values do."""
        return self.element_type

    def __str__(self) -> str:
        return f"%{self.number}"


@dataclass(frozen=True)
class Scalar(Value):
    """A number that the launch passes: a size in shapes, and in arithmetic what a number is there."""


@dataclass(frozen=True)
class Instruction:
    """One call of the builder.

    `operands` are values, numbers, and tuples of these, as the operation takes them: load (shape), view_load (shape,
    stride), store (value), cast (value), broadcast and reshape (value, shape), reductions (value, dims, keepdim),
    concat (values, dim), full (number, shape), matmul (a, b, trans_a, trans_b, bias or None), select (condition, x, y).
    A size that is only known at the launch is -1 in loads and a scalar's value elsewhere. `dtype` is the result's
    element type, and what a store stores. `stage` counts the `spec_next` before it.
    """

    number: int
    operation: str
    operands: tuple[Any, ...]
    dtype: str
    stage: int

    @property
    def value(self) -> Value:
        """This instruction as an operand."""
        return (Scalar if self.operation == "scalar" else Value)(self.number, self.dtype)

    @property
    def values(self) -> tuple[Value, ...]:
        """The values among the operands, those inside shapes and lists too, in order."""
        return tuple(_values_in(self.operands))

    def __str__(self) -> str:
        return f"%{self.number} = {self.operation}({', '.join(map(_tell, self.operands))}) {self.dtype}"


@dataclass(frozen=True)
class Program:
    """A kernel's instructions. `kind` is its type in the generated code: vector, spec, split, mix, ..."""

    kind: str
    instructions: tuple[Instruction, ...]
    name: str = ""

    @property
    def inputs(self) -> tuple[Instruction, ...]:
        """The loads and scalars, in the order in which a launch passes them."""
        return tuple(one for one in self.instructions if one.operation in ("load", "view_load", "scalar"))

    @property
    def stores(self) -> tuple[Instruction, ...]:
        """The stores, in the order in which a launch passes the outputs."""
        return tuple(one for one in self.instructions if one.operation == "store")

    @property
    def stages(self) -> int:
        """How many stages the builder cut it into: one more than it has `spec_next`."""
        return 1 + sum(one.operation == "spec_next" for one in self.instructions)

    def crossing(self) -> tuple[Instruction, ...]:
        """Return the instructions whose value is used in a later stage than their own, loads left out."""
        ends = self.last_uses()
        return tuple(
            one
            for one in self.instructions
            if ends.get(one.number, one.stage) > one.stage and one.operation not in ("load", "view_load", "scalar")
        )

    def last_uses(self) -> dict[int, int]:
        """Return the last stage that uses each value, by its instruction's number."""
        return {value.number: one.stage for one in self.instructions for value in one.values}

    def __str__(self) -> str:
        return "\n".join(map(str, self.instructions))


class Builder:
    """Stands in for the kernel object `k` that generated code builds with, and writes down what it is asked for.

    `keep_promoted` says that promoted BF16 results are cast back at once (`dvm.config.bf16_vector_keep_promoted`),
    `answers_bool` that comparisons give bool, as since torch_npu 2.13.0, and not 0 and 1 in their operands' type.
    """

    def __init__(self, *, promotes: bool = True, keep_promoted: bool = False, answers_bool: bool = True) -> None:
        self._instructions: list[Instruction] = []
        self._stage = 0
        self._promotes, self._keep_promoted, self._answers_bool = promotes, keep_promoted, answers_bool

    def program(self, kind: str, name: str = "") -> Program:
        """Return what was written down."""
        return Program(kind, tuple(self._instructions), name)

    def load(self, shape: Any, dtype: str) -> Value:
        """Read an input, whose memory holds `shape` without gaps."""
        return self._append("load", (_shape(shape),), known_type(dtype))

    def view_load(self, shape: Any, stride: Any, dtype: str) -> Value:
        """Read an input by its strides."""
        sizes, strides = _shape(shape), _shape(stride)
        if len(sizes) != len(strides):
            raise ProgramError(f"view_load of shape {list(sizes)} by strides {list(strides)}, expected as many strides")
        return self._append("view_load", (sizes, strides), known_type(dtype))

    def scalar(self, dtype: str = "int64") -> Value:
        """Take a number that the launch passes."""
        return self._append("scalar", (), known_type(dtype))

    def store(self, value: Value, dtype: str | None = None) -> Value:
        """Write an output, converted to `dtype` if one is given."""
        return self._append("store", (_tensor("store", value),), value.dtype() if dtype is None else known_type(dtype))

    def cast(self, value: Value, dtype: str) -> Value:
        """Convert the elements."""
        return self._append("cast", (_tensor("cast", value),), known_type(dtype))

    def broadcast(self, value: Value, shape: Any) -> Value:
        """Repeat along axes of size 1 and new leading ones."""
        return self._append("broadcast", (_tensor("broadcast", value), _shape(shape)), value.dtype())

    def reshape(self, value: Value, shape: Any) -> Value:
        """Give the same elements another shape."""
        return self._append("reshape", (_tensor("reshape", value), _shape(shape)), value.dtype())

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        """Take x where the condition holds and y elsewhere."""
        operands = tuple(_tensor("select", one) for one in (condition, x, y))
        operands, promoted = self._promote(operands)
        return self._finish("select", operands, _type_of_all("select", operands[1:]), promoted)

    def concat(self, values: Sequence[Value], dim: int) -> Value:
        """Join along an axis."""
        joined = tuple(_tensor("concat", one) for one in values)
        return self._append("concat", (joined, dim), _type_of_all("concat", joined))

    def full(self, number: Any, shape: Any, dtype: str) -> Value:
        """Make a tensor of one number."""
        if not _is_number(number):
            raise ProgramError(f"full of {number!r}, expected a number")
        return self._append("full", (number, _shape(shape)), known_type(dtype))

    def matmul(self, a: Value, b: Value, trans_a: bool, trans_b: bool, bias: Value | None = None) -> Value:
        """Multiply matrices, batched by leading axes, either transposed first; accumulated in FP32."""
        factors = (_tensor("matmul", a), _tensor("matmul", b))
        return self._append("matmul", (*factors, trans_a, trans_b, bias), _type_of_all("matmul", factors))

    def spec_next(self) -> None:
        """End a stage."""
        self._append("spec_next", (), "")
        self._stage += 1

    def set_kernel_info(self, *names: str) -> None:
        """Take the names under which a profiler shows the kernel; they compute nothing."""

    def setup(self) -> None:
        """Take the end of the building; there is nothing to compile."""

    def __getattr__(self, name: str) -> Callable[..., Value]:
        if name in UNARY:
            return lambda x: self._elementwise(name, (x,))
        if name in BINARY or name in COMPARISONS:
            return lambda x, y: self._elementwise(name, (x, y))
        if name in REDUCTIONS:
            return lambda x, dims, keepdim=False: self._reduce(name, x, dims, keepdim)
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnknownOperationError(f"the builder has no operation {name!r} that is known here")

    def _elementwise(self, operation: str, operands: tuple[Any, ...]) -> Value:
        promoted = False
        if operation not in KEEPS_BF16:
            operands, promoted = self._promote(operands)
        wrong = [one for one in operands if not isinstance(one, Value) and not _is_number(one)]
        if wrong:
            raise ProgramError(f"{operation} of {wrong[0]!r}, expected values and numbers")
        dtype = _type_of_all(operation, operands, answers_bool=self._answers_bool)
        return self._finish(operation, operands, dtype, promoted)

    def _reduce(self, operation: str, x: Value, dims: Any, keepdim: bool) -> Value:
        (x,), promoted = self._promote((_tensor(operation, x),))
        dtype = _type_of_all(operation, (x,))
        return self._finish(operation, (x, _shape(dims), bool(keepdim)), dtype, promoted)

    def _promote(self, operands: tuple[Any, ...]) -> tuple[tuple[Any, ...], bool]:
        found = [isinstance(one, Value) and one.element_type == "bfloat16" for one in operands]
        if not self._promotes or not any(found):
            return operands, False
        cast = (self.cast(one, "float32") if is_bf16 else one for one, is_bf16 in zip(operands, found, strict=True))
        return tuple(cast), True

    def _finish(self, operation: str, operands: tuple[Any, ...], dtype: str, promoted: bool) -> Value:
        result = self._append(operation, operands, dtype)
        return self.cast(result, "bfloat16") if promoted and self._keep_promoted else result

    def _append(self, operation: str, operands: tuple[Any, ...], dtype: str) -> Value:
        self._instructions.append(Instruction(len(self._instructions), operation, operands, dtype, self._stage))
        return self._instructions[-1].value


def _type_of_all(operation: str, operands: tuple[Any, ...], *, answers_bool: bool = True) -> str:
    types = [one.dtype() for one in operands if _is_tensor(one)]
    return result_type(operation, types, answers_bool=answers_bool)


def _is_tensor(one: Any) -> bool:
    return isinstance(one, Value) and not isinstance(one, Scalar)


def _is_number(one: Any) -> bool:
    return isinstance(one, (bool, int, float, Scalar))


def _tensor(operation: str, one: Any) -> Value:
    if not _is_tensor(one):
        raise ProgramError(f"{operation} of {one!r}, expected a tensor's value")
    return one  # type: ignore[no-any-return]  # looked at above


def _shape(shape: Any) -> tuple[Any, ...]:
    if not isinstance(shape, (list, tuple)):
        raise ProgramError(f"shape {shape!r}, expected a list")
    wrong = [one for one in shape if isinstance(one, bool) or not isinstance(one, (int, Scalar))]
    if wrong:
        raise ProgramError(f"shape {shape!r} holds {wrong[0]!r}, expected whole numbers and scalars")
    return tuple(shape)


def _values_in(operands: tuple[Any, ...]) -> Iterator[Value]:
    for one in operands:
        if isinstance(one, Value):
            yield one
        elif isinstance(one, tuple):
            yield from _values_in(one)


def _tell(operand: Any) -> str:
    return f"[{', '.join(map(_tell, operand))}]" if isinstance(operand, tuple) else str(operand)
