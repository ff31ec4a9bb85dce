"""The numbers: the error of every graph on a logarithmic axis, and behind it the values and their distribution."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from toolkit.model import Side
from toolkit.page.agreement import beyond_words, by_side, is_computed
from toolkit.page.html import details, section, table, tag, text
from toolkit.page.plots import (
    MODES,
    Axis,
    Point,
    axis_of,
    count_bars,
    error_axis,
    error_strip,
    legend,
    shape_definitions,
)
from toolkit.page.values import SIDES, Account, NumberRow, grouped
from toolkit.page.words import count, figure, shape_words

Graph = tuple[str, list[NumberRow]]

NONE_RECORDED = "No check of this proof has recorded numbers."
EQUAL, LAST_BUCKET = "0", "nonfinite"
BUDGET = 350_000
"""Bytes of HTML that the numbers may take where the page has no more room."""

GAP = "…"
TALL = 6
"""From how many rows on a plot has its axis above it too."""

WORDS = (
    ("recorded", "with values parked where the real runtime's launches put them"),
    ("separate", "with everything in memory of its own"),
    ("worst case", "with every value parked where it does the most harm"),
    ("device", "run on an NPU"),
    ("eager", "eager itself against FP64, for comparison: nothing of the overlay's"),
)
GATE_WORDS = "A gate is the error that is allowed for the value's type."
PLOT_NOTE = """\
The plots are logarithmic, with 0 and what is not finite (∞) set apart. Beneath each name stands how many of its values
agree with the reference in every mode; an input that a graph only reads is none of its values."""


def render_numbers(account: Account, room: int = BUDGET) -> str:
    """Write the error plots, and behind each graph its table and histograms, as many of these as there is room for.

    What tells nothing new is folded away: graphs whose values are within their gates and alike on both sides.
    """
    return section("numbers", "Numbers", _body(account, room))


def _body(account: Account, room: int) -> Iterator[str]:
    if not account.numbers:
        yield f"<p>{NONE_RECORDED}</p>"
        return
    if account.proof.runtime == "host":
        yield (
            '<p class="soft">Computed on the CPU by a reference interpreter of the recorded kernels, each operation in '
            "its own type and rounding: the values of an NPU are not shown.</p>"
        )
    yield tag("p", PLOT_NOTE, class_="soft")
    yield _meanings(account.numbers)
    yield shape_definitions()
    checks = [(check, *_divided(rows)) for check, rows in grouped(account.numbers, lambda row: row.check)]
    for check, telling, rest in sorted(checks, key=lambda one: not one[1]):
        yield f"<h3>{text(check)}</h3>"
        for written in [*_graphs(telling, room), *([_folded(rest, room)] if rest else [])]:
            room -= len(written.encode())
            yield written


def _divided(rows: Sequence[NumberRow]) -> tuple[list[Graph], list[Graph]]:
    """Return the graphs that tell something, and the rest."""
    graphs = grouped(rows, lambda row: row.graph)
    return [one for one in graphs if is_telling(one[1])], [one for one in graphs if not is_telling(one[1])]


def is_telling(rows: Sequence[NumberRow]) -> bool:
    """Whether anything of a graph is beyond its gate, or its sides have other errors where both were measured."""
    computed = [row for row in rows if is_computed(row)]
    base, overlay = ({_key(row): row.maximum_absolute_error for row in computed if row.side == side} for side in SIDES)
    return not all(row.within for row in computed) or any(base[key] != overlay[key] for key in base.keys() & overlay)


def _key(row: NumberRow) -> tuple[str, str, str]:
    return row.mode, row.value, row.reference


def _meanings(rows: Sequence[NumberRow]) -> str:
    there = {row.mode for row in rows}
    modes = "; ".join(f"<b>{text(mode)}</b>: {text(words)}" for mode, words in WORDS if mode in there)
    return f'<p class="soft">Modes: {modes}. {GATE_WORDS}</p>'


def _graphs(graphs: Sequence[Graph], room: int) -> Iterator[str]:
    """Write the plots of some graphs, then each graph's own numbers, named only where there is no room left."""
    for plot in _plots([row for _, rows in graphs for row in rows]):
        room -= len(plot.encode())
        yield plot
    for graph, rows in graphs:
        written = _graph(graph, rows)
        room -= len(written.encode())
        yield written if room > 0 else _named_only(graph, rows)


def _folded(graphs: Sequence[Graph], room: int) -> str:
    rows = [row for _, own in graphs for row in own]
    alike = ", and base and overlay have the same errors" if len({row.side for row in rows}) == len(SIDES) else ""
    title = f"<b>{count(len(graphs), 'graph')}</b> with nothing beyond its gate{alike}"
    title += f" <small>{_verdicts(rows, in_full=True)}</small>"
    return details(title, "\n".join(_graphs(graphs, room)), class_="rest")


def _named_only(graph: str, rows: Sequence[NumberRow]) -> str:
    return f"<p><b>{text(graph)}</b>: {count(len(rows), 'row')} more, left out here; see proof.json</p>"


def _plots(rows: Sequence[NumberRow]) -> Iterator[str]:
    """Write a plot for each reference: a strip for each graph, its worst value in each mode on each side."""
    for reference, own in grouped(rows, lambda row: row.reference):
        axis = axis_of(row.maximum_absolute_error for row in own)
        strips = [(graph, _worst(some), some) for graph, some in grouped(own, lambda row: row.graph)]
        caption = f"Largest absolute error of each graph against {reference}"
        yield _figure(caption, strips, axis)


