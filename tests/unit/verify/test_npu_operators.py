"""The operators that torch_npu keeps whole, against what torch's own autograd gives."""

from __future__ import annotations

import pytest
import torch

from verify import npu_operators


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param((5, 3), (3, 4), id="matrices"),
        pytest.param((3,), (3, 4), id="vector and matrix"),
        pytest.param((5, 3), (3,), id="matrix and vector"),
        pytest.param((3,), (3,), id="vectors"),
        pytest.param((2, 5, 3), (3, 4), id="a batch and a matrix"),
        pytest.param((7, 1, 5, 3), (2, 3, 4), id="batches of other ranks"),
    ],
)
@pytest.mark.parametrize("mask", [(True, True), (True, False), (False, True), (False, False)])
def test_a_products_gradients_are_autograds(one: tuple[int, ...], other: tuple[int, ...], mask: list[bool]) -> None:
    torch.manual_seed(0)
    a, b = torch.randn(one, requires_grad=True), torch.randn(other, requires_grad=True)
    product = a @ b
    seed = torch.randn(product.shape)
    compute = npu_operators.find("aten::matmul_backward")
    assert compute is not None

    found = compute(seed, a.detach(), b.detach(), list(mask))

    for gradient, expected, wanted in zip(found, torch.autograd.grad(product, (a, b), seed), mask, strict=True):
        assert (gradient is not None) is wanted
        if wanted:
            torch.testing.assert_close(gradient, expected)


def test_a_gathers_gradient_is_autograds() -> None:
    x = torch.randn(4, 6, requires_grad=True)
    index = torch.randint(0, 6, (4, 9))
    gathered = x.gather(1, index)
    seed = torch.randn(gathered.shape)
    compute = npu_operators.find("npu::npu_gather_backward")
    assert compute is not None

    found = compute(seed, x.shape, 1, index, False)

    torch.testing.assert_close(found, torch.autograd.grad(gathered, x, seed)[0])


def test_another_operator_is_not_among_them() -> None:
    assert npu_operators.find("aten::add") is None
