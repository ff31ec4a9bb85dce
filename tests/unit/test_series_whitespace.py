"""White space that nobody meant, and hunks that do nothing, each with its line in the patch file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.series_cases import write_patches
from toolkit.series.diff import parse_diff
from toolkit.series.lines import placed_hunks
from toolkit.series.mail import parse_mail
from toolkit.series.whitespace import whitespace_faults

BASE = b"".join(b"line %d\n" % number for number in range(1, 31))


def faults_of(tmp_path: Path, before: dict[str, bytes], after: dict[str, bytes]) -> list[tuple[str, str]]:
    """Return each fault with the text of the line of the patch file that it is in."""
    (path,) = write_patches(tmp_path / "repository", tmp_path / "series", before, after)
    return faults_in(path.read_bytes())


def faults_in(raw: bytes) -> list[tuple[str, str]]:
    lines = raw.decode().split("\n")
    files = parse_diff(parse_mail(raw, []).diff, [])
    return [(fault.what, lines[fault.line - 1]) for fault in whitespace_faults(raw, files)]


def test_hunks_are_found_where_they_stand_in_the_patch_file(tmp_path: Path) -> None:
    after = {"a": BASE.replace(b"line 2\n", b"2\n").replace(b"line 20\n", b"20\n"), "b": b"new\n"}
    (path,) = write_patches(tmp_path / "repository", tmp_path / "series", {"a": BASE}, after)
    raw = path.read_bytes()
    lines = raw.split(b"\n")

    placed = list(placed_hunks(raw, parse_diff(parse_mail(raw, []).diff, [])))

    assert [str(one) for one in placed] == ["hunk #1 of a", "hunk #2 of a", "hunk #1 of b"]
    assert all(lines[one.line - 1].startswith(b"@@ ") for one in placed)
    added = [(lines[number - 1], text) for one in placed for number, text in one.added()]
    assert added == [(b"+2", b"2\n"), (b"+20", b"20\n"), (b"+new", b"new\n")]


@pytest.mark.parametrize(
    ("path", "added", "fault"),
    [
        pytest.param("a.py", "x = 1  ", "adds a line to a.py that ends in blanks: 'x = 1  '", id="blanks at the end"),
        pytest.param("a.py", "   ", "adds a line to a.py that ends in blanks: '   '", id="blanks alone"),
        pytest.param("a.c", "  \tx", "adds a line to a.c with a blank before a tab: '  \\tx'", id="blank before a tab"),
        pytest.param("a.py", "x\r", "adds a line to a.py that ends in CRLF, expected LF as the others have", id="CRLF"),
        pytest.param("a.py", "<<<<<<< HEAD", "adds the conflict marker '<<<<<<<' to a.py", id="conflict"),
        pytest.param("a.py", ">>>>>>> theirs", "adds the conflict marker '>>>>>>>' to a.py", id="end of a conflict"),
        pytest.param("a.py", "||||||| base", "adds the conflict marker '|||||||' to a.py", id="middle of a conflict"),
    ],
)
def test_an_added_line_is_looked_at(tmp_path: Path, path: str, added: str, fault: str) -> None:
    after = BASE.replace(b"line 9\n", added.encode() + b"\n")
    assert faults_of(tmp_path, {path: BASE}, {path: after}) == [(fault, f"+{added}")]


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        pytest.param("a.md", BASE, BASE.replace(b"line 9\n", b"line break  \n"), id="a line break of Markdown"),
        pytest.param("a.rst", BASE, BASE.replace(b"line 9\n", b"Heading\n=======\n"), id="a heading's underline"),
        pytest.param("a.py", BASE.replace(b"line 9\n", b"x  \n"), BASE.replace(b"line 9\n", b"x\n"), id="taken away"),
        pytest.param(
            "a.py", BASE.replace(b"line 9\n", b"x  \n"),
            BASE.replace(b"line 9\n", b"x  \n").replace(b"line 8\n", b"8\n"), id="in the context",
        ),
        pytest.param(
            "a.py", BASE.replace(b"\n", b"\r\n"), BASE.replace(b"line 9", b"nine").replace(b"\n", b"\r\n"),
            id="CRLF in a file that has it",
        ),
        pytest.param("a.c", BASE, BASE.replace(b"line 9\n", b"\tx\n"), id="a tab"),
    ],
)  # fmt: skip
def test_what_is_meant_is_left_alone(tmp_path: Path, path: str, before: bytes, after: bytes) -> None:
    faults = [fault for fault, _ in faults_of(tmp_path, {path: before}, {path: after})]
    assert [fault for fault in faults if "nothing but white space" not in fault] == []


def test_lf_in_a_file_of_crlf_is_found(tmp_path: Path) -> None:
    before = BASE.replace(b"\n", b"\r\n")
    assert faults_of(tmp_path, {"a.py": before}, {"a.py": before.replace(b"line 9\r\n", b"9\n")}) == [
        ("adds a line to a.py that ends in LF, expected CRLF as the others have", "+9")
    ]


def test_a_new_file_has_one_kind_of_line_end_and_its_last_line_has_it_too(tmp_path: Path) -> None:
    assert faults_of(tmp_path, {"a": b""}, {"a": b"", "b.py": b"1\n2\r\n3"}) == [
        ("adds a line to b.py that ends in CRLF, expected LF as the others have", "+2\r"),
        ("adds b.py without a newline at its end", "+3"),
    ]


def test_the_middle_of_a_conflict_is_named_with_its_ends(tmp_path: Path) -> None:
    after = BASE.replace(b"line 9\n", b"<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n")
    assert [line for _, line in faults_of(tmp_path, {"a.py": BASE}, {"a.py": after})] == [
        "+<<<<<<< a", "+=======", "+>>>>>>> b",
    ]  # fmt: skip


def test_a_hunk_of_white_space_alone_is_found_beside_one_that_does_something(tmp_path: Path) -> None:
    after = BASE.replace(b"line 2\n", b"two\n").replace(b"line 20\n", b"line 20 \n\n")
    faults = faults_of(tmp_path, {"a.py": BASE}, {"a.py": after})

    assert faults[0][0] == "hunk #2 of a.py changes nothing but white space; leave it out"
    assert faults[0][1].startswith("@@ -17,7 +17,8 @@")


@pytest.mark.parametrize(("path", "count"), [("a.py", 0), ("a.cpp", 1)], ids=["Python", "C++"])
def test_indentation_says_something_in_python_only(tmp_path: Path, path: str, count: int) -> None:
    after = BASE.replace(b"line 20\n", b"    line 20\n")
    assert len(faults_of(tmp_path, {path: BASE}, {path: after})) == count


def test_a_hunk_that_changes_nothing_is_found(tmp_path: Path) -> None:
    after = BASE.replace(b"line 2\n", b"two\n").replace(b"line 20\n", b"twenty\n")
    (path,) = write_patches(tmp_path / "repository", tmp_path / "series", {"a": BASE}, {"a": after})
    raw = path.read_bytes().replace(b"+twenty\n", b"+line 20\n")

    (found,) = faults_in(raw)
    assert found[0] == "hunk #2 of a changes nothing; leave it out"
