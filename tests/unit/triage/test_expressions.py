"""The conditions and sums of rules."""

from __future__ import annotations

import pytest

from toolkit.triage.expressions import evaluate, names_in, number_of

GIB = 2**30


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1966848", 1966848.0),
        ("53.29 GiB", 53.29 * GIB),
        ("512MB", 512 * 2**20),
        ("16 kb", 16 * 1024),
        ("1,024 bytes", None),
        ("1,024", 1024.0),
        ("-7", -7.0),
        ("lots", None),
        ("", None),
    ],
)
def test_numbers_are_read_as_logs_write_them(text: str, number: float | None) -> None:
    assert number_of(text) == number


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("reserved - allocated", 4.0),
        ("reserved - allocated < 0.5 * reserved and not free > 1", 1.0),
        ("reserved / nothing", None),
        ("reserved / (free - 1)", None),
        ("1 < allocated <= reserved", 1.0),
        ("allocated > reserved or -free == -1", 1.0),
        ("allocated != 6", 0.0),
    ],
)
def test_what_an_expression_comes_to(expression: str, value: float | None) -> None:
    assert evaluate(expression, {"reserved": 10, "allocated": 6, "free": 1}) == value


def test_names_of_an_expression() -> None:
    assert names_in("a - 0.1 * b > c") == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("__import__('os')", "has Call in it, expected numbers, names and comparisons"),
        ("a.b", "has Attribute in it, expected numbers, names and comparisons"),
        ("'a' == b", "has Constant in it, expected numbers, names and comparisons"),
        ("a ** 99", "has Pow in it, expected numbers, names and comparisons"),
        ("True", "has Constant in it, expected numbers, names and comparisons"),
        ("a >", "is no expression"),
    ],
)
def test_anything_else_is_refused(expression: str, why: str) -> None:
    with pytest.raises(ValueError, match=r"expression|has") as refused:
        evaluate(expression, {"a": 1, "b": 2})
    assert str(refused.value) == f"{expression!r} {why}"
