"""From incidents to findings: what decides each, which came first, and what only followed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from toolkit.triage.findings import evidence_of, launch_finding, match_finding
from toolkit.triage.incidents import Incident, Item
from toolkit.triage.lines import Line
from toolkit.triage.matching import Match, match_incident, match_launch
from toolkit.triage.rules import Rule, RuleBook
from toolkit.triage.unknown import is_optional, nothing_failed, unknown_finding
from toolkit.triage.values import Evidence, Finding, Kind
from toolkit.triage.walking import LogRead

ORDER: tuple[Kind, ...] = ("cause", "victim", "warning")
NOTES_KEPT = 20


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """An incident, the finding that it comes to by which item, and the place of its file among all.

    `is_generic` is a finding by a rule that decides only where no other does, `is_vague` one of a line that is called
    an error and says no more, or of a package that may be done without.
    """

    incident: Incident
    item: Item
    finding: Finding
    is_generic: bool
    is_vague: bool
    file_at: int

    @property
    def when(self) -> Line | None:
        """The line that tells when it was, of the item itself if any does."""
        return next((line for line in self.item.told if line.when is not None), self.incident.when)

    @property
    def stream(self) -> tuple[str, int | None]:
        """Whose incident it is."""
        return self.incident.file, self.incident.rank

    @property
    def standing(self) -> tuple[int, bool, bool, bool, int]:
        """How it stands among those of its own stream: the least is what made it fail."""
        kind: Kind = "victim" if self.is_vague else self.finding.kind
        return (
            ORDER.index(kind), self.finding.goes_on, self.finding.layer == "unknown", self.is_generic,
            self.item.offset,
        )  # fmt: skip


def judge(logs: Sequence[LogRead], book: RuleBook, given: Mapping[str, str]) -> tuple[list[Finding], list[Evidence]]:
    """Return the findings, best first and never none, and what the logs note that is no failure.

    `given` are facts of the launch from elsewhere, which count more than what a log says; but a variable that is not
    set says nothing against a log in which the same is asked for in another way.
    """
    judged: list[Judged] = []
    notes: list[Evidence] = []
    everywhere = all_facts(logs)
    for at, log in enumerate(logs):
        facts = _joined({**everywhere, **{name: said.value for name, said in log.facts.items()}}, given)
        for incident in log.incidents:
            decided = _decide(incident, match_incident(incident, book, facts), book, file_at=at)
            if isinstance(decided, Judged):
                judged.append(decided)
            else:
                notes += decided
    findings = _merge(_in_order(judged))
    launch = _judge_launch(logs, book, given)
    known = {one.cause for one in findings}
    findings += [one for one in launch if one.cause not in known]
    return findings or [nothing_failed(logs)], notes[:NOTES_KEPT]


def _judge_launch(logs: Sequence[LogRead], book: RuleBook, given: Mapping[str, str]) -> list[Finding]:
    """Return what is wrong with the launch itself."""
    facts = _joined(all_facts(logs), given)
    said = {name: one for log in logs for name, one in log.facts.items() if facts[name] == one.value}
    return [launch_finding(rule, facts, said) for rule in match_launch(book, facts)]


def all_facts(logs: Sequence[LogRead]) -> dict[str, str]:
    """Return what the logs together say of the launch."""
    return {name: said.value for log in logs for name, said in log.facts.items()}


def _joined(said: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    return {**said, **{name: value for name, value in given.items() if value or name not in said}}


def _decide(
    incident: Incident, matches: Sequence[Match], book: RuleBook, *, file_at: int
) -> Judged | list[Evidence]:  # fmt: skip
    """Return what an incident comes to: the first specific cause in it, before what is generic, victim or warning.

    Where it comes to no failure, that is the lines to note. What a logger did not call an error, and training went on
    after, is none, unless it is that training computes something else.
    """
    deciding = [one for one in matches if one.rule.kind in ORDER]
    best = min(deciding, key=lambda one: (ORDER.index(one.rule.kind), one.rule.generic, one.at), default=None)
    noted = [one for one in matches if one.rule.kind == "note"]
    if best is not None and incident.run_goes_on and incident.items[best.at].is_quiet and _may_be_survived(best.rule):
        noted, best = [*noted, best], None
    if best is not None and best.rule.kind == "victim" and _raises_before(incident, best.at, matches):
        best = None
    if best is not None:
        return Judged(
            incident=incident, item=incident.items[best.at], finding=match_finding(incident, best),
            is_generic=best.rule.generic, is_vague=False, file_at=file_at,
        )  # fmt: skip
    wrappers = {one.at for one in matches if one.rule.kind == "wrapper"}
    unknown = unknown_finding(incident, book, wrappers=wrappers, noted={one.at for one in noted})
    if unknown is None:
        return [evidence_of(incident, one.lines[0]) for one in noted][:1]
    finding, item = unknown
    is_vague = item.raised is None or is_optional(item)
    return Judged(
        incident=incident, item=item, finding=finding, is_generic=True, is_vague=is_vague, file_at=file_at
    )  # fmt: skip


def _raises_before(incident: Incident, at: int, matches: Sequence[Match]) -> bool:
    """Whether something that no rule knows was raised, with its traceback, before the item at a place."""
    known = {one.at for one in matches}
    before = [item for place, item in enumerate(incident.items[:at]) if place not in known]
    return any(item.raised is not None and item.frames and not is_optional(item) for item in before)


def _may_be_survived(rule: Rule) -> bool:
    return rule.kind != "warning" and rule.layer != "fusion"


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
    victims = {one.incident.rank for one in judged if one.finding.kind == "victim"}

    def key(one: Judged) -> tuple[bool, int, bool, bool, float, int, tuple[int, bool, bool, bool, int]]:
        is_second = first[one.stream] is not one
        is_somebody_s = one.is_vague and (is_optional(one.item) or one.incident.rank in (None, *victims))
        kind = ORDER.index("victim" if is_somebody_s and victims else one.finding.kind)
        return is_second, kind, one.is_vague, one.finding.goes_on, clock(one), one.file_at, one.standing

    return sorted(judged, key=key)


def _clock(judged: Sequence[Judged]) -> _Clock:
    files = {one.incident.file for one in judged}
    is_dated = all(one.when is not None and one.when.has_year for one in judged)
    is_timed = all(one.when is not None for one in judged)
    return _Clock(by_offset=len(files) == 1 and not is_dated, is_comparable=is_dated or is_timed)


class _Clock(msgspec.Struct, frozen=True, kw_only=True):
    """Tells when an incident began, as far as that can be compared."""

    by_offset: bool
    is_comparable: bool

    def __call__(self, one: Judged) -> float:
        when = one.when
        if self.by_offset:
            return one.item.offset
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
