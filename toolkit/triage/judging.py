"""From incidents to findings: what decides each, which came first, and what only followed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from toolkit.triage.findings import evidence_of, launch_finding, match_finding
from toolkit.triage.incidents import Incident
from toolkit.triage.matching import Match, match_incident, match_launch
from toolkit.triage.rules import RuleBook
from toolkit.triage.unknown import nothing_failed, unknown_finding
from toolkit.triage.values import Evidence, Finding, Kind
from toolkit.triage.walking import LogRead

ORDER: tuple[Kind, ...] = ("cause", "victim", "warning")
NOTES_KEPT = 20


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """An incident with the finding that it comes to; `place` orders incidents of one stream."""

    incident: Incident
    finding: Finding
    is_generic: bool
    file_at: int

    @property
    def stream(self) -> tuple[str, int | None]:
        """Whose incident it is."""
        return self.incident.file, self.incident.rank

    @property
    def standing(self) -> tuple[int, bool, bool, bool, int]:
        """How it stands among those of its own stream: the least is what made it fail."""
        return (
            ORDER.index(self.finding.kind), self.finding.goes_on, self.finding.layer == "unknown", self.is_generic,
            self.incident.offset,
        )  # fmt: skip


def judge(logs: Sequence[LogRead], book: RuleBook, given: Mapping[str, str]) -> tuple[list[Finding], list[Evidence]]:
    """Return the findings, best first and never none, and what the logs note that is no failure.

    `given` are facts of the launch from elsewhere, which count more than what a log says.
    """
    judged: list[Judged] = []
    notes: list[Evidence] = []
    for at, log in enumerate(logs):
        facts = {**all_facts(logs), **{name: said.value for name, said in log.facts.items()}, **given}
        for incident in log.incidents:
            matches = match_incident(incident, book, facts)
            finding, match = _decide(incident, matches)
            if finding is None:
                notes += [evidence_of(incident, one.lines[0]) for one in matches if one.rule.kind == "note"][:1]
                continue
            is_generic = match is None or match.rule.generic
            judged.append(Judged(incident=incident, finding=finding, is_generic=is_generic, file_at=at))
    findings = _merge(_in_order(judged))
    launch = _judge_launch(logs, book, given)
    known = {one.cause for one in findings}
    findings += [one for one in launch if one.cause not in known]
    return findings or [nothing_failed(logs)], notes[:NOTES_KEPT]


def _judge_launch(logs: Sequence[LogRead], book: RuleBook, given: Mapping[str, str]) -> list[Finding]:
    """Return what is wrong with the launch itself."""
    facts = {**all_facts(logs), **given}
    said = {name: one for log in logs for name, one in log.facts.items() if name not in given}
    return [launch_finding(rule, facts, said) for rule in match_launch(book, facts)]


def all_facts(logs: Sequence[LogRead]) -> dict[str, str]:
    """Return what the logs together say of the launch."""
    return {name: said.value for log in logs for name, said in log.facts.items()}


def _decide(incident: Incident, matches: Sequence[Match]) -> tuple[Finding | None, Match | None]:
    """Return what an incident comes to: the first specific cause in it, before what is generic, victim or warning."""
    deciding = [one for one in matches if one.rule.kind in ORDER]
    if deciding:
        best = min(deciding, key=lambda one: (ORDER.index(one.rule.kind), one.rule.generic, one.at))
        return match_finding(incident, best), best
    wrappers = {one.at for one in matches if one.rule.kind == "wrapper"}
    noted = {one.at for one in matches if one.rule.kind == "note"}
    return unknown_finding(incident, wrappers=wrappers, noted=noted), None


# --- which came first -----------------------------------------------------------------------------------------------


def _in_order(judged: Sequence[Judged]) -> list[Judged]:
    """Order incidents: what made a stream fail before what else it says, the earliest stream first.

    The earliest error that is no time-out is the cause; times are compared where all have one, else places in the file.
    """
    first: dict[tuple[str, int | None], Judged] = {}
    for one in judged:
        if one.stream not in first or one.standing < first[one.stream].standing:
            first[one.stream] = one
    clock = _clock(list(first.values()))

    def key(one: Judged) -> tuple[int, bool, bool, float, int, tuple[int, bool, bool, bool, int]]:
        kind, goes_on = one.standing[:2]
        is_second = first[one.stream] is not one
        return kind, goes_on, is_second, clock(one), one.file_at, one.standing

    return sorted(judged, key=key)


def _clock(judged: Sequence[Judged]) -> _Clock:
    files = {one.incident.file for one in judged}
    is_dated = all(one.incident.when is not None and one.incident.when.has_year for one in judged)
    is_timed = all(one.incident.when is not None for one in judged)
    return _Clock(by_offset=len(files) == 1 and not is_dated, is_comparable=is_dated or is_timed)


class _Clock(msgspec.Struct, frozen=True, kw_only=True):
    """Tells when an incident began, as far as that can be compared."""

    by_offset: bool
    is_comparable: bool

    def __call__(self, one: Judged) -> float:
        when = one.incident.when
        if self.by_offset:
            return one.incident.offset
        if when is None or when.when is None:
            return math.inf
        return when.when if when.has_year or self.is_comparable else math.inf


def _merge(judged: Sequence[Judged]) -> list[Finding]:
    """Join what several processes show alike, and say who failed first."""
    merged: dict[tuple[str, str], Finding] = {}
    for one in judged:
        finding = one.finding
        name = (finding.cause, finding.summary if finding.layer == "unknown" else "")
        if (known := merged.get(name)) is None:
            merged[name] = finding
        else:
            ranks = tuple(sorted({*known.ranks, *finding.ranks}))
            merged[name] = msgspec.structs.replace(known, ranks=ranks, count=known.count + finding.count)
    found = list(merged.values())
    culprit = found[0] if found and found[0].kind == "cause" else None
    return [_named_by_rank(one, culprit) for one in found]


def _named_by_rank(finding: Finding, culprit: Finding | None) -> Finding:
    """Begin the summary with who shows it; say of a victim whose."""
    first = next((one.rank for one in finding.evidence if one.rank is not None), None)
    who = "" if first is None else f"rank{first}: "
    if len(finding.ranks) > 1:
        who = f"rank{first} first, {len(finding.ranks)} ranks in all: "
    after = ""
    if finding.kind == "victim" and culprit is not None:
        whose = next((f"rank{one.rank}" for one in culprit.evidence if one.rank is not None), "another process")
        after = f" (followed from what failed on {whose}: {culprit.cause})"
    return msgspec.structs.replace(finding, summary=f"{who}{finding.summary}{after}")
