"""The top of the page: the verdict, what it is on, what it proves and what it does not."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.page.agreement import told_of_overlay
from toolkit.page.html import code, section, tag, text
from toolkit.page.values import Account
from toolkit.page.words import count, first_clause, required_words, seconds, verdict_words
from toolkit.prove import LIMITS
from toolkit.report import HOST_NOTE

DEVICE_NOTE = "device run: the checks ran with the machine's own CANN and NPU"


def render_summary(account: Account) -> str:
    """Write the verdict and the figures that stand for the rest."""
    return section("summary", "Summary", _body(account))


def head_of(account: Account) -> str:
    """Write the page's own heading."""
    tone = "good" if account.proof.ok else "bad"
    described = tag("p", text(account.description), class_="lead") if account.description else ""
    verdict = tag("span", text(verdict_words(account)), class_=f"verdict {tone}")
    title = f'<p class="kind">overlay report</p>\n<h1>{text(account.recipe)} {verdict}</h1>'
    return f"<header>\n{title}\n{described}\n</header>"


def _body(account: Account) -> Iterator[str]:
    yield from (tag("p", f"<strong>Note.</strong> {text(notice)}", class_="notice") for notice in account.notices)
    tiles = "".join(f"<li><b>{text(value)}</b> {text(name)}</li>" for value, name in tiles_of(account))
    yield f'<ul class="tiles">{tiles}</ul>'
    yield from _wrong(account)
    yield tag("p", text(_sentence(HOST_NOTE if account.proof.runtime == "host" else DEVICE_NOTE)), class_="claim")
    if limits := LIMITS[account.proof.runtime]:
        yield tag("p", text(limits), class_="soft")
    yield tag("p", _stamp(account), class_="soft")


def tiles_of(account: Account) -> Iterator[tuple[str, str]]:
    """Yield the figures that stand for the rest, each with its words; the same in every form of the report."""
    yield required_words(account), "required results are as they must be"
    patches = [patch for part in account.components for patch in part.patches if patch.is_in]
    yield str(len(patches)), "patch is in it" if len(patches) == 1 else "patches are in it"
    if witnesses := [check for check in account.checks if _is_turned(check.results)]:
        words = "check fails on the base and passes" if len(witnesses) == 1 else "checks fail on the base and pass"
        yield str(len(witnesses)), f"{words} with the patches"
    if told := told_of_overlay(account.numbers, account.proof.runtime):
        yield told
    if account.graphs:
        yield str(len(account.graphs)), "graphs with their generated code"
    yield seconds(sum(check.seconds for check in account.checks)), "of checks"


def _is_turned(results: object) -> bool:
    base, overlay = (results.get(side) for side in ("base", "overlay")) if isinstance(results, dict) else (None, None)
    return bool(base and overlay and base.wanted == "fail" and base.ok and overlay.ok)


def _wrong(account: Account) -> Iterator[str]:
    wrong = [result for result in account.proof.results if result.required and not result.ok]
    if not wrong:
        return
    told = "".join(
        f'<li><a href="#check-{text(one.name)}">{text(one.name)}</a> on the {one.side}: {text(one.status)}, wanted '
        f"{text(one.wanted)}. {text(first_clause(one.detail))}</li>"
        for one in wrong
    )
    title = f"<p><strong>{count(len(wrong), 'result')} not as required</strong></p>"
    yield f'<div class="wrong">{title}<ul>{told}</ul></div>'


def _stamp(account: Account) -> str:
    made = account.proof.environment.get("made", "at a time that is not recorded")
    machine = account.proof.environment.get("machine", "")
    return (
        f"Proof of {text(made)}, runtime {text(account.proof.runtime)}, for {code(account.overlay.target)}"
        f"{f' on {text(machine)}' if machine else ''}; overlay {code(account.overlay.key[:16])}."
    )


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
