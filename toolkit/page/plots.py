"""Plots as SVG: places across are in percent, so that they fit any width, and everything else is in pixels.

Side is told by filling and mode by shape, never by colour alone.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from toolkit.model import Side
from toolkit.page.html import text
from toolkit.page.values import SIDES
from toolkit.page.words import figure, power_of_ten

MODES = ("recorded", "separate", "worst case", "eager")
SHAPES = {
    "recorded": '<circle r="3.75"/>',
    "separate": '<rect x="-3.25" y="-3.25" width="6.5" height="6.5"/>',
    "worst case": '<path d="M0-4.25L4.25 3.25H-4.25Z"/>',
    "eager": '<path d="M0-4.5L4.5 0L0 4.5L-4.5 0Z"/>',
}
OTHER_SHAPE = '<path d="M-4-4L4 4M-4 4L4-4"/>'

ZERO, FIRST, LAST, ENDLESS = 4.0, 13.0, 87.0, 96.0
"""Where on an error axis, in percent: no error at all, the first and the last power of ten, and what is not finite."""

LANE = 15
AROUND = 1.5
"""How much larger the base's shapes are, so that they show around the overlay's where both have one place."""

BAR = 8
MOST_LABELS = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """A logarithmic axis from one power of ten to another."""

    first: int
    last: int

    def place(self, value: float | None) -> float:
        """Return a value's place in percent."""
        if value is None or not math.isfinite(value):
            return ENDLESS
        if value <= 0:
            return ZERO
        share = (math.log10(value) - self.first) / (self.last - self.first)
        return FIRST + (LAST - FIRST) * min(max(share, 0.0), 1.0)

    @property
    def ticks(self) -> list[int]:
        """The powers of ten that are labelled."""
        step = max(1, math.ceil((self.last - self.first) / (MOST_LABELS - 1)))
        return [tick for tick in range(self.first, self.last + 1, step) if tick <= sys.float_info.max_10_exp]


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One error: on which side, in which mode."""

    side: Side
    mode: str
    error: float | None


def axis_of(errors: Iterable[float | None]) -> Axis:
    """Return an axis that all the errors fit on, two powers of ten at least."""
    exponents = [math.log10(error) for error in errors if error and math.isfinite(error) and error > 0]
    first, last = math.floor(min(exponents, default=-7)), math.ceil(max(exponents, default=0))
    return Axis(first=first, last=max(last, first + 2))


def shape_definitions() -> str:
    """Return the shapes that the strips refer to; once a page."""
    named = [*((_shape_id(mode), shape) for mode, shape in SHAPES.items()), ("shape-other", OTHER_SHAPE)]
    inner = "".join(
        f'<g id="{name}">{shape}</g><g id="{name}-base" transform="scale({AROUND})">{shape}</g>'
        for name, shape in named
    )
    return f'<svg class="defs" width="0" height="0" aria-hidden="true"><defs>{inner}</defs></svg>'


def legend(points: Iterable[Point]) -> str:
    """Return what the shapes of some points mean."""
    given = list(points)
    modes = _ordered_modes(given)
    there = {point.side for point in given}
    pairs = {(point.side, point.mode) for point in given}
    sides = [side for side in SIDES if side in there]
    colours = [_legend_entry([(modes[0], side)], side) for side in sides] if modes else []
    shapes = [_legend_entry([(mode, side) for side in sides if (side, mode) in pairs], mode) for mode in modes]
    return (
        f'<p class="legend"><span>colour is the side:</span> {" ".join(colours)} '
        f"<span>shape is the mode:</span> {' '.join(shapes)}</p>"
    )


def error_strip(points: Sequence[Point], axis: Axis) -> str:
    """Return one row of an error plot: a lane for each mode, the base hollow and the overlay filled."""
    modes = _ordered_modes(points)
    height = LANE * max(len(modes), 1) + 6
    said = "; ".join(f"{point.side}, {point.mode}: {figure(point.error)}" for point in points)
    marks = "".join(
        f'<use href="#{_shape_id(point.mode, point.side)}" class="{point.side}" x="{axis.place(point.error):.2f}%" '
        f'y="{3 + LANE // 2 + LANE * modes.index(point.mode)}">'
        f"<title>{text(f'{point.side}, {point.mode}: {figure(point.error)}')}</title></use>"
        for point in sorted(points, key=lambda point: point.side != "base")
    )
    return (
        f'<svg class="strip" width="100%" height="{height}" role="img" aria-label="{text(said)}">'
        f"{_grid(axis)}{marks}</svg>"
    )


def error_axis(axis: Axis) -> str:
    """Return the labels beneath the strips."""
    named = [(ZERO, "0"), *((axis.place(10.0**tick), power_of_ten(tick)) for tick in axis.ticks), (ENDLESS, "∞")]
    labels = "".join(f'<text x="{place:.2f}%" y="12">{name}</text>' for place, name in named)
    return f'<svg class="axis" width="100%" height="16" aria-hidden="true">{labels}</svg>'


def count_bars(counts: Mapping[Side, int], totals: Mapping[Side, int]) -> str:
    """Return one row of a histogram: a bar for each side, as long as the logarithm of its share is great."""
    return _bars({side: _log_share(number, totals[side]) for side, number in counts.items()})


def time_bars(times: Mapping[Side, float], longest: float) -> str:
    """Return one row of timings: a bar for each side."""
    return _bars({side: value / longest if longest else 0.0 for side, value in times.items()})


def _bars(shares: Mapping[Side, float]) -> str:
    rects = "".join(
        f'<rect class="{side}" x="1" y="{1 + (BAR + 2) * row}" height="{BAR}" width="{98 * share:.2f}%"/>'
        for row, (side, share) in enumerate(shares.items())
        if share > 0
    )
    return f'<svg class="bars" width="100%" height="{(BAR + 2) * len(shares) + 2}" aria-hidden="true">{rects}</svg>'


def _log_share(number: int, total: int) -> float:
    return math.log1p(number) / math.log1p(total) if number > 0 and total > 0 else 0.0


def _grid(axis: Axis) -> str:
    places = [ZERO, *(axis.place(10.0**tick) for tick in axis.ticks), ENDLESS]
    return "".join(f'<line x1="{place:.2f}%" x2="{place:.2f}%" y1="0" y2="100%"/>' for place in places)


def _ordered_modes(points: Iterable[Point]) -> list[str]:
    given = dict.fromkeys(point.mode for point in points)
    return [*(mode for mode in MODES if mode in given), *(mode for mode in given if mode not in MODES)]


def _shape_id(mode: str, side: Side = "overlay") -> str:
    name = f"shape-{mode.replace(' ', '-')}" if mode in SHAPES else "shape-other"
    return f"{name}-base" if side == "base" else name


def _legend_entry(marks: Sequence[tuple[str, Side]], name: str) -> str:
    """Return a name behind the very shapes that the plot has for it."""
    drawn = "".join(
        f'<svg class="key" width="16" height="16" aria-hidden="true"><use href="#{_shape_id(mode, side)}" '
        f'class="{side}" x="8" y="8"/></svg>'
        for mode, side in marks
    )
    return f"<span>{drawn} {text(name)}</span>"
