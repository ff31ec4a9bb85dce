"""What a run's generated code must hold, as a recipe or a command line says it."""

from __future__ import annotations

import re
from dataclasses import dataclass

DECORATOR = re.compile(r"@[A-Za-z_]\w*(\.\w+)*", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceKept:
    """Calls whose names match a regular expression, and in how many files there must be one."""

    pattern: str
    at_least: int


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceWanted:
    """What generated code must hold; `in_all` has each of `require` in every file, not only in one.

    A pattern `@a.b` is a decorator by its name or the start of it; any other is a regular expression for the names of
    called operators.
    """

    require: tuple[str, ...] = ()
    in_all: bool = False
    forbid: tuple[str, ...] = ()
    keep: tuple[EvidenceKept, ...] = ()
    no_alias_hazard: bool = False


NO_EVIDENCE = EvidenceWanted()
"""What a recipe wants that says nothing about it."""


def pattern_fault(pattern: str) -> str:
    """Say what is wrong with a pattern; nothing if it is one."""
    if not pattern:
        return "an empty pattern, which everything would match"
    if pattern.startswith("@"):
        return (
            "" if DECORATOR.fullmatch(pattern) else f"{pattern!r} is not the name of a decorator, as '@dvm.kernel' is"
        )
    try:
        re.compile(pattern)
    except re.error as fault:
        return f"{pattern!r} is no regular expression: {fault}"
    return ""
