"""How results are said in few words, and how many values agree."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report_sample import result
from tests.unit.page.test_sections import row
from toolkit.model import CheckResult
from toolkit.page import Account, NumberRow, PatchAccount
from toolkit.page.agreement import told_of_overlay
from toolkit.page.words import MOST_OF_A_CLAUSE, first_clause, short_paths, without_it


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        pytest.param("(mp/base-site/90e4/site/torch_npu/_inductor/a.py:5 in f)", "(torch_npu/_inductor/a.py:5 in f)",
                     id="a path that lost its head"),
        pytest.param("at /a/b-c/lib/site-packages/torch/x.py", "at torch/x.py", id="a whole path"),
        pytest.param("all come from /a/generations/1/site", "all come from /a/generations/1/site", id="a folder"),
        pytest.param("/a/website/torch", "/a/website/torch", id="another folder"),
        pytest.param("two a/site/b.py, c/site/d.py", "two b.py, d.py", id="two"),
    ],
)  # fmt: skip
def test_a_file_of_a_package_is_named_from_the_package_on(path: str, shown: str) -> None:
    assert short_paths(path) == shown


@pytest.mark.parametrize(
    ("detail", "clause"),
    [
        ("", ""),
        ("one; two", "one"),
        ("one, of\ttwo\nthree", "one, of two"),
        ("x" * 999, "x" * (MOST_OF_A_CLAUSE - 1) + "…"),
    ],
)
def test_the_first_clause_fits_a_row(detail: str, clause: str) -> None:
    assert first_clause(detail) == clause


def test_a_patch_without_a_red_is_said_by_its_subject(account: Account) -> None:
    patch = PatchAccount(name="a", sha256="b", subject="npu: mend it", witness="aliased")
    check = account.check("aliased")
    assert check is not None

    def told(*results: CheckResult) -> str:
        return without_it(patch, replace(account, checks=(replace(check, results={one.side: one for one in results}),)))

    red = result("aliased", side="base", wanted="fail", status="fail", detail="first; second")
    assert told(red) == "Without it: first"
    assert told(replace(red, status="pass", ok=False)) == "npu: mend it"
    assert told() == "npu: mend it"


BEYOND = row(within=False)


@pytest.mark.parametrize(
    ("rows", "figure"),
    [
        pytest.param([row(), row(mode="separate"), row(reference="float64")], "✓ 1 of 1", id="one value counts once"),
        pytest.param([row(), row(value="x", written=False)], "✓ 1 of 1", id="what is only read is no value"),
        pytest.param([row(), row(value="x", written=False, within=False)], "1 of 2", id="but what is lost is one"),
        pytest.param([row(), row(mode="separate", within=False)], "0 of 1", id="every mode counts"),
        pytest.param([row(), row(value="b", mode="eager")], "✓ 1 of 1", id="eager's own rows are no values"),
        pytest.param([row(), row(reference="float64", within=False)], "✓ 1 of 1", id="eager is what counts"),
        pytest.param([row(), replace(BEYOND, side="base")], "✓ 1 of 1", id="the base is another"),
        pytest.param([row(check="a"), row(check="b"), row(graph="h")], "✓ 2 of 2", id="a graph of two checks"),
    ],
)
def test_distinct_values_of_the_overlay_are_counted(rows: list[NumberRow], figure: str) -> None:
    told = told_of_overlay(rows, "host")

    assert told is not None
    assert told[0] == figure


def test_what_agrees_is_said_with_where_it_was_computed() -> None:
    code = "computed on the CPU from the overlay's code"

    assert told_of_overlay([row()], "host") == ("✓ 1 of 1", f"value {code} agrees with eager")
    assert told_of_overlay([row(), row(value="b", within=False)], "host") == (
        "1 of 2", f"values {code} agree with eager",
    )  # fmt: skip
    assert told_of_overlay([row(reference="float64")], "device") == (
        "✓ 1 of 1", "value computed by the NPU agrees with float64",
    )  # fmt: skip
    assert told_of_overlay([row(side="base"), row(mode="eager")], "host") is None
