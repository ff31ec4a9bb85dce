"""Pair the stages that the compiler lists of a kernel with its recorded launches.

    stages = pair_stages(parse_listing(recording.listing), recording.launches)

A stage's loads and stores stand in the listing and in its launch in the same order, which gives each its address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from verify.launches import Launch
from verify.reference.listing import Node
from verify.reference.listing import Stage as Listed


class AlignmentError(ValueError):
    """A recorded launch cannot be matched with the kernel's program, or in more than one way that matters."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    """One launch of a kernel, as it was recorded.

    `addresses` are those of the tensors that were passed, by instruction number, None for one of other strides than
    the kernel loads or stores, which the runtime copies; `numbers` are the scalars, `shapes` those of all values.
    """

    listing: str
    launches: tuple[Launch, ...]
    addresses: Mapping[int, int | None]
    numbers: Mapping[int, float]
    shapes: Mapping[int, tuple[int, ...]]


@dataclass(eq=False, slots=True)
class Stored:
    """A store of a stage: in which address, and which terms it may be of."""

    node: Node
    stage: int
    address: int
    atomic: bool
    terms: set[int]
    instruction: int = -1
    output: int | None = None


@dataclass(eq=False, slots=True)
class PairedStage:
    """One listed stage with its launch. `terms` are those that each node may be, by node number."""

    number: int
    listed: Listed
    launch: Launch
    fills: list[tuple[int, int]]
    loaded: dict[int, int]
    stored: list[Stored]
    nodes: dict[int, Node]
    terms: dict[int, set[int]] = field(default_factory=dict)


def pair_stages(listed: Sequence[Listed], found: Sequence[Launch]) -> list[PairedStage]:
    """Give each listed stage its launch and the fills before it."""
    stages: list[PairedStage] = []
    fills: list[tuple[int, int]] = []
    for number, launch in enumerate(found):
        if launch.accesses is None:
            raise AlignmentError(f"launch {number + 1} has words of an unknown form")
        loads = [one.address for one in launch.accesses if one.kind == "load"]
        stores = [one for one in launch.accesses if one.kind in ("store", "atomic")]
        if _is_fill(launch, found[number + 1 :]):
            fills.append((stores[0].address, launch.blocks))
            continue
        if len(stages) == len(listed):
            raise AlignmentError(
                f"{len(found)} launches for {len(listed)} listed stages: launch {number + 1} is left over"
            )
        stage = listed[len(stages)]
        if len(loads) != len(stage.loads) or len(stores) != len(stage.stores):
            raise AlignmentError(
                f"launch {number + 1} has {len(loads)} loads and {len(stores)} stores, "
                f"stage {len(stages)} of the listing {len(stage.loads)} and {len(stage.stores)}"
            )
        stored = [
            Stored(node, len(stages), one.address, one.kind == "atomic", set())
            for node, one in zip(stage.stores, stores, strict=True)
        ]
        loaded = {node.number: address for node, address in zip(stage.loads, loads, strict=True)}
        nodes = {node.number: node for node in stage.nodes}
        stages.append(PairedStage(len(stages), stage, launch, fills, loaded, stored, nodes))
        fills = []
    if len(stages) != len(listed) or fills:
        raise AlignmentError(f"{len(found)} launches for {len(listed)} listed stages")
    return stages


def _is_fill(launch: Launch, later: Sequence[Launch]) -> bool:
    """Tell whether a launch only makes an address ready for the atomic stores of the next one that does more."""
    accesses = launch.accesses or ()
    if [one.kind for one in accesses] != ["store"]:
        return False
    following = next((one for one in later if len(one.accesses or ()) != 1), None)
    return following is not None and any(
        one.kind == "atomic" and one.address == accesses[0].address for one in following.accesses or ()
    )
