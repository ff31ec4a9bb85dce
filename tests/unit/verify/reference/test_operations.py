"""Operations against torch's eager operators and against FP64, one rounding an operation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from verify import dvm_reference as dvm
from verify.reference import operations
from verify.reference.program import UnknownOperationError

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "int32": torch.int32}
SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 65504.0, 1e-7, 6e-8, 3.4e38]


def run(build: Callable[[Any], Any], *inputs: Any) -> Any:
    """Compute one kernel."""
    return dvm.kernel(ktype="vector")(build)(*inputs)


def of_two(operation: str, x: Any, y: Any, dtype: str = "float32") -> Any:
    """Compute an operation of two tensors of one type."""

    def build(k: Any) -> None:
        k.store(getattr(k, operation)(k.load(list(x.shape), dtype), k.load(list(y.shape), dtype)))

    return run(build, x, y)


def of_one(operation: str, x: Any, *more: Any, dtype: str = "float32") -> Any:
    """Compute an operation of one tensor and numbers."""

    def build(k: Any) -> None:
        k.store(getattr(k, operation)(k.load(list(x.shape), dtype), *more))

    return run(build, x)


def same(actual: Any, expected: Any) -> None:
    """Assert equal bits, any NaN like any other."""
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


@st.composite
def broadcast_shapes(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Draw two shapes that broadcast: some axes of size 1 or missing, some of size 0."""
    full = draw(st.lists(st.integers(0, 5), max_size=3))
    thin = [size if draw(st.booleans()) else 1 for size in full][draw(st.integers(0, len(full))) :]
    return (full, thin) if draw(st.booleans()) else (thin, full)


