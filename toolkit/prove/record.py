"""Write a proof down: as proof.json, which can be read back, and as JUnit XML for CI."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import msgspec

from toolkit.errors import ProofError
from toolkit.files import write_atomic
from toolkit.model import CheckResult, Proof

SCHEMA = 1

LIMITS = {
    "host": "Made without an NPU: a stand-in runtime answers for CANN and carries out no kernel. The run shows which"
    " files load, what the compiler lowers and generates, and which kernels are launched on which memory. It does not"
    " show that any value comes out right on an NPU, nor speed, memory use, collective communication, CANN's own"
    " operators, or that CANN's compiler accepts a kernel.",
    "device": "",
}
"""What a run of each kind cannot show."""

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    side: Literal["base", "overlay"]
    wanted: Literal["pass", "fail", "error", "skip", "not run"]
    status: Literal["pass", "fail", "error", "skip", "not run"]
    required: bool
    ok: bool
    detail: str
    seconds: float
    evidence: dict[str, Any]
    log: str


class _Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    schema: Literal[1]
    ok: bool
    recipe: str
    overlay: str
    runtime: Literal["host", "device"]
    limits: str
    environment: dict[str, Any]
    results: list[_Check]


def proof_document(proof: Proof) -> dict[str, object]:
    """Return a proof as it stands in proof.json.

    `schema` (1), `ok`, `recipe`, `overlay` (the generation's key), `runtime` (`host` or `device`), `limits` (what
    this kind of run cannot show), `environment` (the toolkit's and the target's versions), and `results`: for each
    check and side `name`, `side`, `wanted`, `status`, `required`, `ok`, `detail`, `seconds`, `evidence`, `log`.
    `ok` is true only if every required result is, and one is required at least.
    """
    return {
        "schema": SCHEMA,
        "ok": proof.ok,
        "recipe": proof.recipe,
        "overlay": proof.overlay,
        "runtime": proof.runtime,
        "limits": LIMITS[proof.runtime],
        "environment": dict(proof.environment),
        "results": [asdict(result) for result in proof.results],
    }


def write_proof(proof: Proof, path: Path) -> None:
    """Write proof.json; `proof_document` says what stands in it."""
    write_atomic(path, json.dumps(proof_document(proof), indent=1) + "\n")


def read_proof(path: Path) -> Proof:
    """Read a proof back; raise ProofError for a file that is not one or whose verdict its results do not give."""
    try:
        document = msgspec.json.decode(path.read_bytes(), type=_Document)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise ProofError(f"cannot read the proof {path}: {fault}", hint="make it anew with `toolkit verify`") from fault
    proof = Proof(
        recipe=document.recipe,
        overlay=document.overlay,
        runtime=document.runtime,
        results=tuple(CheckResult(**msgspec.structs.asdict(check)) for check in document.results),
        environment=document.environment,
    )
    if proof.ok != document.ok:
        raise ProofError(
            f"the proof {path} says ok = {document.ok}, its results say {proof.ok}",
            hint="the file was changed by hand; make it anew with `toolkit verify`",
        )
    return proof


def write_junit(proof: Proof, path: Path) -> None:
    """Write the results as JUnit XML: one test case a check and side, named `<recipe>.<side>`.

    A result that is not as wanted is a failure (an `error` where the check itself could not be done); one that is not
    required is skipped.
    """
    suite = ElementTree.Element("testsuite", {"name": _clean(f"toolkit verify {proof.recipe}"), **_counts(proof)})
    for result in proof.results:
        case = ElementTree.SubElement(
            suite, "testcase", classname=_clean(f"{proof.recipe}.{result.side}"), name=_clean(result.name),
            time=f"{result.seconds:.3f}",
        )  # fmt: skip
        kind = _junit_kind(result)
        if kind is not None:
            verdict = ElementTree.SubElement(case, kind, message=_clean(_sentence(result)))
            verdict.text = _clean(_account(result))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    write_atomic(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _counts(proof: Proof) -> dict[str, str]:
    kinds = [_junit_kind(result) for result in proof.results]
    return {
        "tests": str(len(kinds)),
        "failures": str(kinds.count("failure")),
        "errors": str(kinds.count("error")),
        "skipped": str(kinds.count("skipped")),
        "time": f"{sum(result.seconds for result in proof.results):.3f}",
    }


def _junit_kind(result: CheckResult) -> str | None:
    if not result.required:
        return "skipped"
    if result.ok:
        return None
    return "error" if result.status == "error" else "failure"


def _sentence(result: CheckResult) -> str:
    if not result.required:
        return f"{result.status}: {result.detail}"
    return f"{result.status}, wanted {result.wanted}: {result.detail}"


def _account(result: CheckResult) -> str:
    """Give the evidence at length, for the reader of a CI page."""
    return "\n".join([json.dumps(dict(result.evidence), indent=1), *([f"log: {result.log}"] if result.log else [])])


def _clean(text: str) -> str:
    """Replace what XML cannot carry: control characters of a terminal's colours, lone surrogates."""
    return NOT_XML.sub("\ufffd", text)
