"""The whole way, from places to a diagnosis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import BinaryIO

from toolkit.errors import LogError
from toolkit.triage.judging import all_facts, judge
from toolkit.triage.reading import Source, find_sources, read_chunks
from toolkit.triage.rules import RuleBook, shipped_rules
from toolkit.triage.values import NOTHING, Diagnosis
from toolkit.triage.walking import LogRead, read_log


def diagnose(
    places: Sequence[str],
    *,
    facts: Mapping[str, str] = NOTHING,
    book: RuleBook | None = None,
    stdin: BinaryIO | None = None,
) -> Diagnosis:
    """Read logs (files, folders, `-` for standard input) and say what failed, best first.

    `facts` are what is known of the launch from elsewhere: they count more than what a log says. Raises UsageError for
    a place that is not there, LogError where no line of any can be read.
    """
    rules = book or shipped_rules()
    sources, remarks = find_sources(places)
    told = [(one.source, one.text) for one in remarks]
    logs = [_read(source, rules, told, stdin) for source in sources]
    if not any(log.bytes for log in logs):
        raise LogError(
            f"no line can be read of {_named(places)}",
            hint="name the log that the run wrote: a text file, a folder with those of all ranks, or - for a pipe",
            details=[f"{name}: {text}" for name, text in told],
        )
    findings, notes = judge(logs, rules, facts)
    return Diagnosis(
        findings=tuple(findings),
        notes=tuple(notes),
        remarks=tuple(told),
        facts={**all_facts(logs), **facts},
        sources=tuple(log.name for log in logs),
        lines=sum(log.lines for log in logs),
        bytes=sum(log.bytes for log in logs),
    )


def _named(places: Sequence[str]) -> str:
    return repr(places[0]) if len(places) == 1 else f"{len(places)} places"


def _read(source: Source, book: RuleBook, told: list[tuple[str, str]], stdin: BinaryIO | None) -> LogRead:
    chunks = read_chunks(source, lambda text: told.append((source.name, text)), stdin)
    return read_log(source.name, source.rank, chunks, book)
