"""How many values of a graph agree with a reference: each value counts once, in however many modes it was computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from toolkit.model import Side
from toolkit.page.values import SIDES, NumberRow, grouped
from toolkit.page.words import count
from toolkit.report import UNICODE_MARKS

EAGER = "eager"
"""The mode of rows that measure eager against FP64, and the reference that a value must agree with."""

COMPUTED_BY = {"host": "computed on the CPU from the overlay's code", "device": "computed by the NPU"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """How many of some values agree with a reference."""

    good: int
    total: int
    reference: str

    @property
    def is_whole(self) -> bool:
        """Whether all do."""
        return self.good == self.total

    def __str__(self) -> str:
        mark = UNICODE_MARKS.good if self.is_whole else UNICODE_MARKS.bad
        return f"{mark} {self.good} of {self.total}"


def is_computed(row: NumberRow) -> bool:
    """Whether a row tells of compiled code: eager against FP64 does not, nor does an input that stays as it was."""
    return row.mode != EAGER and (row.written or not row.within)


def agreement_of(rows: Iterable[NumberRow]) -> Agreement | None:
    """Count the values of one side that agree in every mode, with eager where there is a row of it; None for none."""
    computed = [row for row in rows if is_computed(row)]
    judged = [row for row in computed if row.reference == EAGER] or computed
    if not judged:
        return None
    values = grouped(judged, lambda row: (row.graph, row.value))
    good = sum(all(row.within for row in own) for _, own in values)
    return Agreement(good=good, total=len(values), reference=judged[0].reference)


def by_side(rows: Sequence[NumberRow]) -> dict[Side, Agreement]:
    """Return the agreement of each side that has any value."""
    found = {side: agreement_of(row for row in rows if row.side == side) for side in SIDES}
    return {side: agreement for side, agreement in found.items() if agreement}


def told_of_overlay(rows: Sequence[NumberRow], runtime: str) -> tuple[str, str] | None:
    """Say the overlay's agreement, as a figure and its words; None where nothing was computed."""
    found = by_side(rows).get("overlay")
    if found is None:
        return None
    named = count(found.total, "value").partition(" ")[2]
    verb = "agrees" if found.total == 1 else "agree"
    figure = str(found) if found.is_whole else f"{found.good} of {found.total}"
    return figure, f"{named} {COMPUTED_BY.get(runtime, '')} {verb} with {found.reference}"


def beyond_words(row: NumberRow) -> str:
    """Say whether a row is within its gate."""
    return f"{UNICODE_MARKS.good} within" if row.within else f"{UNICODE_MARKS.bad} beyond"
