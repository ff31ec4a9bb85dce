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
    "sum_1 = k.sum(arg0_1, [0], False)",
    "k.spec_next()",
    "mul = k.mul(arg1_1, 0.9)",
    "add = k.add(mul, sum_1)",
    "copy = add",
    "expand = k.broadcast(sum_1, [128, 256])",
    "sub = k.sub(arg0_1, expand)",
    "k.store(copy, dvm.float32)",
    "k.store(sub, dvm.float32)",
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
                buffer="arg1_1", read=1, certainty="possible",
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


def test_sizes_of_run_time_leave_it_possible() -> None:
    unknown = [line.replace("[128, 256]", "[-1, -1]").replace("[]", "[-1]") for line in MEAN_INTO_OLD]

    assert [one.certainty for one in hazards(one_kernel(unknown, RUN.format("arg1_1")))[0]] == ["possible"]


def test_each_output_that_is_an_input_counts() -> None:
    run = "dvm_fused_0.run(arg0_1, arg1_1, arg1_1, arg0_1, stream=stream0)"
    found, _ = hazards(one_kernel(BATCH_NORM, run))

    assert [(one.value, one.output, one.made, one.read) for one in found] == [
        ("sum_1", "arg1_1", 0, 1),
        ("sum_1", "arg0_1", 0, 1),
    ]


def test_a_sum_that_is_stored_over_an_input_of_a_later_stage_is_certain() -> None:
    found, _ = hazards(one_kernel(SUM_AND_PRODUCT, "dvm_fused_0.run(arg0_1, arg1_1, buf1, arg1_1, stream=stream0)"))

    assert [(one.value, one.output, one.read, one.certainty) for one in found] == [("sum_1", "arg1_1", 1, "certain")]


def test_a_sum_that_is_put_into_what_it_sums_is_possible() -> None:
    found, _ = hazards(one_kernel(REDUCED_INTO_ITSELF, "dvm_fused_0.run(arg0_1, arg1_1, arg0_1, stream=stream0)"))

    assert [(one.value, one.output, one.made, one.read, one.certainty) for one in found] == [
        ("sum_1", "arg0_1", 0, 0, "possible")
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
