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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

TYPES = ("bool", "float16", "bfloat16", "float32", "int32", "int64")
"""The element types that DVM has, by torch's names for them."""

UNARY = frozenset(
    ("sqrt", "abs", "log", "exp", "reciprocal", "isfinite", "logical_not", "round", "floor", "ceil", "trunc", "copy")
)
BINARY = frozenset(("add", "sub", "mul", "div", "pow", "maximum", "minimum", "logical_and", "logical_or"))
COMPARISONS = frozenset(("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"))
REDUCTIONS = frozenset(("sum", "max", "min"))

KEEPS_BF16 = frozenset(("isfinite", "copy"))
"""Operations of one operand that torch_npu does not promote."""


class UnknownOperationError(ValueError):
    """The builder was asked for an operation that this interpreter does not know."""


class ProgramError(ValueError):
    """The builder was asked for something that has no meaning: operands of different types, a shape of no numbers."""


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
        return Value(self.number, self.dtype)

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

    `keep_promoted` says that promoted BF16 results are cast back at once (`dvm.config.bf16_vector_keep_promoted`).
    """

    def __init__(self, *, promotes: bool = True, keep_promoted: bool = False) -> None:
        self._instructions: list[Instruction] = []
        self._stage = 0
        self._promotes, self._keep_promoted = promotes, keep_promoted

    def program(self, kind: str, name: str = "") -> Program:
        """Return what was written down."""
        return Program(kind, tuple(self._instructions), name)

    def load(self, shape: Any, dtype: str) -> Value:
        """Read an input, whose memory holds `shape` without gaps."""
        return self._append("load", (_shape(shape),), _known(dtype))

    def view_load(self, shape: Any, stride: Any, dtype: str) -> Value:
        """Read an input by its strides."""
        return self._append("view_load", (_shape(shape), _shape(stride)), _known(dtype))

    def scalar(self, dtype: str = "int64") -> Value:
        """Take a number that the launch passes."""
        return self._append("scalar", (), _known(dtype))

    def store(self, value: Value, dtype: str | None = None) -> Value:
        """Write an output, converted to `dtype` if one is given."""
        return self._append("store", (value,), value.element_type if dtype is None else _known(dtype))

    def cast(self, value: Value, dtype: str) -> Value:
        """Convert the elements."""
        return self._append("cast", (value,), _known(dtype))

    def broadcast(self, value: Any, shape: Any) -> Value:
        """Repeat along axes of size 1 and new leading ones."""
        return self._append("broadcast", (value, _shape(shape)), _type_of(value))

    def reshape(self, value: Value, shape: Any) -> Value:
        """Give the same elements another shape."""
        return self._append("reshape", (value, _shape(shape)), value.element_type)

    def select(self, condition: Value, x: Any, y: Any) -> Value:
        """Take x where the condition holds and y elsewhere."""
        (condition, x, y), promoted = self._promote((condition, x, y))
        return self._finish("select", (condition, x, y), _common_type("select", (x, y)), promoted)

    def concat(self, values: Sequence[Value], dim: int) -> Value:
        """Join along an axis."""
        return self._append("concat", (tuple(values), dim), _common_type("concat", tuple(values)))

    def full(self, number: Any, shape: Any, dtype: str) -> Value:
        """Make a tensor of one number."""
        return self._append("full", (number, _shape(shape)), _known(dtype))

    def matmul(self, a: Value, b: Value, trans_a: bool, trans_b: bool, bias: Value | None = None) -> Value:
        """Multiply matrices, batched by leading axes, either transposed first; accumulated in FP32."""
        return self._append("matmul", (a, b, trans_a, trans_b, bias), _common_type("matmul", (a, b)))

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
        common = _common_type(operation, operands)
        return self._finish(operation, operands, _result_type(operation, common), promoted)

    def _reduce(self, operation: str, x: Value, dims: Any, keepdim: bool) -> Value:
        (x,), promoted = self._promote((x,))
        return self._finish(operation, (x, _shape(dims), bool(keepdim)), x.element_type, promoted)

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


def _result_type(operation: str, common: str) -> str:
    return "bool" if operation in COMPARISONS or operation in ("isfinite", "logical_not") else common


def _common_type(operation: str, operands: tuple[Any, ...]) -> str:
    types = {one.element_type for one in operands if isinstance(one, Value)}
    if len(types) != 1:
        raise ProgramError(
            f"{operation} of {' and '.join(sorted(types)) or 'numbers alone'}, expected one element type"
        )
    return types.pop()


def _type_of(value: Any) -> str:
    return value.element_type if isinstance(value, Value) else "float32"


def _known(dtype: str) -> str:
    if dtype not in TYPES:
        raise ProgramError(f"element type {dtype!r}, expected one of {', '.join(TYPES)}")
    return dtype


def _shape(shape: Any) -> tuple[Any, ...]:
    listed = tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)
    wrong = [one for one in listed if isinstance(one, bool) or not isinstance(one, (int, Value))]
    if wrong:
        raise ProgramError(f"shape {listed!r} holds {wrong[0]!r}, expected whole numbers and scalars")
    return listed


def _values_in(operands: tuple[Any, ...]) -> Any:
    for one in operands:
        if isinstance(one, Value):
            yield one
        elif isinstance(one, tuple):
            yield from _values_in(one)


def _tell(operand: Any) -> str:
    return f"[{', '.join(map(_tell, operand))}]" if isinstance(operand, tuple) else str(operand)
