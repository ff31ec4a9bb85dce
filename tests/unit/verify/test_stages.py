"""Which values are parked where, and what numbers that gives, of launches recorded from the unpatched torch_npu 2.13.0.

recorded_stages.json holds, for each kernel: its builder's calls, the compiler's listing, the launches with their
addresses, and how the arguments' memories lie: `[memory, offset, shape, strides, dtype]`.
"""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

from verify import dvm_reference as dvm
from verify.launches import Access, Launch, read_launches
from verify.reference.alignment import align
from verify.reference.evaluate import bind, evaluate
from verify.reference.listing import UnreadableListingError, parse_listing
from verify.reference.modelled import tell_empty
from verify.reference.paired import AlignmentError, Recording
from verify.reference.plan import Overlaps, Place, Plan, PlanError
from verify.reference.predicted import compare_prediction
from verify.reference.program import Program
from verify.reference.recording import layout_of, overlaps_of, shapes_of
from verify.reference.stages import evaluate_stages, tell_hazards, tell_parked
from verify.reference.worst import plan_worst

torch = pytest.importorskip("torch")

FILE = json.loads(Path(__file__).with_name("recorded_stages.json").read_text())
OPERATIONS = {int(number, 16): kind for number, kind in FILE["operations"].items()}
KERNELS = {kernel["name"]: kernel for kernel in reversed(FILE["kernels"])}  # of a graph of two kernels, the first

SUM, MAXIMUM, EXPONENTIAL = "sum(%0, [0, 1], False)", "max(%0, [0, 1], False)", "exp(%0)"

PARKED = {
    "running_mean": ("%3 = sum(%2, [0, 1], False) float32 in output 0",),
    "two_accumulators": (f"%3 = {SUM} float32 in output 0", f"%5 = {MAXIMUM} float32 in output 1"),
    "moving_average": ("%2 = sum(%0, [0], False) float32 in output 0",),
    "weighted_sum": (),
    "normalized_step": (
        f"%2 = {EXPONENTIAL} float32 in output 0",
        "%3 = sum(%2, [0, 1], False) float32 in a workspace",
    ),
    "through_view": ("%4 = sum(%0, [0], False) float32 in output 0",),
    "sibling": (f"%2 = {EXPONENTIAL} float32 in output 1", "%3 = sum(%2, [0, 1], False) float32 in a workspace"),
    "plain_sum": (),
    "kept_apart": (f"%2 = {SUM} float32 in a workspace",),
    "softmax_in_place": (),
    "batch_norm": (
        "%3 = sum(%0, [0], False) float32 in a workspace",
        "%5 = div(%3, 128.0) float32 in a workspace",
        "%9 = sum(%8, [0], False) float32 in a workspace",
    ),
    "compared": (f"%2 = {EXPONENTIAL} float32 in output 0", "%3 = sum(%2, [0, 1], False) float32 in a workspace"),
    "running_mean_in_bfloat16": ("%5 = sum(%4, [0, 1], False) float32 in a workspace",),
    "normalized_step_in_bfloat16": (
        "%3 = exp(%2) float32 in a workspace",
        "%5 = sum(%4, [0, 1], False) float32 in a workspace",
    ),
    "adamw": ("%5 = sum(%4, [0, 1], False) float32 in a workspace",),
    "rows": (),
    "moving_average_dynamic": ("%3 = sum(%0, [0], False) float32 in a workspace",),
    "input_in_another_shape": (
        "%3 = reshape(%0, [1, 2, 1]) float32 in output 0",
        "%4 = sum(%3, [1], True) float32 in a workspace",
        "%6 = mul(%4, 2) float32 in output 1",
        "%7 = pow(%1, 2) float32 in a workspace",
        "%10 = mul(%3, %9) float32 in output 0",
        "%12 = sum(%11, [1], True) float32 in a workspace",
    ),
    "reshaped_input": (
        "%2 = reshape(%0, [5, 8]) float32 in a workspace",
        "%5 = sum(%2, [0, 1], False) float32 in output 1",
    ),
    "axes_apart_twice": (
        "%2 = sum(%0, [0, 2], True) float32 in output 1",
        "%4 = sum(%0, [0, 2], False) float32 in output 0",
    ),
    "outer_sums": (
        "%8 = add(%5, %7) float32 in output 0",
        "%9 = sum(%8, [0, 1], False) float32 in a workspace",
    ),
    "other_strides": ("%2 = exp(%0) float32 in output 0", "%3 = max(%2, [0, 1], False) float32 in a workspace"),
    "parked_in_its_own_output": (
        "%7 = mul(%5, %6) float32 in output 1",
        "%8 = sum(%7, [0, 1, 3], True) float32 in a workspace",
    ),
    "sum_of_nothing": ("%2 = sum(%1, [0, 1], False) float32 in output 0",),
    "quotient_of_nothing": (
        "%4 = sum(%3, [0, 1], False) float32 in a workspace",
        "%8 = sum(%7, [0, 1], False) float32 in output 0",
    ),
}
WRONG = {
    "running_mean", "two_accumulators", "moving_average", "weighted_sum", "normalized_step", "through_view", "sibling",
    "compared", "rows", "input_in_another_shape", "axes_apart_twice", "outer_sums", "sum_of_nothing",
    "quotient_of_nothing",
}  # fmt: skip


