"""The matrix in words."""

from __future__ import annotations

from tests.matrix_cases import cell, matrix, verdict, witness
from toolkit.patching.answers_matrix import describe_matrix, matrix_document, render_markdown
from toolkit.patching.html_matrix import render_html

UNFIT = "not run: needs torch 2.14.0, the interpreter has 2.13.0"


def test_every_cell_has_a_verdict_or_a_reason() -> None:
    shown = describe_matrix(
        matrix(
            cell("applies", "1.0", witness=witness("still needed", "still works")),
            cell("offset", "2.0", why=UNFIT),
            cell(None, "3.0", why="no 3.0 on this machine", is_here=False),
            cell("conflict", "4.0", covered=False),
            runtime="host",
        )
    )
    assert (
        shown.text
        == """\
part           1.0            2.0          3.0    4.0
part/1
  0001-change  applies        offset       - [2]  (conflict)
    answer     needed, works  not run [1]
[1] needs torch 2.14.0, the interpreter has 2.13.0
[2] no 3.0 on this machine

In brackets: the series is not for that base.
Witnesses ran on a host without an NPU:
they show what is lowered, compiled and launched, not the values that an NPU computes.
3 cells are of bases that a series is for, none of them to be looked at"""
    )


def test_what_a_witness_says_is_told_with_its_reason() -> None:
    shown = describe_matrix(
        matrix(
            cell("applies", "1.0", witness=witness("still needed", "no longer works")),
            cell("applies", "2.0", witness=witness("", "", base_detail="no kernel", overlay_detail="no kernel")),
            cell("applies", "3.0", witness=witness("still needed", "", overlay="error")),
        )
    ).text.splitlines()
    assert shown[2:7] == [
        "  0001-change  applies            applies          applies",
        "    answer     needed, fails [1]  base: error [2]  needed, patched: error [1]",
        "[1] overlay says",
        "[2] no kernel",
        "",
    ]


def test_many_bases_are_dealt_out_to_tables_of_100_columns() -> None:
    names = [f"{number}.0.0.post{number}" for number in range(12)]
    long = matrix(*(cell("applies", name, witness=witness("still needed", "still works")) for name in names))
    lines = describe_matrix(long).text.splitlines()
    assert max(map(len, lines)) <= 100
    heads = [line.split()[1:] for line in lines if line.startswith("part  ")]
    assert [len(head) for head in heads] == [5, 5, 2]
    assert [name for head in heads for name in head] == names


def test_hunks_are_shown_where_more_is_asked_for() -> None:
    one = cell("conflict", verdict=verdict("conflict", reason="it moved", details=("-old", "+new"), moved={"a": "b"}))
    assert "part/1 0001-change on 1.0: conflict, it moved" not in describe_matrix(matrix(one)).text
    shown = describe_matrix(matrix(one), verbose=True).text
    assert (
        """
part/1 0001-change on 1.0: conflict, it moved
  part/core.py #1: conflict at line 7
  a is now b
    -old
    +new
"""
        in shown
    )


def test_the_document_holds_every_hunk_and_every_reason() -> None:
    found = matrix_document(matrix(cell("conflict"), cell(None, "2.0", why="unreachable")))
    assert found["ok"] is False
    assert found["findings"] == ["part/1 0001-change on 1.0: conflict", "part/1 0001-change on 2.0: unreachable"]
    (component,) = found["components"]
    bases = component["patches"][0]["bases"]
    assert bases["1.0"]["hunks"] == [
        {"path": "part/core.py", "hunk": 1, "verdict": "conflict", "line": 7, "offset": 0, "detail": ""}
    ]
    assert (bases["2.0"]["verdict"], bases["2.0"]["why"]) == (None, "unreachable")


def test_markdown_keeps_its_table_whatever_a_reason_says() -> None:
    text = render_markdown(matrix(cell("conflict", verdict=verdict("conflict", reason="a | b <c> & __d__\ne"))))
    assert "1. a \\| b &lt;c> &amp; \\_\\_d\\_\\_ e" in text.splitlines()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {row.replace("\\|", "").count("|") for row in rows} == {3}


def test_the_page_escapes_whatever_a_patch_says() -> None:
    evil = '<script>alert("x")</script>'
    one = cell("conflict", verdict=verdict("conflict", reason=evil, details=(evil,), moved={evil: evil}))
    page = render_html(matrix(one, subject=evil, remark=evil))
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 5


def test_the_page_marks_what_is_to_be_looked_at() -> None:
    page = render_html(matrix(cell("conflict"), cell("conflict", "2.0", covered=False)))
    assert '<td class="conflict finding">' in page
    assert '<td class="uncovered">' in page
    assert "<li>part/1 0001-change on 1.0: conflict</li>" in page
