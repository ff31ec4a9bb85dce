"""Evaluate a kernel's program on the CPU, on the tensors of one launch.

    binding = bind(program, [x, y, out])            # a launch's arguments: inputs in order, then outputs in order
    evaluate(binding)                               # writes into the outputs

`bind` is where a launch is refused: too few arguments, another element type, a shape that the load does not hold.
This evaluates a kernel as its program reads: all inputs are read, then all outputs are written. What the real kernel
may do to its inputs before it reads them is in `verify.reference.stages`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verify.reference import operations
from verify.reference.program import Instruction, Program, Value


class LaunchError(ValueError):
    """A kernel was launched with arguments that its program cannot take."""


@dataclass(frozen=True)
class Binding:
    """One launch: the program, and which argument each load, scalar and store stands for, by instruction number."""

    program: Program
    arguments: Mapping[int, Any]


def bind(program: Program, arguments: Sequence[Any]) -> Binding:
    """Match a launch's arguments with the program's loads, scalars and stores; raise LaunchError where they differ."""
    wanted = (*program.inputs, *program.stores)
    if len(arguments) != len(wanted):
        raise LaunchError(
            f"{program.name or 'the kernel'} was launched with {len(arguments)} arguments, "
            f"expected {len(program.inputs)} inputs and {len(program.stores)} outputs"
        )
    for instruction, argument in zip(wanted, arguments, strict=True):
        _check(program, instruction, argument)
    return Binding(program, {one.number: argument for one, argument in zip(wanted, arguments, strict=True)})


def evaluate(binding: Binding) -> None:
    """Read all inputs, compute, and write all outputs."""
    values = compute(binding.program.instructions, read=lambda one: read_input(one, binding.arguments[one.number]))
    for store in binding.program.stores:
        write_output(store, values[store.operands[0].number], binding.arguments[store.number])


def compute(instructions: Sequence[Instruction], read: Callable[[Instruction], Any]) -> dict[int, Any]:
    """Return each instruction's value by its number; `read` gives those of loads and scalars."""
    values: dict[int, Any] = {}
    for one in instructions:
        if one.operation in ("load", "view_load", "scalar"):
            values[one.number] = read(one)
        elif one.operation not in ("store", "spec_next"):
            values[one.number] = compute_one(one, values)
    return values


def compute_one(one: Instruction, values: Mapping[int, Any]) -> Any:
    """Compute one instruction from its operands' values."""
    return operations.find(one.operation)(one, [_resolve(operand, values) for operand in one.operands])


def read_input(one: Instruction, argument: Any) -> Any:
    """Return a copy of what a load reads: gapless memory for `load`, by the tensor's own strides for `view_load`."""
    if one.operation == "scalar":
        return argument
    if one.operation == "view_load":
        return argument.clone()
    shape = _real_shape(one.operands[0], argument)
    return argument.as_strided(shape, _gapless(shape)).clone()


def write_output(store: Instruction, value: Any, argument: Any) -> None:
    """Write a value into an output's memory, converted to its element type."""
    argument.copy_(value.to(operations.element_type(store.dtype)).reshape(argument.shape))


def _resolve(operand: Any, values: Mapping[int, Any]) -> Any:
    if isinstance(operand, Value):
        return values[operand.number]
    return tuple(_resolve(one, values) for one in operand) if isinstance(operand, tuple) else operand


def _check(program: Program, one: Instruction, argument: Any) -> None:
    torch = importlib.import_module("torch")
    what = f"{program.name or 'the kernel'}: {one}"
    if one.operation == "scalar":
        if isinstance(argument, (torch.Tensor, bool)) or not isinstance(argument, (int, float)):
            raise LaunchError(f"{what} was given {type(argument).__name__}, expected a number")
        return
    if not isinstance(argument, torch.Tensor):
        raise LaunchError(f"{what} was given {type(argument).__name__}, expected a tensor")
    if argument.dtype != operations.element_type(one.dtype):
        raise LaunchError(f"{what} was given {argument.dtype}, expected torch.{one.dtype}")
    if one.operation != "store":
        _check_shape(what, one.operands[0], argument)


def _check_shape(what: str, shape: Sequence[int], argument: Any) -> None:
    given = tuple(argument.shape)
    turned = (*given[:-2], *given[-2:][::-1])  # a matrix that is transposed in memory is loaded as it lies there
    if not any(
        len(one) == len(shape) and all(want in (-1, size) for want, size in zip(shape, one, strict=True))
        for one in (given, turned)
    ):
        raise LaunchError(f"{what} was given a tensor of shape {list(given)}, expected {list(shape)}")


def _real_shape(shape: Sequence[int], argument: Any) -> tuple[int, ...]:
    given = tuple(argument.shape)
    if all(want in (-1, size) for want, size in zip(shape, given, strict=True)):
        return given
    return (*given[:-2], *given[-2:][::-1])


def _gapless(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