def program_of(kernel: dict[str, Any]) -> Program:
    """Read a builder's recorded calls back into a program."""

    def build(k: Any) -> None:
        exec("\n".join(kernel["builder"]), {"k": k, "dvm": dvm})

    return dvm.build_program(build, kernel["kind"])


def arguments_of(kernel: dict[str, Any]) -> list[Any]:
    """Make arguments whose memories lie as those of the recorded launch did, with numbers from 0.5 to 1.5."""
    torch.manual_seed(0)
    sizes: dict[int, int] = {}
    for one in (one for one in kernel["arguments"] if isinstance(one, list)):
        memory, offset, shape, strides, _ = one
        last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        sizes[memory] = max(sizes.get(memory, 0), 4 * (last + 1))
    memories = {memory: torch.zeros(size, dtype=torch.uint8) for memory, size in sizes.items()}
    made: list[Any] = []
    for one in kernel["arguments"]:
        if isinstance(one, list):
            memory, offset, shape, strides, dtype = one
            made.append(memories[memory].view(getattr(torch, dtype)).as_strided(shape, strides, offset))
        else:
            made.append(one)
    for tensor in (one for one in made if hasattr(one, "untyped_storage")):
        tensor.copy_(torch.rand(tensor.shape) + 0.5)
    return made


def recording_of(kernel: dict[str, Any], program: Program, arguments: list[Any]) -> Recording:
    lines = [json.dumps(record) for record in kernel["records"]]
    wanted = (*program.inputs, *program.stores)
    return Recording(
        listing="\n".join(kernel["listing"]),
        launches=tuple(read_launches(lines, {}, OPERATIONS)),
        addresses={int(number): address for number, address in kernel["addresses"].items()},
        numbers={int(number): value for number, value in kernel["numbers"].items()},
        shapes=shapes_of(program, dict(zip((one.number for one in wanted), arguments, strict=True))),
    )


def planned(name: str) -> tuple[Plan, Any, Overlaps]:
    kernel = KERNELS[name]
    program, arguments = program_of(kernel), arguments_of(kernel)
    plan = align(program, recording_of(kernel, program, arguments))
    binding = bind(program, arguments)
    return plan, binding, overlaps_of(binding.arguments, plan.copied)


@pytest.mark.parametrize(("name", "parked"), PARKED.items(), ids=PARKED)
def test_values_are_parked_where_the_recorded_launches_store_them(name: str, parked: tuple[str, ...]) -> None:
    plan, _, _ = planned(name)
    assert tell_parked(plan) == parked


