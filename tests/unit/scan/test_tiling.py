"""What the sizes tell of a kernel's tiling; the cleared outputs are those that recorded launches show."""

from __future__ import annotations

import pytest

from toolkit.scan.lowering import Node
from toolkit.scan.tiling import Guess, UndecidedError, is_cleared, is_whole
from toolkit.scan.values import Verdict

Sizes = tuple[int, ...]


def node(shape: Sizes, *inputs: Node, operation: str = "exp", axes: Sizes = ()) -> Node:
    return Node("v", operation, inputs, "float32", shape, 0, axes=axes)


@pytest.mark.parametrize(
    ("shape", "domain", "whole"),
    [
        ((128, 256), (128, 256), True),
        ((), (128, 256), False),
        ((256,), (128, 256), False),
        ((1, 256), (128, 256), False),
        ((), (512,), True),
        ((), (1, 256), False),
        ((1, 1), (256, 1), False),
    ],
)
def test_sizes_tell_whether_a_value_is_whole(shape: Sizes, domain: Sizes, whole: bool) -> None:
    value = node(shape)

    assert is_whole(value, [node(domain, value)], Guess({})) == whole


@pytest.mark.parametrize(
    ("shape", "domain", "axis"), [((128, 1), (128, 256), 1), ((), (513,), 0), ((2, 1, 40), (2, 3, 40), 1)]
)
def test_what_only_the_tiling_tells_is_asked(shape: Sizes, domain: Sizes, axis: int) -> None:
    value = node(shape)
    with pytest.raises(UndecidedError) as asked:
        is_whole(value, [node(domain, value)], Guess({}))

    assert asked.value.question == (0, axis)
    for is_tiled in (True, False):
        assert is_whole(value, [node(domain, value)], Guess({(0, axis): is_tiled})) is not is_tiled


@pytest.mark.parametrize(
    ("shape", "axes", "cleared"),
    [
        ((8,), (0,), "no"), ((4096,), (0,), "no"), ((8000,), (0,), "unknown"), ((100000,), (0,), "yes"),
        ((4, 8), (0, 1), "no"), ((2, 3, 40), (0, 1, 2), "no"), ((128, 256), (0, 1), "yes"), ((1, 1), (0, 1), "no"),
        ((4, 8), (0,), "yes"), ((2, 256), (0,), "yes"), ((128, 256), (0,), "yes"), ((1, 256), (0,), "no"),
        ((3, 128, 256), (0,), "yes"), ((1, 128, 256), (1,), "yes"),
        ((128, 256), (1,), "unknown"), ((3, 128, 256), (1,), "unknown"), ((8, 100000), (1,), "unknown"),
        ((-1, 256), (0,), "unknown"),
    ],
)  # fmt: skip
def test_an_output_is_cleared_where_blocks_add_to_it(shape: Sizes, axes: Sizes, cleared: Verdict) -> None:
    assert is_cleared(node((), node(shape), operation="sum", axes=axes), True) == cleared


def test_nothing_but_a_reduction_clears() -> None:
    assert is_cleared(node((128, 256), node((128, 256))), True) == "no"
    assert is_cleared(node((), node((8,)), operation="sum", axes=(0,)), False) == "unknown"
