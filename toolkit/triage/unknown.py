"""What is said where no rule applies: what was looked at, and what to collect next; or that nothing failed."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from toolkit.triage.findings import evidence_of
from toolkit.triage.incidents import Incident, Item
from toolkit.triage.patterns import mark_set
from toolkit.triage.progress import ENDED_WELL
from toolkit.triage.rules import RuleBook
from toolkit.triage.values import Finding
from toolkit.triage.walking import LogRead

COLLECT = (
    "run it again with TORCH_LOGS=+dynamo,aot,inductor,output_code TORCH_COMPILE_DEBUG=1 and diagnose the whole log of "
    "every rank; a run in eager (no compile) with the same data says whether compiling matters at all"
)
COLLECT_ELSEWHERE = (
    "mend it where it was raised, if that is your program; else diagnose the whole log of every rank: what is here is "
    "not in torch's or torch_npu's own words"
)
LIBRARY = re.compile(r"(?:site|dist)-packages/|/lib(?:64)?/python\d|^<|torchinductor")
FRAMEWORK = ("/torch/", "/torch_npu/", "/triton/", "torchinductor", "cann_ops_transformer")


def unknown_finding(
    incident: Incident, book: RuleBook, *, wrappers: Container[int], noted: Container[int]
) -> tuple[Finding, Item] | None:  # fmt: skip
    """Say what failed without knowing why, and by which item; None where an incident holds no failure.

    Training went on after that one, and it is of lines without an exception, of what a logger did not call an error, or
    of a package that is done without.
    """
    places = [at for at, item in enumerate(incident.items) if at not in noted and _tells_of_failure(item, book)]
    first_note = next((at for at in range(len(incident.items)) if at in noted), None)
    if first_note is not None:  # What stands behind a note and was not raised belongs to it.
        places = [at for at in places if at < first_note or incident.items[at].raised is not None]
    if incident.run_goes_on:
        places = [at for at in places if not _is_survivable(incident.items[at])]
    raised = [at for at in places if incident.items[at].raised is not None]
    inner = next((at for at in raised if at not in wrappers), raised[0] if raised else None)
    if not places:
        return None
    item = incident.items[places[0] if inner is None else inner]
    is_wrapper = inner is not None and inner in wrappers
    is_framework = any(word in frame.path for frame in item.frames for word in FRAMEWORK)
    lines = [*item.lines[:1], *item.frame_lines[-1:]] or [item.at]
    finding = Finding(
        layer="unknown",
        cause="unrecognized",
        kind="victim" if is_wrapper else "cause",
        summary=_summary(item, is_framework=is_framework, is_wrapper=is_wrapper),
        confidence="low",
        evidence=tuple(evidence_of(incident, line) for line in lines),
        ranks=() if incident.rank is None else (incident.rank,),
        count=incident.count,
        experiment=COLLECT if is_framework else COLLECT_ELSEWHERE,
        source="no rule applies",
        goes_on=incident.goes_on,
    )
    return finding, item


def _tells_of_failure(item: Item, book: RuleBook) -> bool:
    """Whether an item is more than a line that a rule might have been about, or frames that TORCH_LOGS shows."""
    if item.raised is not None or item.is_told_only:
        return item.raised is not None
    is_cut = not item.lines and item.header is not None and item.header.level not in ("debug", "info")
    is_loud = any(line.level in ("error", "fatal") for line in (*item.lines[:1], *item.frame_lines[:1]))
    return is_cut or is_loud or any(mark_set(book).Match(line.text) for line in item.lines[:1])


def is_optional(item: Item) -> bool:
    """Whether an item tells of a package that could not be imported, which programs often do without."""
    return item.raised is not None and item.raised.name in ("ImportError", "ModuleNotFoundError")


def _is_survivable(item: Item) -> bool:
    is_line = item.raised is None and not item.frames
    return is_line or item.is_quiet or is_optional(item)


def nothing_failed(logs: Sequence[LogRead]) -> Finding:
    """Say that nothing failed, as far as the logs tell: sure only where they say that training ended."""
    size = _counted(sum(log.lines for log in logs), "line") + " of " + _counted(len(logs), "log")
    progress = [log.progress for log in logs if log.progress is not None]
    has_ended = bool(progress) and all(ENDED_WELL.search(one.text) for one in progress)
    rest = {
        True: "training has ended",
        False: f"the last sign of progress is `{_first(progress[-1].text)}`, of an end there is none" if progress else
        "nor do they tell of any training",
    }[has_ended]  # fmt: skip
    return Finding(
        layer="none",
        cause="nothing-failed",
        kind="note",
        summary=f"no failure is told of in {size}: {rest}",
        confidence="high" if has_ended else "medium" if progress else "low",
        evidence=tuple(progress[-1:]),
        source="no line tells of a failure",
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _summary(item: Item, *, is_framework: bool, is_wrapper: bool) -> str:
    first = item.text.partition("\n")[0][:300]
    if not item.lines:
        last = item.frames[-1] if item.frames else None
        return f"the log ends within a traceback{f', in {last}' if last else ''}: what was raised is not in it"
    if item.raised is None:
        return f"the log calls this an error, and no rule knows it: {first}"
    if is_wrapper:
        return f"only the wrapper is in the log, not what it wraps: {first}"
    last = item.frames[-1] if item.frames else None
    where = f" in {last.path}:{last.line} ({last.function})" if last else ""
    own = next((frame for frame in reversed(item.frames) if not LIBRARY.search(frame.path)), None)
    if own is not None and own is not last:
        where += f", called from {own.path}:{own.line} ({own.function})"
    whose = "" if is_framework or not item.frames else "; nothing of torch or the NPU is in its traceback"
    said = ": ".join(filter(None, (item.raised.name, _first(item.raised.message))))
    return f"{said}{where}: no rule knows it{whose}"


def _first(message: str) -> str:
    return message.strip().partition("\n")[0][:300]
