"""The story's promises that need no second process: what is used again, what is refused, what a run is told."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.changes import edited, edited_json
from tests.sample import Sample, silent_console
from toolkit import pipeline
from toolkit.errors import ApplyError, OverlayError, ProofError, StoreError
from toolkit.files import file_signature, sha256_file
from toolkit.grounds import obtain_base_site, runtime_variables
from toolkit.lanes import obtain_wheel, remarks_on
from toolkit.model import AppliedPatch, CheckResult, Proof
from toolkit.pipeline import (
    export_cache,
    make_proof,
    obtain_overlay,
    require_proof,
    verify,
)
from toolkit.store import Store
from toolkit.trace import changed_input, read_trace
from toolkit.work import Means

FAILING = "from verify.contract import failed\n\n\ndef check(request):\n    return failed('never')\n"


def current_of(sample: Sample) -> Path:
    return sample.folder.path / os.readlink(sample.folder.path / "current")


# --- building ----------------------------------------------------------------------------------------------------


def test_only_what_does_not_stand_is_made(sample: Sample) -> None:
    assert sample.build().did == ("overlay", "proof")
    assert sample.build().did == ()

    witness = sample.project.verify / "answer.py"
    witness.write_text(witness.read_text() + "\n# a new day\n")
    assert sample.build().did == ("proof",)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda body: body["environment"].update(manifest="0" * 64), id="of other files"),
        pytest.param(lambda body: body["environment"].update(proof_key="0" * 64), id="by other checks"),
        pytest.param(lambda body: body.update(ok=False), id="at odds with itself"),
        pytest.param(lambda body: body.pop("results"), id="not whole"),
    ],
)
def test_a_proof_that_is_not_this_ones_is_made_anew(
    built: Sample, generation: Path, change: Callable[[Any], object]
) -> None:
    with edited_json(generation / "proof.json", change):
        assert built.build().did == ("proof",)
        assert built.build().did == ()


def test_a_proof_that_failed_moves_nothing_and_is_tried_again(sample: Sample) -> None:
    sample.build()
    before, trace = current_of(sample), read_trace(sample.folder.trace)
    with (
        edited(sample.patch, "Without it", "Without this"),
        edited(sample.project.verify / "loads.py", (sample.project.verify / "loads.py").read_text(), FAILING),
    ):
        plan = sample.plan()
        for _ in range(2):
            with pytest.raises(ProofError) as caught:
                sample.build(plan)
            assert caught.value.details == ("loads on the overlay: fail, wanted pass: never",)
    assert current_of(sample) == before
    assert read_trace(sample.folder.trace) == trace
    assert plan.folder.generation(plan.key.digest) != before


def test_a_proof_that_failed_is_not_used_again(sample: Sample, tmp_path: Path) -> None:
    mood = f"    return passed('now') if os.path.exists({str(tmp_path / 'good day')!r}) else failed('not today')\n"
    head = "import os\n\nfrom verify.contract import failed, passed\n\n\ndef check(request):\n"
    (sample.project.verify / "loads.py").write_text(head + mood)
    with pytest.raises(ProofError):
        sample.build()
    (tmp_path / "good day").touch()

    assert sample.build().did == ("proof",)


def test_what_is_edited_during_the_build_is_a_change_to_the_next(sample: Sample) -> None:
    plan = sample.plan()
    witness = sample.project.verify / "answer.py"
    witness.write_text(witness.read_text() + "\n# edited after the plan was made\n")
    sample.build(plan)
    trace = read_trace(sample.folder.trace)

    assert trace is not None
    assert changed_input(trace, sample.facts) == str(witness)


def test_a_patch_that_is_edited_between_plan_and_apply_is_not_built_under_the_old_key(sample: Sample) -> None:
    plan = sample.plan()
    with edited(sample.patch, "+    return 42", "+    return 43"), pytest.raises(ApplyError, match="0001-right-answer"):
        sample.build(plan)
    assert Store(Path(sample.environ["TOOLKIT_STORE"])).find("wheel", plan.components[0].key.digest) is None


def test_a_generation_that_no_longer_holds_is_made_anew_and_said_so(
    sample: Sample, caplog: pytest.LogCaptureFixture
) -> None:
    plan = sample.plan()
    sample.build(plan)
    core = current_of(sample) / "site/sample_npu/core.py"
    core.write_bytes(b"spoilt")
    wheels = [obtain_wheel(part, plan, sample.means, silent_console()) for part in plan.components]

    assert obtain_overlay(plan, wheels, silent_console())[1] is True
    assert b"42" in core.read_bytes()
    assert "sample_npu/core.py was changed" in caplog.text
    assert caplog.text.rstrip().endswith("; building it again")
    assert obtain_overlay(plan, wheels, silent_console())[1] is False


def test_env_files_that_were_edited_are_written_again(sample: Sample) -> None:
    sample.build()
    file = sample.folder.path / "env.sh"
    before = file.read_text()
    file.write_text("false\n")
    sample.build()

    assert file.read_text() == before


# --- verifying ---------------------------------------------------------------------------------------------------


def test_verify_replaces_the_proof_and_a_single_check_does_not(sample: Sample) -> None:
    sample.build()
    path = current_of(sample) / "proof.json"
    before = path.stat()
    _, proof = verify(sample.plan(), sample.means, silent_console(), checks=("loads",))
    assert [(one.name, one.side) for one in proof.results] == [("loads", "overlay")]
    assert file_signature(path.stat()) == file_signature(before)

    _, proof = verify(sample.plan(), sample.means, silent_console())
    assert len(proof.results) == 3
    assert file_signature(path.stat()) != file_signature(before)
    assert sample.build().did == ()


def test_a_witness_that_no_patch_names_is_still_judged_on_the_unpatched_base(sample: Sample) -> None:
    sample.build()
    other = sample.project.verify / "other.py"
    shutil.copy(sample.project.verify / "answer.py", other)
    catalogue = sample.project.verify / "checks.json"
    body = json.loads(catalogue.read_text())
    body["other"] = body["answer"] | {"module": "verify.other"}
    catalogue.write_text(json.dumps(body))
    _, proof = verify(sample.plan(), sample.means, silent_console(), checks=("other",))

    assert [(one.side, one.status) for one in proof.results] == [("base", "fail"), ("overlay", "pass")]


def test_verifying_what_was_built_from_other_inputs_says_so(sample: Sample, caplog: pytest.LogCaptureFixture) -> None:
    sample.build()
    verify(sample.plan(), sample.means, silent_console(), checks=("loads",))
    assert caplog.text == ""
    sample.patch.write_text(sample.patch.read_text().replace("Without it", "Without this"))
    with caplog.at_level(logging.WARNING):
        verify(sample.plan(), sample.means, silent_console(), checks=("loads",))

    assert "its inputs now give" in caplog.text


def test_verify_makes_the_proof_that_is_not_there(sample: Sample) -> None:
    sample.build()
    path = current_of(sample) / "proof.json"
    path.unlink()
    verify(sample.plan(), sample.means, silent_console())

    assert json.loads(path.read_text())["ok"] is True


def test_verify_without_an_overlay_leaves_nothing_behind(sample: Sample) -> None:
    with pytest.raises(OverlayError, match="there is no overlay in"):
        verify(sample.plan(), sample.means, silent_console())
    assert not sample.folder.path.exists()


def test_a_proof_names_the_files_and_the_checks_that_it_is_of(built: Sample, generation: Path) -> None:
    plan = built.plan()
    proof = make_proof(plan, built.build(plan).overlay, built.means, silent_console())

    assert proof.environment["manifest"] == sha256_file(generation / "manifest.json")
    assert proof.environment["proof_key"] == pipeline.proof_key(plan, built.project, "host", ("loads",)).digest


# --- values ------------------------------------------------------------------------------------------------------


def result(name: str, *, ok: bool, required: bool = True, detail: str = "why") -> CheckResult:
    return CheckResult(
        name=name, side="overlay", wanted="pass", status="pass" if ok else "fail", required=required, ok=ok,
        detail=detail, seconds=0.1,
    )  # fmt: skip


def proof_of(*results: CheckResult) -> Proof:
    return Proof(recipe="sample", overlay="k", runtime="host", results=results, environment={})


def test_a_proof_that_holds_is_no_error() -> None:
    require_proof(proof_of(result("a", ok=True), result("b", ok=False, required=False)), Path("proof.json"))


def test_the_error_of_a_proof_names_the_required_checks_only_each_in_short() -> None:
    long = "no " * 400
    proof = proof_of(result("a", ok=False, detail=long), result("b", ok=True), result("c", ok=False, required=False))
    with pytest.raises(ProofError) as caught:
        require_proof(proof, Path("there/proof.json"))

    assert caught.value.message == "1 required check(s) of 'sample' did not come out as required"
    (detail,) = caught.value.details
    assert detail.startswith("a on the overlay: fail, wanted pass: no no")
    assert len(detail) < 550
    assert caught.value.hint == "the evidence is in there/proof.json"


def test_a_proof_without_a_required_check_is_an_error() -> None:
    with pytest.raises(ProofError):
        require_proof(proof_of(result("a", ok=True, required=False)), Path("proof.json"))


def test_the_remarks_on_a_wheel_are_what_a_person_should_know(built: Sample) -> None:
    (stored,) = built.build().wheels
    applied = (
        AppliedPatch(name="0001-a", status="clean"),
        AppliedPatch(name="0002-b", status="offset", offsets=("a.py: 3 lines", "a.py: 4 lines")),
        AppliedPatch(name="0003-c", status="upstream"),
    )

    assert remarks_on(stored) == []
    assert remarks_on(replace(stored, applied=applied, findings=("RECORD is wrong",))) == [
        "0002-b went in at another line: a.py: 3 lines; a.py: 4 lines",
        "0003-c is skipped, the base has it already",
        "RECORD is wrong",
    ]


# --- what a run gets ---------------------------------------------------------------------------------------------


def test_a_machine_without_cann_is_a_host(built: Sample, tmp_path: Path) -> None:
    assert built.means.runtime == "host"
    assert replace(built.means, environ={"ASCEND_HOME_PATH": str(tmp_path)}).runtime == "host"


def test_a_package_that_needs_no_cann_gets_no_sysroot(built: Sample) -> None:
    assert runtime_variables(built.plan(), built.means, silent_console()) == {}


def test_a_device_passes_on_its_own_variables_and_no_others(built: Sample, tmp_path: Path) -> None:
    (tmp_path / "lib64").mkdir()
    (tmp_path / "lib64/libascendcl.so").touch()
    cann = {"ASCEND_HOME_PATH": str(tmp_path), "LD_LIBRARY_PATH": "/cann/lib64", "HCCL_TIMEOUT": "3"}
    means = replace(built.means, environ=cann | {"PYTHONPATH": "/x", "HOME": "/root"})

    assert means.runtime == "device"
    assert runtime_variables(built.plan(), means, silent_console()) == cann


def test_the_base_is_laid_out_once_for_all_series_on_it_and_unpatched(sample: Sample) -> None:
    site = obtain_base_site(sample.plan(), sample.means, silent_console())
    assert b"41" in (site / "sample_npu/core.py").read_bytes()
    sample.patch.write_text(sample.patch.read_text().replace("Without it", "Without this"))

    assert obtain_base_site(sample.plan(), sample.means, silent_console()) == site


def test_a_base_that_was_spoilt_is_not_proven_on(sample: Sample) -> None:
    site = obtain_base_site(sample.plan(), sample.means, silent_console())
    (site / "sample_npu/core.py").write_bytes(b"spoilt")

    with pytest.raises(StoreError) as caught:
        obtain_base_site(sample.plan(), sample.means, silent_console())
    assert caught.value.message.startswith(f"store entry {site.parent} is damaged: ")
    assert "sample_npu/core.py was changed" in caught.value.message
    assert caught.value.hint == "remove that folder"


def test_an_exported_cache_has_the_lock_and_the_manifest_for_people(built: Sample, tmp_path: Path) -> None:
    index = export_cache(built.plan(), built.means, tmp_path / "cache.tar")

    assert [entry.kind for entry in index.entries] == ["wheel", "base"]
    assert [item.path for item in index.extra] == ["lock/sample.lock", "manifest.json"]
    assert index.key == built.plan().key.digest


def test_what_was_never_built_cannot_be_exported(sample: Sample, tmp_path: Path) -> None:
    means: Means = sample.means

    with pytest.raises(StoreError, match="the store has no wheel"):
        export_cache(sample.plan(), means, tmp_path / "cache.tar")
    assert not (tmp_path / "cache.tar").exists()
