"""Where a kernel's values wait between its launches: as recorded, and as the reference's rule has it.

The recorded kernels are those of `verify`; here the scanner reads them as generated code would say them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.unit.scan.builders import Step, run_builder, write_builder
from toolkit.scan.parking import Plan, plan_launches
from toolkit.scan.program import read_program
from verify.reference import staged
from verify.reference.parking import Parking, predict_parking
from verify.reference.program import Program

RECORDED = json.loads(
    (Path(__file__).parents[1] / "verify" / "reference" / "recorded_parking.json").read_text(encoding="utf-8")
)

Place = tuple[int, int]
"""An output, and the launch that writes it."""


def places_of(plan: Plan, *, sure: bool = False) -> set[Place]:
    return {(write.output, write.launch) for write in plan.writes if write.is_sure or not sure}


def certain_places(plans: Sequence[Plan]) -> set[Place]:
    return set.intersection(*(places_of(plan, sure=True) for plan in plans))


def possible_places(plans: Iterable[Plan]) -> set[Place]:
    return {place for plan in plans for place in places_of(plan)}


# --- recorded launches -------------------------------------------------------------------------------------------


def recorded_places(case: dict[str, Any]) -> set[Place]:
    return {
        (int(name[1:]), launch)
        for launch, (_, stored) in enumerate(case["launches"])
        for name in stored
        if name[0] == "o"
    }


def reads_of(plan: Plan, inputs: Sequence[str], count: int) -> list[list[str]]:
    return [
        [f"i{number}" for number, name in enumerate(inputs) if launch in plan.reads.get(name, ())]
        for launch in range(count)
    ]


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["name"])
def test_no_recorded_launch_is_ruled_out_and_none_is_made_up(case: dict[str, Any]) -> None:
    program = read_program(write_builder(case["steps"]))
    plans = plan_launches(program, "spec")
    recorded = recorded_places(case)

    assert program.unknown == []
    assert certain_places(plans) <= recorded <= possible_places(plans)
    if "dump" not in case:
        assert {frozenset(places_of(plan, sure=True)) for plan in plans} == {frozenset(recorded)}
        loaded = [[name for name in loads if name[0] == "i"] for loads, _ in case["launches"]]
        assert all(reads_of(plan, program.inputs, len(loaded)) == loaded for plan in plans)
    else:
        assert len(plans) > 1


def test_a_condition_comes_after_what_it_chooses_from() -> None:
    x, y = ["load", [128, 256], "float32"], ["load", [1, 1], "float32"]
    total, largest = ["sum", 0, [0, 1], True], ["max", 0, [0, 1], True]
    steps = [x, y, total, largest, ["greater", 2], ["spec_next"], ["select", 4, 3, 1], ["store", 6, "float32"]]
    (plan,) = plan_launches(read_program(write_builder(steps)), "spec")

    assert [(write.value, write.launch) for write in plan.writes] == [("v3", 0), ("v6", 1)]


# --- the reference's rule ----------------------------------------------------------------------------------------

SHAPES = [(128, 256), (7, 33), (40, 8), (4, 8), (1, 256), (2, 3, 40), (64, 512), (700,), (40,), (1, 1)]
UNARY = ("exp", "sqrt", "copy", "abs", "muls", "adds", "maxs")
BINARY = ("add", "sub", "mul", "div", "maximum")


class Steps:
    """A builder on its way: the steps, and of each value its sizes, its type and whether an operation used it."""

    def __init__(self) -> None:
        self.steps: list[list[Any]] = []
        self.values: dict[int, tuple[tuple[int, ...], str]] = {}
        self.stored: set[int] = set()

    def add(self, step: list[Any], shape: tuple[int, ...], dtype: str) -> None:
        self.values[len(self.steps)] = (shape, dtype)
        self.steps.append(step)

    def pick(self, draw: st.DrawFn, *dtypes: str) -> int:
        """Take a value, mostly a late one; numbers alone where no type is named."""
        fitting = [at for at, (_, dtype) in self.values.items() if dtype in dtypes]
        assume(fitting)
        return draw(st.sampled_from(fitting[-3:] + fitting))


def fits(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    rank = max(len(shape), len(other))
    padded = zip((1,) * (rank - len(shape)) + shape, (1,) * (rank - len(other)) + other, strict=True)
    return all(one == two or 1 in (one, two) for one, two in padded)


@st.composite
def kernels(draw: st.DrawFn) -> Sequence[Step]:
    """Draw the steps of a builder of up to four stages, with stores anywhere and all types of floats."""
    made = Steps()
    base = draw(st.sampled_from(SHAPES))
    floats = draw(st.sampled_from([("float32",), ("float32", "float16"), ("float32", "bfloat16")]))
    for at in range(draw(st.integers(1, 3))):
        dropped = draw(st.integers(0, len(base))) if at else 0
        shape = tuple(1 if draw(st.integers(0, 4)) == 0 else size for size in base[dropped:]) if at else base
        dtype = draw(st.sampled_from(floats))
        made.add(["load", list(shape), dtype], shape, dtype)
    for _ in range(draw(st.integers(4, 10))):
        draw_step(draw, made, base, floats)
    left = [at for at in made.values if made.steps[at][0] != "load"]
    for at in left:
        if at == left[-1] or draw(st.integers(0, 2)) == 0:
            draw_store(draw, made, at, floats)
    return made.steps


def draw_step(draw: st.DrawFn, made: Steps, base: tuple[int, ...], floats: tuple[str, ...]) -> None:
    kind = draw(st.sampled_from(["unary", "unary", "binary", "binary", "binary", "reduce", "reduce", "next", "cast",
                                 "compare", "select", "broadcast", "store"]))  # fmt: skip
    if kind == "next":
        made.steps.append(["spec_next"])
        return
    at = made.pick(draw, *floats)
    shape, dtype = made.values[at]
    arithmetic = "float32" if dtype == "bfloat16" else dtype
    if kind == "unary":
        operation = draw(st.sampled_from(UNARY))
        made.add([operation, at], shape, dtype if operation == "copy" else arithmetic)
    elif kind in ("binary", "select"):
        others = [one for one, (size, of) in made.values.items() if of == dtype and fits(size, shape)]
        other = draw(st.sampled_from(others))
        joined = staged.broadcast([shape, made.values[other][0]])
        conditions = [one for one, (size, of) in made.values.items() if of == "bool" and fits(size, joined)]
        if kind == "binary":
            made.add([draw(st.sampled_from(BINARY)), at, other], joined, arithmetic)
        elif conditions:
            condition = draw(st.sampled_from(conditions))
            made.add(
                ["select", condition, at, other], staged.broadcast([joined, made.values[condition][0]]), arithmetic
            )
    elif kind == "reduce":
        axes = sorted(draw(st.sets(st.sampled_from(range(len(shape))), min_size=1))) if shape else []
        keeps = draw(st.booleans())
        kept = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
        operation = "sum" if arithmetic == "float32" and draw(st.booleans()) else "max"
        shorter = kept if keeps else tuple(size for axis, size in enumerate(shape) if axis not in axes)
        made.add([operation, at, axes, keeps], shorter, arithmetic)
        if draw(st.integers(0, 3)):
            at, dtype = len(made.steps) - 1, arithmetic
            made.steps.append(["spec_next"])
            made.add([draw(st.sampled_from(UNARY[:4])), at], shorter, dtype)
    elif kind == "cast":
        to = draw(st.sampled_from(floats))
        made.add(["cast", at, to], shape, to)
    elif kind == "compare":
        made.add(["greater", at], shape, "bool")
    elif kind == "broadcast" and fits(shape, base) and staged.broadcast([shape, base]) == base:
        made.add(["broadcast", at, list(base)], base, dtype)
    elif kind == "store":
        draw_store(draw, made, at, floats)


def draw_store(draw: st.DrawFn, made: Steps, at: int, floats: tuple[str, ...]) -> None:
    dtype = made.values[at][1]
    other = draw(st.sampled_from(floats)) if draw(st.integers(0, 4)) == 0 and dtype != "bool" else dtype
    if at not in made.stored:
        made.stored.add(at)
        made.steps.append(["store", at, other])


def predicted(draw: st.DrawFn, program: Program) -> Parking | None:
    """Predict with the program alone, or with a made-up dump where the tiling decides."""
    try:
        return predict_parking(program)
    except staged.UnknownParkingError as unknown:
        fault = str(unknown)
    if "give the dump" not in fault:
        return None
    if "as one kernel" in fault and draw(st.booleans()):
        return predict_parking(program, dump="vgraph(one launch)")
    try:
        return predict_parking(program, dump=draw_dump(draw, program))
    except staged.UnknownParkingError:
        return None


def draw_dump(draw: st.DrawFn, program: Program) -> str:
    """Say how the stages are tiled, as a dump does."""
    nodes, _ = staged.lower(program)
    count = staged.split_stages(nodes)
    lines = ["vgraph.stages() {"]
    for stage in range(count):
        shapes = [one.shape for node in nodes if node.stage == stage for one in (node, *node.inputs)]
        tile = [draw(st.sampled_from([1, size])) for size in staged.broadcast(shapes)]
        lines += [f"// stage {stage}", f"%0[{','.join(map(str, reversed(tile)))}]<float32> = Load"]
    return "\n".join(lines)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_what_the_rule_has_is_never_ruled_out_and_nothing_else_is_certain(data: st.DataObject) -> None:
    steps = data.draw(kernels())
    lines = write_builder(steps)
    reference, names = run_builder(lines, keep_promoted=data.draw(st.booleans()))
    parking = data.draw(st.composite(lambda draw: predicted(draw, reference))())
    assume(parking is not None)
    assert parking is not None
    program = read_program(lines)
    plans = plan_launches(program, "spec")

    places = {one.number: number for number, one in enumerate(reference.stores)}
    own = {(places[store], launch) for launch, stage in enumerate(parking.stages) for store in stage.stores}
    parked = {(places[one.place], one.source) for one in parking.crossings if one.place is not None and not one.own}
    assert certain_places(plans) <= own | parked <= possible_places(plans)
    for one in parking.crossings:
        if one.place is not None:
            assert any(
                (write.value, write.output) == (names[one.value], places[one.place])
                for plan in plans
                for write in plan.writes
            )
    read = {
        name: {launch for launch, stage in enumerate(parking.stages) for load in stage.loads if names[load] == name}
        for name in program.inputs
    }
    if len(parking.stages) > 1:
        assert any(all(plan.reads.get(name, frozenset()) == at for name, at in read.items()) for plan in plans)
