"""What differs between the runs: keys, the parts of their input, and what the caches had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff

from toolkit.cachekeys.values import Compile, Lookup, Part, RunTrace

COLD, WARM, AGAIN = range(3)
RUNS = ("cold", "warm", "cold again")
"""The runs in their order: the second finds the cache of the first, the third a new one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PartDifference:
    """A part of a key's input that is not the same in two runs; None where a run's key has no such part."""

    name: str
    first: str | None
    other: str | None

    @property
    def reads_the_same(self) -> bool:
        """Whether the texts do not show what the hashes say."""
        return self.first == self.other

    def lines(self) -> list[str]:
        """Return what differs as the lines of a diff, for a text of several lines such as a graph."""
        before, after = ((text or "").splitlines() for text in (self.first, self.other))
        return list(unified_diff(before, after, lineterm="", n=0))[2:]


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphKeys:
    """The same lookup in all runs, None in one that did not come to it.

    `differs_in` is the first run with another key than the cold one. `parts` are the differences between these two,
    None where one of them does not list the parts of its key.
    """

    lookups: tuple[Lookup | None, ...]
    differs_in: int | None
    parts: tuple[PartDifference, ...] | None
    repeats: bool

    @property
    def any(self) -> Lookup:
        """One of the lookups, for what they share."""
        return next(one for one in self.lookups if one is not None)

    @property
    def states(self) -> tuple[str | None, ...]:
        """What the cache had in each run."""
        return tuple(one.state if one else None for one in self.lookups)

    @property
    def findings(self) -> tuple[str, ...]:
        """Say what is not as it should be: the same key everywhere, a miss when cold, a hit when warm."""
        return tuple(_findings(self))


@dataclass(frozen=True, kw_only=True, slots=True)
class CompileSeconds:
    """The same compile in all runs: what it is of, and how long it took in each, None where that is not known."""

    compile_id: str
    process: str
    backward: bool
    function: str
    seconds: tuple[float | None, ...]


def compare_keys(runs: Sequence[RunTrace]) -> list[GraphKeys]:
    """Put every lookup of the runs side by side."""
    by_place = [{one.place: one for one in run.lookups} for run in runs]
    repeated = [_repeated(run) for run in runs]
    found = []
    for place in dict.fromkeys(place for run in by_place for place in run):
        lookups = tuple(run.get(place) for run in by_place)
        differs_in = _differs_in(lookups)
        first, other = lookups[COLD], lookups[differs_in] if differs_in is not None else None
        parts = compare_parts(first.parts, other.parts) if first is not None and other is not None else ()
        again = any(place in places for places in (repeated[COLD], repeated[AGAIN]))
        found.append(GraphKeys(lookups=lookups, differs_in=differs_in, parts=parts, repeats=again))
    return found


def compare_parts(
    first: Mapping[str, Part] | None, other: Mapping[str, Part] | None
) -> tuple[PartDifference, ...] | None:  # fmt: skip
    """List the parts whose hashes differ; None where a run does not list its parts."""
    if not first or not other:
        return None
    return tuple(
        PartDifference(
            name=name,
            first=first[name].text if name in first else None,
            other=other[name].text if name in other else None,
        )
        for name in dict.fromkeys((*first, *other))
        if name not in first or name not in other or first[name].hash != other[name].hash
    )


def compare_seconds(runs: Sequence[RunTrace]) -> list[CompileSeconds]:
    """Put the seconds of every compile side by side."""
    by_place: list[dict[tuple[str, str, bool], Compile]] = [{one.place: one for one in run.compiles} for run in runs]
    return [
        CompileSeconds(
            process=place[0],
            compile_id=place[1],
            backward=place[2],
            function=next((run[place].function for run in by_place if place in run and run[place].function), ""),
            seconds=tuple(run[place].seconds if place in run else None for run in by_place),
        )
        for place in dict.fromkeys(place for run in by_place for place in run)
    ]


def _differs_in(lookups: Sequence[Lookup | None]) -> int | None:
    first = lookups[COLD]
    if first is None or first.key is None:
        return None
    return next((run for run, one in enumerate(lookups) if one and one.key and one.key != first.key), None)


def _repeated(run: RunTrace) -> set[tuple[str, str, str, int]]:
    """Return the lookups whose key an earlier one of the same run has: these hit in a cold cache."""
    seen: set[tuple[str, str | None]] = set()
    found = set()
    for one in run.lookups:
        if (one.cache, one.key) in seen:
            found.add(one.place)
        seen.add((one.cache, one.key))
    return found


def _findings(graph: GraphKeys) -> list[str]:
    absent = [RUNS[run] for run, one in enumerate(graph.lookups) if one is None]
    if absent:
        return [f"not looked up in the run{'s' * (len(absent) > 1)} that is {' and '.join(absent)}"]
    if graph.differs_in is not None:
        return [f"its key differs when {RUNS[graph.differs_in]}"]
    if failed := [one.failure for one in graph.lookups if one and one.failure]:
        return [f"not cached, as its compile fails: {failed[0]}"]
    states = graph.states
    if uncached := [one for one in graph.lookups if one and one.state not in ("hit", "miss")]:
        return [f"not cached: {uncached[0].state}{f', {uncached[0].reason}' if uncached[0].reason else ''}"]
    found = []
    if states[WARM] == "miss":
        warm = graph.lookups[WARM]
        found.append(f"missed when warm though its key is the same{_in_brackets(warm.reason if warm else '')}")
    if "hit" in (states[COLD], states[AGAIN]) and not graph.repeats:
        found.append("hit when cold: the command has a cache of its own, or a remote one")
    return found


def _in_brackets(reason: str) -> str:
    return f" ({reason})" if reason else ""
