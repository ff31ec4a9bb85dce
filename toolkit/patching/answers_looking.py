"""What `toolkit patch list`, `show` and `status` answer: plain text that fits a terminal, and the document."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from toolkit.answers import Answer

if TYPE_CHECKING:
    from toolkit.model import Patch
    from toolkit.series.verdict import HunkVerdict, PatchState, PatchVerdict
    from toolkit.upkeep.hygiene import ReadSeries
    from toolkit.upkeep.status import SeriesStatus, Status
    from toolkit.upkeep.viewing import FileView, HunkView, PatchView

WIDTH = 100
DIAGNOSTIC = "for diagnosis only"
STATES: tuple[PatchState, ...] = ("applies", "offset", "upstream", "partly", "conflict")


# --- list --------------------------------------------------------------------------------------------------------


def describe_list(found: Sequence[ReadSeries]) -> Answer:
    """List series with what each of their patches is."""
    blocks = ["\n".join(_list_lines(one)) for one in found]
    return Answer(text="\n\n".join(blocks), document=[_series_document(one) for one in found])


def _list_lines(one: ReadSeries) -> Iterator[str]:
    yield from _wrapped(f"{one.name}{_for_bases(one)}", "", "    ")
    for patch in one.patches:
        yield from _wrapped(f"{patch.number:04} {patch.subject or '(no subject)'}", "  ", "       ")
        yield from _wrapped(f"{_witness_words(patch)}; {patch.upstream_status or 'no Upstream-Status'}", " " * 7)
        yield from (_cut(f"{' ' * 7}{change.path}") for change in patch.changes)
    if count := len(one.faults):
        yield f"  {count} fault{'s' * (count > 1)}, see `toolkit patch status`"


def _for_bases(one: ReadSeries) -> str:
    if one.line is None:
        return ", for no base that it names"
    home, *others = map(_short, one.line.covers)
    words = f", home {home}{', also for ' if others else ''}{', '.join(others)}"
    return f"{words} ({DIAGNOSTIC})" if one.line.diagnostic else words


def _short(coverage: str) -> str:
    return coverage[: len("git:") + 12] if coverage.startswith("git:") else coverage


def _witness_words(patch: Patch) -> str:
    return f"witness {patch.witness}" if patch.witness else "no witness"


def _series_document(one: ReadSeries) -> dict[str, Any]:
    return {
        "series": one.name,
        "covers": list(one.line.covers) if one.line else [],
        "diagnostic": bool(one.line and one.line.diagnostic),
        "patches": [_patch_document(patch) for patch in one.patches],
        "faults": [str(fault) for fault in one.faults],
    }


def _patch_document(patch: Patch) -> dict[str, Any]:
    return {
        "number": patch.number,
        "name": patch.name,
        "file": str(patch.path),
        "sha256": patch.sha256,
        "subject": patch.subject,
        "upstream_status": patch.upstream_status,
        "witness": patch.witness,
        "files": [change.path for change in patch.changes],
    }


# --- show --------------------------------------------------------------------------------------------------------


def describe_patch(view: PatchView) -> Answer:
    """Show one patch whole."""
    patch = view.patch
    lines = [
        *_wrapped(f"{view.series} {patch.name}{f' ({DIAGNOSTIC})' if view.diagnostic else ''}", ""),
        *_wrapped(patch.subject, "  "),
        *_wrapped(f"{view.author}, {view.date}", "  "),
        "",
        *(line for text in patch.body.splitlines() for line in _body_lines(text)),
        "",
        *_wrapped(f"witness  {_witness_line(view)}", "", "         "),
        *_wrapped(f"covers   {', '.join(view.covers) or 'nothing'}", "", "         "),
        *(line for file in view.files for line in _file_lines(file)),
    ]
    return Answer(text="\n".join(lines), document=_view_document(view))


def _body_lines(text: str) -> list[str]:
    """Leave a line of a message as its author broke it, if it fits."""
    return [f"  {text}".rstrip()] if len(text) <= WIDTH - 2 else _wrapped(text, "  ")


def _witness_line(view: PatchView) -> str:
    if not view.patch.witness:
        return "none"
    if not view.witness_module:
        return f"{view.patch.witness}, which verify/ does not have"
    return f"{view.patch.witness} ({view.witness_module}): {view.witness_summary}"


def _file_lines(file: FileView) -> Iterator[str]:
    was = f" from {file.old_path}" if file.old_path != file.path else ""
    what = "submodule, " if file.is_gitlink else "binary, " if file.is_binary else ""
    yield f"{file.path} ({what}{file.part}, {file.kind}{was})"
    yield from (_cut(_hunk_line(hunk)) for hunk in file.hunks)


def _hunk_line(hunk: HunkView) -> str:
    counts = ", ".join(f"{sign}{count}" for sign, count in (("+", hunk.added), ("-", hunk.removed)) if count)
    where = f" below {hunk.heading}" if hunk.heading else ""
    return f"  #{hunk.number} {hunk.kind} ({counts}) at line {hunk.line}{where}"


def _view_document(view: PatchView) -> dict[str, Any]:
    return {
        **_patch_document(view.patch),
        "series": view.series,
        "author": view.author,
        "date": view.date,
        "body": view.patch.body,
        "trailers": [{"name": name, "value": value} for name, value in view.trailers],
        "covers": list(view.covers),
        "diagnostic": view.diagnostic,
        "witness_summary": view.witness_summary,
        "witness_module": view.witness_module,
        "files": [asdict(file) for file in view.files],
    }


# --- status ------------------------------------------------------------------------------------------------------


def describe_status(status: Status) -> Answer:
    """Say how every series stands, patch by patch, then what is not in order."""
    lines = [line for one in status.series for line in (*_status_lines(one), "")]
    if status.faults:
        lines += ["not in order:", *(line for fault in status.faults for line in _wrapped(str(fault), "  ")), ""]
    if status.remarks:
        lines += ["remarks:", *(line for text in status.remarks for line in _wrapped(text, "  ")), ""]
    return Answer(text="\n".join([*lines, _summary(status)]), document=_status_document(status))


def _status_lines(one: SeriesStatus) -> Iterator[str]:
    whose = f"the base of recipe {one.recipe}" if one.recipe else "its home"
    yield from _wrapped(f"{one.series} on {one.base}, {whose}" if one.base else one.series, "", "    ")
    if one.remark:
        yield from _wrapped(one.remark, "  ")
    if one.why:
        yield from _wrapped(f"not judged: {one.why}", "  ")
    width = max((len(verdict.name) for verdict in one.verdicts), default=0)
    for verdict in one.verdicts:
        accepted = " (accepted)" if verdict.verdict == "upstream" and one.is_well(verdict) else ""
        yield _cut(f"  {verdict.name.ljust(width)}  {verdict.verdict}{accepted}{_offsets(verdict)}")
        if verdict.reason:
            yield from _wrapped(verdict.reason, "    ")
        yield from (_cut(f"      {detail}") for detail in verdict.details)


def _offsets(verdict: PatchVerdict) -> str:
    """Say by how much the hunks of a patch that goes in are off; hunks of the same file and offset in one word."""
    if verdict.verdict != "offset":
        return ""
    moved = dict.fromkeys(_offset(hunk) for hunk in verdict.hunks if hunk.offset)
    return f" {', '.join(moved)}"


def _offset(hunk: HunkVerdict) -> str:
    return f"{hunk.offset:+} in {hunk.path.rsplit('/', 1)[-1]}"


def _summary(status: Status) -> str:
    counts = Counter(verdict.verdict for one in status.series for verdict in one.verdicts)
    words = ", ".join(f"{counts[word]} {word}" for word in STATES if counts[word]) or "none judged"
    count = sum(counts.values())
    missing = sum(bool(one.why) for one in status.series)
    return (
        f"{count} patch{'es' * (count != 1)}: {words}"
        + (f"; {missing} of {len(status.series)} series not judged" if missing else "")
        + (f"; {len(status.faults)} not in order" if status.faults else "")
    )


def _status_document(status: Status) -> dict[str, Any]:
    return {
        "ok": not status.findings,
        "findings": list(status.findings),
        "series": [
            {
                "series": one.series,
                "recipe": one.recipe,
                "base": one.base,
                "why": one.why,
                "remark": one.remark,
                "accepted": sorted(one.accepted),
                "patches": [{**asdict(verdict), "moved": dict(verdict.moved)} for verdict in one.verdicts],
            }
            for one in status.series
        ],
        "faults": [{"path": str(fault.path), "what": fault.what} for fault in status.faults],
        "remarks": list(status.remarks),
    }


# --- lines -------------------------------------------------------------------------------------------------------


def _wrapped(text: str, indent: str, further: str | None = None) -> list[str]:
    """Break text at blanks; what has none is longer than a line, and can be copied."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  " if further is None else further,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"
