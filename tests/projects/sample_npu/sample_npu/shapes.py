"""Shapes of tensors, without tensors."""

from collections.abc import Sequence


def numel(shape: Sequence[int]) -> int:
    """Return how many elements a tensor of that shape has."""
    if not shape:
        return 0
    count = 1
    for size in shape:
        count *= size
    return count
