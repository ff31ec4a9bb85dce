"""What a look at a machine, an environment or a command saw, line by line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Grade = Literal["ok", "warn", "fail"]
GRADES: tuple[Grade, ...] = get_args(Grade)
"""From good to bad."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """One thing that was looked at: its stable name (`torch.version`), how it is, what was seen, what to do about it.

    `do` is empty where nothing is to be done; a `fail` always says it.
    """

    name: str
    grade: Grade
    seen: str
    do: str = ""


def worst_grade(observations: Sequence[Observation]) -> Grade:
    """Return the worst grade of any; `ok` of none."""
    return max((one.grade for one in observations), key=GRADES.index, default="ok")
