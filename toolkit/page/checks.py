"""The table of checks, base against overlay, and behind each line its detail, its evidence and its command."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from toolkit.model import CheckResult
from toolkit.page.html import block, code, details, section, table, tag, text
from toolkit.page.values import SIDES, Account, CheckAccount
from toolkit.page.words import first_clause, result_words, seconds, short_paths, tone_of

SHOWN_ELSEWHERE = ("numbers", "programs")
VALUE_LIMIT = 4_000
EVIDENCE_LIMIT = 16_000
LONG = 72


def render_checks(account: Account) -> str:
    """Write the table, then each check's own account."""
    return section("checks", "Checks", _body(account))


def _body(account: Account) -> Iterator[str]:
    if not account.checks:
        yield "<p>This proof has no check in it.</p>"
        return
    heads = ("check", "base", "overlay", "seconds")
    rows = [
        (
            f'<a href="#check-{text(check.name)}">{text(check.name)}</a><small>{text(check.summary)}</small>'
            f"{_red(check)}",
            *(_cell(check.results.get(side)) for side in SIDES),
            f"{check.seconds:.1f}",
        )
        for check in account.checks
    ]
    yield '<p class="soft">A witness must fail on the base: that is the fault which its patch mends.</p>'
    yield table("Checks, base against overlay", heads, rows, class_="checks")
    yield "<h3>Check by check</h3>"
    yield from (_account(check) for check in account.checks)


def _cell(result: CheckResult | None) -> str:
    tone = "none" if result is None else tone_of(result)
    return tag("span", text(result_words(result)), class_=tone)


def _red(check: CheckAccount) -> str:
    """Say the first thing that failed, on the base as it must or otherwise."""
    return "".join(
        f'<small class="red">{side}: {text(first_clause(result.detail))}</small>'
        for side, result in check.results.items()
        if result.status in ("fail", "error") and result.detail
    )


def _account(check: CheckAccount) -> str:
    told = " ".join(
        f'<span class="{tone_of(result)}">{side}: {text(result_words(result))}</span>'
        for side, result in check.results.items()
    )
    summary = f'<b>{text(check.name)}</b> <span class="verdicts">{told}</span>'
    return details(summary, "\n".join(_inside(check)), class_="check", is_open=not check.is_good)


def _inside(check: CheckAccount) -> Iterator[str]:
    """Write what is behind a check's line; its mark stands inside, so that a link to it unfolds the part."""
    yield tag("p", f"What must be so: {text(check.summary or check.name)}.", id=f"check-{check.name}")
    for side, result in check.results.items():
        wanted = f", wanted {result.wanted}" if result.required else ", not required"
        yield f"<h4>{side}: {text(result.status)}{text(wanted)} ({seconds(result.seconds)})</h4>"
        yield (
            tag("p", text(short_paths(result.detail)), class_="detail")
            if len(result.detail) < 600
            else block(short_paths(result.detail), class_="wrap")
        )
        if evidence := "\n".join(_evidence(result.evidence)):
            yield details(f"evidence on the {side}", evidence)
    if check.files:
        yield "<p>Files: " + ", ".join(code(name) for name in check.files) + "</p>"
    yield "<p>Again:</p>" + block(check.command, class_="command")


def _evidence(evidence: Mapping[str, object]) -> Iterator[str]:
    """Write each piece of evidence that has no section of its own; what is long is cut, and says so."""
    room = EVIDENCE_LIMIT
    for name, value in evidence.items():
        if name in SHOWN_ELSEWHERE:
            yield f'<p><b>{text(name)}</b>: <a href="#{"numbers" if name == "numbers" else "kernels"}">below</a></p>'
            continue
        if room <= 0:
            yield '<p class="soft">More is in proof.json.</p>'
            return
        whole = value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
        whole = short_paths(whole)
        shown = whole[: min(VALUE_LIMIT, room)]
        room -= len(shown)
        note = f"\n… {len(whole) - len(shown)} characters more in proof.json" if len(shown) < len(whole) else ""
        if len(whole) < LONG and "\n" not in whole:
            yield f"<p><b>{text(name)}</b>: {code(whole)}</p>"
        else:
            yield f"<p><b>{text(name)}</b></p>{block(shown + note)}"
