"""What `toolkit lint model` answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from toolkit.answers import Answer, printable
from toolkit.diagnosing.wrapping import WIDTH, wrap

if TYPE_CHECKING:
    from toolkit.lint import Finding, Report

SCHEMA = 1


def describe_lint(report: Report, *, verbose: bool, width: int = WIDTH) -> Answer:
    """Show each finding with its line and the right form, what was not read, and the count; why once a check."""
    lines: list[str] = []
    told: set[tuple[str, str]] = set()
    for finding in report.findings:
        is_new = verbose or (finding.check, finding.why) not in told
        told.add((finding.check, finding.why))
        lines += _finding_lines(finding, width, with_why=is_new)
    for one in report.skipped:
        lines.append(printable(f"{one.file}: not judged: {one.why}"))
    for allowed in report.allowed if verbose else ():
        lines.append(printable(f"{_place(allowed.finding)}: allowed: {allowed.reason}"))
    lines.append(_count_line(report))
    document = {
        "schema": SCHEMA,
        "verdict": "findings" if report.findings else "undecided" if report.skipped else "passed",
        "files": report.files,
        "findings": [asdict(one) for one in report.findings],
        "allowed": [{**asdict(one.finding), "reason": one.reason} for one in report.allowed],
        "skipped": [asdict(one) for one in report.skipped],
    }
    return Answer(text="\n".join(lines), document=document)


def describe_outcome(report: Report) -> str:
    """Say in a line why a lint is not passed."""
    unread = len(report.skipped)
    parts = [_counted(len(report.findings), "finding")] if report.findings else []
    parts += [f"{_counted(unread, 'file')} could not be judged"] if unread else []
    return ", ".join(parts)


def hint_of(report: Report) -> str:
    """Say what to do about a lint that is not passed."""
    if report.findings:
        return "mend them, or allow one with `# toolkit: allow[ID] reason` on its line; docs/lint.md tells each check"
    return "mend these files, or leave them out by naming the folders that count"


def _finding_lines(finding: Finding, width: int, *, with_why: bool) -> Iterator[str]:
    yield printable(f"{_place(finding)}: {finding.what}")  # One line, as editors and grep take it.
    yield printable(f"    {finding.text}")
    if with_why:
        yield from _wrapped(finding.why, width, first="  why: ")
    yield from _wrapped(finding.right, width, first="  right: ")


def _wrapped(text: str, width: int, *, first: str) -> list[str]:
    return wrap(printable(text), width, first=first)


def _place(finding: Finding) -> str:
    return f"{finding.file}:{finding.line}: {finding.check}"


def _count_line(report: Report) -> str:
    counts = Counter(finding.check for finding in report.findings)
    found = ", ".join(f"{check} {count}" for check, count in sorted(counts.items())) or "no findings"
    allowed = f"; {len(report.allowed)} allowed" if report.allowed else ""
    unread = f"; {_counted(len(report.skipped), 'file')} not judged" if report.skipped else ""
    if not report.files:
        return "no file was judged"
    return f"{_counted(report.files, 'file')}: {found}{allowed}{unread}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
