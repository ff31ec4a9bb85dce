"""Evaluate a kernel launch by launch, with the memory that the real runtime's launches were seen to load and store.

    plan = align(program, recording)            # verify.reference.alignment
    evaluate_stages(plan, binding)              # writes into the outputs, and into what else the launches write
    tell_hazards(plan, overlaps)                # in words

A value that crosses stages lies in an output of the kernel or in a workspace meanwhile. Where that output is an input's
memory, later launches load what was stored there, and so do these: the values go through memory as bytes. Within one
launch all loads come before all stores. Where a launch loads memory that it also stores, by another address or other
strides, blocks race; what is computed is the worst order, each block loading after all others have stored. An input
smaller than its launch's largest tensor is loaded whole by every block, and stored so where it is an output too: that
all loads come first there is assumed, not known.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

from verify.reference import operations
from verify.reference.evaluate import Binding, compute_one, read_input, write_output
from verify.reference.plan import Launch, Overlaps, Place, Plan, PlanError, Read, Write
from verify.reference.program import Program


def evaluate_stages(plan: Plan, binding: Binding, overlaps: Overlaps) -> None:
    """Evaluate each launch on the memory that those before it have left."""
    memory = _Memory(plan, binding)
    for launch in plan.launches:
        for fill in launch.fills:
            memory.fill(fill)
        if launch.writes:
            _evaluate_launch(plan, launch, memory, overlaps)
    memory.finish()


def racing(launch: Launch, overlaps: Overlaps) -> list[tuple[int, Write]]:
    """Return the inputs that a launch of several tiles loads where it stores something else's elements."""
    if launch.tiles == 1:
        return []
    inputs = [read.instruction for read in launch.reads if read.place is None]
    return [(number, write) for number in inputs for write in launch.writes if _races(number, write, overlaps)]


def _races(loaded: int, write: Write, overlaps: Overlaps) -> bool:
    lie = "none" if write.place.argument is None else overlaps(loaded, write.place.argument)
    return lie == "other" or (lie == "same" and write.atomic)


def tell_hazards(plan: Plan, overlaps: Overlaps) -> tuple[str, ...]:
    """Say which inputs are loaded after an earlier launch stored into their memory, or while another block does."""
    told: dict[str, None] = {}
    stored: list[tuple[int, Write, str]] = []
    for number, launch in enumerate(plan.launches, 1):
        for read in (one for one in launch.reads if one.place is None):
            for earlier, write, what in stored:
                if write.place.argument is not None and overlaps(read.instruction, write.place.argument) != "none":
                    place = _tell_output(plan.program, write.place.argument)
                    told[
                        f"launch {earlier} {what} in {place}, before launch {number} loads "
                        f"{_tell_input(plan.program, read.instruction)} from there"
                    ] = None
        for loaded, write in racing(launch, overlaps):
            told[
                f"race: launch {number} loads {_tell_input(plan.program, loaded)} where its other blocks store "
                f"{_tell_output(plan.program, write.place.argument)}"
            ] = None
        stored += [(number, fill, f"fills for %{fill.instruction}") for fill in launch.fills]
        stored += [(number, write, _tell_write(plan.program, write)) for write in launch.writes]
    return tuple(told)


def tell_parked(plan: Plan) -> tuple[str, ...]:
    """Say where each value that crosses stages lies meanwhile."""
    return tuple(
        f"{plan.program.instructions[write.instruction]} in "
        + ("a workspace" if write.place.argument is None else _tell_output(plan.program, write.place.argument))
        for write in plan.parked()
    )


def _tell_write(program: Program, write: Write) -> str:
    value = program.instructions[write.instruction]
    return f"stores {value}" if write.store is not None else f"parks {value}"


def _tell_input(program: Program, number: int) -> str:
    return f"input {[one.number for one in program.inputs].index(number)}"


def _tell_output(program: Program, number: int | None) -> str:
    outputs = [one.number for one in program.stores]
    return f"output {outputs.index(number)}" if number in outputs else _tell_input(program, number or 0)


def _evaluate_launch(plan: Plan, launch: Launch, memory: _Memory, overlaps: Overlaps) -> None:
    values = {**memory.given, **{read.instruction: memory.read(read) for read in launch.reads}}
    before = [memory.content(write) for write in launch.writes]
    results = [compute_value(plan.program, write.instruction, dict(values)) for write in launch.writes]
    for write, result, content in zip(launch.writes, results, before, strict=True):
        memory.write(write, result, content)
    again = {number for number, _ in racing(launch, overlaps)}
    if not again:
        return
    values.update({read.instruction: memory.read(read) for read in launch.reads if read.instruction in again})
    results = [compute_value(plan.program, write.instruction, dict(values)) for write in launch.writes]
    for write, result, content in zip(launch.writes, results, before, strict=True):
        memory.write(write, result, content)


def compute_value(program: Program, number: int, values: dict[int, Any]) -> Any:
    """Compute one instruction's value of those that are given; raise PlanError where one that it needs is missing."""
    waiting = [number]
    while waiting:
        one = program.instructions[waiting[-1]]
        if one.number in values:
            waiting.pop()
            continue
        if one.operation in ("load", "view_load"):
            raise PlanError(f"%{number} is computed of {one}, which its launch does not load")
        missing = [value.number for value in one.values if value.number not in values]
        if missing:
            waiting += missing
        else:
            values[one.number] = compute_one(one, values)
    return values[number]


