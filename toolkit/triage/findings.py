"""A finding from a rule that holds: its words filled in with what the log says."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from toolkit.triage.incidents import Incident
from toolkit.triage.lines import Line
from toolkit.triage.matching import Match, numbers_of
from toolkit.triage.raw import CUT
from toolkit.triage.rules import Rule
from toolkit.triage.values import Evidence, Finding
from toolkit.triage.walking import Said

GIB = 2**30
SHOWN = 1000
"""So many characters of a line are shown."""

HEAD_SHOWN = 60


def match_finding(incident: Incident, match: Match) -> Finding:
    """Return what a rule says of an incident."""
    return _fill_in(
        match.rule,
        match.groups,
        evidence=tuple(evidence_of(incident, line) for line in match.lines),
        incident=incident,
    )


def launch_finding(rule: Rule, facts: Mapping[str, str], said: Mapping[str, Said]) -> Finding:
    """Return what a rule says of a launch, on the lines of the logs that say how it was."""
    asked = sorted({name for when in rule.when for name in when.facts})
    return _fill_in(rule, facts, evidence=tuple(said[name].evidence for name in asked if name in said))


def evidence_of(incident: Incident, line: Line) -> Evidence:
    """Return a line of an incident as evidence."""
    return Evidence(file=incident.file, line=line.number, text=shown_text(line.text), rank=incident.rank)


def shown_text(text: str) -> str:
    """Return what is shown of a line: of one that was cut its beginning, and what stands around the word."""
    head, cut, rest = text.partition(CUT)
    return (f"{head[:HEAD_SHOWN]}{cut}{rest}" if cut else text)[:SHOWN].strip()


def _fill_in(
    rule: Rule, groups: Mapping[str, str], *, evidence: tuple[Evidence, ...], incident: Incident | None = None
) -> Finding:  # fmt: skip
    words = _words(rule, groups)
    return Finding(
        layer=rule.layer,
        cause=rule.cause,
        kind=rule.kind,
        summary=_fill(rule.summary, words),
        confidence=rule.confidence,
        evidence=evidence,
        ranks=() if incident is None or incident.rank is None else (incident.rank,),
        count=1 if incident is None else incident.count,
        fix=_fill(rule.fix, words),
        command=_fill(rule.command, {name: shlex.quote(word) for name, word in words.items()}),
        patch=rule.patch,
        recipe=rule.recipe,
        experiment=_fill(rule.experiment, words),
        source=rule.source,
        goes_on=incident is not None and incident.goes_on,
    )


def _words(rule: Rule, groups: Mapping[str, str]) -> dict[str, str]:
    """Return what templates may name: groups and facts as they are written, the rule's sums as people read them."""
    numbers = numbers_of(rule, groups)
    sums = {name: _shown(name, numbers[name]) for name in rule.numbers if name in numbers}
    return {name: " ".join(text.split()) for name, text in {**groups, **sums}.items()}


def _shown(name: str, value: float) -> str:
    if name.endswith("_gib"):
        return f"{value / GIB:.2f} GiB"
    if name.endswith("_percent"):
        return f"{value:.0f} %"
    return f"{value:.0f}" if value.is_integer() else f"{value:.2f}"


class _Words(dict[str, str]):
    """Words of which one that is not known is a question mark."""

    def __missing__(self, key: str) -> str:
        return "?"


def _fill(template: str, words: Mapping[str, str]) -> str:
    return template.format_map(_Words(words))
