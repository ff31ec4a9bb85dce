"""The alias hazard: found where it is planted, and nowhere else."""

from __future__ import annotations

import pytest

from tests.generated_code import ADD, MEAN_INTO_OLD, SUM_INTO_UNUSED, dvm_kernel, hazardous, wrapper
from toolkit.scan.hazards import find_hazards
from toolkit.scan.kernels import find_kernels
from toolkit.scan.outline import outline_by_parsing, outline_of
from toolkit.scan.values import Hazard

RUN = "dvm_fused_0.run(arg0_1, arg1_1, {}, stream=stream0)"
NEW = "buf0 = empty_strided((), (), device='npu', dtype=torch.float32)"

BATCH_NORM = [
    "arg0_1 = k.load([128, 256], dvm.float32)",
    "arg1_1 = k.load([256], dvm.float32)",
    "arg2_1 = k.load([256], dvm.float32)",
    "sum_1 = k.sum(arg0_1, [0], False)",
    "k.spec_next()",
    "mul = k.mul(arg1_1, 0.9)",
    "div = k.div(sum_1, 128.0)",
    "mul_1 = k.mul(div, 0.1)",
    "add = k.add(mul, mul_1)",
    "copy = add",
    "expand = k.broadcast(div, [128, 256])",
    "sub = k.sub(arg0_1, expand)",
    "sqrt = k.sqrt(arg2_1)",
    "expand_1 = k.broadcast(sqrt, [128, 256])",
    "div_1 = k.div(sub, expand_1)",
    "k.store(copy, dvm.float32)",
    "k.store(div_1, dvm.float32)",
]
SOFTMAX = [
    "arg0_1 = k.load([128, 256], dvm.float32)",
    "amax = k.max(arg0_1, [1], True)",
    "k.spec_next()",
    "expand = k.broadcast(amax, [128, 256])",
    "sub = k.sub(arg0_1, expand)",
    "exp = k.exp(sub)",
    "sum_1 = k.sum(exp, [1], True)",
    "k.spec_next()",
    "expand_1 = k.broadcast(sum_1, [128, 256])",
    "div = k.div(exp, expand_1)",
    "copy = div",
    "k.store(copy, dvm.float32)",
]
CLIPPED_STEP = [
    "arg0_1 = k.load([64, 256], dvm.float32)",
    "arg1_1 = k.load([64, 256], dvm.float32)",
    "mul = k.mul(arg0_1, arg0_1)",
    "sum_1 = k.sum(mul, [0, 1], False)",
    "k.spec_next()",
    "mul_1 = k.mul(arg1_1, 0.9)",
    "sqrt = k.sqrt(sum_1)",
    "div = k.div(1.0, sqrt)",
    "clamp_max = k.minimum(div, 1.0)",
    "expand = k.broadcast(clamp_max, [64, 256])",
    "mul_2 = k.mul(arg0_1, expand)",
    "add = k.add(mul_1, mul_2)",
    "copy = add",
    "k.store(copy, dvm.float32)",
]
SUM_THEN_PRODUCT = [
    "arg0_1 = k.load([128, 256], dvm.float32)",
    "arg1_1 = k.load([], dvm.float32)",
    "sum_1 = k.sum(arg0_1, [0, 1], False)",
    "k.spec_next()",
    "add = k.add(arg1_1, sum_1)",
    "copy = add",
    "expand = k.broadcast(add, [128, 256])",
    "mul = k.mul(arg0_1, expand)",
    "k.store(copy, dvm.float32)",
    "k.store(mul, dvm.float32)",
]
ROW_MAXIMUM = [
    "arg0_1 = k.load([128], dvm.float32)",
    "arg1_1 = k.load([128, 256], dvm.float32)",
    "amax = k.max(arg1_1, [-1], False)",
    "k.spec_next()",
    "maximum = k.maximum(arg0_1, amax)",
    "k.store(maximum, dvm.float32)",
]
LOSS_AND_TOTAL = [
    "arg0_1 = k.load([128, 256], dvm.float32)",
    "arg1_1 = k.load([], dvm.float32)",
    "sum_1 = k.sum(arg0_1, [0, 1], False)",
    "k.spec_next()",
    "div = k.div(sum_1, 32768.0)",
    "add = k.add(arg1_1, div)",
    "k.store(add, dvm.float32)",
    "k.store(div, dvm.float32)",
]
"""The loss, from which the total is computed, is the first output that the sum may wait in."""
TWO_OF_ONE_SUM = [
    "arg0_1 = k.load([128, 256], dvm.float32)",
    "arg1_1 = k.load([], dvm.float32)",
    "sum_1 = k.sum(arg0_1, [0, 1], False)",
    "k.spec_next()",
    "exp = k.exp(sum_1)",
    "add = k.add(arg1_1, sum_1)",
    "k.store(add, dvm.float32)",
    "k.store(exp, dvm.float32)",
]
"""Two outputs, neither computed from the other, in which the sum may wait."""
SUM_OF_BFLOAT16 = [
    "arg0_1 = k.load([128, 256], dvm.bfloat16)",
    "arg1_1 = k.load([], dvm.float32)",
    "sum_1 = k.sum(arg0_1, [0, 1], False)",
    "k.spec_next()",
    "add = k.add(arg1_1, sum_1)",
    "k.store(add, dvm.float32)",
]
SUM_AND_PRODUCT = [
    "arg0_1 = k.load([128, 256], dvm.float32)",
    "arg1_1 = k.load([256], dvm.float32)",
    "sum_1 = k.sum(arg0_1, [0], False)",
    "k.spec_next()",
    "mul = k.mul(arg1_1, sum_1)",
    "copy = sum_1",
    "k.store(mul, dvm.float32)",
    "k.store(copy, dvm.float32)",
]
"""`s = x.sum(0); y = old * s; old.copy_(s)`: the sum is stored in old before old is read."""

