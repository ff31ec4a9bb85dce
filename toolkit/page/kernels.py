"""Kernels and launches of every graph, base against overlay: what a patch changes and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from toolkit.model import Side
from toolkit.page.html import section, table, text
from toolkit.page.values import SIDES, Account, Program, grouped
from toolkit.page.words import NONE, kernel_words

HEADS = ("graph", "kernels, base", "kernels, overlay", "launches, base", "launches, overlay", "more launches")
NONE_RECORDED = "No check of this proof has recorded kernels and launches."


def render_kernels(account: Account) -> str:
    """Write a table for each check that recorded kernels."""
    return section("kernels", "Kernels and launches", _body(account))


def by_graph(programs: tuple[Program, ...]) -> list[tuple[str, str, dict[Side, Program]]]:
    """Return check, graph and its programs by side, in the order in which they come."""
    named = grouped(programs, lambda one: (one.check, one.graph))
    return [(check, graph, {one.side: one for one in own}) for (check, graph), own in named]


def _body(account: Account) -> Iterator[str]:
    if not account.programs:
        yield f"<p>{NONE_RECORDED}</p>"
        return
    for check, graphs in grouped(by_graph(account.programs), lambda one: one[0]):
        rows = [(text(graph), *_cells(sides)) for _, graph, sides in graphs]
        yield table(f"{check}: kernels and launches", HEADS, rows, class_="figures")


def _cells(sides: Mapping[Side, Program]) -> Iterator[str]:
    for side in SIDES:
        yield text(kernel_words(sides[side].kernels)) + _lost(sides[side]) if side in sides else NONE
    for side in SIDES:
        yield str(len(sides[side].launches)) if side in sides else NONE
    both = len(sides) == len(SIDES)
    more = len(sides["overlay"].launches) - len(sides["base"].launches) if both else 0
    yield NONE if not both else f"{more:+d}" if more else "0"


def _lost(program: Program) -> str:
    return "".join(
        f'<small class="bad">✗ loses {text(name)}: {text(how)}</small>' for name, how in program.lost.items()
    )
