"""Where the backend puts what crosses the stages of a kernel, and when each launch reads and writes.

    for plan in plan_launches(program, kind="spec"):
        plan.writes          # what each output holds from which launch on: its own value, or one that waits in it
        plan.reads           # the launches that read each input

The rule holds for static `spec` kernels that the backend cuts into launches. Their stages are gone through from the
last to the first. A value that a stage reads waits in the first output that this very stage stores, that has its type,
that is computed from it element by element, and that is not taken yet, provided the value is as large as the largest
tensor of the stage along every axis that is tiled; where there is none, in a workspace. With sizes of run time it is
always a workspace. A value that is an output itself lies there from the start.

How the backend tiles a stage, and whether it cuts a kernel at all, is not always told by the program: then there are
several plans. docs/patch-cost.md says how far the rule was held against the real compiler.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from toolkit.scan.lowering import ELEMENTWISE, TESTED, Node, has_bfloat16, lower, split_stages
from toolkit.scan.program import Program
from toolkit.scan.tiling import Guess, UndecidedError, is_cleared, is_cut, is_whole
from toolkit.scan.values import Verdict

MOST_PLANS = 64
"""With more, every value may be anywhere."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Write:
    """A value in the memory of an output from its launch to the last one that uses it.

    `is_cleared` says whether the output is cleared before that launch, since blocks add to it. `is_sure` is whether
    the rule leaves no other choice.
    """

    value: str
    output: int
    launch: int
    used: int
    is_cleared: Verdict
    is_sure: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """One way to launch a kernel: the launches that read each input, and what is written to outputs."""

    reads: Mapping[str, frozenset[int]]
    writes: tuple[Write, ...]


@dataclass(eq=False, slots=True)
class _Crossing:
    """A value on its way between stages: the output that it waits in, once it is placed.

    `others` are outputs that would do as well: the backend takes the first in an order of its own, which is mostly the
    builder's.
    """

    node: Node
    users: set[int]
    is_placed: bool = False
    place: int | None = None
    others: tuple[int, ...] = ()

    @property
    def offer(self) -> int | None:
        """The output in which a value of an earlier stage may wait until this one is stored."""
        return self.place if self.is_placed or not self.node.outputs else self.node.outputs[0]


@dataclass(eq=False, slots=True)
class _Load:
    """What a stage reads of a crossing value, for one operand of one operation."""

    crossing: _Crossing
    consumer: Node


def plan_launches(program: Program, kind: str) -> tuple[Plan, ...]:
    """Return every way in which the backend may launch a kernel of a type, as far as the program tells."""
    plans: list[Plan] = []
    for casts_back in (False, True) if has_bfloat16(program) else (False,):
        nodes = lower(program, casts_back=casts_back)
        is_tested = _is_tested(nodes)
        cut: Verdict = "unknown"
        if kind != "spec" and program.stages == 1:
            cut = "no"
        elif is_tested and not program.is_dynamic:
            cut = is_cut(nodes)
        if cut != "yes":
            plans.append(_one_launch(nodes, is_tested and kind in ("spec", "vector")))
        if cut != "no":
            plans += _cut(nodes, program, is_tested)
    return tuple(plans)


def _is_tested(nodes: Sequence[Node]) -> bool:
    """Tell whether the rule covers all operations, and everything that it asks about them is known."""
    return all(
        node.operation in TESTED and node.dtype is not None and node.shape is not None and 0 not in node.shape
        for node in nodes
    )


def _one_launch(nodes: Sequence[Node], is_tested: bool) -> Plan:
    reads = {one.value: frozenset({0}) for node in nodes for one in node.inputs if one.is_load}
    writes = (
        Write(value=node.value, output=output, launch=0, used=0, is_cleared=is_cleared(node, is_tested))
        for node in nodes
        for output in node.outputs
    )
    return Plan(reads=reads, writes=tuple(writes))