REDUCED_INTO_ITSELF = [
    "arg0_1 = k.load([256], dvm.float32)",
    "arg1_1 = k.load([128, 256], dvm.float32)",
    "expand = k.broadcast(arg0_1, [128, 256])",
    "mul = k.mul(expand, arg1_1)",
    "sum_1 = k.sum(mul, [0], False)",
    "k.store(sum_1, dvm.float32)",
]
"""`old.copy_((old * x).sum(0))` as one kernel: what the sum is put into is cleared before old is read."""


def hazards(text: str) -> tuple[list[Hazard], list[str]]:
    """Look for hazards both ways; both must find the same."""
    found = []
    for read in (outline_of(text), outline_by_parsing(text)):
        kernels, _ = find_kernels(read)
        found.append(find_hazards(read, kernels))
    assert found[0] == found[1]
    return found[0]


def one_kernel(program: list[str], *calls: str) -> str:
    return wrapper([dvm_kernel("dvm_fused_0", program, "spec")], calls, ("arg0_1", "arg1_1", "arg2_1"))


def test_a_hazard_is_told_with_all_that_takes_part_in_it() -> None:
    text = hazardous()
    line = next(at for at, line in enumerate(text.split("\n"), 1) if ".run(" in line)

    assert hazards(text) == (
        [
            Hazard(
                kernel="dvm_fused_0", line=line, value="sum_1", made=0, used=1, output="arg1_1", input="arg1_1",
                buffer="arg1_1", read=1, certainty="certain",
            )
        ],
        [],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("output", "before"),
    [
        pytest.param("buf2", ["buf2 = arg1_1"], id="another name"),
        pytest.param("buf2", ["buf2 = arg1_1; del arg1_1  # reuse", "arg1_1 = buf2"], id="reuse"),
        pytest.param("buf3", ["buf2 = arg1_1", "buf3 = buf2"], id="two steps"),
        pytest.param("buf2", ["buf2 = reinterpret_tensor(arg1_1, (1, ), (1, ), 0)"], id="reinterpret_tensor"),
        pytest.param("buf2", ["buf2 = torch.ops.aten.as_strided.default(arg1_1, (1, ), (1, ), 0)"], id="as_strided"),
        pytest.param("buf2", ["buf2 = torch.ops.aten.slice.Tensor(arg1_1, 0, 1, 9)"], id="a slice"),
        pytest.param("buf2", ["buf2 = aten.view.default(arg1_1, [1])"], id="a view by a short name"),
        pytest.param("buf2", ["buf2 = arg1_1.view(1)"], id="a method"),
        pytest.param("buf2", ["buf2 = arg1_1[1:]"], id="a subscript"),
        pytest.param("buf2", ["buf2 = torch.ops.aten.mul_.Tensor(arg1_1, 2)"], id="an operator in place"),
        pytest.param("arg1_1.mT", [], id="transposed"),
        pytest.param("reinterpret_tensor(arg1_1, (1, ), (1, ), 0)", [], id="a view in the call"),
        pytest.param("arg1_1", ["arg1_1 = copy_if_misaligned(arg1_1)"], id="copied if need be"),
        pytest.param("buf2", ["buf1, buf2 = arg0_1, arg1_1"], id="unpacked"),
        pytest.param("buf2", ["buf2: torch.Tensor = arg1_1"], id="annotated"),
    ],
)
def test_a_hazard_is_found_whatever_the_buffer_is_called(output: str, before: list[str]) -> None:
    found, doubts = hazards(hazardous(RUN.format(output), *before))

    assert [(one.value, one.input, one.buffer) for one in found] == [("sum_1", "arg1_1", found[0].buffer)]
    assert found[0].buffer == "arg1_1"
    assert doubts == []


