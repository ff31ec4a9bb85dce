"""The rules by which logs are judged, as data: `rules/*.toml`, strictly read.

A pattern is an RE2 regular expression: it takes linear time on any log, and has no look-around. What it may name and
test is told at `When`; docs/diagnose-rules.md shows how to write a rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from string import Formatter

import msgspec

from toolkit.errors import RecipeError
from toolkit.schema import TomlError, describe_faults, find_faults, parse_toml
from toolkit.triage.expressions import names_in
from toolkit.triage.values import Confidence, Kind, Layer

FOLDER = "rules"
NAMED_GROUP = re.compile(r"\(\?P<(\w+)>")


class When(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way for a rule to apply: all of what it says holds for one item of an incident, or for the incident.

    Of the item (an exception with its traceback, or a line with what is indented below it): `line` is searched in all
    of its text; `exception` is the whole name of the innermost exception's class, without its module; `message` is
    searched in that exception's message; `frame` in each frame of its traceback, written `path:line in function:
    source`; `last_frame` only in the one that raised, `not_frame` in none of them. Of the incident (what was logged
    together by one process): `near` are all found in some line of it, `not_near` and `no_frame` in none. Of the run:
    `facts` match wholly (an empty pattern is a fact that is known to be unset), `not_facts` match none, `no_facts` are
    not known. `where` is a condition on numbers: on groups that the patterns name, and on `last_step` (the last step
    that the process logged before).
    """

    line: str = ""
    exception: str = ""
    message: str = ""
    frame: str = ""
    last_frame: str = ""
    not_frame: str = ""
    near: list[str] = []
    not_near: list[str] = []
    no_frame: str = ""
    facts: dict[str, str] = {}
    not_facts: dict[str, str] = {}
    no_facts: list[str] = []
    where: str = ""

    @property
    def is_of_item(self) -> bool:
        """Whether it needs an item at all; else it is about the launch only."""
        return bool(self.line or self.exception or self.message or self.frame or self.last_frame)

    @property
    def patterns(self) -> list[str]:
        """Every pattern of it."""
        own = (self.line, self.exception, self.message, self.frame, self.last_frame, self.not_frame, self.no_frame)
        return [
            one for one in (*own, *self.near, *self.not_near, *self.facts.values(), *self.not_facts.values()) if one
        ]


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a cause looks like, what it means and what to do.

    `summary`, `fix`, `command` and `experiment` are templates: `{name}` is a group that a pattern names, a fact, or one
    of `numbers`, which are sums of those (a name ending in `_gib` is shown in GiB). A `generic` rule decides only where
    no other does. `anchors` are words without which its lines cannot be found: needed only where a sample shows it.
    """

    cause: str
    layer: Layer
    summary: str
    means: str
    source: str
    when: list[When]
    kind: Kind = "cause"
    confidence: Confidence = "high"
    generic: bool = False
    numbers: dict[str, str] = {}
    fix: str = ""
    command: str = ""
    patch: str = ""
    recipe: str = ""
    experiment: str = ""
    anchors: list[str] = []


class Fact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a line says of the launch: the group `value` of `line`, or `value` itself. The last one said counts."""

    name: str
    line: str
    value: str = ""
    anchors: list[str] = []


class _RuleFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    rule: list[Rule] = []
    fact: list[Fact] = []
    anchors: list[str] = []
    shapes: list[str] = []
    marks: list[str] = []
    ignored: list[str] = []


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RuleBook:
    """All rules, in the order of their files, and what makes a line worth looking at.

    `anchors` are words and `shapes` patterns that a log is searched for, `marks` patterns of lines that tell of a
    failure whatever it is of, `ignored` those of lines that say nothing of the run. A book is equal to itself only:
    what is compiled of it is kept by that.
    """

    rules: tuple[Rule, ...]
    facts: tuple[Fact, ...]
    anchors: tuple[str, ...]
    shapes: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def shipped_rules() -> RuleBook:
    """Return the rules that come with the toolkit."""
    folder = Path(__file__).with_name(FOLDER)
    texts = {one.name: one.read_text(encoding="utf-8") for one in folder.glob("*.toml")}
    return read_rules(texts)


def read_rules(texts: Mapping[str, str]) -> RuleBook:
    """Read rule files, name -> text; RecipeError names the file and what is wrong in it, or all faults of its rules."""
    files: list[_RuleFile] = [_read_file(name, texts[name]) for name in sorted(texts)]
    rules = tuple(rule for one in files for rule in one.rule)
    facts = tuple(fact for one in files for fact in one.fact)
    words = [word for one in files for word in one.anchors]
    words += [word for rule in rules for word in rule.anchors] + [word for fact in facts for word in fact.anchors]
    shapes = tuple(pattern for one in files for pattern in one.shapes)
    marks = tuple(pattern for one in files for pattern in one.marks)
    ignored = tuple(pattern for one in files for pattern in one.ignored)
    anchors = tuple(dict.fromkeys(words))
    return RuleBook(rules=rules, facts=facts, anchors=anchors, shapes=shapes, marks=marks, ignored=ignored)


