"""What `toolkit patch lint` answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toolkit.answers import Answer
from toolkit.schema import shown_path

if TYPE_CHECKING:
    from toolkit.upkeep.lint import Finding, SeriesReport


def describe_lint(reports: Sequence[SeriesReport]) -> Answer:
    """List every fault with its place, every remark, and the sum."""
    lines = [line for report in reports for line in _lines(report)]
    document = {"faults": count_faults(reports), "series": [_document(report) for report in reports]}
    return Answer(text="\n".join([*lines, _sum(reports)]), document=document)


def count_faults(reports: Sequence[SeriesReport]) -> int:
    """Count the faults of all series."""
    return sum(len(report.faults) for report in reports)


def describe_count(reports: Sequence[SeriesReport]) -> str:
    """Say in a few words how many faults there are, and in how many series."""
    count = count_faults(reports)
    if not count:
        return f"no fault in {len(reports)} series"
    faulty = sum(bool(report.faults) for report in reports)
    return f"{count} fault{'' if count == 1 else 's'} in {faulty} of {len(reports)} series"


def _lines(report: SeriesReport) -> list[str]:
    faults = [f"{_place(fault)}: {fault.what}" for fault in report.faults]
    return faults + [f"{report.name}: {remark}" for remark in report.remarks]


def _place(fault: Finding) -> str:
    return f"{shown_path(fault.path)}:{fault.line}" if fault.line else shown_path(fault.path)


def _sum(reports: Sequence[SeriesReport]) -> str:
    patches = sum(report.patches for report in reports)
    return f"{patches} patch{'' if patches == 1 else 'es'}: {describe_count(reports)}"


def _document(report: SeriesReport) -> dict[str, Any]:
    return {
        "series": report.name,
        "patches": report.patches,
        "faults": [{"file": str(one.path), "line": one.line or None, "what": one.what} for one in report.faults],
        "remarks": list(report.remarks),
    }
