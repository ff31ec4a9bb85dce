"""Launches: what they read and write, and what they are refused for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from verify import dvm_reference as dvm
from verify.reference.evaluate import LaunchError, value_shapes


def doubled(k: Any) -> None:
    """Double a matrix."""
    k.store(k.mul(k.load([4, 8], dvm.float32), 2))


def dynamic(k: Any) -> None:
    """Sum the rows of a matrix of any height, times its height."""
    rows = k.scalar(dvm.int64)
    x = k.load([-1, 8], dvm.float32)
    total = k.sum(x, [0], True)
    k.spec_next()
    k.store(k.mul(k.broadcast(total, [rows, 8]), rows))


def viewed(k: Any) -> None:
    """Double every other row of a matrix."""
    k.store(k.mul(k.view_load([2, 8], [16, 1], dvm.float32), 2))


def test_a_launch_writes_into_its_outputs() -> None:
    x, out = torch.randn(4, 8), torch.empty(4, 8)
    assert dvm.kernel(ktype="vector")(doubled).run(x, out, stream=0) is None
    assert torch.equal(out, x * 2)


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_sizes_come_from_the_launch(rows: int) -> None:
    x = torch.randn(rows, 8)
    found = dvm.kernel(ktype="spec", dyn_shape=True)(dynamic)(rows, x)
    torch.testing.assert_close(found, x.sum(0, keepdim=True).expand(rows, 8) * rows)


def test_a_run_reads_and_writes_tensors_with_gaps_by_their_elements() -> None:
    x, out = torch.randn(8, 4).t(), torch.zeros(4, 16)[:, ::2]
    dvm.kernel(ktype="vector")(doubled).run(x, out)
    assert torch.equal(out, x * 2)


def test_a_call_reads_memory_as_it_is() -> None:
    x = torch.randn(8, 4)
    assert torch.equal(dvm.kernel(ktype="split")(doubled)(x.t()), x.reshape(4, 8) * 2)


def test_a_view_load_goes_by_its_own_strides() -> None:
    x = torch.randn(4, 8)
    kernel = dvm.kernel(ktype="vector")(viewed)
    assert torch.equal(kernel(x[::2]), x[::2] * 2)
    assert torch.equal(kernel(x[:2]), x[::2] * 2)  # the kernel does not know the tensor's strides


def test_an_output_may_be_an_input() -> None:
    x = torch.randn(4, 8)
    before = x.clone()
    dvm.kernel(ktype="vector")(doubled).run(x, x)
    assert torch.equal(x, before * 2)


def test_inputs_are_read_before_outputs_are_written() -> None:
    x = torch.arange(8.0)

    def build(k: Any) -> None:
        shifted = k.load([7], dvm.float32)
        k.store(k.copy(shifted))
        k.store(k.mul(shifted, 2))

    second = torch.empty(7)
    dvm.kernel(ktype="vector")(build).run(x[:7], x[1:], second)
    assert x.tolist() == [0, 0, 1, 2, 3, 4, 5, 6]
    assert second.tolist() == [0, 2, 4, 6, 8, 10, 12]


@pytest.mark.parametrize("shape", [(), (0, 3), (3, 0)], ids=str)
def test_empty_tensors_and_scalars(shape: tuple[int, ...]) -> None:
    def build(k: Any) -> None:
        x = k.load(list(shape), dvm.float32)
        k.store(k.exp(x))
        k.store(k.sum(x, [], False))

    x = torch.ones(shape)
    exponential, total = dvm.kernel(ktype="vector")(build)(x)
    assert exponential.shape == shape
    assert torch.equal(exponential, x.exp())
    assert torch.equal(total, x.sum())


def test_nan_and_infinity_come_out_where_eager_has_them() -> None:
    x = torch.tensor([[1.0, math.nan, 2.0], [math.inf, 3.0, -math.inf], [1.0, 2.0, 3.0]])

    def softmax(k: Any) -> None:
        value = k.load([3, 3], dvm.float32)
        shifted = k.exp(k.sub(value, k.max(value, [1], True)))
        k.store(k.div(shifted, k.sum(shifted, [1], True)))

    found = dvm.kernel(ktype="spec")(softmax)(x)
    torch.testing.assert_close(found, torch.softmax(x, 1), equal_nan=True)
    assert found[:2].isnan().all()


REFUSED: dict[str, tuple[Callable[[Any], None], Sequence[Any], str]] = {
    "too few": (doubled, [torch.ones(4, 8)], "doubled was launched with 1 arguments, expected 1 inputs and 1 outputs"),
    "type": (
        doubled,
        [torch.ones(4, 8).half(), torch.ones(4, 8)],
        "doubled: %0 = load([4, 8]) float32 was given torch.float16, expected torch.float32",
    ),
    "shape": (
        doubled,
        [torch.ones(8, 4), torch.ones(4, 8)],
        "doubled: %0 = load([4, 8]) float32 was given a tensor of shape [8, 4], expected [4, 8]",
    ),
    "rank": (
        dynamic,
        [4, torch.ones(4), torch.ones(4, 8)],
        "dynamic: %1 = load([-1, 8]) float32 was given a tensor of shape [4], expected [-1, 8]",
    ),
    "a number for a tensor": (
        doubled,
        [2, torch.ones(4, 8)],
        "doubled: %0 = load([4, 8]) float32 was given int, expected a tensor",
    ),
    "a tensor for a number": (
        dynamic,
        [torch.tensor(4), torch.ones(4, 8), torch.ones(4, 8)],
        "dynamic: %0 = scalar() int64 was given Tensor, expected a number",
    ),
    "output": (
        doubled,
        [torch.ones(4, 8), torch.ones(4, 1)],
        "%2 = store(%1) float32 was given an output of shape [4, 1], its value's shape is [4, 8]",
    ),
    "memory": (
        viewed,
        [torch.ones(2, 8), torch.ones(2, 8)],
        "%0 = view_load([2, 8], [16, 1]) float32 reaches 24 elements from its tensor's start, whose memory has 16",
    ),
}


@pytest.mark.parametrize(("build", "arguments", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_launch_that_does_not_fit_is_refused(
    build: Callable[[Any], None], arguments: Sequence[Any], message: str
) -> None:
    with pytest.raises(LaunchError) as caught:
        dvm.kernel(ktype="vector")(build).run(*arguments)
    assert str(caught.value) == message


def test_shapes_that_do_not_fit_name_the_instruction() -> None:
    def build(k: Any) -> None:
        k.store(k.add(k.load([2, 3], dvm.float32), k.load([2, 4], dvm.float32)))

    message = "%2 = add(%0, %1) float32 cannot be computed of shapes [2, 3], [2, 4]: "
    with pytest.raises(LaunchError) as caught:
        dvm.kernel(ktype="vector")(build)(torch.ones(2, 3), torch.ones(2, 4))
    assert str(caught.value).startswith(message)


def test_a_kernel_of_another_type_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"kernel type 'cube', expected one of vector, vector:opt_fractal, spec, split"
    ):
        dvm.kernel(ktype="cube")


def test_the_shapes_of_values_are_known_where_no_launch_says_them() -> None:
    assert value_shapes(dvm.build_program(doubled, "vector")) == {0: (4, 8), 1: (4, 8)}
    assert value_shapes(dvm.build_program(dynamic, "spec")) is None
