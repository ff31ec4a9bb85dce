"""What `toolkit evidence scan` answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from toolkit.answers import Answer, printable
from toolkit.scan import add_up

if TYPE_CHECKING:
    from toolkit.scan import FileReport, Hazard, Judgement, Outcome, Sum

FEW_FILES = 20
"""Up to how many files are shown one by one without --verbose."""

FEW_LINES = 20
"""How many hazards, unreadable files and names are shown without --verbose."""

NONE = "none"


def describe_scan(
    reports: Sequence[FileReport],
    repeated: Sequence[str],
    judged: Sequence[Judgement],
    outcome: Outcome,
    *,
    verbose: bool,
) -> Answer:
    """Show the files one by one where they are few, then the sum, the hazards, what was not read, and the verdicts."""
    found = [one for one in reports if one.state in ("wrapper", "kernels")]
    total = add_up(reports)
    lines = [line for one in found for line in _file_lines(one)] if verbose or len(found) <= FEW_FILES else []
    lines += _sum_lines(total)
    lines += _shortened([_hazard_line(one, hazard) for one in found for hazard in one.hazards], verbose)
    lines += _shortened([f"{one.path}: not judged: {doubt}" for one in found for doubt in one.doubts], verbose)
    lines += _shortened([f"{one.path}: not read: {one.why}" for one in reports if one.state == "unreadable"], verbose)
    lines += [f"{len(repeated)} links to, or copies of, what was seen already: not counted again"] * bool(repeated)
    lines += [f"  {path}" for path in repeated] if verbose else []
    for judgement in judged:
        lines += _judgement_lines(judgement, verbose)
    return Answer(text="\n".join(map(printable, lines)), document=_document(reports, total, repeated, judged, outcome))


def describe_outcome(reports: Sequence[FileReport], judged: Sequence[Judgement], outcome: Outcome) -> str:
    """Say in a line why a scan is not passed."""
    failed = [f"{one.wanted}: {one.figures}" for one in judged if one.outcome == "failed"]
    if failed:
        return f"{len(failed)} of {len(judged)} requirements not met: {'; '.join(failed)}"
    unread = sum(one.state == "unreadable" for one in reports)
    if unread:
        return f"{unread} file{'s' * (unread > 1)} could not be read, so the rest decides nothing"
    if not any(one.state in ("wrapper", "kernels") for one in reports):
        return "there is no generated code in the given places"
    undecided = [f"{one.wanted}: {one.figures}" for one in judged if one.outcome != "passed"]
    return f"{outcome}: {'; '.join(undecided)}"


def hint_of(reports: Sequence[FileReport], judged: Sequence[Judgement]) -> str:
    """Say what to do about a scan that is not passed."""
    if any(one.outcome == "failed" for one in judged):
        return "`-v` shows every file, `--json` all of it"
    if any(one.state == "unreadable" for one in reports):
        return "make them readable, or leave them out and name the files that count"
    if not judged or not reports or all(one.state == "other" for one in reports):
        return "expected output_code.py (TORCH_COMPILE_DEBUG=1), or the folder of TORCHINDUCTOR_CACHE_DIR"
    return "`-v` shows what could not be judged"


# --- text --------------------------------------------------------------------------------------------------------


def _file_lines(report: FileReport) -> Iterator[str]:
    kind = "" if report.state == "wrapper" else " (kernels alone)"
    yield f"{report.path}{kind}: kernels {_counted(report.kernels)}"
    for name, counts in (("types", report.types), ("custom operators", report.custom), ("extern calls", report.extern),
                         ("fallbacks", report.fallbacks)):  # fmt: skip
        if counts:
            yield f"  {name}: {_counted(counts)}"


def _sum_lines(total: Sum) -> Iterator[str]:
    files = total.files
    yield (
        f"{files.get('wrapper', 0)} graphs, {files.get('kernels', 0)} files of kernels alone, "
        f"{files.get('other', 0)} other Python files, {files.get('unreadable', 0)} not read"
    )
    for name, counts in (("kernels", total.kernels), ("types", total.types), ("custom operators", total.custom),
                         ("extern calls", total.extern), ("fallbacks", total.fallbacks)):  # fmt: skip
        yield f"{name}: {_counted(counts)}"


def _counted(counts: Mapping[str, int]) -> str:
    shown = [f"{name} {count}" for name, count in counts.items()][:FEW_LINES]
    more = [f"and {len(counts) - FEW_LINES} more"] if len(counts) > FEW_LINES else []
    return ", ".join(shown + more) or NONE


def _hazard_line(report: FileReport, hazard: Hazard) -> str:
    """Tell a hazard by what comes in between: a later stage, or the clearing of an output that blocks add to."""
    verb = "is" if hazard.certainty == "certain" else "may be"
    if hazard.read == hazard.made:
        place = f"{verb} added up in the output {hazard.output}, which is cleared before"
    elif hazard.used == hazard.made:
        place = f"{verb} stored in the output {hazard.output}"
    else:
        place = f"{verb} kept in the output {hazard.output} until stage {hazard.used}"
    same = "the same name" if hazard.output == hazard.input else f"both are {hazard.buffer}"
    return (
        f"{report.path}:{hazard.line}: {hazard.certainty} alias hazard in {hazard.kernel}: {hazard.value} of stage "
        f"{hazard.made} {place}, and stage {hazard.read} reads the input {hazard.input} ({same})"
    )


def _judgement_lines(judgement: Judgement, verbose: bool) -> Iterator[str]:
    yield f"{judgement.outcome}: {judgement.wanted}: {judgement.figures}"
    if judgement.outcome != "passed":
        yield from (f"  {line}" for line in _shortened(list(judgement.files), verbose))


def _shortened(lines: list[str], verbose: bool) -> list[str]:
    if verbose or len(lines) <= FEW_LINES:
        return lines
    return [*lines[:FEW_LINES], f"and {len(lines) - FEW_LINES} more: `-v` shows all"]


# --- document ----------------------------------------------------------------------------------------------------


def _document(
    reports: Sequence[FileReport],
    total: Sum,
    repeated: Sequence[str],
    judged: Sequence[Judgement],
    outcome: Outcome,
) -> dict[str, Any]:
    found = [one for one in reports if one.state in ("wrapper", "kernels")]
    return {
        "verdict": outcome,
        "sum": asdict(total),
        "requirements": [asdict(one) for one in judged],
        "hazards": [{"file": one.path, **asdict(hazard)} for one in found for hazard in one.hazards],
        "doubts": [{"file": one.path, "what": doubt} for one in found for doubt in one.doubts],
        "unreadable": [{"file": one.path, "why": one.why} for one in reports if one.state == "unreadable"],
        "repeated": list(repeated),
        "files": [_file_document(one) for one in found],
    }


def _file_document(report: FileReport) -> dict[str, Any]:
    names = ("state", "kernels", "types", "decorators", "custom", "extern", "fallbacks")
    return {"file": report.path, **{name: getattr(report, name) for name in names}, "hazards": len(report.hazards)}
