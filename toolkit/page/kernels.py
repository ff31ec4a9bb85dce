"""Kernels and launches of every graph, base against overlay: what a patch changes and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from toolkit.model import Side
from toolkit.page.html import section, table, text
from toolkit.page.values import SIDES, Account, Program, grouped
from toolkit.page.words import NONE, kernel_words

Cell = Callable[[Mapping[Side, Program]], str]

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
        there = [side for side in SIDES if any(side in sides for _, _, sides in graphs)]
        has_launches = any(program.launches for _, _, sides in graphs for program in sides.values())
        columns = _columns(there, has_launches)
        rows = [(text(graph), *(cell(sides) for cell in columns.values())) for _, graph, sides in graphs]
        yield table(f"{check}: kernels and launches", ("graph", *columns), rows, class_="figures")


def _columns(there: Sequence[Side], has_launches: bool) -> dict[str, Cell]:
    """Return the columns that say anything, each with what writes its cells."""
    columns: dict[str, Cell] = {f"kernels, {side}": partial(_kernels, side) for side in there}
    if has_launches:
        columns |= {f"launches, {side}": partial(_launches, side) for side in there}
    if has_launches and len(there) == len(SIDES):
        columns["more launches"] = _more_launches
    return columns


def _kernels(side: Side, sides: Mapping[Side, Program]) -> str:
    return text(kernel_words(sides[side].kernels)) + _lost(sides[side]) if side in sides else NONE


def _launches(side: Side, sides: Mapping[Side, Program]) -> str:
    return str(len(sides[side].launches)) if side in sides and sides[side].launches else NONE


def _more_launches(sides: Mapping[Side, Program]) -> str:
    numbers = [len(sides[side].launches) for side in SIDES if side in sides]
    if len(numbers) < len(SIDES) or 0 in numbers:
        return NONE
    more = numbers[1] - numbers[0]
    return f"{more:+d}" if more else "0"


def _lost(program: Program) -> str:
    return "".join(
        f'<small class="bad">✗ loses {text(name)}: {text(how)}</small>' for name, how in program.lost.items()
    )