@pytest.mark.parametrize("name", KERNELS)
def test_the_numbers_are_wrong_where_an_input_is_lost_and_only_there(name: str) -> None:
    plan, binding, overlaps = planned(name)
    _, apart, _ = planned(name)
    evaluate_stages(plan, binding, overlaps)
    evaluate(apart)
    stores = [store.number for store in plan.program.stores]
    equal = all(torch.equal(binding.arguments[one], apart.arguments[one]) for one in stores)
    assert equal == (name not in WRONG)
    assert bool(tell_hazards(plan, overlaps)) == (name in WRONG)


def test_the_first_stage_s_sum_stands_in_the_place_of_the_accumulator() -> None:
    plan, binding, overlaps = planned("running_mean")
    x, old = (binding.arguments[one.number] for one in plan.program.inputs)
    total = (x.double() * 2).sum().item()
    evaluate_stages(plan, binding, overlaps)
    assert math.isclose(old.item(), total + total / x.numel(), rel_tol=1e-5)


def test_hazards_say_which_launch_loses_which_input() -> None:
    plan, _, overlaps = planned("running_mean")
    assert tell_hazards(plan, overlaps) == (
        "launch 1 fills for %3 in output 0, before launch 3 loads input 1 from there",
        "launch 2 parks %3 = sum(%2, [0, 1], False) float32 in output 0, before launch 3 loads input 1 from there",
    )


def test_a_row_that_other_blocks_store_is_a_race_of_the_worst_order() -> None:
    plan, binding, overlaps = planned("rows")
    assert tell_hazards(plan, overlaps) == ("race: launch 1 loads input 0 where its other blocks store output 0",)
    row, x, _ = (binding.arguments[one.number] for one in plan.program.inputs)
    expected = row + x[1] + x  # row 1 as its block has left it
    evaluate_stages(plan, binding, overlaps)
    assert torch.equal(binding.arguments[plan.program.stores[0].number], expected)


def test_a_fill_takes_away_what_the_same_reduction_loads() -> None:
    plan, binding, overlaps = planned("weighted_sum")
    evaluate_stages(plan, binding, overlaps)
    assert binding.arguments[plan.program.stores[0].number].item() == 0


@pytest.mark.parametrize("name", KERNELS)
def test_the_worst_case_loses_whatever_the_recorded_launches_lose(name: str) -> None:
    plan, binding, overlaps = planned(name)
    worst = plan_worst(plan.program, plan.shapes, overlaps, plan.copied)
    assert bool(tell_hazards(worst, overlaps)) >= bool(tell_hazards(plan, overlaps))
    _, apart, _ = planned(name)
    evaluate_stages(worst, binding, overlaps)
    evaluate(apart)
    stores = [store.number for store in plan.program.stores]
    equal = all(torch.equal(binding.arguments[one], apart.arguments[one]) for one in stores)
    assert not (equal and name in WRONG)


def test_without_aliases_the_worst_case_computes_what_the_program_says() -> None:
    kernel = json.loads(json.dumps(KERNELS["adamw"]))
    for memory, one in enumerate(kernel["arguments"]):
        one[0] = memory
    program = program_of(kernel)
    binding, apart = bind(program, arguments_of(kernel)), bind(program, arguments_of(kernel))
    overlaps = overlaps_of(binding.arguments, frozenset())
    evaluate_stages(plan_worst(program, shapes_of(program, binding.arguments), overlaps), binding, overlaps)
    evaluate(apart)
    assert all(torch.equal(binding.arguments[one.number], apart.arguments[one.number]) for one in program.stores)


@pytest.mark.parametrize("name", KERNELS)
def test_the_rule_of_parking_agrees_with_the_recordings(name: str) -> None:
    plan, _, _ = planned(name)
    assert compare_prediction(plan, "\n".join(KERNELS[name]["listing"])) == ()


def test_a_recording_that_the_rule_does_not_foretell_is_told() -> None:
    plan, _, _ = planned("kept_apart")
    launches = tuple(
        dataclasses.replace(
            launch,
            writes=tuple(
                dataclasses.replace(write, place=Place(argument=plan.program.stores[1].number))
                if write.store is None
                else write
                for write in launch.writes
            ),
        )
        for launch in plan.launches
    )
    moved = dataclasses.replace(plan, launches=launches)
    assert compare_prediction(moved, "\n".join(KERNELS["kept_apart"]["listing"])) == (
        f"the rule parks %2 = {SUM} float32 in a workspace, the recorded launches in argument %9",
    )


