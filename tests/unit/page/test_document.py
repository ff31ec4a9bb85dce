"""The page as a whole: well formed, needing nothing, and with nothing in it that acts."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from tests.report_sample import HOSTILE, result
from toolkit.model import CheckResult
from toolkit.page import Account, CheckAccount, GraphEvidence, KeptFile, render_html
from toolkit.page.numbers import BUDGET

VOID = {"meta", "link", "br", "circle", "rect", "path", "line"}
ALLOWED = {
    "html", "head", "meta", "title", "link", "style", "body", "header", "main", "nav", "section", "footer", "div", "p",
    "h1", "h2", "h3", "h4", "ul", "ol", "li", "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td",
    "details", "summary", "figure", "figcaption", "pre", "code", "mark", "span", "small", "b", "i", "em", "strong", "a",
    "br", "svg", "defs", "g", "use", "circle", "rect", "path", "line", "text",
}  # fmt: skip


class Reader(HTMLParser):
    """Walks a page, holding every element to its end tag, and keeps what a browser would act on."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.names: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        assert tag in {*VOID, "use"}, f"<{tag}/> is no empty element"
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1:] == [tag], f"</{tag}> ends {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def values(self, name: str) -> list[str]:
        return [value for _, attribute, value in self.attributes if attribute == name]


@pytest.fixture(scope="module")
def read(account: Account) -> Reader:
    return Reader(render_html(account))


def test_every_element_is_ended_and_is_one_of_ours(read: Reader) -> None:
    assert read.open == []
    assert read.names - ALLOWED == set()


def test_nothing_comes_from_anywhere_and_nothing_runs(account: Account, read: Reader) -> None:
    page = render_html(account)
    links = [*read.values("href"), *read.values("src"), *read.values("action")]

    assert [link for link in links if not link.startswith("#")] == ["data:,"]
    assert [name for _, name, _ in read.attributes if name.startswith("on") or name == "style"] == []
    assert re.findall(r"url\(|@import|https?:", page) == []
    assert '<meta http-equiv="Content-Security-Policy" content="default-src \'none\';' in page


def test_every_mark_is_there_once_and_every_link_leads_to_one(read: Reader) -> None:
    marks = Counter(read.values("id"))

    assert [mark for mark, number in marks.items() if number > 1] == []
    assert {link[1:] for link in read.values("href") if link.startswith("#")} - set(marks) == set()


def test_a_witness_that_is_not_in_the_proof_is_no_link(account: Account) -> None:
    read = Reader(render_html(replace(account, checks=account.checks[:1], programs=(), numbers=())))
    links = {link[1:] for link in read.values("href") if link.startswith("#")}

    assert links - set(read.values("id")) == set()
    assert "aliased" in read.words


def test_headings_go_down_step_by_step(read: Reader, account: Account) -> None:
    levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", render_html(account))]

    assert levels.count(1) == 1
    assert levels[0] == 1
    assert [pair for pair in pairwise(levels) if pair[1] > pair[0] + 1] == []


def test_text_from_outside_stays_text(account: Account) -> None:
    page = render_html(account)

    assert "<script" not in page
    assert "<b>42</b>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#x27;[U+202E][U+001B][31m" in page


@pytest.mark.parametrize("field", ["name", "detail", "summary", "evidence"])
def test_a_hostile_check_stays_text(account: Account, field: str) -> None:
    bad = result("odd", detail=HOSTILE if field == "detail" else "", evidence={HOSTILE: [HOSTILE]})
    check = CheckAccount(
        name=HOSTILE if field == "name" else "odd", summary=HOSTILE if field == "summary" else "",
        results={"overlay": bad}, files=(HOSTILE,), command=f"toolkit verify --check {HOSTILE}",
    )  # fmt: skip
    read = Reader(render_html(replace(account, checks=(check,), notices=(HOSTILE,), description=HOSTILE)))

    assert read.open == []
    assert read.names - ALLOWED == set()


def test_equal_accounts_give_equal_pages(account: Account) -> None:
    assert render_html(account) == render_html(replace(account))


