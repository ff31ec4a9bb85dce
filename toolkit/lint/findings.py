"""What a lint says: findings, files it could not read, findings that a comment allows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One place that a check objects to; `text` is the source line, `right` the form that is right."""

    check: str
    file: str
    line: int
    text: str
    what: str
    why: str
    right: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Allowed:
    """A finding that a comment in the file allows, with the reason given there."""

    finding: Finding
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Skipped:
    """A file or folder that was not judged."""

    file: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What was found in `files` read files, in the order of files and lines."""

    files: int
    findings: tuple[Finding, ...]
    allowed: tuple[Allowed, ...]
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """What a check found in a file, before its table's words are put to it; `why` and `right` replace these."""

    check: str
    file: str
    line: int
    what: str
    why: str = ""
    right: str = ""
