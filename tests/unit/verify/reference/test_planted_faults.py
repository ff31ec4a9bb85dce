"""The comparison with eager finds a fault in the interpreter: each is planted here, and must be seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from verify import dvm_reference as dvm
from verify.numbers import compare
from verify.reference import operations


def scaled_rows(k: Any) -> None:
    """Divide rows of BF16 by their sums, rounded to BF16 before they are squared."""
    x = k.load([32, 32], dvm.bfloat16)
    rounded = k.cast(k.div(x, k.sum(x, [-1], True)), dvm.bfloat16)
    k.store(k.mul(rounded, rounded), dvm.float32)


def eager(x: Any) -> Any:
    """Compute the same with torch."""
    rounded = (x.float() / x.float().sum(-1, keepdim=True)).bfloat16().float()
    return rounded * rounded


def is_seen() -> bool:
    """Tell whether the reference differs from eager beyond the gate."""
    x = torch.rand(32, 32, generator=torch.Generator().manual_seed(0)).bfloat16()
    return not compare(dvm.kernel(ktype="spec")(scaled_rows)(x), eager(x)).within


def test_nothing_is_seen_where_nothing_is_wrong() -> None:
    assert not is_seen()


def wrong_axis(instruction: Any, operands: Any) -> Any:
    """Sum columns where rows are asked for."""
    x, dims, keepdim = operands
    return torch.sum(x, dim=[axis - 1 for axis in dims], keepdim=keepdim).mT


def no_rounding(instruction: Any, operands: Any) -> Any:
    """Keep the digits that BF16 does not have."""
    return operands[0].float()


def truncation(instruction: Any, operands: Any) -> Any:
    """Cut the mantissa off."""
    value = operands[0].float().view(torch.int32) & -65536
    return value.view(torch.float32).to(operations.element_type(instruction.dtype))


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        pytest.param("sum", wrong_axis, id="a wrong axis"),
        pytest.param("cast", no_rounding, id="a missing rounding"),
        pytest.param("cast", truncation, id="a rounding to zero"),
    ],
)
def test_a_planted_fault_is_seen(operation: str, fault: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(operations.OTHERS, operation, fault)
    assert is_seen()
