"""The short Markdown: the page's figures, what stands out, and never too long for a comment."""

from __future__ import annotations

from dataclasses import replace

from tests.report_sample import result
from tests.unit.page.test_sections import row
from toolkit.page import Account, CheckAccount, render_brief
from toolkit.page.markdown import plain
from toolkit.page.summary import tiles_of

LIMIT = 60_000


def test_it_has_the_figures_of_the_page(account: Account) -> None:
    written = render_brief(account)

    assert written.startswith("# sample: ✓ proven\n\na sample, with \\<em\\>care\\</em\\>\n")
    for value, name in tiles_of(account):
        assert f"- **{plain(value)}** {plain(name)}\n" in written


def test_it_has_what_stands_out_and_no_code(account: Account) -> None:
    written = render_brief(account)

    assert "- **0001-keep-accumulator**: Without it: running\\_mean loses old. Witness: aliased." in written
    assert "| aliased | ✓ red, as it must be | ✓ pass | running\\_mean loses old |" in written
    assert "| running\\_mean | overflow float32\\[128, 256\\] | base | recorded | eager | not finite |" in written
    assert "Nothing of the overlay is beyond its gate. Its largest relative errors:" in written
    assert "| aliased | running\\_mean | 1 kernel (spec), 1 launch; ✗ loses old | 2 kernels (2 × vector)" in written  # noqa: RUF001
    assert "1 graph the same on both sides, 0 graphs on one side only." in written
    assert "diff --git" not in written
    assert "@dvm.kernel" not in written


def test_what_is_wrong_is_said_first(account: Account) -> None:
    bad = result("a", status="error", ok=False, detail="broke; more")
    check = CheckAccount(name="a", summary="", results={"overlay": bad}, files=(), command="c")
    told = replace(account, proof=replace(account.proof, results=(bad,)), checks=(check,), numbers=(row(within=False),))
    written = render_brief(told)

    assert written.startswith("# sample: ✗ not proven\n")
    assert "- **a** on the overlay: error, wanted pass\n" in written
    assert "| a | – | ✗ error | broke |" in written  # noqa: RUF001
    assert "Beyond their gates:" in written
    assert "Nothing of the overlay" not in written


def test_without_evidence_it_says_so(account: Account) -> None:
    written = render_brief(replace(account, numbers=(), programs=()))

    assert "No check of this proof has recorded numbers." in written
    assert "No check of this proof has recorded kernels and launches." in written


def test_it_stays_short_and_counts_what_is_left_out(account: Account) -> None:
    long = result("long", side="base", wanted="fail", status="fail", detail="[" * 9_000)
    checks = [CheckAccount(name=f"c{place}", summary="", results={"base": long}, files=(), command="c")
              for place in range(400)]  # fmt: skip
    rows = [row(graph=f"graph {place}", within=False) for place in range(2_000)]
    programs = [replace(one, graph=f"{one.graph} {place}") for place in range(500) for one in account.programs]
    (part,) = account.components
    patches = tuple(replace(part.patches[0], name=f"{place:04}") for place in range(300))
    written = render_brief(
        replace(account, checks=tuple(checks), numbers=tuple(rows), programs=tuple(programs),
                components=(replace(part, patches=patches),))
    )  # fmt: skip

    assert 30_000 < len(written.encode()) < LIMIT
    assert written.count("more: `--full`.") == 4
