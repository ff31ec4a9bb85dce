"""The patterns of rules, compiled when they are needed, and sets of them that are searched at once.

Compiling takes longer than reading most logs: sets are made of *relaxed* patterns, which take whatever the exact ones
take and compile ten times faster, and an exact one is compiled where its relaxed one was found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import re2

from toolkit.triage.rules import RuleBook

BOUNDED = re.compile(r"(?<!\\)\{(\d*),\d{2,}\}")
NAMED = re.compile(r"(?<!\\)\(\?P<\w+>")
ANCHOR = re.compile(r"(?<![\[\\])\^")


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Any:
    """Compile a rule's pattern, once."""
    return re2.compile(pattern)


@lru_cache(maxsize=4)
def words_of(book: RuleBook) -> Any:
    """Return the pattern of all words and shapes that stop the walk, in any case."""
    words = [re2.escape(word.encode()) for word in book.anchors]
    return re2.compile(b"(?im)" + b"|".join([*words, *(shape.encode() for shape in book.shapes)]))


@lru_cache(maxsize=4)
def line_patterns(book: RuleBook) -> tuple[str, ...]:
    """List the patterns that rules search in lines, each once."""
    return tuple(dict.fromkeys(when.line for rule in book.rules for when in rule.when if when.line))


@lru_cache(maxsize=4)
def line_set(book: RuleBook) -> Any:
    """Return the set of `line_patterns`, relaxed."""
    return _set_of(map(relaxed, line_patterns(book)))


@lru_cache(maxsize=4)
def rough_set(book: RuleBook) -> Any:
    """Return the set of patterns and marks for lines whose prefixes are still on."""
    return _set_of(ANCHOR.sub("", relaxed(pattern)) for pattern in (*line_patterns(book), *book.marks))


@lru_cache(maxsize=4)
def mark_set(book: RuleBook) -> Any:
    """Return the set of marks."""
    return _set_of(book.marks)


@lru_cache(maxsize=4)
def ignored_set(book: RuleBook) -> Any:
    """Return the set of patterns of lines that are passed over."""
    return _set_of(book.ignored)


@lru_cache(maxsize=4)
def fact_set(book: RuleBook) -> Any:
    """Return the set of the facts' patterns, in their order."""
    return _set_of(fact.line for fact in book.facts)


def relaxed(pattern: str) -> str:
    """Return a pattern without groups and upper bounds; it takes all that the pattern takes."""
    return NAMED.sub("(?:", BOUNDED.sub(lambda found: f"{{{found[1] or 0},}}", pattern))


def _set_of(patterns: Iterable[str]) -> Any:
    found = re2.Set.SearchSet()
    for pattern in patterns:
        found.Add(pattern)
    found.Compile()
    return found
