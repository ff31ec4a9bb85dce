"""Judge what a check reported against what was wanted of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from toolkit.model import CheckResult
from toolkit.prove.child import Report
from toolkit.prove.plan import PlannedCheck

OTHER_PLATFORM = "other platform"


def judge(check: PlannedCheck, report: Report, log: Path) -> CheckResult:
    """Judge one report: only the very status that was wanted will do, an `error` never stands in for a `fail`.

    A skip that the child excuses, because nobody could run the check on this target, is `not run` and not required;
    any other skip counts as not done.
    """
    excused = report.status == "skip" and report.excused
    return CheckResult(
        name=check.name,
        side=check.side,
        wanted=check.wanted,
        status="not run" if excused else report.status,
        required=not excused,
        ok=report.status == check.wanted,
        detail=report.detail,
        seconds=report.seconds,
        evidence=report.evidence,
        log=str(log),
    )


def not_loadable(check: PlannedCheck) -> CheckResult:
    """Record a check that needs the packages imported, which are for another platform than this machine."""
    return CheckResult(
        name=check.name, side=check.side, wanted=check.wanted, status="not run", required=False, ok=False,
        detail=OTHER_PLATFORM, seconds=0.0,
    )  # fmt: skip


def withdraw_lone_excuses(results: Sequence[CheckResult]) -> tuple[CheckResult, ...]:
    """Require a check again that one side excuses and the other side ran.

    What ran on one side can run on the other; without this, a witness could lose its negative control unnoticed.
    """
    ran = {result.name for result in results if result.status != "not run"}
    return tuple(
        replace(result, status="skip", required=True, detail=f"{result.detail} (but the other side ran)")
        if result.status == "not run" and result.name in ran
        else result
        for result in results
    )
