"""What was found in sum, and held against what is required of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from toolkit.errors import UsageError
from toolkit.model import EvidenceWanted, pattern_fault
from toolkit.scan.values import FileReport

Outcome = Literal["passed", "failed", "undecided"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """One requirement: what is wanted, how it came out, the figures, and the files that are to blame."""

    wanted: str
    outcome: Outcome
    figures: str
    files: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Sum:
    """The counts of all files together, by name; `files` by their state, a name's counts over all files."""

    files: Mapping[str, int]
    kernels: Mapping[str, int]
    types: Mapping[str, int]
    decorators: Mapping[str, int]
    custom: Mapping[str, int]
    extern: Mapping[str, int]
    fallbacks: Mapping[str, int]


def add_up(reports: Iterable[FileReport]) -> Sum:
    """Add the counts of files up."""
    states: Counter[str] = Counter()
    counts: dict[str, Counter[str]] = {
        name: Counter() for name in ("kernels", "types", "decorators", "custom", "extern", "fallbacks")
    }
    for report in reports:
        states[report.state] += 1
        for name, counter in counts.items():
            counter.update(getattr(report, name))
    ordered = {
        name: dict(sorted(counter.items(), key=lambda one: (-one[1], one[0]))) for name, counter in counts.items()
    }
    return Sum(files=dict(states), **ordered)


def require_patterns(wanted: EvidenceWanted) -> None:
    """Raise UsageError for a pattern that is none."""
    for pattern in (*wanted.require, *wanted.forbid, *(one.pattern for one in wanted.keep)):
        if fault := pattern_fault(pattern):
            raise UsageError(
                fault, hint="@name is a decorator; anything else a regular expression for operators' names"
            )


def judge(reports: Sequence[FileReport], wanted: EvidenceWanted) -> list[Judgement]:
    """Hold what was found against each requirement; what could not be read leaves undecided what it could change."""
    wrappers = [one for one in reports if one.state == "wrapper"]
    readable = [one for one in reports if one.state in ("wrapper", "kernels")]
    unread = [one for one in reports if one.state == "unreadable"]
    judged = [_require(pattern, wrappers, unread, in_all=wanted.in_all) for pattern in wanted.require]
    judged += [_forbid(pattern, readable, unread) for pattern in wanted.forbid]
    judged += [_keep(one.pattern, one.at_least, wrappers, unread) for one in wanted.keep]
    if wanted.no_alias_hazard:
        judged.append(_no_hazard(readable, unread))
    return judged


def overall(reports: Sequence[FileReport], judged: Sequence[Judgement]) -> Outcome:
    """Join all verdicts: what could not be read, or a search that found nothing, is never passed."""
    outcomes = {one.outcome for one in judged}
    states = {one.state for one in reports}
    if "failed" in outcomes:
        return "failed"
    if "undecided" in outcomes or "unreadable" in states or not states & {"wrapper", "kernels"}:
        return "undecided"
    return "passed"


def matcher(pattern: str) -> Callable[[FileReport], bool]:
    """Return what tells whether a file has a pattern.

    `@a.b` is a decorator or the start of one; anything else a part of a call's name, or a whole decorator without `@`.
    """
    if pattern.startswith("@"):
        name = pattern[1:]
        return lambda report: any(one == name or one.startswith(f"{name}.") for one in report.decorators)
    search = re.compile(pattern).search
    return lambda report: pattern in report.decorators or any(search(one) for one in (*report.custom, *report.extern))


def _require(pattern: str, wrappers: Sequence[FileReport], unread: Sequence[FileReport], *, in_all: bool) -> Judgement:
    has = matcher(pattern)
    without = [one.path for one in wrappers if not has(one)]
    count = len(wrappers) - len(without)
    if in_all:
        bad, wanted = bool(without) or not wrappers, f"{pattern} in every file"
        undecided = bool(unread)
    else:
        bad, wanted = not count and not unread, f"{pattern} in at least one file"
        undecided = not count
    return Judgement(
        wanted=wanted,
        outcome="failed" if bad else "undecided" if undecided else "passed",
        figures=_figures(count, len(wrappers), unread),
        files=without if in_all else (),
    )


def _forbid(pattern: str, readable: Sequence[FileReport], unread: Sequence[FileReport]) -> Judgement:
    has = matcher(pattern)
    found = [one.path for one in readable if has(one)]
    return Judgement(
        wanted=f"{pattern} in no file",
        outcome="failed" if found else "undecided" if unread or not readable else "passed",
        figures=_figures(len(found), len(readable), unread),
        files=found,
    )


def _keep(pattern: str, at_least: int, wrappers: Sequence[FileReport], unread: Sequence[FileReport]) -> Judgement:
    has = matcher(pattern)
    count = sum(map(has, wrappers))
    could_be = count + len(unread)
    return Judgement(
        wanted=f"{pattern} in at least {at_least} files",
        outcome="passed" if count >= at_least else "undecided" if could_be >= at_least else "failed",
        figures=_figures(count, len(wrappers), unread),
    )


def _no_hazard(readable: Sequence[FileReport], unread: Sequence[FileReport]) -> Judgement:
    found = [one.path for one in readable if one.hazards]
    doubtful = [one.path for one in readable if one.doubts]
    count = sum(len(one.hazards) for one in readable)
    doubts = f", {len(doubtful)} files with calls that cannot be judged" if doubtful else ""
    return Judgement(
        wanted="no alias hazard",
        outcome="failed" if found else "undecided" if unread or doubtful or not readable else "passed",
        figures=f"{count} in {_figures(len(found), len(readable), unread)}{doubts}",
        files=[*found, *doubtful],
    )


def _figures(count: int, total: int, unread: Sequence[FileReport]) -> str:
    return f"{count} of {total} files" + (f", {len(unread)} not read" if unread else "")
