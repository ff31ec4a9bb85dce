"""Find the hashes that a command prints."""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolkit.errors import UsageError

HEX = (
    r"(?:0x)?(?P<hash>[0-9a-fA-F]{32}|[0-9a-fA-F]{40}|[0-9a-fA-F]{56}|[0-9a-fA-F]{64}|[0-9a-fA-F]{96}|[0-9a-fA-F]{128})"
)
"""A digest of 128 to 512 bits, whole: shorter ones are told by `--hashes`, as dates and counts look like them."""

FORMS = (
    re.compile(rf"(?i:sha|md|blake|shake)[\w-]* ?\((?P<name>[^()]+(?:\([^()]*\)[^()]*)*)\) ?[:=] ?{HEX}"),
    re.compile(rf"(?P<name>\S.*?) ?[:=] ?(?:[A-Za-z][\w-]*:)?{HEX}"),
    re.compile(rf"{HEX} [ *](?P<name>\S.*)"),
)
"""`sha256(name) = hex`; `name: hex` and `name=hex`, also `name: sha256:hex`; `hex  name`, as sha256sum prints it."""

RANK = re.compile(
    r"\[(?:[Rr]ank|RANK|default)[ :_-]?(?P<bracketed>\d+)\]:?\s*"
    r"|(?:[Rr]ank|RANK)[ :_-]?(?P<plain>\d+)(?:\s*[:|]\s*|\s+)"
    r"|\[(?P<number>\d+)\]:?\s+"
)
"""How launchers and programs say whose line it is: `[rank0]:`, `[default1]:`, `rank 2:`, `[3]:`."""

BEFORE = re.compile(
    r"\s*(?:"
    r"[\[(]?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?Z?[\])]?"
    r"|[\[(]?\d\d:\d\d:\d\d(?:[.,]\d+)?[\])]?"
    r"|[\[(]?(?:DEBUG|INFO|WARNING|ERROR)\b[\])]?(?::\w+:)?"
    r")[\s:|-]*"
)
"""Times and levels, as loggers put them before a line."""


def compile_pattern(text: str) -> re.Pattern[str]:
    """Return the pattern of `--hashes`; UsageError where it is none, or names no two groups."""
    try:
        pattern = re.compile(text)
    except re.error as fault:
        raise UsageError(f"--hashes {text!r} is no regular expression: {fault}", hint="see Python's `re`") from fault
    if not ({"name", "hash"} <= set(pattern.groupindex) or (pattern.groups == 2 and not pattern.groupindex)):
        raise UsageError(
            f"--hashes {text!r} does not say where name and hash are",
            hint="give two groups, name and hash, or name them: (?P<hash>[0-9a-f]{8}) of (?P<name>[a-z]+)",
        )
    return pattern


def find_hashes(text: str, pattern: re.Pattern[str] | None = None) -> dict[str, str]:
    """Return the hashes in what a command printed, by name, in order.

    With a `pattern` every match of it in a line counts, else a line that is a hash with its name and nothing more.
    Whose line it is becomes a part of the name (`rank 1: loss`), times and levels do not. A name that comes again is
    counted: `loss`, `loss #2`.
    """
    found: dict[str, str] = {}
    times: dict[str, int] = {}
    for line in text.splitlines():
        rank, rest = peel(line)
        for name, value in _pairs(rest, pattern):
            full = f"{rank}{name.strip()}"
            times[full] = times.get(full, 0) + 1
            found[full if times[full] == 1 else f"{full} #{times[full]}"] = value.lower()
    return found


def peel(line: str) -> tuple[str, str]:
    """Part a line from what a launcher or a logger has put before it: `rank 0: ` or nothing, and the rest."""
    rank, rest = "", line.strip()
    while True:
        if found := RANK.match(rest):
            rank = f"rank {next(filter(None, found.groups()))}: "
        elif not (found := BEFORE.match(rest)):
            return rank, rest
        rest = rest[found.end() :]


def _pairs(line: str, pattern: re.Pattern[str] | None) -> Iterator[tuple[str, str]]:
    if pattern is None:
        matches = (form.fullmatch(line) for form in FORMS)
        yield from [(one["name"], one["hash"]) for one in matches if one][:1]
        return
    for one in pattern.finditer(line):
        name, value = (one["name"], one["hash"]) if pattern.groupindex else one.groups()
        if name is not None and value is not None:
            yield name, value