def test_a_page_of_very_much_stays_under_one_and_a_half_megabytes(account: Account) -> None:
    rows = [replace(row, graph=f"graph {place}") for place in range(100) for row in account.numbers]
    long = "\n".join(f"    x{line} = k.load([4, 4], dvm.float32)" for line in range(400))
    file = KeptFile(path="logs/a.py", text=f"@dvm.kernel()\n{long}")
    graphs = [
        GraphEvidence(check="accumulator", graph=f"graph {place}", code={"base": file, "overlay": file}, stages={})
        for place in range(200)
    ]
    heavy = result("heavy", evidence={f"part {place}": "<" * 9_000 for place in range(5)})
    checks = [
        CheckAccount(
            name=f"heavy-{place}", summary="", results={"base": heavy, "overlay": heavy}, files=(), command="c"
        )
        for place in range(3)
    ]
    page = render_html(replace(account, numbers=tuple(rows), graphs=tuple(graphs), checks=(*account.checks, *checks)))

    assert 1_000_000 < len(page.encode()) < 1_500_000
    assert "rows more, left out here; see proof.json" in page
    assert "left out, as this page would become too long" in page


def test_numbers_are_left_out_only_where_the_page_would_become_too_long(account: Account) -> None:
    rows = [replace(row, graph=f"graph {place}") for place in range(12) for row in account.numbers]
    page = render_html(replace(account, numbers=tuple(rows)))

    assert BUDGET < len(page.encode()) < 1_500_000
    assert "left out here" not in page


def red(account: Account, *results: CheckResult) -> Account:
    checks = tuple(
        CheckAccount(name=one.name, summary="", results={one.side: one}, files=(), command="toolkit verify")
        for one in results
    )
    return replace(account, proof=replace(account.proof, results=results), checks=checks)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param(result("a", status="fail", ok=False, detail="broke\nmore"), "✗ fail", id="red"),
        pytest.param(result("a", status="error", ok=False, detail="killed"), "✗ error", id="could not be done"),
        pytest.param(result("a", side="base", wanted="fail", ok=False), "✗ green, must be red", id="green on the base"),
        pytest.param(result("a", status="skip", ok=False), "✗ skip", id="skipped"),
    ],
)
def test_what_is_not_as_required_is_said_at_the_top_and_unfolded(
    account: Account, given: CheckResult, words: str
) -> None:
    page = render_html(red(account, result("good"), given))

    assert '<span class="verdict bad">✗ not proven</span>' in page
    assert "<strong>1 result not as required</strong>" in page
    told = f"on the {given.side}: {given.status}, wanted {given.wanted}. {given.detail.partition(chr(10))[0]}</li>"
    assert f'<a href="#check-a">a</a> {told}' in page
    assert f'<span class="bad">{words}</span>' in page
    assert re.findall(r'<details class="check"( open)?><summary><b>(\w+)</b>', page) == [("", "good"), (" open", "a")]


def test_what_was_not_run_is_neither_good_nor_bad(account: Account) -> None:
    idle = result("a", status="not run", required=False, ok=False, detail="other platform")
    page = render_html(red(account, result("good"), idle))

    assert '<span class="verdict good">✓ proven</span>' in page
    assert '<span class="none">· not run</span>' in page
    assert "not as required" not in page


def test_an_empty_proof_proves_nothing(account: Account) -> None:
    page = render_html(
        replace(red(account), numbers=(), programs=(), graphs=(), components=(), commands=()),
    )

    assert '<span class="verdict bad">✗ not proven</span>' in page
    assert "This proof has no check in it." in page
    assert Reader(page).open == []


def test_a_host_run_claims_no_values(account: Account) -> None:
    page = render_html(account)
    device = render_html(replace(account, proof=replace(account.proof, runtime="device")))

    claim = "Host run: it proves what loads, compiles and is launched, not the values that an NPU computes."
    assert f'<p class="claim">{claim}</p>' in page
    assert "does not show that any value comes out right on an NPU" in page
    assert claim not in device
    assert "Device run: the checks ran with the machine&#x27;s own CANN and NPU." in device
