"""Predict where the values that cross the stages of a `spec` kernel are parked, from the builder's program alone.

    plan = predict_parking(program)
    plan.stages          # the launches in order, fills left out: what each loads, computes and stores
    plan.crossings       # every value that one stage stores and another loads, with its place

The rule was read off the public source of DVM and tested against the stages that the compiler prints and the addresses
in the disassembly of what it had launched (`kobj.dump()`, `kobj.das()`), on torch_npu 2.13.0; docs/patch-cost.md says
how far. The stages are gone through from the last to the first. A value that the stage loads lies in the first output
of that very stage which has its element type, is computed from it element by element, and is not taken yet, provided
the value is as large as the stage's largest tensor along every axis that is tiled; where there is none, in a workspace.
A value that is an output itself lies there. Which buffers a launch passes, and whether two are one, plays no part.

A prediction is no evidence: where launches were recorded, they count. What was not tested is an UnknownParkingError.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from verify.reference.program import REDUCTIONS, Program
from verify.reference.staged import (
    ELEMENTWISE,
    LOADS,
    Node,
    Shape,
    Store,
    UnknownParkingError,
    broadcast,
    is_dynamic,
    lower,
    split_stages,
)

STAGES = "vgraph.stages"
TILE = re.compile(r"%\d+\[([\d,]+)\]<\w+> = ")
LOCAL_ELEMENTS = 48 * 1024
"""How many FP32 numbers the local memory of a core of the 910B holds."""
UNTILED = 512
"""The length up to which the one axis of a vector is never tiled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Crossing:
    """A value that the stage `source` stores and the stages `users` load.

    `value` is the number of the instruction that computes it. `place` is the number of the store in whose output it
    lies meanwhile, None for a workspace; `own` says that this is the value's own output. `others` are outputs that
    would do as well: DVM takes the first in its own order of operations, which now and then is not the builder's.
    """

    value: int
    source: int
    users: tuple[int, ...]
    place: int | None
    own: bool
    others: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One launch, by instruction numbers: the inputs that it loads, what it computes, the outputs that it stores."""

    loads: tuple[int, ...]
    operations: tuple[int, ...]
    stores: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Parking:
    """The stages of a kernel, in the order of their launches, and what crosses between them."""

    stages: tuple[Stage, ...]
    crossings: tuple[Crossing, ...]


@dataclass(eq=False, slots=True)
class _Load:
    """What a stage loads of a crossing value, for one operand of one operation."""

    store: Store
    consumer: Node


def predict_parking(program: Program, *, dump: str | None = None) -> Parking:
    """Return the stages of a kernel, and the places of what crosses them: with dynamic shapes, workspaces alone.

    `dump` is what the real kernel's `dump()` returned. With it, how DVM tiled the stages and whether it cut the kernel
    at all is read; without it that is predicted. Raises UnknownParkingError for other kinds of kernels, for what was
    not tested, and where the tiling decides and is not given.
    """
    if program.kind != "spec":
        raise UnknownParkingError(f"the kernel is of the type {program.kind!r}, expected 'spec'")
    dynamic = is_dynamic(program)
    if dynamic and dump is None:
        raise UnknownParkingError("whether DVM launches a dynamic kernel as one depends on the sizes; give the dump")
    nodes, stores = lower(program)
    if not (_falls(nodes) if dump is None else STAGES in dump):
        return Parking(
            stages=(_describe(nodes, [node for node in nodes if node.operation in LOADS], stores),), crossings=()
        )
    count = split_stages(nodes)
    loads, crossing = _connect(nodes, stores, count)
    tiles = [] if dynamic else _read_tiles(dump, count)
    for stage in reversed(range(len(tiles))):
        _park(loads[stage], [node for node in nodes if node.stage == stage], tiles[stage])
    inputs = _inputs_of_stages(nodes, count)
    stages = (
        _describe([node for node in nodes if node.stage == stage], inputs[stage], stores) for stage in range(count)
    )
    return Parking(stages=tuple(stages), crossings=tuple(map(_tell, crossing)))


def _falls(nodes: Sequence[Node]) -> bool:
    """Tell whether DVM cuts the kernel: where a reduction that is used needs more than the rows of one tile."""
    shapes = [node.shape for node in nodes]
    domain = broadcast(shapes)
    used = [one for node in nodes for one in node.inputs if one.operation in REDUCTIONS]
    answers = {_needs_stage(one, domain, len(nodes)) for one in used}
    if True in answers and domain in shapes:
        return True
    mixed = len({node.axes for node in nodes if node.operation in REDUCTIONS}) > 1
    if domain not in shapes or None in answers or mixed:
        raise UnknownParkingError("whether DVM launches this as one kernel depends on its tiling; give the dump")
    return False


def _needs_stage(reduction: Node, domain: Shape, count: int) -> bool | None:
    shape = reduction.inputs[0].shape
    reduced = [axis for axis in reduction.axes if shape[axis] > 1]
    if not reduced or shape != domain:
        return None
    row = math.prod(domain[min(reduced) - len(shape) :])
    if row == math.prod(domain) or 2 * row > LOCAL_ELEMENTS:
        return True
    return False if reduction.keepdim and row * (count + 2) <= LOCAL_ELEMENTS else None


def _connect(nodes: Sequence[Node], stores: Sequence[Store], count: int) -> tuple[list[list[_Load]], list[Store]]:
    """Return what each stage loads of other stages' values, and the stores of those values, in builder order."""
    loads: list[list[_Load]] = [[] for _ in range(count)]
    crossing: list[Store] = []
    for node in nodes:
        for one in node.inputs:
            if one.stage == node.stage or one.operation in LOADS:
                continue
            one.store = one.store or Store(one)
            loads[node.stage].append(_Load(one.store, node))
            if one.store not in crossing:
                crossing.append(one.store)
            if node.stage not in one.store.users:
                one.store.users.append(node.stage)
    return loads, crossing