@pytest.mark.parametrize(
    ("output", "before"),
    [
        pytest.param("buf0", [NEW], id="a new buffer"),
        pytest.param("buf0", ["buf0 = arg1_1", NEW], id="a name that is bound anew"),
        pytest.param("buf2", ["buf1 = torch.ops.aten.sort.default(arg1_1)", "buf2 = buf1[0]"], id="a result"),
        pytest.param("buf2", ["buf2 = torch.ops.aten.mm.default(arg1_1, arg0_1)"], id="an operator's new tensor"),
    ],
)
def test_buffers_that_differ_are_none(output: str, before: list[str]) -> None:
    assert hazards(one_kernel(MEAN_INTO_OLD, *before, RUN.format(output))) == ([], [])


def test_parts_of_a_buffer_that_do_not_meet_are_none() -> None:
    first = "buf1 = reinterpret_tensor(buf0, (), (), 0)"
    second = "buf2 = reinterpret_tensor(buf0, (), (), 1)"
    run = "dvm_fused_0.run(arg0_1, buf1, buf2, stream=stream0)"

    assert hazards(hazardous(run, NEW, first, second)) == ([], [])
    assert len(hazards(hazardous(run, NEW, first, second.replace("), 1", "), 0")))[0]) == 1
    assert len(hazards(hazardous(run, NEW, first, second.replace("1)", "s0)")))[0]) == 1


def test_one_function_knows_nothing_of_another_ones_names() -> None:
    text = hazardous(RUN.format("buf2")).replace(
        "class Runner:", "def partition_0(args):\n    buf2 = arg1_1\n\nclass Runner:"
    )

    assert hazards(text) == ([], [])


def test_a_load_that_is_not_used_is_none() -> None:
    assert hazards(one_kernel(SUM_INTO_UNUSED, RUN.format("arg1_1"))) == ([], [])


def test_a_kernel_that_keeps_nothing_is_none() -> None:
    text = wrapper([dvm_kernel("dvm_fused_0", ADD)], ["dvm_fused_0.run(arg0_1, arg0_1, stream=stream0)"])

    assert hazards(text) == ([], [])


def test_a_value_that_does_not_fit_is_none() -> None:
    smaller = [line.replace("k.store(copy, dvm.float32)", "k.store(copy, dvm.bfloat16)") for line in MEAN_INTO_OLD]

    assert hazards(one_kernel(smaller, RUN.format("arg1_1"))) == ([], [])


