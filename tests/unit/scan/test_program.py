"""A builder's program: stages, and sizes and types as far as they are known."""

from __future__ import annotations

import pytest

from toolkit.scan.program import Program, read_program

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
]


def read(*lines: str) -> Program:
    return read_program(
        ["x = k.load([4, 8], dvm.float32)", "h = k.load([8], dvm.bfloat16)", "n = k.scalar(dvm.int64)", *lines]
    )


def test_a_program_has_stages_inputs_and_outputs() -> None:
    program = read_program(SOFTMAX)

    assert (program.stages, list(program.inputs)) == (3, ["arg0_1"])
    assert [(one.value, one.dtype, one.stage, one.before) for one in program.outputs] == [("div", "float32", 2, 8)]
    assert [(one.name, one.stage, one.axes, one.keeps_axes) for one in program.values.values()
            if one.operation in ("max", "sum")] == [("amax", 0, (1,), True), ("sum_1", 1, (1,), True)]  # fmt: skip


def test_a_load_that_is_stored_as_it_is_is_an_output() -> None:
    program = read("s = k.sum(x, [], False)", "k.spec_next()", "a = k.add(s, 1)", "k.store(a)", "c = h", "k.store(c)")

    assert [(one.value, one.dtype, one.stage) for one in program.outputs] == [("a", None, 1), ("h", None, 1)]


@pytest.mark.parametrize(
    ("line", "is_dynamic"),
    [("y = k.load([4, -1], dvm.float32)", True), ("y = k.load([4, n], dvm.float32)", True),
     ("y = k.view_load([4, -1], [1, 1], dvm.float32)", True), ("y = k.broadcast(h, [4, n])", False),
     ("y = k.load(shape, dvm.float32)", False)],
)  # fmt: skip
def test_sizes_of_inputs_say_whether_a_program_is_dynamic(line: str, is_dynamic: bool) -> None:
    assert read(line).is_dynamic == is_dynamic


@pytest.mark.parametrize(
    ("line", "shape", "dtype"),
    [
        ("v = k.sum(x, [0], False)", (8,), None),
        ("v = k.sum(x, [-1], True)", (4, 1), None),
        ("v = k.sum(x, [-2], True)", (1, 8), None),
        ("v = k.max(x, [], False)", (), None),
        ("v = k.min(x, [0, 1], True)", (1, 1), None),
        ("v = k.sum(x, dims, False)", None, None),
        ("v = k.sum(x, 'ab', False)", None, None),
        ("v = k.broadcast(h, [4, n])", (4, -1), None),
        ("v = k.reshape(x, [32])", (32,), None),
        ("v = k.cast(h, dvm.float32)", (8,), "float32"),
        ("v = k.add(x, k.mul(x, 2))", (4, 8), None),
        ("v = k.add(h, x)", (4, 8), None),
        ("v = k.add(k.reshape(h, [8, 1]), h)", (8, 8), None),
        ("v = k.mul(x, n)", (4, 8), None),
        ("v = k.select(k.less(x, 1), x, x)", (4, 8), None),
        ("v = k.concat([x, x], 0, dvm.float32)", None, None),
        ("v = k.matmul(x, x, False, True)", None, None),
        ("v = k.full(1.0, [4], dvm.float32)", (4,), "float32"),
        ("v = k.rsqrt_of_tomorrow(x)", (4, 8), None),
    ],
)
def test_sizes_and_types_are_said_as_far_as_they_are_known(
    line: str, shape: tuple[int, ...] | None, dtype: str | None
) -> None:
    value = read(line).values["v"]

    assert (value.shape, value.dtype) == (shape, dtype)


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
