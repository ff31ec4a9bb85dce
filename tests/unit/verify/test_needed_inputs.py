"""Which mutated inputs a graph's results depend on, found by trying other values in them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from verify.launches import needed_inputs


def accumulated(old: Any, x: Any) -> None:
    old.copy_(old + x.sum())


def overwritten(old: Any, x: Any) -> None:
    old.copy_(x.sum())


def largest_so_far(old: Any, x: Any) -> None:
    old.copy_(torch.maximum(old, x.abs().amax()))


def smallest_so_far(old: Any, x: Any) -> None:
    old.copy_(torch.minimum(old, x.abs().amin()))


def counted(old: Any, x: Any) -> None:
    old.add_((x > 0.5).sum().to(old.dtype))


@pytest.mark.parametrize(
    ("function", "needed"),
    [(accumulated, {"old"}), (overwritten, set()), (largest_so_far, {"old"}), (smallest_so_far, {"old"})],
)
def test_inputs_are_needed_if_anything_depends_on_their_values(function: Callable[..., Any], needed: set[str]) -> None:
    given = {"old": torch.tensor(1.0), "x": torch.linspace(0.5, 1.5, 12)}

    assert needed_inputs(function, given) == needed
    assert given["old"].item() == 1.0


def test_inputs_of_whole_numbers_are_tried_with_whole_numbers() -> None:
    assert needed_inputs(counted, {"old": torch.tensor(3), "x": torch.linspace(0, 1, 12)}) == {"old"}