def add_rules(book: RuleBook, texts: Mapping[str, str]) -> RuleBook:
    """Return a book with more rules before its own; one whose cause the book has already takes its place.

    Raises RecipeError for files that cannot be read, or whose rules are wrong.
    """
    more = read_rules(texts)
    if faults := rule_faults(more):
        raise RecipeError(
            f"the rules in {', '.join(texts)} are wrong", hint="see docs/diagnose-rules.md", details=faults
        )
    causes = {rule.cause for rule in more.rules}
    return RuleBook(
        rules=(*more.rules, *(rule for rule in book.rules if rule.cause not in causes)),
        facts=(*book.facts, *more.facts),
        anchors=tuple(dict.fromkeys((*book.anchors, *more.anchors))),
        shapes=(*book.shapes, *more.shapes),
        marks=(*book.marks, *more.marks),
        ignored=(*book.ignored, *more.ignored),
    )


def rule_faults(
    book: RuleBook, patches: Sequence[str] | None = None, recipes: Sequence[str] | None = None
) -> list[str]:
    """List what is wrong with rules that could be read: patterns, sums, names said twice, names of nothing."""
    import re2

    faults = []
    causes = [rule.cause for rule in book.rules]
    faults += [f"{cause}: said twice" for cause in sorted(set(causes)) if causes.count(cause) > 1]
    patterns = [(rule.cause, pattern) for rule in book.rules for when in rule.when for pattern in when.patterns]
    patterns += [(fact.name, fact.line) for fact in book.facts] + [
        ("marks", mark) for mark in (*book.shapes, *book.marks, *book.ignored)
    ]
    quiet = re2.Options()
    quiet.log_errors = False
    for name, pattern in patterns:
        try:
            re2.compile(pattern, quiet)
        except re2.error as fault:
            faults.append(f"{name}: {pattern!r}: {_said(fault)}")
    for rule in book.rules:
        faults += [f"{rule.cause}: {fault}" for fault in _template_faults(rule, {fact.name for fact in book.facts})]
        if not rule.when:
            faults.append(f"{rule.cause}: `when` is empty: it never holds")
        if any(not (when.is_of_item or when.facts) for when in rule.when):
            faults.append(f"{rule.cause}: a `when` asks for no line, exception, message or frame, and for no facts")
        for expression in (*rule.numbers.values(), *(when.where for when in rule.when if when.where)):
            try:
                names_in(expression)
            except ValueError as fault:
                faults.append(f"{rule.cause}: {fault}")
        if patches is not None and rule.patch and rule.patch not in patches:
            faults.append(f"{rule.cause}: patch {rule.patch!r} is not in patches/")
        if recipes is not None and rule.recipe and rule.recipe not in recipes:
            faults.append(f"{rule.cause}: recipe {rule.recipe!r} is not in recipes/")
    return faults


def _said(fault: Exception) -> str:
    """Return what RE2 says, which it does in bytes."""
    said = fault.args[0] if fault.args else fault
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def _template_faults(rule: Rule, facts: Set[str]) -> Iterator[str]:
    """Yield what is wrong with a rule's templates: braces, and names that nothing gives."""
    groups = {name for when in rule.when for pattern in when.patterns for name in NAMED_GROUP.findall(pattern)}
    known = groups | facts | set(rule.numbers) | {name for when in rule.when for name in when.facts} | {"last_step"}
    for template in (rule.summary, rule.fix, rule.command, rule.experiment):
        try:
            fields = [one[1:] for one in Formatter().parse(template) if one[1] is not None]
        except ValueError as fault:
            yield f"{template!r}: {fault}; a brace that is meant is doubled"
            continue
        for name, shape, conversion in fields:
            if shape or conversion:  # A width of 900 million is a gigabyte of blanks.
                yield f"{template!r}: {{{name}}} has a format, expected the name alone"
            elif name not in known:
                yield f"{template!r}: {{{name}}} is no group of a pattern, number or fact"


def _read_file(name: str, text: str) -> _RuleFile:
    try:
        _, raw = parse_toml(text.encode("utf-8", "surrogateescape"))
    except TomlError as fault:
        where = "" if fault.line is None else f":{fault.line}"
        raise RecipeError(f"the rules in {name}{where}: {fault.what}", hint="see docs/diagnose-rules.md") from fault
    try:
        return msgspec.convert(raw, _RuleFile)
    except msgspec.ValidationError as fault:  # Looked for only now: finding all of them takes longer than reading.
        raise RecipeError(
            f"the rules in {name} cannot be read",
            hint="see docs/diagnose-rules.md",
            details=describe_faults(find_faults(raw, _RuleFile), Path(name), text),
        ) from fault
