"""How to do it again: the commands for the whole and for each line."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.page.html import block, section, table, text
from toolkit.page.values import Account


def render_repeating(account: Account) -> str:
    """Write the commands."""
    return section("repeat", "Repeat it", _body(account))


def _body(account: Account) -> Iterator[str]:
    for what, command in account.commands:
        yield f"<p>{text(what)}:</p>{block(command, class_='command')}"
    if account.checks:
        rows = [(text(check.name), block(check.command, class_="command")) for check in account.checks]
        yield table("One check, on all the sides that it runs on", ("check", "command"), rows, class_="commands")
