"""What the builder writes down, and what it refuses as the real one does or dies of."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from verify.reference.program import Builder, ProgramError, Scalar, UnknownOperationError, Value


def load(builder: Builder, dtype: str, shape: tuple[int, ...] = (4, 8)) -> Value:
    return builder.load(list(shape), dtype)


def test_a_program_tells_what_was_asked_for() -> None:
    builder = Builder()
    x = load(builder, "float32")
    total = builder.sum(x, [0], True)
    builder.spec_next()
    builder.store(builder.mul(builder.broadcast(total, [4, 8]), 2), "float16")
    program = builder.program("spec", "scaled")

    assert str(program).splitlines() == [
        "%0 = load([4, 8]) float32",
        "%1 = sum(%0, [0], True) float32",
        "%2 = spec_next() ",
        "%3 = broadcast(%1, [4, 8]) float32",
        "%4 = mul(%3, 2) float32",
        "%5 = store(%4) float16",
    ]
    assert (program.kind, program.name, program.stages) == ("spec", "scaled", 2)
    assert [one.number for one in program.crossing()] == [1]


def test_an_operation_that_only_the_emitter_knows_is_unknown() -> None:
    builder = Builder()
    with pytest.raises(UnknownOperationError, match=re.escape("no operation 'is_finite' that is known here")):
        builder.is_finite(load(builder, "float32"))


@pytest.mark.parametrize(("dtype", "answer"), [("float16", "float16"), ("bfloat16", "float32"), ("int64", "int32")])
def test_comparisons_of_the_older_builder_answer_in_their_operands_type(dtype: str, answer: str) -> None:
    builder = Builder(answers_bool=False)
    x = load(builder, dtype)
    assert builder.less(x, x).dtype() == answer


def test_sizes_of_a_launch_are_scalars() -> None:
    builder = Builder()
    size = builder.scalar("int64")
    x = builder.load([-1, 8], "float32")
    assert isinstance(size, Scalar)
    assert builder.mul(x, size).dtype() == "float32"
    assert builder.broadcast(builder.sum(x, [0], True), [size, 8]).dtype() == "float32"
    assert builder.full(size, [size, 8], "float16").dtype() == "float16"
    assert str(builder.program("vector")).splitlines()[3:] == [
        "%3 = sum(%1, [0], True) float32",
        "%4 = broadcast(%3, [%0, 8]) float32",
        "%5 = full(%0, [%0, 8]) float16",
    ]


RESULTS = {
    "a number takes the tensor's type": (lambda b: b.add(load(b, "float16"), 2.5), "float16"),
    "a number in front": (lambda b: b.div(1, load(b, "float16")), "float16"),
    "comparison": (lambda b: b.less(load(b, "int64"), load(b, "int64")), "bool"),
    "comparison with a number": (lambda b: b.equal(load(b, "int32"), 2), "bool"),
    "isfinite keeps the type": (lambda b: b.isfinite(load(b, "float16")), "float16"),
    "logical": (lambda b: b.logical_and(load(b, "bool"), load(b, "bool")), "bool"),
    "reduction": (lambda b: b.max(load(b, "float16"), [], False), "float16"),
    "sum": (lambda b: b.sum(load(b, "float32"), [-1], False), "float32"),
    "select": (lambda b: b.select(load(b, "bool"), load(b, "int64"), load(b, "int64")), "int64"),
    "concat": (lambda b: b.concat([load(b, "bool"), load(b, "bool")], -1), "bool"),
    "matmul": (lambda b: b.matmul(load(b, "float16"), load(b, "float16"), False, True), "float16"),
    "matmul of bfloat16 is not promoted": (
        lambda b: b.matmul(load(b, "bfloat16"), load(b, "bfloat16"), True, False),
        "bfloat16",
    ),
    "promoted": (lambda b: b.mul(load(b, "bfloat16"), 2), "float32"),
    "promoted beside float32": (lambda b: b.mul(load(b, "bfloat16"), load(b, "float32")), "float32"),
    "promoted sum": (lambda b: b.sum(load(b, "bfloat16"), [0], False), "float32"),
    "promoted select": (lambda b: b.select(load(b, "bool"), load(b, "bfloat16"), load(b, "float32")), "float32"),
    "copy is not promoted": (lambda b: b.copy(load(b, "bfloat16")), "bfloat16"),
    "broadcast is not promoted": (lambda b: b.broadcast(load(b, "bfloat16"), [2, 4, 8]), "bfloat16"),
}


@pytest.mark.parametrize(("build", "dtype"), RESULTS.values(), ids=RESULTS.keys())
def test_results_have_the_types_of_the_real_builder(build: Callable[[Builder], Value], dtype: str) -> None:
    assert build(Builder()).dtype() == dtype


def test_promoted_results_are_cast_back_at_once_where_that_is_asked_for() -> None:
    builder = Builder(keep_promoted=True)
    x = load(builder, "bfloat16")
    less = builder.less(x, 1)  # torch_npu casts it too
    assert builder.select(less, builder.exp(x), x).dtype() == "bfloat16"
    assert [f"{one.operation} {one.dtype}" for one in builder.program("vector").instructions] == [
        "load bfloat16",
        "cast float32", "less bool", "cast bfloat16",
        "cast float32", "exp float32", "cast bfloat16",
        "cast float32", "cast float32", "cast float32", "select float32", "cast bfloat16",
    ]  # fmt: skip


def test_a_builder_for_a_soc_with_bfloat16_promotes_nothing() -> None:
    builder = Builder(promotes=False)
    assert builder.mul(load(builder, "bfloat16"), 2).dtype() == "bfloat16"


REFUSED = {
    "types": (
        lambda b: b.add(load(b, "float16"), load(b, "float32")),
        "add of float16 and float32, expected one element type",
    ),
    "numbers": (lambda b: b.add(1, 2), "add of numbers alone, expected one element type"),
    "sum of float16": (lambda b: b.sum(load(b, "float16"), [0], False), "sum of float16, expected float32"),
    "int64": (
        lambda b: b.mul(load(b, "int64"), 2),
        "mul of int64, expected float16 or bfloat16 or float32 or int32",
    ),
    "division of integers": (
        lambda b: b.div(load(b, "int32"), load(b, "int32")),
        "div of int32, expected float16 or bfloat16 or float32",
    ),
    "matmul of float32": (
        lambda b: b.matmul(load(b, "float32"), load(b, "float32"), False, True),
        "matmul of float32, expected float16 or bfloat16",
    ),
    "matmul of a promoted value": (
        lambda b: b.matmul(b.mul(load(b, "bfloat16"), 2), load(b, "bfloat16"), False, True),
        "matmul of float32 and bfloat16, expected one element type",
    ),
    "select of numbers": (
        lambda b: b.select(load(b, "bool"), load(b, "float32"), 0.0),
        "select of 0.0, expected a tensor's value",
    ),
    "broadcast of a number": (lambda b: b.broadcast(2.5, [4]), "broadcast of 2.5, expected a tensor's value"),
    "arithmetic on scalars": (
        lambda b: b.mul(b.scalar("int64"), 2),
        "mul of numbers alone, expected one element type",
    ),
    "full of a tensor": (
        lambda b: b.full(load(b, "float32"), [4], "float32"),
        "full of Value(number=0, element_type='float32'), expected a number",
    ),
    "no type": (lambda b: b.full(1, [4], None), "element type None, expected one of bool, float16, bfloat16, float32, "
                "int32, int64"),
    "type": (lambda b: b.load([4], "float64"), "element type 'float64', expected one of bool, float16, bfloat16, "
             "float32, int32, int64"),
    "no list": (lambda b: b.max(load(b, "float32"), 0, True), "shape 0, expected a list"),
    "a size with a fraction": (
        lambda b: b.load([4, 1.5], "float32"),
        "shape [4, 1.5] holds 1.5, expected whole numbers and scalars",
    ),
    "strides": (
        lambda b: b.view_load([4, 8], [1], "float32"),
        "view_load of shape [4, 8] by strides [1], expected as many strides",
    ),
    "a word": (lambda b: b.add(load(b, "float32"), "2"), "add of '2', expected values and numbers"),
}  # fmt: skip


@pytest.mark.parametrize(("build", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_has_no_meaning_is_refused(build: Callable[[Builder], Any], message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        build(Builder())
    assert str(caught.value) == message
