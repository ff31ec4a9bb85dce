"""What `toolkit doctor` answers: a line for each thing, what to do below it, and a sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from toolkit.answers import Answer
from toolkit.model import GRADES, Observation, worst_grade

SCHEMA = 1


def describe_observations(observations: Sequence[Observation]) -> Answer:
    """Show the observations in their order, aligned; what is to be done stands below its line."""
    width = max((len(one.name) for one in observations), default=0)
    lines = [line for one in observations for line in _lines(one, width)]
    counts = [f"{sum(one.grade == grade for one in observations)} {grade}" for grade in GRADES]
    document = {
        "schema": SCHEMA,
        "worst": worst_grade(observations),
        "observations": [asdict(one) for one in observations],
    }
    return Answer(text="\n".join([*lines, ", ".join(counts)]), document=document)


def _lines(one: Observation, width: int) -> list[str]:
    lines = [f"{one.grade:4}  {one.name:{width}}  {_printable(one.seen)}"]
    if one.do:
        lines.append(f"{'':4}  {'':{width}}  -> {_printable(one.do)}")
    return lines


def _printable(text: str) -> str:
    """Write what no terminal should get as Python would: names of files and variables can hold it."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)
