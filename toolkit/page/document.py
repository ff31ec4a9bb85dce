"""The page as a whole: one file that needs nothing from anywhere, and may load and run nothing."""

from __future__ import annotations

from toolkit import __version__
from toolkit.page.checks import render_checks
from toolkit.page.graphs import render_graphs
from toolkit.page.html import text
from toolkit.page.kernels import render_kernels
from toolkit.page.numbers import render_numbers
from toolkit.page.origins import render_origins
from toolkit.page.repeating import render_repeating
from toolkit.page.style import STYLE
from toolkit.page.summary import head_of, render_summary
from toolkit.page.timings import render_timings
from toolkit.page.values import Account

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What a browser is told: nothing is fetched and no script runs, whatever stands in the text."""

LIMIT, MARGIN = 1_500_000, 40_000
"""Bytes of the page, and those of its frame, its style and what stands in place of numbers without room."""

PLACES = (
    ("built-from", "built from"),
    ("checks", "checks"),
    ("numbers", "numbers"),
    ("kernels", "kernels and launches"),
    ("code", "generated code"),
    ("timings", "timings"),
    ("repeat", "repeat it"),
)


def render_html(account: Account) -> str:
    """Write the page; nothing in it depends on when or where it is written."""
    rest = {
        "before": [render_summary(account), render_origins(account), render_checks(account)],
        "after": [
            render_kernels(account),
            render_graphs(account),
            render_timings(account),
            render_repeating(account),
        ],
    }
    taken = sum(len(part.encode()) for parts in rest.values() for part in parts)
    links = "".join(f'<li><a href="#{anchor}">{name}</a></li>' for anchor, name in PLACES)
    parts = [
        head_of(account),
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>',
        "<main>",
        *rest["before"],
        render_numbers(account, max(LIMIT - MARGIN - taken, 0)),
        *rest["after"],
        "</main>",
        f"<footer><p>Written by toolkit {text(__version__)} from the overlay's proof, manifest and logs.</p></footer>",
    ]
    return _frame(f"{account.recipe}: overlay report", "\n".join(parts))


def _frame(title: str, body: str) -> str:
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{text(title)}</title>
<link rel="icon" href="data:,">
<style>
{STYLE}
</style>
</head>
<body>
{body}
</body>
</html>
"""
