"""Which values of a program lie in memory alike, and which of those that a listing calls the same do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from verify import dvm_reference as dvm
from verify.reference.contents import Contents
from verify.reference.evaluate import value_shapes

torch = pytest.importorskip("torch")


def alike(build: Callable[[Any, Any, Any], tuple[Any, Any]], element: str = "float32") -> bool:
    """Tell whether two values that are built of two vectors of eight numbers have one content."""
    found: list[Any] = []

    def builder(k: Any) -> None:
        x, y = k.load([8], getattr(dvm, element)), k.load([8], getattr(dvm, element))
        found.extend(build(k, x, y))
        k.store(found[0], dvm.float32)

    program = dvm.build_program(builder, "spec")
    contents = Contents(program, value_shapes(program) or {}).of
    return contents[found[0].number] == contents[found[1].number]


def column(k: Any, x: Any) -> Any:
    return k.broadcast(k.reshape(x, [8, 1]), [8, 8])


def row(k: Any, x: Any) -> Any:
    return k.broadcast(k.reshape(x, [1, 8]), [8, 8])


@pytest.mark.parametrize(
    "build",
    [
        lambda k, x, y: (x, k.reshape(x, [2, 4])),
        lambda k, x, y: (x, k.broadcast(x, [1, 8])),
        lambda k, x, y: (k.add(x, y), k.add(x, y)),
        lambda k, x, y: (k.add(x, y), k.add(k.reshape(x, [2, 4]), k.reshape(y, [2, 4]))),
        lambda k, x, y: (k.sum(x, [0], True), k.sum(x, [0], False)),
        lambda k, x, y: (k.add(column(k, x), row(k, y)), k.add(column(k, x), row(k, y))),
    ],
    ids=["reshaped", "repeated once", "twice", "in another shape", "kept axis", "outer twice"],
)
def test_equal_operations_of_equal_contents_are_one_content(build: Any) -> None:
    assert alike(build)


@pytest.mark.parametrize(
    "build",
    [
        lambda k, x, y: (x, y),
        lambda k, x, y: (column(k, x), row(k, x)),
        lambda k, x, y: (k.add(x, y), k.add(column(k, x), row(k, y))),
        lambda k, x, y: (k.add(column(k, x), row(k, y)), k.add(row(k, x), column(k, y))),
        lambda k, x, y: (k.sum(column(k, x), [0], False), k.sum(column(k, x), [1], False)),
        lambda k, x, y: (k.sum(k.reshape(x, [2, 4]), [0], False), k.sum(k.reshape(x, [4, 2]), [0], False)),
        lambda k, x, y: (k.mul(x, 1), k.mul(x, 2)),
        lambda k, x, y: (k.exp(x), k.exp(k.cast(k.cast(x, dvm.bfloat16), dvm.float32))),
    ],
    ids=["inputs", "column and row", "sum and outer sum", "outer sums", "axes", "shapes", "numbers", "rounded"],
)
def test_what_is_repeated_reduced_or_rounded_otherwise_is_another_content(build: Any) -> None:
    assert not alike(build)


def test_a_cast_to_what_holds_a_value_already_rounds_nothing() -> None:
    assert alike(lambda k, x, y: (x, k.cast(k.cast(x, dvm.float32), dvm.bfloat16)), "bfloat16")
