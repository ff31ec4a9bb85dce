"""The rule for parking agrees with recorded kernels, and refuses what it was not tested on.

`recorded_parking.json` holds kernels that the DVM runtime of torch_npu 2.13.0 launched on the host sysroot. `steps` are
the builder's calls; their operands are numbers of steps. `launches` names what each launch loaded and stored, fills
left out: input i0, output o0, a workspace. `dump` is what the compiler printed, where the tiling decides.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from verify.reference.parking import Crossing, Parking, predict_parking
from verify.reference.program import Builder, Program, Value
from verify.reference.staged import UnknownParkingError

CASES = json.loads((Path(__file__).parent / "recorded_parking.json").read_text(encoding="utf-8"))
NUMBERS = {"muls": ("mul", 2.0), "adds": ("add", 1.0), "maxs": ("maximum", 0.5), "greater": ("greater", 0.5)}
SHAPED = ("load", "broadcast", "reshape", "sum", "max", "cast", "store")
"""Operations whose operands after the first are no steps."""
EXP_OF_FOUR = [["load", [4], "float32"], ["exp", 0]]


def stores(*values: int) -> list[list[Any]]:
    return [["store", value, "float32"] for value in values]


def build(steps: list[list[Any]], kind: str = "spec") -> Program:
    builder = Builder()
    values: dict[int, Value] = {}
    for number, (operation, *operands) in enumerate(steps):
        if operation in NUMBERS:
            operation, constant = NUMBERS[operation]
            operands = [values[operands[0]], constant]
        elif operation in SHAPED:
            operands = operands if operation == "load" else [values[operands[0]], *operands[1:]]
        else:
            operands = [values[one] for one in operands]
        result = getattr(builder, operation)(*operands)
        if operation != "spec_next":
            values[number] = result
    return builder.program(kind)


def tell_launches(program: Program, parking: Parking) -> list[list[list[str]]]:
    inputs = {one.number: f"i{number}" for number, one in enumerate(program.inputs)}
    outputs = {one.number: f"o{number}" for number, one in enumerate(program.stores)}

    def name(place: int | None) -> str:
        return "ws" if place is None else outputs[place]

    return [
        [
            sorted({inputs[one] for one in stage.loads} | {name(c.place) for c in parking.crossings if at in c.users}),
            sorted(
                {outputs[one] for one in stage.stores} | {name(c.place) for c in parking.crossings if at == c.source}
            ),
        ]
        for at, stage in enumerate(parking.stages)
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_rule_agrees_with_a_recorded_kernel(case: dict[str, Any]) -> None:
    program = build(case["steps"])
    assert tell_launches(program, predict_parking(program, dump=case.get("dump"))) == case["launches"]


@pytest.mark.parametrize("case", [one for one in CASES if "dump" in one], ids=lambda case: case["name"])
def test_what_the_tiling_decides_is_unknown_without_the_dump(case: dict[str, Any]) -> None:
    with pytest.raises(UnknownParkingError, match="give the dump"):
        predict_parking(build(case["steps"]))


def test_crossing_names_its_place_and_the_outputs_that_would_do_as_well() -> None:
    x = ["load", [128, 256], "float32"]
    program = build([x, ["sum", 0, [0, 1], False], ["spec_next"], ["exp", 1], ["sqrt", 1], *stores(3, 4)])
    assert predict_parking(program).crossings == (
        Crossing(value=1, source=0, users=(1,), place=5, own=False, others=(6,)),
    )


def test_dynamic_kernel_parks_in_workspaces_alone() -> None:
    x = ["load", [-1, 256], "float32"]
    program = build([x, ["sum", 0, [0, 1], False], ["spec_next"], ["exp", 1], *stores(3)])
    with pytest.raises(UnknownParkingError, match="whether DVM launches a dynamic kernel as one depends on the sizes"):
        predict_parking(program)
    assert predict_parking(program, dump="vgraph.stages() {").crossings == (
        Crossing(value=1, source=0, users=(1,), place=None, own=False),
    )


@pytest.mark.parametrize(
    ("steps", "kind", "fault"),
    [
        ([*EXP_OF_FOUR, *stores(1)], "split", "of the type 'split', expected 'spec'"),
        ([*EXP_OF_FOUR, *stores(1, 1)], "spec", "%1 is stored as two outputs"),
        ([["load", [0, 4], "float32"], ["exp", 0], *stores(1)], "spec", r"\(0, 4\) is not static, or empty"),
    ],
    ids=["another kind", "one value twice", "empty"],
)
def test_what_was_not_tested_is_refused(steps: list[list[Any]], kind: str, fault: str) -> None:
    with pytest.raises(UnknownParkingError, match=fault):
        predict_parking(build(steps, kind))
