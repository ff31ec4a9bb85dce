"""Which element types DVM's operations take, and which they give.

    result_type("add", ["float16"])             # "float16"
    result_type("less", ["int32", "int32"])     # "bool"

The results are those of the real builder of torch_npu 2.13.0 (`verify.reference.against_real` holds them against it);
that of 2.12.0.post3 has comparisons answer 0 and 1 in their operands' type.
It checks little itself: operands of two types are computed as if they had one, and a sum of FP16 ends the process. What
it refuses, what it cannot mean, and what torch_npu's op emitter never asks it for is refused here.
"""

from __future__ import annotations

from collections.abc import Sequence

TYPES = ("bool", "float16", "bfloat16", "float32", "int32", "int64")
"""The element types that DVM has, by torch's names for them."""

FLOATS = ("float16", "bfloat16", "float32")
NUMBERS = (*FLOATS, "int32", "int64")
NARROW = (*FLOATS, "int32")
"""Without int64, for which the real builder has no such operation."""

COMPARISONS = frozenset(("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"))

TAKES = {
    **dict.fromkeys(("sqrt", "log", "exp", "reciprocal", "isfinite", "round", "floor", "ceil", "trunc"), FLOATS),
    **dict.fromkeys(("div", "pow"), FLOATS),
    **dict.fromkeys(("mul", "maximum", "minimum"), NARROW),
    **dict.fromkeys(("abs", "add", "sub", "max", "min", *COMPARISONS), NUMBERS),
    **dict.fromkeys(("logical_not", "logical_and", "logical_or"), ("bool", *FLOATS)),
    **dict.fromkeys(("copy", "select", "concat", "broadcast", "reshape"), TYPES),
    "sum": ("float32",),
    "matmul": ("float16", "bfloat16"),
}
"""The element types of an operation's operands. Comparisons of BF16 can come as floats: see `Builder`."""

COMPARED_IN = {"int64": "int32"}
"""The element types in which a builder compares that answers in its operands' type, where it is not theirs."""


class UnknownOperationError(ValueError):
    """The builder was asked for an operation that this interpreter does not know."""


class ProgramError(ValueError):
    """The builder was asked for something that has no meaning: operands of different types, a shape of no numbers."""


def result_type(operation: str, operands: Sequence[str], *, answers_bool: bool = True) -> str:
    """Return the element type of an operation's result from its tensors' types; raise ProgramError for a wrong one.

    Without `answers_bool` comparisons answer in their operands' type.
    """
    types = dict.fromkeys(operands)
    if len(types) != 1:
        raise ProgramError(f"{operation} of {' and '.join(types) or 'numbers alone'}, expected one element type")
    common = operands[0]
    if common not in TAKES[operation]:
        raise ProgramError(f"{operation} of {common}, expected {' or '.join(TAKES[operation])}")
    if operation not in COMPARISONS:
        return common
    return "bool" if answers_bool else COMPARED_IN.get(common, common)


def known_type(dtype: object) -> str:
    """Return an element type's name; raise ProgramError for one that DVM does not have."""
    if dtype not in TYPES:
        raise ProgramError(f"element type {dtype!r}, expected one of {', '.join(TYPES)}")
    return str(dtype)
