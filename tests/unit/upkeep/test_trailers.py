"""Our trailers under somebody else's message, put there and taken away."""

from __future__ import annotations

import pytest

from toolkit.upkeep.trailers import value_of, with_trailers, without_trailers

OURS = [("Witness", "answer")]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Subject\n", "Subject\n\nWitness: answer\n"),
        ("Subject\n\nBody.\n", "Subject\n\nBody.\n\nWitness: answer\n"),
        ("Subject\n\nSigned-off-by: A\n", "Subject\n\nSigned-off-by: A\nWitness: answer\n"),
        ("area: subject\n", "area: subject\n\nWitness: answer\n"),
        ("Subject\n\nBody: yes\nand no.\n", "Subject\n\nBody: yes\nand no.\n\nWitness: answer\n"),
        ("Subject\n\nBody.\n\nWitness: old\nFixes: 1\n", "Subject\n\nBody.\n\nFixes: 1\nWitness: answer\n"),
        ("Subject\n\nBody.\n\nwitness: old\n folded\n", "Subject\n\nBody.\n\nWitness: answer\n"),
    ],
    ids=["no body", "a body", "trailers", "a subject like one", "text like one", "one of ours", "a folded one"],
)
def test_trailers_go_under_those_that_are_there(message: str, expected: str) -> None:
    assert with_trailers(message, OURS) == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("S\n\nB.\n\nWitness: a\nUpstream-Status: Pending [x]\n", "S\n\nB.\n"),
        ("S\n\nB.\n\nSigned-off-by: A\nWitness: a\nFixes: 1\n", "S\n\nB.\n\nSigned-off-by: A\nFixes: 1\n"),
        ("S\n\nWitness: a\n\nB.\n", "S\n\nWitness: a\n\nB.\n"),
        ("witness: s\n", "witness: s\n"),
        ("S\n\nLeft-out: a,\n b\nFixes: 1\n", "S\n\nFixes: 1\n"),
        ("S\n\n\n\nB.\n\n\nWitness: a\n", "S\n\n\n\nB.\n"),
    ],
    ids=["all ours", "others stay", "not at the end", "a subject", "folded", "blank lines stay"],
)
def test_only_ours_are_taken_away(message: str, expected: str) -> None:
    assert without_trailers(message) == expected


def test_a_value_is_found_whatever_its_case() -> None:
    assert value_of("S\n\nB.\n\nwitness: answer\n", "Witness") == "answer"
    assert value_of("Witness: subject\n", "Witness") == ""