def _figure(caption: str, strips: Sequence[tuple[str, list[Point], Sequence[NumberRow]]], axis: Axis) -> str:
    lines = [
        f'<div class="row"><div class="name">{text(name)}<small>{_verdicts(rows)}</small></div>'
        f"{error_strip(points, axis)}</div>"
        for name, points, rows in strips
    ]
    points = [point for _, own, _ in strips for point in own]
    scale = f'<div class="row"><div class="name"></div>{error_axis(axis)}</div>'
    above = scale if len(lines) >= TALL else ""
    return (
        f'<figure class="plot"><figcaption>{text(caption)}</figcaption>{legend(points)}{above}{"".join(lines)}'
        f"{scale}</figure>"
    )


def _verdicts(rows: Sequence[NumberRow], *, in_full: bool = False) -> str:
    """Say for each side how many values agree with the reference."""
    told = []
    for side, agreement in by_side(rows).items():
        verb = "agrees" if agreement.total == 1 else "agree"
        words = f"{side}: {agreement}" + (f" {verb} with {agreement.reference}" if in_full else "")
        told.append(tag("span", text(words), class_="good" if agreement.is_whole else "bad"))
    return " ".join(told)


def _graph(graph: str, rows: Sequence[NumberRow]) -> str:
    inside = []
    values = dict.fromkeys(row.value for row in rows)
    if len(values) > 1:
        for reference, own in grouped(rows, lambda row: row.reference):
            axis = axis_of(row.maximum_absolute_error for row in own)
            strips = [(value, _worst(some), some) for value, some in grouped(own, lambda row: row.value)]
            inside.append(_figure(f"{graph}: each value against {reference}", strips, axis))
    inside.append(table(f"{graph}: every value", HEADS, [_table_row(row) for row in rows], class_="figures"))
    for (mode, reference), own in grouped(rows, lambda row: (row.mode, row.reference)):
        inside.append(_histogram(graph, mode, reference, own))
    return details(f"<b>{text(graph)}</b> <small>{_verdicts(rows, in_full=True)}</small>", "\n".join(inside))


HEADS = ("value", "side", "mode", "against", "largest error", "relative L2", "cosine", "gate")


def _table_row(row: NumberRow) -> tuple[str, ...]:
    gate = tag("span", beyond_words(row), class_="good" if row.within else "bad")
    return (
        f"{text(row.value)}<small>{text(shape_words(row))}</small>",
        text(row.side),
        text(row.mode),
        text(row.reference),
        figure(row.maximum_absolute_error),
        figure(row.relative_l2),
        "not finite" if row.cosine is None else f"{row.cosine:.9g}",
        gate,
    )


# --- the distribution ------------------------------------------------------------------------------------------


def _histogram(graph: str, mode: str, reference: str, rows: Sequence[NumberRow]) -> str:
    counts = {side: own for side in SIDES if (own := _summed(row.ulps for row in rows if row.side == side))}
    if not counts:
        return ""
    totals = {side: sum(own.values()) for side, own in counts.items()}
    caption = f"{graph}: distance in ULP, mode {mode}, against {reference}"
    elements = ", ".join(f"{side}: {count(total, 'element')}" for side, total in totals.items())
    buckets = shown_buckets(counts)
    if buckets == [EQUAL]:
        return tag("p", text(f"{caption}: 0 everywhere ({elements})"), class_="soft")
    lines = [_histogram_row(bucket, counts, totals) for bucket in buckets]
    return table(f"{caption} ({elements})", ("ULP", *counts, "counts, logarithmic"), lines, class_="histogram")


def _histogram_row(
    bucket: str, counts: Mapping[Side, Mapping[str, int]], totals: Mapping[Side, int]
) -> tuple[str, ...]:  # fmt: skip
    own = {side: counts[side].get(bucket, 0) for side in counts}
    return text(bucket), *(f"{number:,}" for number in own.values()), count_bars(own, totals) if bucket != GAP else ""


def shown_buckets(counts: Mapping[Side, Mapping[str, int]]) -> list[str]:
    """Return the buckets from the first to the last that holds anything; empty ones in a row become one gap."""
    names = sorted({bucket for own in counts.values() for bucket in own}, key=_bucket_order)
    filled = [any(own.get(name, 0) for own in counts.values()) for name in names]
    shown: list[str] = []
    for name, is_filled in zip(names, filled, strict=True):
        if is_filled:
            shown.append(name)
        elif shown and shown[-1] != GAP:
            shown.append(GAP)
    return shown[:-1] if shown[-1:] == [GAP] else shown


def _bucket_order(bucket: str) -> tuple[bool, int, str]:
    first = bucket.partition("-")[0].strip(">= ")
    return bucket == LAST_BUCKET, int(first) if first.isdigit() else 0, bucket


def _summed(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for bucket, number in part.items():
            total[bucket] = total.get(bucket, 0) + number
    return total


# --- points ----------------------------------------------------------------------------------------------------


def _worst(rows: Sequence[NumberRow]) -> list[Point]:
    """Return a point for each side and mode: the largest error, which one that is not finite exceeds."""
    points = []
    for (side, mode), own in grouped(rows, lambda row: (row.side, row.mode)):
        errors = [row.maximum_absolute_error for row in own]
        finite = [error for error in errors if error is not None]
        points.append(Point(side=side, mode=mode, error=max(finite) if len(finite) == len(errors) else None))
    return sorted(points, key=lambda point: (MODES.index(point.mode) if point.mode in MODES else 9, point.side))
