"""Record what the real runtime launches for a kernel, on memory of its own that lies as the given tensors do.

    recording = record(kernel.kobj, program, arguments)     # npu tensors and numbers, as `run` takes them
    key = layout_of(arguments)                              # what a recording depends on, besides the kernel

Nothing is written to the arguments: the launch is made on scratch tensors that share, overlap and are offset like them.
Host sysroot only.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from verify import host
from verify.launches import Kind, learn_operations, read_launches
from verify.reference import operations as reference
from verify.reference.evaluate import compute
from verify.reference.paired import Recording
from verify.reference.plan import Lie, Overlaps
from verify.reference.program import Instruction, Program

LEARNT: dict[int, Kind] = {}
"""What the operations' numbers mean, as far as this process has seen: not every listing is complete."""

EXACT_BYTES = 1 << 26
"""Up to this size two tensors with gaps are compared byte by byte; beyond, they overlap where their ends do."""


def record(kernel: Any, program: Program, arguments: Sequence[Any]) -> Recording:
    """Launch a built kernel (`kobj`) on scratch memory and return what it launched."""
    scratch = _lay_out(arguments)
    with host.recorded_launches() as lines:
        kernel.run(*scratch)
    listing = kernel.dump()
    LEARNT.update(learn_operations(lines, [kernel.das()]))
    wanted = (*program.inputs, *program.stores)
    tensors = {
        one.number: tensor for one, tensor in zip(wanted, scratch, strict=True) if hasattr(tensor, "untyped_storage")
    }
    return Recording(
        listing=listing,
        launches=tuple(read_launches(lines, {}, LEARNT)),
        addresses={
            number: None if is_copied(program, number, one) else one.data_ptr() for number, one in tensors.items()
        },
        numbers={one.number: number for one, number in zip(wanted, scratch, strict=True) if one.number not in tensors},
        shapes=shapes_of(program, dict(zip((one.number for one in wanted), scratch, strict=True))),
    )


def layout_of(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Return what decides where a launch loads and stores: sizes, strides, and how the arguments' memories lie."""
    memories: dict[int, int] = {}
    return tuple(_layout(one, memories) for one in arguments)


def overlaps_of(arguments: Mapping[int, Any], copied: frozenset[int]) -> Overlaps:
    """Return how the memories of arguments lie to each other, by instruction numbers; copies lie apart."""
    known: dict[tuple[int, int], Lie] = {}

    def overlaps(one: int, other: int) -> Lie:
        if one in copied or other in copied:
            return "none"
        if (one, other) not in known:
            known[one, other] = _lie(arguments[one], arguments[other])
        return known[one, other]

    return overlaps


def _layout(one: Any, memories: dict[int, int]) -> Any:
    if not hasattr(one, "untyped_storage"):
        return one
    storage = one.untyped_storage()
    memory = memories.setdefault(storage.data_ptr(), len(memories))
    return memory, storage.nbytes(), one.dtype, one.storage_offset(), tuple(one.shape), tuple(one.stride())


def _lay_out(arguments: Sequence[Any]) -> list[Any]:
    torch = importlib.import_module("torch")
    memories: dict[int, Any] = {}
    made = []
    for one in arguments:
        if not hasattr(one, "untyped_storage"):
            made.append(one)
            continue
        storage = one.untyped_storage()
        if storage.data_ptr() not in memories or storage.nbytes() == 0:
            size = -(-storage.nbytes() // 8) * 8
            memories[storage.data_ptr()] = torch.empty(size, dtype=torch.uint8, device=one.device)
        memory = memories[storage.data_ptr()].view(one.dtype)
        made.append(memory.as_strided(one.shape, one.stride(), one.storage_offset()))
    return made


def is_copied(program: Program, number: int, tensor: Any) -> bool:
    """Tell whether the runtime gives the kernel a gapless copy of an argument."""
    return program.instructions[number].operation != "view_load" and not tensor.is_contiguous()


def shapes_of(program: Program, arguments: Mapping[int, Any]) -> dict[int, tuple[int, ...]]:
    """Return the shapes of all values of a launch, by instruction number."""
    torch = importlib.import_module("torch")

    def read(one: Instruction) -> Any:
        given = arguments[one.number]
        if one.operation == "scalar":
            return given
        return torch.empty(given.shape, dtype=reference.element_type(one.dtype), device="meta")

    with torch.device("meta"):
        values = compute(program.instructions, read)
    return {number: tuple(getattr(value, "shape", ())) for number, value in values.items()}


def _lie(one: Any, other: Any) -> Lie:
    """Say how two CPU tensors' memories lie."""
    if 0 in (one.numel(), other.numel()) or one.untyped_storage().data_ptr() != other.untyped_storage().data_ptr():
        return "none"
    (start, end), (other_start, other_end) = _extent(one), _extent(other)
    if end <= other_start or other_end <= start:
        return "none"
    if (one.dtype, one.data_ptr(), _steps(one)) == (other.dtype, other.data_ptr(), _steps(other)):
        return "same"
    gapless = end - start == one.nbytes and other_end - other_start == other.nbytes
    if gapless or max(end, other_end) - min(start, other_start) > EXACT_BYTES:
        return "other"
    torch = importlib.import_module("torch")
    marks = torch.zeros(max(end, other_end), dtype=torch.uint8)
    _bytes_of(one, marks).fill_(1)
    return "other" if bool(_bytes_of(other, marks).any()) else "none"


def _bytes_of(tensor: Any, memory: Any) -> Any:
    """Return the bytes of a memory that a tensor's elements lie in."""
    size = tensor.element_size()
    strides = (*(stride * size for stride in tensor.stride()), 1)
    return memory.as_strided((*tensor.shape, size), strides, tensor.storage_offset() * size)


def _extent(one: Any) -> tuple[int, int]:
    last = sum((size - 1) * stride for size, stride in zip(one.shape, one.stride(), strict=True))
    start = one.storage_offset() * one.element_size()
    return start, start + (last + 1) * one.element_size()


def _steps(one: Any) -> tuple[tuple[int, int], ...]:
    """Return sizes and strides without axes of one element and with those joined that lie one after the other."""
    steps: list[tuple[int, int]] = []
    for size, stride in zip(one.shape, one.stride(), strict=True):
        if size == 1:
            continue
        if steps and steps[-1][1] == size * stride:
            steps[-1] = (steps[-1][0] * size, stride)
        else:
            steps.append((size, stride))
    return tuple(steps)