def altered(name: str, **changes: Any) -> None:
    kernel = {**KERNELS[name], **changes}
    program, arguments = program_of(kernel), arguments_of(kernel)
    align(program, recording_of(kernel, program, arguments))


def test_a_listing_of_another_kernel_is_refused() -> None:
    with pytest.raises(AlignmentError) as fault:
        altered("running_mean", listing=KERNELS["sibling"]["listing"])
    assert str(fault.value) == "launch 2 has 1 loads and 1 stores, stage 0 of the listing 1 and 2"


def test_an_operation_that_the_program_does_not_hold_is_refused() -> None:
    listing = [line.replace("Div<32768>", "Div<3276>") for line in KERNELS["running_mean"]["listing"]]
    with pytest.raises(AlignmentError) as fault:
        altered("running_mean", listing=listing)
    assert str(fault.value) == (
        "stage 1 of the listing: %2 = Div<3276>(%0) float32 is nothing that the program computes"
    )


def test_two_values_that_a_listing_does_not_tell_apart_are_refused() -> None:
    kernel = KERNELS["outer_sums"]
    one, other = "k.broadcast(k.reshape(arg0_1, [1, 8]), [8, 8])", "k.broadcast(k.reshape(arg1_1, [8, 1]), [8, 8])"
    builder = "\n".join(kernel["builder"])
    builder = builder.replace("k.add(arg0_1, arg1_1)", f"k.add({one}, {other})").replace(
        "arg3_1, [8]", "arg3_1, [8, 8]"
    )
    addresses = {**kernel["addresses"], "23": kernel["addresses"]["19"]}  # four more instructions
    with pytest.raises(AlignmentError) as fault:
        altered("outer_sums", builder=builder.splitlines(), addresses=addresses)
    assert str(fault.value) == (
        "stage 0 of the listing: %5 = Store(%4) float32 may be %8 = add(%5, %7) float32 or %17 = add(%14, %16) float32"
    )


def test_reductions_over_other_axes_are_refused() -> None:
    listing = [
        line.replace("Reduce<[0,2], true>", "Reduce<[0,1], true>") for line in KERNELS["axes_apart_twice"]["listing"]
    ]
    with pytest.raises(AlignmentError) as fault:
        altered("axes_apart_twice", listing=listing)
    assert str(fault.value) == (
        "stage 0 of the listing: %2 = Reduce<[0,1], true>(%0) float32 is nothing that the program computes"
    )


def test_an_output_that_the_listing_does_not_store_is_refused() -> None:
    kernel = KERNELS["rows"]
    builder = [*kernel["builder"], "k.store(k.exp(copy), dvm.float32)"]
    changes = {
        "addresses": {**kernel["addresses"], "7": 4096},
        "arguments": [*kernel["arguments"], [2, *kernel["arguments"][1][1:]]],
    }
    with pytest.raises(AlignmentError) as fault:
        altered("rows", builder=builder, **changes)
    assert str(fault.value) == "the listing stores %7 = store(%6) float32 0 times, expected once"


def test_a_missing_launch_is_refused() -> None:
    with pytest.raises(AlignmentError) as fault:
        altered("running_mean", records=KERNELS["running_mean"]["records"][:2])
    assert str(fault.value) == "2 launches for 2 listed stages"


def test_launches_of_an_unknown_form_are_refused() -> None:
    records = [{**record, "args": record["args"][:1]} for record in KERNELS["running_mean"]["records"]]
    with pytest.raises(AlignmentError) as fault:
        altered("running_mean", records=records)
    assert str(fault.value) == "launch 1 has words of an unknown form"


