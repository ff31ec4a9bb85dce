"""Plan the launches of a kernel so that its inputs suffer the most that any parking could do to them.

    plan = plan_worst(program, shapes, overlaps)

Nothing is known of the real launches here. Each stage of the builder is launched after the one before it, each
independent part of it by itself; values that a later part uses are parked in every output that lies in the memory of an
input still to be loaded and has room, as well as in a workspace, from where they are loaded; and every output that a
reduction gives is filled first. Of all values that an output has room for it gets the first, and then the first of
those that it is computed from, if that is another. So whatever the recorded launches of a kernel lose is lost here too,
and more: a finding of this plan alone says that a kernel may be wrong, not that it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from verify.reference import operations
from verify.reference.plan import Launch, Overlaps, Place, Plan, Read, Write
from verify.reference.program import REDUCTIONS, Instruction, Program

LOADS = frozenset(("load", "view_load"))
NO_VALUES = frozenset(("store", "spec_next", "scalar", *LOADS))
SAME_VALUE = frozenset(("cast", "reshape", "copy", "broadcast"))
APART = 1 << 40
"""From one workspace to the next, in bytes."""

MANY = 2
"""More than one tile, so that blocks may race."""

Shapes = Mapping[int, tuple[int, ...]]


def plan_worst(program: Program, shapes: Shapes, overlaps: Overlaps, copied: frozenset[int] = frozenset()) -> Plan:
    """Return launches that lose each input that launches of this kernel may lose."""
    parts = _split(program)
    loads = [_loads_of(program, part) for part in parts]
    crossing = _crossing(program, parts)
    spaces = {number: Place(workspace=at * APART) for at, number in enumerate(crossing)}
    endangered = [(at, number) for at, numbers in enumerate(loads) for number in numbers]
    bad = _choose(program, [(at, one) for at, part in enumerate(parts) for one in part if one.number in spaces],
                  shapes, endangered, overlaps)  # fmt: skip
    launches: list[Launch] = []
    for at, part in enumerate(parts):
        parked = [one for one in part if one.number in spaces]
        writes = [_park(one, spaces[one.number]) for one in parked]
        writes += [_park(one, Place(argument=store)) for one in parked for store in bad.get(one.number, ())]
        writes += [_store(program, store) for store in _stores_of(program, part)]
        fills = tuple(write for write in writes if write.atomic)
        if fills:
            launches.append(Launch(blocks=1, fills=fills))
        reads = [Read(instruction=number) for number in loads[at]]
        reads += [
            Read(instruction=number, place=spaces[number], dtype=_held_type(program.instructions[number]))
            for number in _used_of_others(part, spaces)
        ]
        launches.append(Launch(blocks=MANY, tiles=MANY, reads=tuple(reads), writes=tuple(writes)))
    return Plan(program=program, launches=tuple(launches), shapes=shapes, copied=copied)


def _split(program: Program) -> list[list[Instruction]]:
    """Return the parts of the stages that hang together by their values, in order; stores are left out."""
    parts: dict[int, list[Instruction]] = {}
    part_of: dict[int, int] = {}
    for one in program.instructions:
        if one.operation in NO_VALUES and not _is_stored_input(program, one):
            continue
        near = {part_of[value.number] for value in one.values if _stage_of(program, value.number) == one.stage
                and value.number in part_of}  # fmt: skip
        own = min(near, default=one.number)
        for other in near - {own}:
            parts[own] += parts.pop(other)
            part_of.update({moved.number: own for moved in parts[own]})
        parts.setdefault(own, []).append(one)
        part_of[one.number] = own
    ordered = sorted(parts.items(), key=lambda part: (part[1][0].stage, part[0]))
    return [sorted(part, key=lambda one: one.number) for _, part in ordered]


def _is_stored_input(program: Program, one: Instruction) -> bool:
    return one.operation in LOADS and any(store.values[0].number == one.number for store in program.stores)


def _stage_of(program: Program, number: int) -> int:
    return program.instructions[number].stage


def _stores_of(program: Program, part: Sequence[Instruction]) -> list[Instruction]:
    numbers = {one.number for one in part}
    return [store for store in program.stores if store.values[0].number in numbers]


def _loads_of(program: Program, part: Sequence[Instruction]) -> list[int]:
    """Return the inputs that a part loads, by number."""
    used = [value.number for one in part for value in one.values] + [one.number for one in part]
    return [number for number in dict.fromkeys(used) if program.instructions[number].operation in LOADS]


def _crossing(program: Program, parts: Sequence[Sequence[Instruction]]) -> list[int]:
    """Return the values that another part than their own uses."""
    part_of = {one.number: at for at, part in enumerate(parts) for one in part}
    used = [(value.number, at) for at, part in enumerate(parts) for one in part for value in one.values]
    crossing = [number for number, at in used if part_of.get(number, at) != at]
    return [number for number in dict.fromkeys(crossing) if program.instructions[number].operation not in NO_VALUES]


def _used_of_others(part: Sequence[Instruction], spaces: Mapping[int, Place]) -> list[int]:
    own = {one.number for one in part}
    used = [value.number for one in part for value in one.values]
    return [number for number in dict.fromkeys(used) if number in spaces and number not in own]


def _park(one: Instruction, place: Place) -> Write:
    return Write(instruction=one.number, place=place, dtype=_held_type(one))


def _choose(
    program: Program,
    crossing: Sequence[tuple[int, Instruction]],
    shapes: Shapes,
    loads: Sequence[tuple[int, int]],
    overlaps: Overlaps,
) -> dict[int, list[int]]:
    """Return the outputs in which values do harm, by the values' numbers; values and loads come with their part."""
    chosen: dict[int, list[int]] = {}
    for store in program.stores:
        room = math.prod(shapes[store.values[0].number]) * operations.element_type(store.dtype).itemsize
        harmful = [
            one.number
            for at, one in crossing
            if 0 < math.prod(shapes[one.number]) * operations.element_type(_held_type(one)).itemsize <= room
            and any(later > at and overlaps(number, store.number) != "none" for later, number in loads)
        ]
        sources = _sources_of(program, store)
        for number in dict.fromkeys((*harmful[:1], *[one for one in harmful if one in sources][:1])):
            chosen.setdefault(number, []).append(store.number)
    return chosen


def _sources_of(program: Program, store: Instruction) -> set[int]:
    """Return the numbers of all values that an output is computed from."""
    found: set[int] = set()
    waiting = [value.number for value in store.values]
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += [value.number for value in program.instructions[number].values]
    return found


def _store(program: Program, store: Instruction) -> Write:
    source = program.instructions[store.values[0].number]
    while source.operation in SAME_VALUE and source.values:
        source = program.instructions[source.values[0].number]
    return Write(
        instruction=store.values[0].number,
        place=Place(argument=store.number),
        dtype=store.dtype,
        atomic=source.operation in REDUCTIONS,
        store=store.number,
    )


def _held_type(one: Instruction) -> str:
    """Return the element type in which a value lies in memory: true and false are FP32 between stages."""
    return "float32" if one.dtype == "bool" else one.dtype
