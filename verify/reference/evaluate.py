"""Evaluate a kernel's program on the CPU, on the tensors of one launch.

    binding = bind(program, [x, y, out])            # a launch's arguments: inputs in order, then outputs in order
    evaluate(binding)                               # writes into the outputs
    shapes = value_shapes(program)                  # of a program without sizes that only a launch knows

`bind` is where a launch is refused: too few arguments, another element type, a shape that the load does not hold.
This evaluates a kernel as its program reads: all inputs are read, then all outputs are written. What the real kernel
may do to its inputs before it reads them is in `verify.reference.stages`.

A kernel knows of memory, not of tensors. The real runtime gives `run` a gapless copy of a tensor with other strides,
for its loads, and copies a gapless result back into such an output; a kernel that is called with its inputs only gets
their memory as it is. A `view_load` reads memory by the strides that stand in the program. Observed on 2.13.0, from
where the launched kernels load and store.
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
    expected = f"{len(program.inputs)} inputs and {len(program.stores)} outputs"
    return Binding(program, _match(program, (*program.inputs, *program.stores), arguments, expected))


def bind_inputs(program: Program, inputs: Sequence[Any]) -> Mapping[int, Any]:
    """Match a launch's inputs alone with the loads and scalars, by instruction number; raise LaunchError likewise."""
    return _match(program, program.inputs, inputs, f"{len(program.inputs)} inputs")


def evaluate(binding: Binding) -> None:
    """Read all inputs, compute, and write all outputs."""
    values = compute(binding.program.instructions, read=lambda one: read_input(one, binding.arguments[one.number]))
    for store in binding.program.stores:
        write_output(store, values[store.operands[0].number], binding.arguments[store.number])


def value_shapes(program: Program) -> dict[int, tuple[int, ...]] | None:
    """Return the shape of each value by its number, None where a launch has to say sizes."""
    torch = importlib.import_module("torch")
    if any(one.operation == "scalar" or -1 in one.operands[0] for one in program.inputs):
        return None

    def read(one: Instruction) -> Any:
        return torch.empty(one.operands[0], dtype=operations.element_type(one.dtype), device="meta")

    with torch.device("meta"):
        return {number: tuple(value.shape) for number, value in compute(program.instructions, read).items()}


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
    """Compute one instruction from its operands' values; raise LaunchError where their shapes do not fit."""
    find = operations.find(one.operation)
    try:
        return find(one, [_resolve(operand, values) for operand in one.operands])
    except (RuntimeError, IndexError, ValueError, OverflowError) as fault:
        given = [list(values[value.number].shape) for value in one.values if hasattr(values[value.number], "shape")]
        reason = str(fault).partition("\n")[0]
        raise LaunchError(f"{one} cannot be computed of shapes {', '.join(map(str, given))}: {reason}") from fault


def read_input(one: Instruction, argument: Any) -> Any:
    """Return a copy of what a load reads: the tensor for `load`, memory by the program's strides for `view_load`."""
    if one.operation == "view_load":
        return _memory(one, argument, _real_strides(one.operands[1], argument)).clone()
    return argument if one.operation == "scalar" else argument.clone()


def read_memory(one: Instruction, argument: Any) -> Any:
    """Return a copy of what a load reads where nothing makes its tensor gapless: memory without gaps."""
    if one.operation == "load":
        return _memory(one, argument, _gapless(tuple(argument.shape))).clone()
    return read_input(one, argument)


def write_output(store: Instruction, value: Any, argument: Any) -> None:
    """Write a value into an output, converted to its element type."""
    if value.shape != argument.shape:
        raise LaunchError(
            f"{store} was given an output of shape {list(argument.shape)}, its value's shape is {list(value.shape)}"
        )
    argument.copy_(value.to(operations.element_type(store.dtype)))


def _memory(one: Instruction, argument: Any, strides: Sequence[int]) -> Any:
    shape = tuple(argument.shape)
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) if 0 not in shape else -1
    held = argument.untyped_storage().nbytes() // argument.element_size() - argument.storage_offset()
    if last >= held:
        raise LaunchError(f"{one} reaches {last + 1} elements from its tensor's start, whose memory has {held}")
    return argument.as_strided(shape, strides)


def _resolve(operand: Any, values: Mapping[int, Any]) -> Any:
    if isinstance(operand, Value):
        return values[operand.number]
    return tuple(_resolve(one, values) for one in operand) if isinstance(operand, tuple) else operand


def _match(program: Program, wanted: Sequence[Instruction], arguments: Sequence[Any], expected: str) -> dict[int, Any]:
    if len(arguments) != len(wanted):
        raise LaunchError(
            f"{program.name or 'the kernel'} was launched with {len(arguments)} arguments, expected {expected}"
        )
    for instruction, argument in zip(wanted, arguments, strict=True):
        _check(program, instruction, argument)
    return {one.number: argument for one, argument in zip(wanted, arguments, strict=True)}


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
        _check_shape(what, one.operands[0], tuple(argument.shape))


def _check_shape(what: str, shape: Sequence[int], given: tuple[int, ...]) -> None:
    if len(given) != len(shape) or any(want not in (-1, size) for want, size in zip(shape, given, strict=True)):
        raise LaunchError(f"{what} was given a tensor of shape {list(given)}, expected {list(shape)}")


def _real_strides(strides: Sequence[int], argument: Any) -> tuple[int, ...]:
    return tuple(own if want == -1 else want for want, own in zip(strides, argument.stride(), strict=True))


def _gapless(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