def _cut(nodes: Sequence[Node], program: Program, is_tested: bool) -> list[Plan]:
    """Return the plans of a kernel in several launches."""
    count = split_stages(nodes)
    reads: dict[str, set[int]] = {}
    for node in nodes:
        for one in node.inputs:
            if one.is_load:
                reads.setdefault(one.value, set()).add(node.stage)
    frozen = {name: frozenset(stages) for name, stages in reads.items()}
    if is_tested and not program.is_dynamic:
        ways = list(_ways(nodes, count))
        if len(ways) <= MOST_PLANS:
            return [Plan(reads=frozen, writes=tuple(_writes(way, True))) for way in ways]
    _, crossing = _connect(nodes, count)
    if not program.is_dynamic:
        for kept in crossing.values():
            kept.others = tuple(output.index for output in program.outputs)
    return [Plan(reads=frozen, writes=tuple(_writes(crossing.values(), is_tested)))]


def _ways(nodes: Sequence[Node], count: int) -> Iterator[Iterable[_Crossing]]:
    """Yield what crosses with its places, once for each way of tiling that makes a difference."""
    staged = [[node for node in nodes if node.stage == stage] for stage in range(count)]
    pending, found = [Guess({})], 0
    while pending and found <= MOST_PLANS:
        guess = pending.pop()
        loads, crossing = _connect(nodes, count)
        try:
            for stage in reversed(range(count)):
                _park(loads[stage], staged[stage], crossing, guess)
        except UndecidedError as undecided:
            pending += [guess.assume(undecided.question, answer) for answer in (True, False)]
        else:
            found += 1
            yield crossing.values()


def _connect(nodes: Sequence[Node], count: int) -> tuple[list[list[_Load]], dict[Node, _Crossing]]:
    """Return what each stage reads of other stages' values, in the builder's order, and all that is stored."""
    loads: list[list[_Load]] = [[] for _ in range(count)]
    crossing: dict[Node, _Crossing] = {}
    for node in nodes:
        for one in node.inputs:
            if one.stage != node.stage and not one.is_load:
                kept = crossing.setdefault(one, _Crossing(one, set()))
                kept.users.add(node.stage)
                loads[node.stage].append(_Load(kept, node))
    for node in nodes:
        if node.outputs:
            crossing.setdefault(node, _Crossing(node, set()))
    return loads, crossing


def _park(loads: Sequence[_Load], nodes: Sequence[Node], crossing: Mapping[Node, _Crossing], guess: Guess) -> None:
    """Place what one stage reads. Later stages were done before."""
    reached = _reached(loads, nodes)
    free = [crossing[node] for node in nodes if node in crossing]
    for load in loads:
        value = load.crossing
        if value.is_placed:
            continue
        value.is_placed = True
        fitting = [one for one in free if load in reached[one.node] and one.node.dtype == value.node.dtype]
        if not fitting or not is_whole(value.node, nodes, guess):
            continue
        found = next((one for one in fitting if one.offer is not None), fitting[0])
        value.place = found.offer
        later = (one for one in fitting if one is not found and not _is_made_of(one.node, found.node))
        value.others = tuple(one.offer for one in later if one.offer is not None)
        free.remove(found)


def _is_made_of(node: Node, other: Node) -> bool:
    """Tell whether an operation uses another one of its stage, so that no order puts it first."""
    pending, seen = [node], {node}
    while pending:
        new = {one for one in pending.pop().inputs if one.stage == node.stage} - seen
        seen |= new
        pending += new
    return other in seen


def _reached(loads: Sequence[_Load], nodes: Sequence[Node]) -> dict[Node, list[_Load]]:
    """Return, for each operation of a stage, what it is computed from element by element."""
    reached: dict[Node, list[_Load]] = {}
    for node in nodes:
        found = reached[node] = []
        if node.operation not in ELEMENTWISE:
            continue
        for one in node.inputs:
            if one.size == node.size:
                found += reached.get(one, [])
        found += [load for load in loads if load.consumer is node and load.crossing.node.size == node.size]
    return reached


def _writes(crossing: Iterable[_Crossing], is_tested: bool) -> Iterator[Write]:
    """Yield what lies in outputs: their own values, and those that wait there."""
    for one in crossing:
        node = one.node
        write = Write(
            value=node.value,
            output=-1,
            launch=node.stage,
            used=max(one.users, default=node.stage),
            is_cleared=is_cleared(node, is_tested),
        )
        if node.outputs:
            yield from (replace(write, output=output) for output in node.outputs)
            continue
        if one.place is not None:
            yield replace(write, output=one.place)
        yield from (replace(write, output=output, is_sure=False) for output in one.others)