def _read_tiles(dump: str | None, count: int) -> list[Shape | None]:
    """Return the tile of each stage's domain, None where it is not told. A dump lists axes from the innermost."""
    if dump is None:
        return [None] * count
    parts = dump.split("// stage ")[1:]
    if len(parts) != count:
        raise UnknownParkingError(f"the dump has {len(parts)} stages, expected {count}")
    tiles = ([tuple(map(int, tile.split(",")))[::-1] for tile in TILE.findall(part)] for part in parts)
    return [tuple(map(max, zip(*tile, strict=True))) for tile in tiles]


def _park(loads: Sequence[_Load], nodes: Sequence[Node], tile: Shape | None) -> None:
    """Place what one stage loads. Later stages were done before."""
    reached = _reached(loads, nodes)
    free = [node.store for node in nodes if node.store is not None]
    for load in loads:
        if load.store.placed:
            continue
        load.store.placed = True
        value = load.store.node
        fitting = [store for store in free if load in reached[id(store.node)] and store.node.dtype == value.dtype]
        if not fitting or not _is_whole(value.shape, _domain(nodes), tile):
            continue
        found = next((store for store in fitting if store.offers is not None), fitting[0])
        load.store.place = found.offers
        load.store.others = tuple(one.offers for one in fitting if one is not found and one.offers is not None)
        free.remove(found)


def _domain(nodes: Sequence[Node]) -> Shape:
    """Return the shape over which a stage loops, to which everything in it broadcasts."""
    shapes = [one.shape for node in nodes for one in (node, *node.inputs)]
    together = broadcast(shapes)
    if together not in shapes:
        raise UnknownParkingError(f"a stage that loops over more than one shape, {together} among them, was not tested")
    return together


def _is_whole(shape: Shape, domain: Shape, tile: Shape | None) -> bool:
    """Tell whether a value is as large as the stage's domain along all axes that DVM tiles."""
    if math.prod(shape) == math.prod(domain):
        return True
    padded = (1,) * (len(domain) - len(shape)) + shape
    repeated = [axis for axis, (one, size) in enumerate(zip(padded, domain, strict=True)) if one != size]
    long = [axis for axis, size in enumerate(domain) if size > 1]
    if len(long) > 1 and long[0] in repeated:
        return False  # the outermost axis is always tiled
    if len(domain) == 1 and domain[0] <= UNTILED:
        return True
    if len(long) == 1 and len(domain) > 1:
        return False  # all axes are folded into one
    if tile is None or len(tile) != len(domain):
        raise UnknownParkingError(
            f"whether a {shape} lies in an output depends on the tiling of {domain}; give the dump"
        )
    return all(tile[axis] == domain[axis] for axis in repeated)


def _reached(loads: Sequence[_Load], nodes: Sequence[Node]) -> dict[int, list[_Load]]:
    """Return, for each node of a stage, the loads that it is computed from element by element."""
    reached: dict[int, list[_Load]] = {}
    for node in nodes:
        found: list[_Load] = []
        reached[id(node)] = found
        if node.operation not in ELEMENTWISE:
            continue
        for one in node.inputs:
            if one.size == node.size:
                found.extend(reached.get(id(one), ()))
        found.extend(load for load in loads if load.consumer is node and load.store.node.size == node.size)
    return reached


def _inputs_of_stages(nodes: Sequence[Node], count: int) -> list[list[Node]]:
    inputs: list[dict[int, Node]] = [{} for _ in range(count)]
    for node in nodes:
        for one in node.inputs:
            if one.operation in LOADS:
                inputs[node.stage][one.number] = one
    return [list(one.values()) for one in inputs]


def _describe(nodes: Sequence[Node], inputs: Sequence[Node], stores: Sequence[Store]) -> Stage:
    computed = (node.number for node in nodes if node.operation not in LOADS)
    return Stage(
        loads=tuple(node.number for node in inputs),
        operations=tuple(dict.fromkeys(computed)),
        stores=tuple(store.output for store in stores if store.node in nodes and store.output is not None),
    )


def _tell(store: Store) -> Crossing:
    return Crossing(
        value=store.node.number,
        source=store.node.stage,
        users=tuple(sorted(store.users)),
        place=store.place if store.output is None else store.output,
        own=store.output is not None,
        others=() if store.output is not None else store.others,
    )
