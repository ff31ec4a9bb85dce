"""Where on a plot a value stands."""

from __future__ import annotations

import math
import re

import pytest

from toolkit.model import Side
from toolkit.page.plots import ENDLESS, FIRST, LAST, ZERO, Axis, Point, axis_of, count_bars, error_axis, error_strip


@pytest.mark.parametrize(
    ("error", "place"),
    [
        pytest.param(0.0, ZERO, id="none"),
        pytest.param(1e-8, FIRST, id="the least"),
        pytest.param(1.0, LAST, id="the greatest"),
        pytest.param(1e-4, (FIRST + LAST) / 2, id="between"),
        pytest.param(1e9, LAST, id="beyond the axis"),
        pytest.param(5e-324, FIRST, id="the smallest float"),
        pytest.param(None, ENDLESS, id="not finite"),
        pytest.param(math.nan, ENDLESS, id="NaN"),
        pytest.param(math.inf, ENDLESS, id="infinite"),
    ],
)
def test_an_error_has_its_place(error: float | None, place: float) -> None:
    assert Axis(first=-8, last=0).place(error) == pytest.approx(place)


@pytest.mark.parametrize(
    ("errors", "axis"),
    [
        pytest.param([], Axis(first=-7, last=0), id="nothing"),
        pytest.param([0.0, None], Axis(first=-7, last=0), id="nothing positive"),
        pytest.param([1e-3], Axis(first=-3, last=-1), id="one value"),
        pytest.param([2e-7, 63.5, math.inf], Axis(first=-7, last=2), id="several"),
    ],
)
def test_the_axis_holds_every_finite_error(errors: list[float | None], axis: Axis) -> None:
    assert axis_of(errors) == axis


@pytest.mark.parametrize("last", [2, 5, 9, 308])
def test_labels_stay_few_enough_to_be_read(last: int) -> None:
    axis = Axis(first=0, last=last)

    assert 2 <= len(axis.ticks) <= 6
    assert error_axis(axis).count("<text") == len(axis.ticks) + 2


def test_the_largest_number_that_there_is_has_an_axis() -> None:
    axis = axis_of([1e-300, 1.7e308])
    assert axis.ticks
    assert all(0 < 10.0**tick < float("inf") for tick in axis.ticks)


def test_sides_lie_over_each_other_and_modes_beneath_each_other() -> None:
    sides: tuple[Side, ...] = ("overlay", "base")
    points = [Point(side=side, mode=mode, error=0.0) for mode in ("separate", "recorded") for side in sides]
    strip = error_strip(points, Axis(first=0, last=2))
    marks = re.findall(r'<use href="#(.*?)" class="(.*?)" x="(.*?)%" y="(.*?)">', strip)

    assert marks == [
        ("shape-separate-base", "base", f"{ZERO:.2f}", "25"),
        ("shape-recorded-base", "base", f"{ZERO:.2f}", "10"),
        ("shape-separate", "overlay", f"{ZERO:.2f}", "25"),
        ("shape-recorded", "overlay", f"{ZERO:.2f}", "10"),
    ]


def test_an_unknown_mode_has_a_shape_too() -> None:
    strip = error_strip([Point(side="base", mode="new <mode>", error=1.0)], Axis(first=0, last=2))

    assert 'href="#shape-other-base"' in strip
    assert "base, new &lt;mode&gt;: 1" in strip


def test_a_bar_of_nothing_is_none_and_of_all_is_whole() -> None:
    bars = count_bars({"base": 0, "overlay": 7}, {"base": 9, "overlay": 7})

    assert re.findall('<rect class="(.*?)".* width="(.*?)"', bars) == [("overlay", "98.00%")]