class _Memory:
    """The arguments' own memory, workspaces by offset, and copies of arguments whose strides a kernel does not know."""

    def __init__(self, plan: Plan, binding: Binding) -> None:
        self._plan, self._arguments = plan, binding.arguments
        self._copies = {number: binding.arguments[number].clone(memory_format=_contiguous()) for number in plan.copied}
        self._workspaces: dict[int, Any] = {}
        scalars = (one.number for one in plan.program.inputs if one.operation == "scalar")
        empty = (number for number, shape in plan.shapes.items() if 0 in shape)
        self.given = {
            **{number: binding.arguments[number] for number in scalars},
            **{number: _make_empty(plan, number) for number in empty},  # no launch loads or stores these
        }

    def read(self, read: Read) -> Any:
        one = self._plan.program.instructions[read.instruction]
        if read.place is None:
            return read_input(one, self._argument(one.number))
        if read.place.argument is None and read.place.workspace not in self._workspaces:
            raise PlanError(f"{one} is loaded from {read.place}, which holds something else by then")
        held = self._elements(read.place, read.dtype, self._plan.shapes[one.number])
        return held.to(operations.element_type(one.dtype), copy=True)

    def content(self, write: Write) -> Any:
        """Return a copy of what an atomic store will add to."""
        return self._held(write).clone() if write.atomic else None

    def fill(self, fill: Write) -> None:
        """Write what a reduction starts from, over as many elements as it has."""
        self._held(fill).fill_(_identity(self._reduction(fill), fill.dtype))

    def write(self, write: Write, value: Any, content: Any) -> None:
        if write.store is not None and not write.atomic:
            write_output(self._plan.program.instructions[write.store], value, self._argument(write.store))
            return
        held = self._held(write)
        stored = value.to(held.dtype).reshape(held.shape)
        held.copy_(_combine(self._reduction(write), content, stored) if write.atomic else stored)

    def finish(self) -> None:
        """Copy results back into outputs of other strides."""
        for store in self._plan.program.stores:
            if store.number in self._copies:
                self._arguments[store.number].copy_(self._copies[store.number])

    def _argument(self, number: int) -> Any:
        return self._copies.get(number, self._arguments[number])

    def _reduction(self, write: Write) -> str:
        """Return the kind of the reduction whose result an atomic store adds, past casts and reshapes of it."""
        one = self._plan.program.instructions[write.instruction]
        while one.operation in ("cast", "reshape", "broadcast", "copy") and one.values:
            one = self._plan.program.instructions[one.values[0].number]
        return one.operation

    def _held(self, write: Write) -> Any:
        return self._elements(write.place, write.dtype, self._plan.shapes[write.instruction])

    def _elements(self, place: Place, dtype: str, shape: tuple[int, ...]) -> Any:
        """Return a view of a place's memory as gapless elements."""
        torch = importlib.import_module("torch")
        element = operations.element_type(dtype)
        size = math.prod(shape) * element.itemsize
        if place.argument is None:
            memory, offset = self._workspace(place.workspace or 0, size).untyped_storage(), 0
        else:
            argument = self._argument(place.argument)
            memory, offset = argument.untyped_storage(), argument.storage_offset() * argument.element_size()
        if offset + size > memory.nbytes() or offset % element.itemsize:
            raise PlanError(f"{place} has no room for {math.prod(shape)} elements of {dtype}")
        return torch.empty(0, dtype=element).set_(memory, offset // element.itemsize, shape, _gapless(shape))

    def _workspace(self, start: int, size: int) -> Any:
        """Return a workspace's memory; one that overlaps it has lost what it held."""
        torch = importlib.import_module("torch")
        if start not in self._workspaces or self._workspaces[start].nbytes < size:
            self._workspaces[start] = torch.zeros(size, dtype=torch.uint8)
        for other in [
            one for one, held in self._workspaces.items() if one < start + size and start < one + held.nbytes
        ]:
            if other != start:
                del self._workspaces[other]
        return self._workspaces[start]


def _make_empty(plan: Plan, number: int) -> Any:
    element = operations.element_type(plan.program.instructions[number].dtype)
    return importlib.import_module("torch").empty(plan.shapes[number], dtype=element)


def _contiguous() -> Any:
    return importlib.import_module("torch").contiguous_format


def _gapless(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _identity(reduction: str, dtype: str) -> Any:
    torch = importlib.import_module("torch")
    element = operations.element_type(dtype)
    if reduction == "sum":
        return 0
    if reduction not in ("max", "min"):
        raise PlanError(f"an atomic store of {reduction}, expected a reduction")
    if element.is_floating_point:
        return -math.inf if reduction == "max" else math.inf
    limits = torch.iinfo(element)
    return limits.min if reduction == "max" else limits.max


def _combine(reduction: str, content: Any, value: Any) -> Any:
    torch = importlib.import_module("torch")
    return {"sum": torch.add, "max": torch.maximum, "min": torch.minimum}[reduction](content, value)