@pytest.mark.parametrize(
    ("program", "passed"),
    [
        pytest.param(SOFTMAX, "arg0_1, arg0_1", id="softmax in place: one launch"),
        pytest.param(CLIPPED_STEP, "arg0_1, arg1_1, arg1_1", id="a clipped step: smaller than the stage"),
        pytest.param(BATCH_NORM, "arg0_1, arg1_1, arg2_1, arg1_1, buf3", id="batch norm: smaller than the stage"),
        pytest.param(SUM_THEN_PRODUCT, "arg0_1, arg1_1, arg1_1, buf0", id="a sum, then a product"),
        pytest.param(LOSS_AND_TOTAL, "arg0_1, arg1_1, arg1_1, buf0", id="the loss, and its total"),
    ],
)
def test_what_recorded_launches_show_right_is_none(program: list[str], passed: str) -> None:
    assert hazards(one_kernel(program, f"dvm_fused_0.run({passed}, stream=stream0)")) == ([], [])


@pytest.mark.parametrize(
    ("program", "passed", "value", "certainty"),
    [
        pytest.param(BATCH_NORM, "arg0_1, arg1_1, arg2_1, buf0, arg0_1", None, "", id="read in the same launch alone"),
        pytest.param(ROW_MAXIMUM, "arg0_1, arg1_1, arg0_1", "amax", "possible", id="cut or not"),
        pytest.param(TWO_OF_ONE_SUM, "arg0_1, arg1_1, arg1_1, buf0", "sum_1", "possible", id="a second choice"),
        pytest.param(LOSS_AND_TOTAL, "arg0_1, arg1_1, buf0, arg1_1", "sum_1", "certain", id="the first choice"),
        pytest.param(SUM_OF_BFLOAT16, "arg0_1, arg1_1, arg1_1", "sum_1", "possible", id="float32, or cast back"),
    ],
)
def test_what_the_program_does_not_tell_is_possible_alone(
    program: list[str], passed: str, value: str | None, certainty: str
) -> None:
    found, _ = hazards(one_kernel(program, f"dvm_fused_0.run({passed}, stream=stream0)"))

    assert [(one.value, one.certainty) for one in found] == ([] if value is None else [(value, certainty)])


def with_sizes_of_run_time(program: list[str]) -> list[str]:
    return [line.replace("[128, 256]", "[-1, -1]").replace("[256]", "[-1]") for line in program]


def test_with_sizes_of_run_time_a_value_waits_in_no_output() -> None:
    assert hazards(one_kernel(with_sizes_of_run_time(MEAN_INTO_OLD), RUN.format("arg1_1"))) == ([], [])


def test_with_sizes_of_run_time_an_early_output_is_possible() -> None:
    run = "dvm_fused_0.run(arg0_1, arg1_1, buf1, arg1_1, stream=stream0)"
    found, _ = hazards(one_kernel(with_sizes_of_run_time(SUM_AND_PRODUCT), run))

    assert [(one.value, one.output, one.read, one.certainty) for one in found] == [("sum_1", "arg1_1", 1, "possible")]


@pytest.mark.parametrize(
    "line",
    ["mul = k.concat([arg1_1, sum_1], 0, dvm.float32)", "mul = k.log_of_tomorrow(arg1_1, sum_1)",
     "mul = k.add(arg1_1, k.sum(sum_1, axes, False))"],
)  # fmt: skip
def test_operations_that_the_rule_does_not_know_leave_everything_possible(line: str) -> None:
    program = [line if one.startswith("mul = ") else one for one in SUM_AND_PRODUCT if "copy" not in one]
    found, doubts = hazards(one_kernel(program, "dvm_fused_0.run(arg0_1, arg1_1, arg1_1, stream=stream0)"))

    assert ([(one.value, one.certainty) for one in found], doubts) == ([("sum_1", "possible")], [])


def test_each_output_that_is_an_input_counts() -> None:
    program = [
        *SUM_AND_PRODUCT[:3],
        "amax = k.max(arg0_1, [0], False)",
        *SUM_AND_PRODUCT[3:6],
        "sub = k.sub(arg0_1, amax)",
        *SUM_AND_PRODUCT[6:],
        "k.store(amax, dvm.float32)",
    ]
    found, _ = hazards(one_kernel(program, "dvm_fused_0.run(arg0_1, arg1_1, arg1_1, buf1, arg1_1, stream=stream0)"))

    assert [(one.value, one.output, one.made, one.read, one.certainty) for one in found] == [
        ("amax", "arg1_1", 0, 1, "certain")
    ]


