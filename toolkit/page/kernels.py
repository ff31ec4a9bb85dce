"""Kernels and launches of every graph, base against overlay: what a patch changes and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from toolkit.model import Side
from toolkit.page.html import section, table, text
from toolkit.page.values import SIDES, Account, Program, grouped
from toolkit.page.words import FALLBACK, NONE, kernel_words

Cell = Callable[[Mapping[Side, Program]], str]

TYPES = {
    "vector": "nothing goes on after a reduction",
    "spec": "cut into stages, as it goes on after a reduction",
    "split": "a part of the graph, handed over whole",
    "mix": "with a matrix product",
    FALLBACK: "no kernel, run operator by operator by FX",
}

NONE_RECORDED = "No check of this proof has recorded kernels and launches."


def render_kernels(account: Account) -> str:
    """Write one table of all graphs whose kernels were recorded."""
    return section("kernels", "Kernels and launches", _body(account))


def by_graph(programs: tuple[Program, ...]) -> list[tuple[str, str, dict[Side, Program]]]:
    """Return check, graph and its programs by side: of several the first whose launches were recorded.

    Checks with a graph that loses an input come first, then those of both sides, each in the order in which they come.
    """
    named = grouped(programs, lambda one: (one.check, one.graph))
    found = [(check, graph, {side: _best(some) for side, some in _sides(own)}) for (check, graph), own in named]
    losing = {one.check for one in programs if one.lost}
    compared = {check for check, _, sides in found if len(sides) == len(SIDES)}
    return sorted(found, key=lambda one: (one[0] not in losing, one[0] not in compared))


def _sides(programs: Sequence[Program]) -> list[tuple[Side, list[Program]]]:
    return grouped(programs, lambda one: one.side)


def _best(programs: Sequence[Program]) -> Program:
    return next((one for one in programs if one.launches), programs[0])


def _body(account: Account) -> Iterator[str]:
    if not account.programs:
        yield f"<p>{NONE_RECORDED}</p>"
        return
    graphs = by_graph(account.programs)
    there = [side for side in SIDES if any(side in sides for _, _, sides in graphs)]
    has_launches = any(program.launches for _, _, sides in graphs for program in sides.values())
    columns = _columns(there, has_launches)
    rows = [
        (f"{text(graph)}<small>{text(check)}</small>", *(cell(sides) for cell in columns.values()))
        for check, graph, sides in graphs
    ]
    yield f'<p class="soft">{types_words(account.programs)}</p>'
    yield table("Each graph: kernels and launches", ("graph", *columns), rows, class_="figures kernels")


def types_words(programs: Sequence[Program]) -> str:
    """Say what the types of some programs' kernels are."""
    there = {kernel.type for program in programs for kernel in program.kernels}
    told = ", ".join(f"{name} ({words})" for name, words in TYPES.items() if name in there)
    return f"Types of kernels: {told}." if told else ""


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
