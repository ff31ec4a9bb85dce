"""What several runs have given for one name, and whether it is the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from toolkit.repeats.saved import Difference, LeftOut, Told

Kind = Literal["printed", "saved"]
State = Literal["stable", "differs", "missing"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """One name with its hash in each run, None where a run has none; dtypes and shapes are those of saved tensors."""

    kind: Kind
    name: str
    hashes: tuple[str | None, ...]
    types: tuple[str | None, ...] = ()
    differences: tuple[Difference, ...] = ()

    @property
    def state(self) -> State:
        """Whether every run has the same; a name that a run lacks is missing, whatever the others have."""
        if self.missing_in:
            return "missing"
        return "differs" if self.differs_from is not None else "stable"

    @property
    def missing_in(self) -> tuple[int, ...]:
        """The runs without it, counted from 1."""
        return tuple(number for number, one in enumerate(self.hashes, start=1) if one is None)

    @property
    def differs_from(self) -> int | None:
        """The first run whose value is not the first that there is; None where all that have it agree."""
        told = [(number, one) for number, one in enumerate(self._told(), start=1) if one is not None]
        return next((number for number, one in told if one != told[0][1]), None)

    @property
    def kinds(self) -> int:
        """How many different values the runs have given."""
        return len({one for one in self._told() if one is not None})

    def _told(self) -> list[tuple[str, str | None] | None]:
        """List what each run has: the hash with the type, as equal bytes of another type are another value."""
        types = self.types or (None,) * len(self.hashes)
        return [(one, kind) if one else None for one, kind in zip(self.hashes, types, strict=True)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Repetition:
    """What came of several runs of one command; `kept` is where what they have saved and printed was left."""

    argv: tuple[str, ...]
    seconds: tuple[float, ...]
    values: tuple[Value, ...]
    left_out: tuple[LeftOut, ...]
    kept: str | None = None

    @property
    def unstable(self) -> tuple[Value, ...]:
        """The values that are not the same in every run."""
        return tuple(value for value in self.values if value.state != "stable")


def compare_printed(runs: Sequence[Mapping[str, str]]) -> list[Value]:
    """Put the hashes that the runs have printed side by side, in the order in which they first came."""
    names = dict.fromkeys(name for run in runs for name in run)
    return [Value(kind="printed", name=name, hashes=tuple(run.get(name) for run in runs)) for name in names]


def compare_saved(told: Told) -> list[Value]:
    """Put the tensors that the runs have saved side by side."""
    runs = [{(one.file, one.name): one for one in run.tensors} for run in told.runs]
    values = []
    for key in dict.fromkeys(key for run in runs for key in run):
        found = [run.get(key) for run in runs]
        values.append(
            Value(
                kind="saved",
                name=next(one.full_name for one in found if one is not None),
                hashes=tuple(None if one is None else one.sha256 for one in found),
                types=tuple(None if one is None else f"{one.dtype} {one.shape}" for one in found),
                differences=tuple(one for one in told.differences if (one.file, one.name) == key),
            )
        )
    return values


def left_out_of(told: Told) -> tuple[LeftOut, ...]:
    """List what was not compared, once for all runs."""
    every = [one for run in told.runs for one in run.left_out]
    return tuple({(one.file, one.name, one.why): one for one in every}.values())
