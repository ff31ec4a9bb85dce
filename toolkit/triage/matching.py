"""Which rules hold for an incident, and on which lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import msgspec

from toolkit.triage.expressions import evaluate, number_of
from toolkit.triage.incidents import Incident, Item
from toolkit.triage.lines import Line
from toolkit.triage.patterns import compiled, line_patterns, line_set
from toolkit.triage.rules import Rule, RuleBook, When


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that holds: for which item of the incident (by its place), on which lines, with which named groups."""

    rule: Rule
    at: int
    lines: tuple[Line, ...]
    groups: Mapping[str, str]


def match_incident(incident: Incident, book: RuleBook, facts: Mapping[str, str]) -> list[Match]:
    """Return every rule that holds for an incident, once: for the first item that its logger does not play down."""
    texts = incident.texts
    known = line_patterns(book)
    lines = [{known[at] for at in line_set(book).Match(item.text) or ()} for item in incident.items]
    found = (_first(rule, incident, texts, facts, lines) for rule in book.rules)
    return [match for match in found if match is not None]


def match_launch(book: RuleBook, facts: Mapping[str, str]) -> list[Rule]:
    """Return the rules that hold for the launch alone."""
    return [
        rule
        for rule in book.rules
        if any(not when.is_of_item and _facts_hold(when, facts) is not None for when in rule.when)
    ]


def numbers_of(rule: Rule, groups: Mapping[str, str]) -> dict[str, float]:
    """Return the numbers among named groups, and the rule's own sums of them."""
    known = {name: value for name, text in groups.items() if (value := number_of(text)) is not None}
    for name, expression in rule.numbers.items():
        if (value := evaluate(expression, known)) is not None:
            known[name] = value
    return known


def _first(
    rule: Rule, incident: Incident, texts: Sequence[str], facts: Mapping[str, str], lines: Sequence[Set[str]]
) -> Match | None:  # fmt: skip
    """Return where a rule holds first; `lines` are, item by item, the patterns that may be in it."""
    tried = (when for when in rule.when if when.is_of_item)
    tried = (when for when in tried if not when.line or any(when.line in one for one in lines))
    found = (match for when in tried for match in _matches(rule, when, incident, texts, facts))
    return min(found, key=lambda match: (incident.items[match.at].is_quiet, match.at), default=None)


def _matches(
    rule: Rule, when: When, incident: Incident, texts: Sequence[str], facts: Mapping[str, str]
) -> Iterator[Match]:  # fmt: skip
    said = _facts_hold(when, facts)
    around = None if said is None else _around(when, texts)
    if said is None or around is None:
        return
    step = {} if incident.last_step is None else {"last_step": str(incident.last_step)}
    for at, item in enumerate(incident.items):
        own = _item_holds(when, item)
        if own is None:
            continue
        groups, lines = own
        groups = {**facts, **said, **around, **step, **groups}
        if when.where and not evaluate(when.where, numbers_of(rule, groups)):
            continue
        yield Match(rule=rule, at=at, lines=lines, groups=groups)


def _item_holds(when: When, item: Item) -> tuple[dict[str, str], tuple[Line, ...]] | None:
    """Return the named groups and the lines by which all that is asked of an item holds; None where it does not."""
    groups: dict[str, str] = {}
    lines: list[Line] = []
    if when.line:
        found = compiled(when.line).search(item.text) if item.lines else None
        if found is None:
            return None
        groups |= _named(found)
        lines.append(_line_at(item, found.start()))
    if when.exception or when.message:
        raised = item.raised
        if raised is None or not (_whole(when.exception, raised.name) if when.exception else True):
            return None
        if when.message:
            said = compiled(when.message)
            found = said.search(raised.message) or said.search(raised.message.partition("\n")[0])
            if found is None:
                return None
            groups |= _named(found)
        lines.append(item.lines[0])
    if when.not_frame and any(compiled(when.not_frame).search(str(frame)) for frame in item.frames):
        return None
    for pattern, frames in ((when.frame, range(len(item.frames))), (when.last_frame, _raising(item))):
        if pattern:
            hit = next(((at, m) for at in frames if (m := compiled(pattern).search(str(item.frames[at])))), None)
            if hit is None:
                return None
            groups |= _named(hit[1])
            lines.append(item.frame_lines[hit[0]])
    return groups, tuple(dict.fromkeys(lines))


def _raising(item: Item) -> range:
    """Return the place of the frame that raised: the last one, in faulthandler's dump the first."""
    if not item.frames:
        return range(0)
    at = len(item.frames) - 1 if item.name else 0
    return range(at, at + 1)


def _around(when: When, texts: Sequence[str]) -> dict[str, str] | None:
    """Return the named groups of what stands somewhere in the incident; None where something lacks, or must not."""
    groups: dict[str, str] = {}
    for pattern in when.near:
        found = next((m for text in texts if (m := compiled(pattern).search(text))), None)
        if found is None:
            return None
        groups |= _named(found)
    unwanted = [*when.not_near, *([when.no_frame] if when.no_frame else [])]
    if any(compiled(pattern).search(text) for pattern in unwanted for text in texts):
        return None
    return groups


def _facts_hold(when: When, facts: Mapping[str, str]) -> dict[str, str] | None:
    """Return the facts that a rule asks for; None where one of them is another, or known where it must not be."""
    if any(name in facts for name in when.no_facts):
        return None
    if any(name in facts and _whole(pattern, facts[name]) for name, pattern in when.not_facts.items()):
        return None
    for name, pattern in when.facts.items():
        if name not in facts or not _whole(pattern, facts[name]):
            return None
    return {name: facts[name] for name in when.facts}


def _whole(pattern: str, text: str) -> bool:
    return bool(compiled(pattern).fullmatch(text)) if pattern else text == ""


def _named(found: Any) -> dict[str, str]:
    return {name: value for name, value in found.groupdict().items() if value is not None}


def _line_at(item: Item, place: int) -> Line:
    """Return the line of an item that holds a place in its text."""
    passed = 0
    for line in item.lines:
        passed += len(line.text) + 1
        if place < passed:
            return line
    return item.lines[-1]
