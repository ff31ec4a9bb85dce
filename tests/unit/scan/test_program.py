"""A builder's program: stages, sizes and types as far as they are known, and what may be parked where."""

from __future__ import annotations

import pytest

from tests.generated_code import MEAN_INTO_OLD
from toolkit.scan.parking import may_park
from toolkit.scan.program import Program, Value, read_program

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
    "k.store(div, dvm.float32)",
    "k.set_kernel_info(",
    "'dvm_fused',",
    "'dvm_fused_0',",
    ")",
]


def read(*lines: str) -> Program:
    return read_program(
        ["x = k.load([4, 8], dvm.float32)", "h = k.load([8], dvm.bfloat16)", "n = k.scalar(dvm.int64)", *lines]
    )


def test_a_program_has_stages_inputs_outputs_and_what_it_keeps() -> None:
    program = read_program(SOFTMAX[:11])

    assert (program.stages, list(program.inputs), [one.value for one in program.outputs]) == (3, ["arg0_1"], ["div"])
    assert [(one.name, one.stage, program.last_use(one.name)) for one in program.kept()] == [
        ("amax", 0, 1), ("exp", 1, 2), ("sum_1", 1, 2)
    ]  # fmt: skip
    assert program.unknown == []


def test_an_input_is_read_where_a_value_may_be_made_of_it_anew() -> None:
    program = read_program(SOFTMAX[:11])

    assert program.stages_reading("arg0_1") == {0, 1, 2}
    assert read_program(MEAN_INTO_OLD).stages_reading("arg0_1") == {0}
    assert read_program(MEAN_INTO_OLD).stages_reading("arg1_1") == {1}


def test_a_load_that_is_stored_as_it_is_is_read_at_the_end() -> None:
    program = read("s = k.sum(x, [], False)", "k.spec_next()", "a = k.add(s, 1)", "k.store(a)", "c = h", "k.store(c)")

    assert program.stages_reading("h") == {1}


@pytest.mark.parametrize(
    ("line", "shape", "dtype"),
    [
        ("v = k.sum(x, [0], False)", (8,), "float32"),
        ("v = k.sum(x, [-1], True)", (4, 1), "float32"),
        ("v = k.max(x, [], False)", (), "float32"),
        ("v = k.min(x, [0, 1], True)", (1, 1), "float32"),
        ("v = k.sum(x, dims, False)", None, "float32"),
        ("v = k.broadcast(h, [4, n])", (4, -1), "bfloat16"),
        ("v = k.reshape(x, [32])", (32,), "float32"),
        ("v = k.cast(h, dvm.float32)", (8,), "float32"),
        ("v = k.add(x, k.mul(x, 2))", (4, 8), "float32"),
        ("v = k.add(h, x)", (4, 8), "bfloat16"),
        ("v = k.mul(x, n)", (4, 8), "float32"),
        ("v = k.less(x, 1)", (4, 8), "bool_"),
        ("v = k.select(k.less(x, 1), x, x)", (4, 8), "float32"),
        ("v = k.concat([x, x], 0, dvm.float32)", None, "float32"),
        ("v = k.matmul(x, x, False, True)", None, "float32"),
        ("v = k.full([4], 1.0, dvm.float32)", None, None),
        ("v = k.rsqrt_of_tomorrow(x)", (4, 8), "float32"),
    ],
)
def test_sizes_and_types_are_said_as_far_as_they_are_known(
    line: str, shape: tuple[int, ...] | None, dtype: str | None
) -> None:
    value = read(line).values["v"]

    assert (value.shape, value.dtype) == (shape, dtype)


@pytest.mark.parametrize(
    ("shape", "dtype", "needed"),
    [((4, 8), "float32", 128), ((), "int64", 8), ((0, 4), "bool_", 0), ((-1,), "float32", None),
     (None, "float32", None), ((4,), None, None), ((4,), "float8", None)],
)  # fmt: skip
def test_bytes_are_known_with_sizes_and_type(
    shape: tuple[int, ...] | None, dtype: str | None, needed: int | None
) -> None:
    value = Value(name="v", operation="add", operands=(), stage=0, shape=shape, dtype=dtype)

    assert value.least_bytes == needed


def test_a_name_that_is_given_twice_is_two_values() -> None:
    program = read("a = k.sum(x, [0], False)", "k.spec_next()", "a = k.add(a, 1)", "k.store(a)")

    assert [(one.name, one.operation) for one in program.values.values()][3:] == [("a", "sum"), ("a@4", "add")]
    assert [one.value for one in program.outputs] == ["a@4"]


@pytest.mark.parametrize(
    "line",
    [
        "for a in b: pass",
        "k.store(9)",
        "a = other.add(x)",
        "a, b = k.split(x)",
        "k.unheard_of(x)",
        "a = k.store(x)",
        "del x",
    ],
)
def test_what_is_no_statement_of_a_builder_is_unknown(line: str) -> None:
    assert list(read(f"    {line}").unknown) == [line]


# --- parking -----------------------------------------------------------------------------------------------------


def parked(*lines: str) -> list[tuple[str, int, str]]:
    program = read(*lines)
    return [(value.name, output.index, may_park(program, value, output)) for value in program.kept()
            for output in program.outputs]  # fmt: skip


def test_an_output_of_another_value_is_unknown() -> None:
    assert parked("s = k.sum(x, [0], False)", "k.spec_next()", "a = k.add(s, h)", "k.store(a, dvm.float32)") == [
        ("s", 0, "unknown")
    ]


def test_the_value_s_own_output_holds_it() -> None:
    lines = ["s = k.sum(x, [0], False)", "k.spec_next()", "a = k.add(s, h)", "c = s", "k.store(a)", "k.store(c)"]

    assert parked(*lines) == [("s", 0, "unknown"), ("s", 1, "yes")]


def test_an_own_output_of_what_can_be_made_anew_is_unknown() -> None:
    assert ("m", 0, "unknown") in parked(
        "m = k.mul(x, 2)", "s = k.sum(m, [1], True)", "k.spec_next()", "a = k.mul(m, s)", "k.store(m)", "k.store(a)"
    )


def test_an_output_that_is_too_small_is_none() -> None:
    assert parked("s = k.sum(x, [0], False)", "k.spec_next()", "a = k.add(s, h)", "k.store(a, dvm.bfloat16)") == [
        ("s", 0, "no")
    ]


def test_an_output_that_another_reduction_has_filled_is_none() -> None:
    lines = [
        "s = k.sum(x, [0], False)",
        "m = k.max(x, [0], False)",
        "k.spec_next()",
        "a = k.add(s, m)",
        "k.store(m)",
        "k.store(a)",
    ]

    assert ("s", 0, "no") in parked(*lines)
    assert ("m", 0, "yes") in parked(*lines)
    assert ("s", 1, "unknown") in parked(*lines)
