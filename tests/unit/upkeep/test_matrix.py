"""What in a matrix a person has to look at."""

from __future__ import annotations

import pytest

from tests.matrix_cases import cell, matrix, witness
from toolkit.upkeep.matrix import Cell

GOOD = [
    cell("applies"),
    cell("offset"),
    cell("conflict", covered=False),
    cell("upstream", accepted=True),
    cell(None, why="not here", is_here=False),
    cell(None, why="unreachable", covered=False),
    cell("applies", witness=witness("still needed", "still works")),
    cell("applies", witness=witness("still needed", "", overlay="not run")),
    cell("applies", witness=witness("", "", base="not run")),
    cell("applies", why="not run: needs torch 2.14.0, the interpreter has 2.13.0"),
    cell("upstream", accepted=True, witness=witness("no longer needed", "", overlay="not run")),
]
BAD = [
    (cell("conflict"), "conflict"),
    (cell("partly"), "partly"),
    (cell("upstream"), "upstream"),
    (cell(None, why="unreachable"), "unreachable"),
    (
        cell("applies", witness=witness("no longer needed", "still works")),
        "no longer needed, its witness is green on the base",
    ),
    (
        cell("offset", witness=witness("still needed", "no longer works")),
        "no longer works, its witness says: overlay says",
    ),
    (cell("applies", witness=witness("", "")), "its witness on the base: error, base says"),
    (
        cell("applies", witness=witness("", "", overlay="not run")),
        "its witness on the base: error, base says",
    ),
    (
        cell("applies", witness=witness("still needed", "")),
        "its witness on the patched base: error, overlay says",
    ),
    (
        cell("upstream", accepted=True, witness=witness("still needed", "", overlay="not run")),
        "upstream, but its witness is red on the base",
    ),
]


@pytest.mark.parametrize(
    "one",
    GOOD,
    ids=[
        "applies",
        "offset",
        "not-covered",
        "upstream-and-accepted",
        "not-on-this-machine",
        "unreachable-and-not-covered",
        "needed-and-works",
        "the-series-does-not-go-in",
        "nobody-can-run-it",
        "no-interpreter-fits",
        "upstream-and-no-longer-needed",
    ],
)
def test_what_is_as_it_should_be_is_no_finding(one: Cell) -> None:
    assert matrix(one).findings == ()


@pytest.mark.parametrize(
    ("one", "said"),
    BAD,
    ids=[
        "conflict",
        "partly",
        "upstream",
        "unreachable",
        "no-longer-needed",
        "no-longer-works",
        "base-fails",
        "base-fails-and-nothing-is-patched",
        "patched-base-fails",
        "upstream-and-still-needed",
    ],
)
def test_what_a_person_has_to_look_at_is_a_finding(one: Cell, said: str) -> None:
    assert matrix(one).findings == (f"part/1 0001-change on 1.0: {said}",)
