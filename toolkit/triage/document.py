"""A diagnosis as `--json` gives it: the shape of docs/diagnose-schema.json, which is generated from these types."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from toolkit.triage.values import Confidence, Diagnosis, Evidence, Finding, Kind, Layer

SCHEMA = 1

Count = Annotated[int, msgspec.Meta(ge=0)]


class EvidenceDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of a log: its file, its number from 1, its process where the log says one, its text without prefixes."""

    file: str
    line: Count
    rank: int | None
    text: str


class RemarkDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What could not be read of a file, or was left out."""

    source: str
    text: str


class FindingDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One failure, or one thing that is wrong; what each field says is told in docs/diagnose.md."""

    layer: Layer
    cause: str
    kind: Kind
    summary: str
    confidence: Confidence
    ranks: list[int]
    count: Count
    goes_on: bool
    evidence: list[EvidenceDocument]
    fix: str
    command: str | None
    patch: str | None
    recipe: str | None
    experiment: str | None
    source: str


class DiagnosisDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that was found: findings best first, at least one."""

    schema: Annotated[int, msgspec.Meta(ge=SCHEMA, le=SCHEMA)]
    findings: Annotated[list[FindingDocument], msgspec.Meta(min_length=1)]
    notes: list[EvidenceDocument]
    remarks: list[RemarkDocument]
    facts: dict[str, str]
    sources: list[str]
    lines: Count
    bytes: Count


def diagnosis_document(found: Diagnosis) -> Any:
    """Return a diagnosis as plain values."""
    document = DiagnosisDocument(
        schema=SCHEMA,
        findings=[_finding(one) for one in found.findings],
        notes=[_evidence(one) for one in found.notes],
        remarks=[RemarkDocument(source=name, text=text) for name, text in found.remarks],
        facts=dict(found.facts),
        sources=list(found.sources),
        lines=found.lines,
        bytes=found.bytes,
    )
    return msgspec.to_builtins(document)


def diagnosis_schema() -> Any:
    """Return the JSON schema of the document."""
    return msgspec.json.schema(DiagnosisDocument)


def _finding(one: Finding) -> FindingDocument:
    return FindingDocument(
        layer=one.layer,
        cause=one.cause,
        kind=one.kind,
        summary=one.summary,
        confidence=one.confidence,
        ranks=list(one.ranks),
        count=one.count,
        goes_on=one.goes_on,
        evidence=[_evidence(evidence) for evidence in one.evidence],
        fix=one.fix,
        command=one.command or None,
        patch=one.patch or None,
        recipe=one.recipe or None,
        experiment=one.experiment or None,
        source=one.source,
    )


def _evidence(one: Evidence) -> EvidenceDocument:
    return EvidenceDocument(file=one.file, line=one.line, rank=one.rank, text=one.text)
