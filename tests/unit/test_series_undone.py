"""Patches of one series that take each other back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.series_cases import Tree, make_series
from toolkit.series.diff import parse_diff
from toolkit.series.mail import parse_mail
from toolkit.series.undone import ReadPatch, undoing_faults

BASE = b"".join(b"line %d\n" % number for number in range(1, 41))


def edited(*pairs: tuple[int, bytes], base: bytes = BASE) -> bytes:
    for number, new in pairs:
        base = base.replace(b"line %d\n" % number, new)
    return base


def faults_of(tmp_path: Path, *trees: Tree, options: Sequence[str] = ()) -> list[tuple[int, str, str]]:
    """Return each fault with its patch's number and the line of the patch file that it is in."""
    opened = []
    for patch in make_series(tmp_path, *trees, options=options).patches:
        raw = patch.path.read_bytes()
        opened.append(ReadPatch(patch=patch, raw=raw, files=tuple(parse_diff(parse_mail(raw, []).diff, []))))
    return [
        (patch.number, fault.what, one.raw.decode().split("\n")[fault.line - 1] if fault.line else "")
        for patch, fault in undoing_faults(opened)
        for one in opened
        if one.patch is patch
    ]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"a": edited((5, b"five\n"), (30, b"thirty\n"))}, id="an edit"),
        pytest.param({"a": BASE, "b": b"new\n"}, id="a new file"),
        pytest.param({"b": BASE}, id="a rename"),
        pytest.param({"a": BASE, "b.bin": b"\0\1"}, id="a binary file"),
    ],
)
@pytest.mark.parametrize("options", [["--full-index"], ["--abbrev=7", "--no-full-index"]], ids=["full ids", "short"])
def test_a_patch_that_takes_an_earlier_one_back_is_found(tmp_path: Path, change: Tree, options: list[str]) -> None:
    base = {"a": BASE}
    options = [*options, "--binary"] if "b.bin" in change else options
    assert faults_of(tmp_path, base, change, base, options=options) == [
        (2, "takes back all that 0001-change does; drop both, or fold them into one", "")
    ]


def test_it_is_found_across_a_patch_in_between(tmp_path: Path) -> None:
    faults = faults_of(
        tmp_path, {"a": BASE}, {"a": edited((5, b"five\n"))}, {"a": edited((5, b"five\n"), (30, b"30\n"))},
        {"a": edited((30, b"30\n"))},
    )  # fmt: skip
    assert faults == [(3, "takes back all that 0001-change does; drop both, or fold them into one", "")]


def test_a_hunk_that_is_an_earlier_one_turned_round_is_found_with_its_line(tmp_path: Path) -> None:
    faults = faults_of(
        tmp_path, {"a": BASE}, {"a": edited((5, b"five\n"), (30, b"30\n"))}, {"a": edited((20, b"20\n"), (30, b"30\n"))}
    )
    assert faults == [
        (
            2,
            "hunk #1 of a takes back hunk #1 of 0001-change; drop both, or fold them into one",
            "@@ -2,7 +2,7 @@ line 1",
        )
    ]


def test_the_same_lines_at_another_place_are_no_undoing(tmp_path: Path) -> None:
    base = edited((5, b"same\n"), (30, b"other\n"))
    first = {"a": base}
    second = {"a": base.replace(b"line 4\nsame\n", b"line 4\nother\n")}
    third = {"a": second["a"].replace(b"line 29\nother\n", b"line 29\nsame\n")}

    assert faults_of(tmp_path, first, second, third) == []


def test_going_on_with_a_line_that_was_changed_is_no_undoing(tmp_path: Path) -> None:
    trees = [{"a": edited((5, text))} for text in (b"5\n", b"V\n", b"five\n")]
    assert faults_of(tmp_path, {"a": BASE}, *trees, options=["--full-index"]) == []


def test_a_content_that_comes_back_in_steps_is_found_by_its_ids(tmp_path: Path) -> None:
    trees = [
        {"a": edited((5, b"5\n"), (6, b"6\n"))},
        {"a": edited((6, b"6\n"))},
        {"a": BASE},
    ]
    faults = faults_of(tmp_path, {"a": BASE}, *trees, options=["--full-index"])

    back = "brings a back to what it was before 0001-change, by the id in its index line"
    assert [(number, what) for number, what, _ in faults] == [(3, f"{back}; drop both, or fold them into one")]
    assert faults_of(tmp_path / "short", {"a": BASE}, *trees, options=["--abbrev=7", "--no-full-index"]) == []
