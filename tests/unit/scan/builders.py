"""Builders of DVM kernels as generated code has them, written from short lists of steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from verify.reference.program import Builder, Program

Step = Sequence[Any]
"""An operation, and its operands: numbers of steps, then what else it takes."""

NUMBERS = {"muls": ("mul", 2.0), "adds": ("add", 1.0), "maxs": ("maximum", 0.5), "greater": ("greater", 0.5)}
TYPES = {"bool": "bool_"}
DVM = SimpleNamespace(
    bool_="bool", float16="float16", bfloat16="bfloat16", float32="float32", int32="int32", int64="int64"
)


def write_builder(steps: Sequence[Step]) -> list[str]:
    """Write the lines of a builder; the value of step 3 is v3."""
    return list(_lines(steps))


def run_builder(lines: Sequence[str], *, keep_promoted: bool = False) -> tuple[Program, dict[int, str]]:
    """Run the lines with the reference's builder; return its program, and the values' names by its numbers."""
    names: dict[str, Any] = {"k": Builder(keep_promoted=keep_promoted), "dvm": DVM}
    exec("\n".join(lines), names)
    named = sorted((value.number, name) for name, value in names.items() if name[0] == "v")
    program = names["k"].program("spec")
    # What bfloat16 adds without a name is a part of the next value that has one.
    return program, {
        one.number: next((name for number, name in named if number >= one.number), "") for one in program.instructions
    }


def _lines(steps: Sequence[Step]) -> Iterator[str]:
    for number, (operation, *operands) in enumerate(steps):
        if operation == "spec_next":
            yield "k.spec_next()"
        elif operation == "load":
            yield f"v{number} = k.load({operands[0]}, {_type(operands[1])})"
        elif operation == "store":
            yield f"k.store(v{operands[0]}, {_type(operands[1])})"
        elif operation in NUMBERS:
            name, constant = NUMBERS[operation]
            yield f"v{number} = k.{name}(v{operands[0]}, {constant})"
        elif operation == "cast":
            yield f"v{number} = k.cast(v{operands[0]}, {_type(operands[1])})"
        elif operation in ("broadcast", "reshape", "sum", "max", "min"):
            yield f"v{number} = k.{operation}(v{operands[0]}, {', '.join(map(str, operands[1:]))})"
        else:
            yield f"v{number} = k.{operation}({', '.join(f'v{one}' for one in operands)})"


def _type(name: str) -> str:
    return f"dvm.{TYPES.get(name, name)}"
