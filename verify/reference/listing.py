"""Read the stages that the DVM compiler prints of a kernel (`kobj.dump()`).

    stages = parse_listing(kernel.kobj.dump())      # in the order in which they are launched
    stages[0].nodes                                 # its operations, loads and stores among them

A kernel that is one launch is one stage. The shapes in the text are those of a tile, not of a tensor, so they are left
out, but for whether there are any elements. What does not have the known form, a kernel with matrix multiplication for
one, is an UnreadableListingError.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

STAGE = re.compile(r"^\s*vgraph\(tile_num=(\d+)\) \{$")
NODE = re.compile(r"^\s*%(\d+)\[([^\]]*)\]<(\w+)> = (\w+)(?:<(.*?)>)?\(((?:%.*)?)\)(?: //.*)?$")
OPERAND = re.compile(r"%(\d+)\[")
FRAME = re.compile(r"^\s*(?:vgraph\.stages\(\) \{|\}|// .*|)$")
LOADS = frozenset(("Load", "ViewLoad"))
STORES = frozenset(("Store",))
DUMMY = "LoadDummy"
REDUCTION = "Reduce"


class UnreadableListingError(ValueError):
    """The compiler's listing of a kernel has a form that is not known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One operation. `attributes` is the text between its angle brackets, a number for one with a number.

    `empty` is what has no elements, or what is loaded for nothing but that.
    """

    number: int
    name: str
    attributes: str
    operands: tuple[int, ...]
    dtype: str
    empty: bool = False

    def __str__(self) -> str:
        attributes = f"<{self.attributes}>" if self.attributes else ""
        return f"%{self.number} = {self.name}{attributes}({', '.join(f'%{one}' for one in self.operands)}) {self.dtype}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """What one launch computes, in how many tiles: with one, every load comes before every store.

    What has no elements is listed, and neither loaded nor stored by the launch.
    """

    tiles: int
    nodes: tuple[Node, ...]

    @property
    def loads(self) -> tuple[Node, ...]:
        """The loads, in the order of the launch's instructions."""
        return tuple(node for node in self.nodes if node.name in LOADS and not node.empty)

    @property
    def stores(self) -> tuple[Node, ...]:
        """The stores, in the order of the launch's instructions."""
        return tuple(node for node in self.nodes if node.name in STORES and not node.empty)


def parse_listing(text: str) -> tuple[Stage, ...]:
    """Return the stages of a kernel's listing; raise UnreadableListingError for lines of an unknown form."""
    stages: list[tuple[int, list[Node]]] = []
    for line in text.splitlines():
        if found := STAGE.match(line):
            stages.append((int(found[1]), []))
        elif (found := NODE.match(line)) and stages:
            stages[-1][1].append(_read_node(found))
        elif not FRAME.match(line):
            raise UnreadableListingError(f"the compiler's listing has a line of an unknown form: {line.strip()!r}")
    if not stages:
        raise UnreadableListingError("the compiler's listing holds no stage")
    return tuple(
        Stage(tiles=tiles, nodes=tuple(_without_partial(_mark_empty(_without_unused(_without_dummies(nodes))))))
        for tiles, nodes in stages
    )


def _read_node(found: re.Match[str]) -> Node:
    return Node(
        number=int(found[1]),
        name=found[4],
        attributes=found[5] or "",
        operands=tuple(map(int, OPERAND.findall(found[6]))),
        dtype=found[3],
        empty="0" in found[2].split(","),
    )


def _without_dummies(nodes: Sequence[Node]) -> Iterator[Node]:
    """Leave out the nodes that stand where a launch loads nothing."""
    dummies = {node.number for node in nodes if node.name == DUMMY}
    for node in nodes:
        if node.number not in dummies:
            yield replace(node, operands=tuple(one for one in node.operands if one not in dummies))


def _without_unused(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Leave out the inputs that nothing uses: torch_npu 2.12.0.post3 lists them, and launches no load of them."""
    listed = tuple(nodes)
    used = {number for node in listed for number in node.operands}
    return tuple(node for node in listed if node.name not in LOADS or node.number in used)


def _mark_empty(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Mark the loads of which only what has no elements is computed."""
    wanted = {number for node in nodes if not node.empty for number in node.operands}
    return tuple(
        replace(node, empty=node.empty or (node.name in LOADS and node.number not in wanted)) for node in nodes
    )


def _without_partial(nodes: Sequence[Node]) -> Iterator[Node]:
    """Leave out the first steps of reductions over axes that are apart: only the last step says over which."""
    users: dict[int, list[Node]] = {}
    for node in nodes:
        for number in node.operands:
            users.setdefault(number, []).append(node)
    sources: dict[int, int] = {}
    for node in nodes:
        operands = tuple(sources.get(number, number) for number in node.operands)
        if (
            node.name == REDUCTION
            and not node.attributes
            and [one.name for one in users.get(node.number, ())] == [REDUCTION]
        ):
            (sources[node.number],) = operands
        else:
            yield replace(node, operands=operands)