def test_a_sum_that_is_stored_over_an_input_of_a_later_stage_is_certain() -> None:
    found, _ = hazards(one_kernel(SUM_AND_PRODUCT, "dvm_fused_0.run(arg0_1, arg1_1, buf1, arg1_1, stream=stream0)"))

    assert [(one.value, one.output, one.read, one.certainty) for one in found] == [("sum_1", "arg1_1", 1, "certain")]


def test_a_sum_that_is_put_into_what_it_sums_is_certain() -> None:
    found, _ = hazards(one_kernel(REDUCED_INTO_ITSELF, "dvm_fused_0.run(arg0_1, arg1_1, arg0_1, stream=stream0)"))

    assert [(one.value, one.output, one.made, one.read, one.certainty) for one in found] == [
        ("sum_1", "arg0_1", 0, 0, "certain")
    ]


def test_a_call_that_does_not_fit_its_kernel_is_told() -> None:
    text = hazardous("dvm_fused_0.run(arg0_1, arg1_1, arg1_1, buf9, stream=stream0)")
    line = next(at for at, line in enumerate(text.split("\n"), 1) if ".run(" in line)

    assert hazards(text) == ([], [f"dvm_fused_0: line {line} passes 4 arguments, the kernel has 3"])


def test_a_kernel_with_other_statements_is_told() -> None:
    text = one_kernel([*MEAN_INTO_OLD, "for x in range(3): k.store(copy)"], RUN.format("arg1_1"))
    text = text.replace("for x in range(3): k.store(copy)", "k.launch_twice(copy, how=[x for x in y])")

    assert hazards(text) == (
        [], ["dvm_fused_0: `k.launch_twice(copy, how=[x for x in y])` is no statement of a builder that is known"]
    )  # fmt: skip


def test_a_long_chain_of_names_is_followed() -> None:
    chain = ["buf0 = arg1_1", *(f"buf{at + 1} = buf{at}" for at in range(3000))]

    assert len(hazards(hazardous(RUN.format("buf3000"), *chain))[0]) == 1


@pytest.mark.parametrize(
    ("lines", "call"),
    [
        (["buf1 = torch.ops.aten.unbind.int(arg1_1)", "buf2 = buf1[0]"], "buf2, arg1_1"),
        (["buf1 = torch.ops.aten.split.Tensor(arg1_1, 4)", "buf2 = buf1[0]", "buf3 = buf1[-2]"], "buf2, buf3"),
        (
            [
                "buf1 = aten.split.Tensor(arg1_1, 4)",
                "buf2 = aten.split.Tensor(arg1_1, 2)",
                "buf3, buf4 = buf1[0], buf2[1]",
            ],
            "buf3, buf4",
        ),
        (["buf1, buf2 = aten.split.Tensor(arg1_1, 4)"], "buf1, arg1_1"),
        (["buf2 = arg1_1[0]"], "buf2, arg1_1"),
        (
            ["buf1 = aten.slice.Tensor(arg1_1, 0, 4, 8)", "buf2 = reinterpret_tensor(buf1, (4, ), (1, ), 0)"],
            "buf2, reinterpret_tensor(arg1_1, (4, ), (1, ), 4)",
        ),
        (
            ["buf1 = aten.view.dtype(arg1_1, torch.bfloat16)"],
            "reinterpret_tensor(buf1, (4, ), (1, ), 4), reinterpret_tensor(arg1_1, (4, ), (1, ), 0)",
        ),
        (["buf1 = torch.as_strided(arg1_1, (4, ), (1, ))"], "buf1, arg1_1"),
        (["buf1 = torch.flatten(arg1_1)"], "buf1, arg1_1"),
        (["buf1 = arg1_1.flatten()"], "buf1, arg1_1"),
        (["buf1 = aten.movedim.int(arg1_1, 0, 0)"], "buf1, arg1_1"),
        (["buf1 = aten.view_as_real.default(arg1_1)"], "buf1, arg1_1"),
        (["buf1 = aten.real.default(arg1_1)"], "buf1, arg1_1"),
        (["(buf1 := arg1_1)"], "buf1, arg1_1"),
        (
            [
                "buf1 = alloc_from_pool(arg2_1, 0, torch.float32, (4, ), (1, ))",
                "buf2 = alloc_from_pool(arg2_1, 12, torch.float32, (4, ), (1, ))",
            ],
            "buf1, buf2",
        ),
    ],
)
def test_a_view_and_an_item_overlap_what_they_are_of(lines: list[str], call: str) -> None:
    found, doubts = hazards(hazardous(f"dvm_fused_0.run(arg0_1, {call}, stream=stream0)", *lines))
    assert ([one.certainty for one in found], doubts) == (["certain"], [])


