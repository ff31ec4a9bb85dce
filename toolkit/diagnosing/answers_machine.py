"""What `toolkit doctor` answers: a line for each thing, what to do below it, and a sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from toolkit.answers import Answer, printable
from toolkit.diagnosing.wrapping import WIDTH, wrap
from toolkit.model import GRADES, Observation, worst_grade

SCHEMA = 1
STYLES = {r"(?m)^fail(?=  )": "bold red", r"(?m)^warn(?=  )": "yellow", r"(?m)^ok(?=    )": "green"}
"""The colours of the grades, at the beginning of their lines."""


def describe_observations(observations: Sequence[Observation], *, verbose: bool, width: int = WIDTH) -> Answer:
    """Show the observations in their order, aligned, what is to be done below each; `ok` ones if `verbose` only."""
    shown = [one for one in observations if verbose or one.grade != "ok"]
    column = max((len(one.name) for one in shown), default=0)
    lines = [line for one in shown for line in _lines(one, column, width)]
    document = {
        "schema": SCHEMA,
        "worst": worst_grade(observations),
        "observations": [asdict(one) for one in observations],
    }
    hidden = len(observations) - len(shown)
    return Answer(text="\n".join([*lines, _count_line(observations, hidden)]), document=document)


def _count_line(observations: Sequence[Observation], hidden: int) -> str:
    counts = {grade: sum(one.grade == grade for one in observations) for grade in GRADES}
    return ", ".join(
        f"{count} {grade}{' (shown with -v)' if grade == 'ok' and hidden else ''}" for grade, count in counts.items()
    )


def _lines(one: Observation, column: int, width: int) -> list[str]:
    lines = wrap(printable(one.seen), width, first=f"{one.grade:4}  {one.name:{column}}  ")
    if one.do:
        lines += wrap(printable(one.do), width, first=f"{'':4}  {'':{column}}  -> ")
    return lines
