"""What `toolkit diagnose` answers: text for a person, and the document of docs/diagnose-schema.json."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.answers import Answer, printable
from toolkit.diagnosing.wrapping import WIDTH, wrap
from toolkit.triage import Diagnosis, Evidence, Finding, diagnosis_document

SHOWN_FINDINGS = 5
SHOWN_TEXT = 200


def describe_diagnosis(found: Diagnosis, *, verbose: bool, width: int = WIDTH) -> Answer:
    """Say what was found, best first; the text has the first few findings, with `verbose` all."""
    shown = found.findings if verbose else found.findings[:SHOWN_FINDINGS]
    blocks = [_finding_lines(one, width) for one in shown]
    if len(shown) < len(found.findings):
        blocks.append([f"{len(found.findings) - len(shown)} more findings: -v shows them"])
    blocks += [_note_lines(found.notes)] if found.notes else []
    blocks += [[f"remark: {name}: {text}" for name, text in found.remarks]] if found.remarks else []
    text = "\n\n".join("\n".join(map(printable, block)) for block in blocks if block)
    return Answer(text=text, document=diagnosis_document(found))


def _finding_lines(one: Finding, width: int) -> list[str]:
    goes_on = "; training went on" if one.goes_on else ""
    times = f"; seen {one.count} times" if one.count > 1 else ""
    certainty = "" if one.layer == "none" else f" ({one.kind}, confidence {one.confidence}{goes_on}{times})"
    lines = [f"{one.layer}: {one.cause}{certainty}", *wrap(one.summary, width, first="  ")]
    lines += [line for evidence in one.evidence for line in _evidence_lines(evidence)]
    for label, text in (("do", one.fix), ("run", one.command), ("patch", one.patch), ("recipe", one.recipe),
                        ("next", one.experiment)):  # fmt: skip
        if label == "run" and text:  # A command is one line for the shell that it is pasted into.
            lines.append(f"  {label}: {text}")
        elif text:
            lines += wrap(text, width, first=f"  {label}: ")
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


def _place(one: Evidence) -> str:
    return f"{'standard input' if one.file == '-' else one.file}:{one.line}"


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_TEXT else f"{text[: SHOWN_TEXT - 4]} ..."
