"""A proof written down and read back, and its JUnit form."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from toolkit.errors import ProofError
from toolkit.model import CheckResult, Proof
from toolkit.prove import LIMITS, proof_document, read_proof, write_junit, write_proof


def result(name: str, **changed: Any) -> CheckResult:
    usual: dict[str, Any] = {
        "side": "overlay", "wanted": "pass", "status": "pass", "required": True, "ok": True, "detail": "seen",
        "seconds": 1.25, "evidence": {"list": [1, "two", None], "nested": {"a": True}}, "log": "/logs/a.log",
    }  # fmt: skip
    return CheckResult(name=name, **{**usual, **changed})


def proof(*results: CheckResult, **changed: Any) -> Proof:
    usual: dict[str, Any] = {
        "recipe": "fake", "overlay": "k", "runtime": "host", "environment": {"toolkit": "0"}, "results": results,
    }  # fmt: skip
    return Proof(**{**usual, **changed})


RED = result("red", side="base", wanted="fail", status="fail", detail="the fault")
NOT_RUN = result("idle", status="not run", required=False, ok=False, detail="other platform", log="")
BROKEN = result("broken", status="error", ok=False, detail="killed")


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(proof(result("a"), RED, NOT_RUN), id="good"),
        pytest.param(proof(result("a"), BROKEN, runtime="device"), id="bad"),
        pytest.param(proof(), id="empty"),
        pytest.param(proof(result("a", detail="bytes \x1b[31m \x00 é \u2028")), id="odd characters"),
    ],
)
def test_a_proof_reads_back_as_it_was_written(tmp_path: Path, written: Proof) -> None:
    write_proof(written, tmp_path / "proof.json")

    assert read_proof(tmp_path / "proof.json") == written


def test_the_document_has_these_keys_and_says_what_a_host_run_cannot_show() -> None:
    document: Any = proof_document(proof(result("a")))

    assert list(document) == [
        "schema", "ok", "recipe", "overlay", "runtime", "limits", "environment", "results",
    ]  # fmt: skip
    assert list(document["results"][0]) == [
        "name", "side", "wanted", "status", "required", "ok", "detail", "seconds", "evidence", "log",
    ]  # fmt: skip
    assert "does not show that any value comes out right on an NPU" in document["limits"]
    assert LIMITS["device"] == ""


def test_a_verdict_changed_by_hand_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    write_proof(proof(BROKEN), path)
    path.write_text(path.read_text().replace('"ok": false', '"ok": true', 1))

    with pytest.raises(ProofError) as caught:
        read_proof(path)

    assert str(caught.value) == f"the proof {path} says ok = True, its results say False"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"schema": 2}, id="another schema"),
        pytest.param({"results": [{}]}, id="incomplete result"),
        pytest.param({"runtime": "moon"}, id="unknown runtime"),
        pytest.param({"extra": 1}, id="unknown key"),
    ],
)
def test_a_file_that_is_no_proof_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "proof.json"
    path.write_text(json.dumps({**proof_document(proof(result("a"))), **change}))

    with pytest.raises(ProofError, match="cannot read the proof"):
        read_proof(path)


def test_a_missing_proof_is_refused_with_the_way_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ProofError) as caught:
        read_proof(tmp_path / "proof.json")

    assert caught.value.hint == "make it anew with `toolkit verify`"


def test_junit_has_a_case_for_each_check_and_side(tmp_path: Path) -> None:
    green_base = result("weak", side="base", wanted="fail", ok=False, detail="always green", evidence={})
    path = tmp_path / "junit.xml"

    write_junit(proof(result("a"), RED, NOT_RUN, BROKEN, green_base), path)

    suite = ElementTree.parse(path).getroot()[0]
    assert suite.attrib == {
        "name": "toolkit verify fake", "tests": "5", "failures": "1", "errors": "1", "skipped": "1", "time": "6.250",
    }  # fmt: skip
    cases = [
        (case.attrib["classname"], case.attrib["name"], [(child.tag, child.attrib["message"]) for child in case])
        for case in suite
    ]
    assert cases == [
        ("fake.overlay", "a", []),
        ("fake.base", "red", []),
        ("fake.overlay", "idle", [("skipped", "not run: other platform")]),
        ("fake.overlay", "broken", [("error", "error, wanted pass: killed")]),
        ("fake.base", "weak", [("failure", "pass, wanted fail: always green")]),
    ]
    assert suite[4][0].text == "{}\nlog: /logs/a.log"


def test_junit_stays_xml_whatever_a_child_printed(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"

    write_junit(proof(result("a", status="fail", ok=False, detail="\x1b[31mred\x00\ud800 <&> é")), path)

    assert (
        ElementTree.parse(path).getroot()[0][0][0].attrib["message"]
        == "fail, wanted pass: \ufffd[31mred\ufffd\ufffd <&> é"
    )