@pytest.mark.parametrize(
    ("lines", "call"),
    [
        ([], "reinterpret_tensor(arg1_1, (4, ), (1, ), 0), reinterpret_tensor(arg1_1, (4, ), (1, ), 4)"),
        (["buf1 = aten.split.Tensor(arg1_1, 4)", "buf2 = buf1[0]", "buf3 = buf1[1]"], "buf2, buf3"),
        (["buf1 = torch.ops.mine.sort.default(arg1_1)", "buf2 = buf1[0]"], "buf2, arg1_1"),
        (
            [
                "buf1 = alloc_from_pool(arg2_1, 0, torch.float32, (4, ), (1, ))",
                "buf2 = alloc_from_pool(arg2_1, 16, torch.float32, (4, ), (1, ))",
            ],
            "buf1, buf2",
        ),
    ],
    ids=["two halves", "two items", "an operator's result", "two places of a pool"],
)
def test_parts_that_do_not_overlap_are_no_hazard(lines: list[str], call: str) -> None:
    assert hazards(hazardous(f"dvm_fused_0.run(arg0_1, {call}, stream=stream0)", *lines)) == ([], [])


@pytest.mark.parametrize(
    "line",
    [
        "buf1 = known_to_nobody(arg1_1)", "buf1 = arg1_1 if arg2_1 is None else arg2_1",
        "buf1 = torch.ops.aten.view.default(self=arg1_1, size=[8])", "buf1 = [arg1_1, arg2_1]",
        "buf1 = aten.add.out(arg2_1, 1, out=arg1_1)", "buf1 = (lambda: arg1_1)()",
    ],
)  # fmt: skip
def test_what_cannot_be_followed_is_not_taken_for_new(line: str) -> None:
    found = hazards(hazardous(RUN.format("buf1"), line))
    assert found == ([], [f"dvm_fused_0: line {line_of_run(line)}: arguments 2 and 3 may share memory"])


def line_of_run(*lines: str) -> int:
    """Return the number of the line that runs the kernel."""
    text = hazardous(RUN.format("buf1"), *lines)
    return text[: text.index("dvm_fused_0.run")].count("\n") + 1


@pytest.mark.parametrize(
    ("lines", "call", "why"),
    [
        ([], "dvm_fused_0.run(arg0_1, in1=arg1_1, out0=arg1_1)", "passes tensors by name, or as `*` of something"),
        (["pair = (arg1_1, arg1_1)"], "dvm_fused_0.run(arg0_1, *pair)",
         "passes tensors by name, or as `*` of something"),
        (["for buf1 in [arg1_1]:", "    pass"], RUN.format("buf1"),
         "stands after a branch or a loop, whose names are not followed"),
        ([], "other = dvm_fused_0", "uses it in another way than `.run(…)`"),
        ([], "other = dvm_fused_0.run", "uses it in another way than `.run(…)`"),
        ([], "globals()['dvm_fused_0'].run(arg0_1, arg1_1, arg1_1)", "uses it in another way than `.run(…)`"),
    ],
)  # fmt: skip
def test_a_kernel_that_is_run_in_an_unusual_way_is_not_judged(lines: list[str], call: str, why: str) -> None:
    found, doubts = hazards(hazardous(call, *lines))
    assert found == []
    assert len(doubts) == 1
    assert doubts[0].startswith("dvm_fused_0: line ")
    assert doubts[0].endswith(f" {why}")