def test_an_input_that_nothing_uses_is_not_launched() -> None:
    listing = """vgraph(tile_num=40) {
      %0[824,1]<float32> = Load() // stride=[832,832]
      %1[1,1]<float32> = Load() // stride=[]
      %2[1,1]<float32> = Reduce<[0,1], false>(%0[824,1]<float32>) // stride=[1,64]
      %3[1,1]<float32> = Store(%2[1,1]<float32>) // stride=[1,64]
    }"""
    (stage,) = parse_listing(listing)
    assert [str(node) for node in stage.loads] == ["%0 = Load() float32"]


def test_what_has_no_elements_is_listed_and_not_launched() -> None:
    loading, storing, _ = parse_listing("\n".join(KERNELS["quotient_of_nothing"]["listing"]))
    assert [str(node) for node in (*loading.loads, *loading.stores)] == ["%5 = Store(%4) float32"]
    assert [str(node) for node in (*storing.loads, *storing.stores)] == ["%5 = Store(%4) float32"]


def test_an_accumulator_is_lost_to_a_sum_of_nothing() -> None:
    plan, binding, overlaps = planned("sum_of_nothing")
    evaluate_stages(plan, binding, overlaps)
    assert binding.arguments[5].item() == 0
    assert tell_hazards(plan, overlaps) == (
        "launch 1 parks %2 = sum(%1, [0, 1], False) float32 in output 0, before launch 2 loads input 0 from there",
    )


def test_a_launch_without_instructions_leaves_a_kernel_unjudged() -> None:
    launches = [Launch(None, 40, (Access("store", 0, "temporary"),)), Launch(None, 40, ())]
    assert tell_empty(launches) == ("launch 2 of 2 is empty: what its stage should store is never stored",)
    assert tell_empty(launches[:1]) == ()


def test_listings_of_matrix_products_are_refused() -> None:
    with pytest.raises(UnreadableListingError) as fault:
        parse_listing("vgraph.mix() {\n  // cube\n  vgraph.cube(tile_num=1) {\n")
    assert str(fault.value) == "the compiler's listing has a line of an unknown form: 'vgraph.mix() {'"


def test_layouts_tell_aliases_and_offsets_apart_but_not_addresses() -> None:
    one, other = torch.zeros(8), torch.zeros(8)
    assert layout_of([one, one]) == layout_of([other, other])
    assert layout_of([one, one]) != layout_of([one, other])
    assert layout_of([one[:4], one[:4]]) != layout_of([one[:4], one[4:]])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (lambda x: x, lambda x: x, "same"),
        (lambda x: x, lambda x: x.view(8, 2), "same"),
        (lambda x: x[:2], lambda x: x[2:], "none"),
        (lambda x: x[1:2], lambda x: x, "other"),
        (lambda x: x, lambda x: x.t(), "other"),
        (lambda x: x[:, ::2], lambda x: x[:, 1::2], "none"),
        (lambda x: x[:, :2], lambda x: x[:, 1:], "other"),
        (lambda x: x, lambda x: x.clone(), "none"),
        (lambda x: x[:0], lambda x: x, "none"),
    ],
    ids=["itself", "reshaped", "halves", "row", "transposed", "interleaved", "columns", "copy", "empty"],
)
def test_how_memories_lie_is_told(one: Any, other: Any, expected: str) -> None:
    x = torch.zeros(4, 4)
    assert overlaps_of({0: one(x), 1: other(x)}, frozenset())(0, 1) == expected


def test_workspaces_that_overlap_take_each_other_s_values() -> None:
    plan, binding, overlaps = planned("batch_norm")
    parked = [write.place for write in plan.parked()]
    spaces = {place: Place(workspace=4 * number) for number, place in enumerate(parked)}

    def move(one: Any) -> Any:
        return dataclasses.replace(one, place=spaces.get(one.place, one.place))

    launches = tuple(
        dataclasses.replace(
            launch,
            reads=tuple(map(move, launch.reads)),
            writes=tuple(map(move, launch.writes)),
            fills=tuple(map(move, launch.fills)),
        )
        for launch in plan.launches
    )
    with pytest.raises(PlanError, match=r"is loaded from workspace\+\d+, which holds something else by then$"):
        evaluate_stages(dataclasses.replace(plan, launches=launches), binding, overlaps)
