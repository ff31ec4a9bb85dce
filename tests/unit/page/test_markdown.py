"""The report as Markdown: the same facts, and nothing from outside that is markup."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import takewhile

import pytest

from toolkit.page import Account, GraphEvidence, KeptFile, render_markdown
from toolkit.page.markdown import fenced, plain


def test_it_says_what_the_page_says(account: Account) -> None:
    written = render_markdown(account)

    assert written.startswith("# sample: ✓ proven\n\na sample, with \\<em\\>care\\</em\\>\n")
    for heading in ("Built from", "Checks", "Numbers", "Kernels and launches", "Generated code", "Repeat it"):
        assert f"\n## {heading}\n" in written
    assert (
        "| aliased | ✓ red, as it must be | ✓ pass | 2.5 | `toolkit verify --recipe sample --check aliased` |"
        in written
    )
    assert '-    return "<b>41</b>"\n+    return "<b>42</b>"' in written
    assert "-    k.spec_next()\n+    total = total" in written
    assert "- accumulator, sinkhorn: stages: the same on both sides;" in written
    assert "- **aliased** on the base: running\\_mean loses old" in written


def test_what_is_missing_is_said(account: Account) -> None:
    written = render_markdown(replace(account, numbers=(), programs=(), graphs=(), notices=("of another *overlay*",)))

    assert "No check of this proof has recorded numbers." in written
    assert "No check of this proof has recorded kernels and launches." in written
    assert "No generated code is kept" in written
    assert "> **Note.** of another \\*overlay\\*" in written


def test_a_table_row_stays_one_line(account: Account) -> None:
    check = replace(account.checks[0], command="toolkit verify --recipe 'a|b\nc'")
    lines = render_markdown(replace(account, checks=(check,), description="")).splitlines()
    tables = [lines[at - 1 :] for at, line in enumerate(lines) if line.startswith("|---")]

    assert len(tables) == 3
    for head, rule, *rows in tables:
        own = [*takewhile(lambda row: row.startswith("| "), rows)]
        assert own
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in (head, rule, *own)} == {head.count("|")}


@pytest.mark.parametrize(
    ("given", "written"),
    [
        pytest.param("a|b", "a\\|b", id="a cell's end"),
        pytest.param("<img src=x>", "\\<img src=x\\>", id="HTML"),
        pytest.param("[a](b)", "\\[a\\](b)", id="a link"),
        pytest.param("two\nlines\t\x1b", "two lines \\[U+001B\\]", id="lines"),
    ],
)
def test_text_is_not_markup(given: str, written: str) -> None:
    assert plain(given) == written


@pytest.mark.parametrize("inside", ["```\n<b>", "````", "a ` b"])
def test_a_fence_is_longer_than_any_in_the_text(inside: str) -> None:
    block = fenced(inside, "text")
    fence = block.partition("text")[0]

    assert set(fence) == {"`"}
    assert fence not in inside
    assert block == f"{fence}text\n{inside}\n{fence}"


def test_a_title_that_folds_is_text(account: Account) -> None:
    sides = {"base": KeptFile(path="a", text="1"), "overlay": KeptFile(path="b", text="2")}
    graph = GraphEvidence(check="c", graph="</summary><b>", code=sides, stages={})  # type: ignore[arg-type]

    written = render_markdown(replace(account, graphs=(graph,)))
    assert "<details><summary>c, &lt;/summary&gt;&lt;b&gt;: code</summary>" in written