def fill(shape: Sequence[int], dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Make a tensor of numbers of every size, with special ones among them."""
    generator = torch.Generator().manual_seed(seed)
    made = torch.randn(tuple(shape), generator=generator, dtype=torch.float64)
    made *= 10.0 ** torch.randint(-5, 5, tuple(shape), generator=generator)
    flat = made.view(-1)
    for place in range(0, flat.numel(), 3):
        flat[place] = SPECIAL[(place + seed) % len(SPECIAL)]
    return made.to(dtype)


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@given(shapes=broadcast_shapes(), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_arithmetic_is_exact_but_for_one_rounding(
    operation: str, dtype: str, shapes: tuple[list[int], list[int]], seed: int
) -> None:
    x, y = (fill(shape, DTYPES[dtype], seed + number) for number, shape in enumerate(shapes))
    exact = getattr(torch, operation)(x.double(), y.double())  # FP64 holds enough for the rounding to be the only one
    same(of_two(operation, x, y, dtype), exact.to(DTYPES[dtype]))


@pytest.mark.parametrize("operation", ["add", "mul", "div", "maximum"])
@given(shapes=broadcast_shapes(), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_promoted_bfloat16_is_rounded_when_it_is_stored(
    operation: str, shapes: tuple[list[int], list[int]], seed: int
) -> None:
    x, y = (fill(shape, torch.bfloat16, seed + number) for number, shape in enumerate(shapes))

    def build(k: Any) -> None:
        result = getattr(k, operation)(k.load(list(x.shape), "bfloat16"), k.load(list(y.shape), "bfloat16"))
        k.store(k.add(result, 1), "bfloat16")

    wide = getattr(torch, operation)(x.float(), y.float()) + 1
    same(run(build, x, y), wide.to(torch.bfloat16))


EAGER = {
    "sqrt": torch.sqrt, "abs": torch.abs, "log": torch.log, "exp": torch.exp, "reciprocal": torch.reciprocal,
    "round": torch.round, "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc, "copy": torch.clone,
}  # fmt: skip
COMPARED = {
    "less": torch.lt, "less_equal": torch.le, "greater": torch.gt, "greater_equal": torch.ge, "equal": torch.eq,
    "not_equal": torch.ne, "maximum": torch.maximum, "minimum": torch.minimum,
}  # fmt: skip


@pytest.mark.parametrize("operation", EAGER)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_functions_are_eagers(operation: str, dtype: str) -> None:
    x = fill((7, 9), DTYPES[dtype], 1)
    same(of_one(operation, x, dtype=dtype), EAGER[operation](x))


@pytest.mark.parametrize("operation", COMPARED)
@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
@given(shapes=broadcast_shapes(), seed=st.integers(0, 99))
@settings(max_examples=10, deadline=None)
def test_comparisons_are_eagers(operation: str, dtype: str, shapes: tuple[list[int], list[int]], seed: int) -> None:
    x, y = (fill(shape, DTYPES[dtype], seed + number) for number, shape in enumerate(shapes))
    same(of_two(operation, x, y, dtype), COMPARED[operation](x, y))


@pytest.mark.parametrize("operation", ["sum", "max", "min"])
@given(data=st.data(), shape=st.lists(st.integers(1, 4), min_size=1, max_size=4), keepdim=st.booleans())
@settings(max_examples=30, deadline=None)
def test_reductions_go_over_the_axes_that_they_name(
    operation: str, data: st.DataObject, shape: list[int], keepdim: bool
) -> None:
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True))
    named = [axis - len(shape) if data.draw(st.booleans()) else axis for axis in axes]
    x = torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)
    eager = {"sum": torch.sum, "max": torch.amax, "min": torch.amin}[operation]
    same(of_one(operation, x, named, keepdim), eager(x, dim=axes or tuple(range(len(shape))), keepdim=keepdim))


def test_numbers_take_the_tensors_type() -> None:
    half = torch.tensor([0.0, 1.0, -2.0], dtype=torch.float16)
    infinite = torch.tensor([math.nan, math.inf, -math.inf], dtype=torch.float16)
    same(of_one("mul", half, 100000.0, dtype="float16"), infinite)  # eager multiplies in FP32
    same(of_one("mul", half, 1e-9, dtype="float16"), half * 0)
    tenth = torch.tensor(0.1, dtype=torch.float16)
    same(of_one("add", half, 0.1, dtype="float16"), (half.double() + tenth.double()).half())
    whole = torch.tensor([1, 2, 3], dtype=torch.int32)
    same(of_one("less", whole, 2.5, dtype="int32"), torch.tensor([True, False, False]))  # as the real builder has it
    same(of_one("add", torch.tensor([1, -1]), 1 << 40, dtype="int64"), torch.tensor([(1 << 40) + 1, (1 << 40) - 1]))


def test_a_number_may_stand_first() -> None:
    x = torch.tensor([4.0, 0.5])

    def build(k: Any) -> None:
        value = k.load([2], dvm.float32)
        k.store(k.sub(1, k.div(2, value)))

    same(run(build, x), 1 - 2 / x)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, 7, 10, -1, -2, -3, 2.0000001])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_whole_powers_are_products(exponent: float, dtype: str) -> None:
    x = torch.linspace(-1.9, 1.9, 33).to(DTYPES[dtype])
    expected, square = torch.ones_like(x), x
    for bit in reversed(f"{abs(round(exponent)):b}"):
        expected = expected * square if bit == "1" else expected
        square = square * square
    same(of_one("pow", x, exponent, dtype=dtype), expected if exponent >= 0 else 1 / expected)


def test_other_powers() -> None:
    x = torch.tensor([0.5, 2.0, -3.0, 0.0])
    same(of_one("pow", x, 2.5), x.pow(2.5))
    same(of_two("pow", x, x), x.pow(x))

    def two_to(k: Any) -> None:
        k.store(k.pow(2, k.load([4], dvm.float16)))

    half = x.half()
    same(run(two_to, half), torch.exp(half.float() * torch.tensor(math.log(2), dtype=torch.float32)).half())

    def minus_two_to(k: Any) -> None:
        k.store(k.pow(-2.0, k.load([4], dvm.float32)))

    same(run(minus_two_to, x), torch.pow(-2.0, x))


@pytest.mark.parametrize("number", [3, 2.5])
def test_a_power_by_a_number_of_the_launch_is_no_product(number: float) -> None:
    def build(k: Any) -> None:
        value, x = k.scalar(dvm.float32), k.load([4], dvm.float32)
        k.store(k.pow(x, value))
        k.store(k.pow(value, x))

    x = torch.tensor([0.1, 2.3, -3.7, 0.0])
    same(run(build, number, x)[0], torch.pow(x, torch.full_like(x, number)))
    same(run(build, number, x)[1], torch.pow(torch.full_like(x, number), x))


CASTS = ["bool", "float16", "bfloat16", "float32", "int32", "int64"]


@pytest.mark.parametrize("to", CASTS)
@pytest.mark.parametrize("of", CASTS)
def test_casts_and_stores_convert_as_eager_does(of: str, to: str) -> None:
    x = torch.tensor([0.0, 1.0, -1.0, 2.5, -2.5, 3.5, 255.0, 65519.0]).to(getattr(torch, of))
    expected = x.to(getattr(torch, to))
    same(of_one("cast", x, to, dtype=of), expected)

    def build(k: Any) -> None:
        k.store(k.load([8], of), to)

    same(run(build, x), expected)


def test_a_cast_rounds_to_the_nearest_even() -> None:
    x = torch.tensor([1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-20])
    expected = torch.tensor([1.0, 1 + 2.0**-6, 1 + 2.0**-7], dtype=torch.bfloat16)
    same(of_one("cast", x, "bfloat16"), expected)


def test_logic_of_bools_and_of_promoted_comparisons() -> None:
    a, b = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])
    same(of_two("logical_and", a, b, "bool"), a & b)
    same(of_two("logical_or", a, b, "bool"), a | b)
    same(of_one("logical_not", a, dtype="bool"), ~a)
    same(of_two("logical_and", a.float(), b.float()), (a & b).float())
    same(of_one("isfinite", torch.tensor([1.0, math.inf, math.nan])), torch.tensor([1.0, 0.0, 0.0]))


def test_select_takes_the_branch_of_the_condition_and_broadcasts() -> None:
    condition, x, y = torch.tensor([[True], [False]]), torch.tensor([1.0, math.nan]), torch.tensor([[3.0], [4.0]])

    def build(k: Any) -> None:
        k.store(k.select(k.load([2, 1], dvm.bool_), k.load([2], dvm.float32), k.load([2, 1], dvm.float32)))

    same(run(build, condition, x, y), torch.where(condition, x, y))


def test_shapes_change_without_the_elements() -> None:
    x, y = torch.arange(6.0).reshape(2, 3), torch.arange(3.0).reshape(1, 3)

    def build(k: Any) -> None:
        a, b = k.load([2, 3], dvm.float32), k.load([1, 3], dvm.float32)
        k.store(k.reshape(a, [3, -1]))
        k.store(k.broadcast(b, [4, -1, -1]))
        k.store(k.concat([a, b], -2))
        k.store(k.full(1e30, [2, 2], dvm.float16))

    reshaped, repeated, joined, full = run(build, x, y)
    same(reshaped, x.reshape(3, 2))
    same(repeated, y.expand(4, 1, 3))
    same(joined, torch.cat([x, y]))
    same(full, torch.full((2, 2), math.inf, dtype=torch.float16))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_matmul_accumulates_in_float32_and_is_rounded_once(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    a, b, bias = torch.randn(3, 64, 5).to(dtype), torch.randn(3, 7, 64).to(dtype), torch.randn(7).to(dtype)
    name = str(dtype).removeprefix("torch.")

    def build(k: Any) -> None:
        left, right = k.load([3, 64, 5], name), k.load([3, 7, 64], name)
        k.store(k.matmul(left, right, True, True, k.load([7], name)))

    expected = torch.matmul(a.mT.double(), b.mT.double()) + bias.double()
    found = run(build, a, b, bias)
    assert found.dtype == dtype
    torch.testing.assert_close(found, expected.to(dtype), rtol=torch.finfo(dtype).eps, atol=1e-6)


def test_an_operation_that_is_not_known_is_named() -> None:
    with pytest.raises(UnknownOperationError, match="there is no operation 'gather' in the reference"):
        operations.find("gather")
