"""What `toolkit diagnose` answers: text for a person, and the document of docs/diagnose-schema.json."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from toolkit.answers import Answer
from toolkit.triage import Diagnosis, Evidence, Finding, diagnosis_document

WIDTH = 120
SHOWN_FINDINGS = 5
SHOWN_TEXT = 200


def describe_diagnosis(found: Diagnosis, *, verbose: bool) -> Answer:
    """Say what was found, best first; the text has the first few findings, with `verbose` all."""
    shown = found.findings if verbose else found.findings[:SHOWN_FINDINGS]
    blocks = [_finding_lines(one) for one in shown]
    if len(shown) < len(found.findings):
        blocks.append([f"{len(found.findings) - len(shown)} more findings: -v shows them"])
    blocks += [_note_lines(found.notes)] if found.notes else []
    blocks += [[f"remark: {name}: {text}" for name, text in found.remarks]] if found.remarks else []
    text = "\n\n".join("\n".join(map(_printable, block)) for block in blocks if block)
    return Answer(text=text, document=diagnosis_document(found))


def _finding_lines(one: Finding) -> list[str]:
    goes_on = "; training went on" if one.goes_on else ""
    times = f"; seen {one.count} times" if one.count > 1 else ""
    certainty = "" if one.layer == "none" else f" ({one.kind}, confidence {one.confidence}{goes_on}{times})"
    lines = [f"{one.layer}: {one.cause}{certainty}", *_wrapped("", one.summary)]
    lines += [line for evidence in one.evidence for line in _evidence_lines(evidence)]
    for label, text in (("do", one.fix), ("run", one.command), ("patch", one.patch), ("recipe", one.recipe),
                        ("next", one.experiment)):  # fmt: skip
        lines += _wrapped(f"{label}: ", text, is_whole=label == "run") if text else []
    return lines


def _note_lines(notes: Sequence[Evidence]) -> list[str]:
    """Say each note once, where it stands first and in how many places more."""
    places: dict[str, list[Evidence]] = {}
    for one in notes:
        places.setdefault(one.text, []).append(one)
    return [
        f"note: {_place(found[0])}{f' and {len(found) - 1} more' if len(found) > 1 else ''}: {_cut(text)}"
        for text, found in places.items()
    ]


def _evidence_lines(one: Evidence) -> list[str]:
    who = "" if one.rank is None else f" (rank {one.rank})"
    return [f"  at: {_place(one)}{who}", f"      {_cut(one.text)}"]


def _wrapped(label: str, text: str, *, is_whole: bool = False) -> list[str]:
    if is_whole:  # A command must be one line for the shell that it is pasted into.
        return [f"  {label}{text}"]
    return textwrap.wrap(
        text, WIDTH, initial_indent=f"  {label}", subsequent_indent=" " * (2 + len(label)), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _place(one: Evidence) -> str:
    return f"{'standard input' if one.file == '-' else one.file}:{one.line}"


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_TEXT else f"{text[: SHOWN_TEXT - 4]} ..."


def _printable(line: str) -> str:
    """Write what no terminal should get as Python would: lines of a log and names of files can hold it."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in line)
