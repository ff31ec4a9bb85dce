"""What commands answer: the text and the document say the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sample import Sample
from toolkit import answers
from toolkit.model import Contract, Lock, Overlay, OverlayPackage, Target, make_key
from toolkit.plan import read_recipe, read_series, standing_lock
from toolkit.store import StoreEntry

ROOT = Path("/o/sample/generations/k")
OVERLAY = Overlay(
    recipe="sample",
    key="k" * 64,
    root=ROOT,
    target=Target(python_tag="cp312", platform="manylinux_2_28_aarch64"),
    contract=Contract(python_tags=("cp312",), platforms=("manylinux_2_28_aarch64",), torch="2.13.0"),
    packages=(
        OverlayPackage(
            component="sample_npu", import_name="sample_npu", distribution="sample_npu", version="1.0+p1.k0",
            base_version="1.0", wheel="sample.whl", wheel_sha256="ab", patches=("0001-a",),
        ),
    ),
    env={},
)  # fmt: skip


@pytest.mark.parametrize(
    ("did", "first"),
    [
        pytest.param((), "sample: nothing to do, sample_npu 1.0+p1.k0 stands and holds", id="nothing"),
        pytest.param(("proof",), "sample: sample_npu 1.0+p1.k0", id="something"),
    ],
)
def test_an_overlay_is_said_with_what_was_done_and_its_env_file(did: tuple[str, ...], first: str) -> None:
    answer = answers.describe_overlay(OVERLAY, Path("/o/sample"), did=did, proof=None)

    assert answer.text == f"{first}\nenv file: /o/sample/env.sh"
    assert answer.document["did"] == list(did)
    assert answer.document["env_file"] == "/o/sample/env.sh"
    assert (answer.document["overlay"], answer.document["site"]) == (str(ROOT), str(ROOT / "site"))
    assert "proof_record" not in answer.document


def test_an_overlay_with_a_report_says_where_that_is_last() -> None:
    page = Path("/o/sample/report.html")
    answer = answers.describe_overlay(OVERLAY, Path("/o/sample"), did=(), proof=None, report=page)

    assert answer.text.splitlines()[-2:] == ["env file: /o/sample/env.sh", f"report: {page}"]
    assert answer.document["report"] == str(page)
    assert answers.describe_overlay(OVERLAY, Path("/o/sample"), did=(), proof=None).document["report"] is None


def test_the_whole_proof_is_in_the_document_of_a_build_that_made_it() -> None:
    answer = answers.describe_overlay(OVERLAY, Path("/o/sample"), did=("proof",), proof={"ok": True})

    assert answer.document["proof_record"] == {"ok": True}


def test_an_overlay_for_another_machine_claims_no_run() -> None:
    answer = answers.describe_other_target(OVERLAY)

    assert answer.text.splitlines() == [
        "sample: built for cp312-manylinux_2_28_aarch64, which cannot be loaded on this machine",
        "not run: other platform; only the static checks were, prove the rest there with `toolkit verify`",
        f"wheel: {ROOT}/wheels/sample.whl",
    ]
    assert answer.document == {"wheels": [f"{ROOT}/wheels/sample.whl"]}


def test_an_overlay_for_diagnosis_is_never_shown_without_saying_so() -> None:
    diagnostic = replace(OVERLAY, diagnostic="to narrow a fault down")
    built = answers.describe_overlay(diagnostic, Path("/o/sample"), did=(), proof=None)
    unproven, elsewhere = answers.describe_unproven(diagnostic), answers.describe_other_target(diagnostic)

    for answer in (built, unproven, elsewhere):
        assert "for diagnosis only: to narrow a fault down" in answer.text.splitlines()
    assert built.document["diagnostic"] == unproven.document["diagnostic"] == "to narrow a fault down"
    assert answers.describe_overlay(OVERLAY, Path("/o"), did=(), proof=None).document["diagnostic"] is None


def test_a_lock_is_said_with_what_is_new_in_it() -> None:
    lock = Lock(recipe="sample", components=(), path=Path("/r/sample.lock"))

    assert answers.describe_lock(lock, ()).text == "/r/sample.lock is up to date"
    assert answers.describe_lock(lock, ("a", "b")).text == "wrote /r/sample.lock: a, b"


def test_a_key_is_its_digest_and_its_inputs_where_they_are_asked_for() -> None:
    key = make_key([("base", "00"), ("target", "cp312")])

    assert answers.describe_key(key, explain=False).text == key.digest
    assert answers.describe_key(key, explain=True).text == f"{key.digest}\nbase    00\ntarget  cp312"
    document = {"key": key.digest, "inputs": {"base": "00", "target": "cp312"}}
    assert answers.describe_key(key, explain=False).document == document


def test_a_difference_shows_both_sides() -> None:
    answer = answers.describe_key_difference([("a", "1", "2"), ("b", None, "3"), ("c", "4", None)])

    assert answer.text == "a\n  - 1\n  + 2\nb\n  - (not there)\n  + 3\nc\n  - 4\n  + (not there)"
    assert answer.document["differences"][1] == {"input": "b", "old": None, "new": "3"}
    assert answers.describe_key_difference([]).text == "the keys are equal"


def test_a_store_is_listed_with_its_sum() -> None:
    entries = [
        StoreEntry(kind=kind, key=kind[0] * 64, path=Path("/s") / kind, size=size, used=1.0)
        for kind, size in (("base", 39_400_000), ("wheel", 50_000))
    ]
    answer = answers.describe_entries(Path("/s"), entries)

    assert answer.text.splitlines() == [
        f"base       {'b' * 16}     39.4 MB",
        f"wheel      {'w' * 16}      0.1 MB",
        "2 entries, 39.5 MB in /s",
    ]
    assert answer.document["bytes"] == 39_450_000


def test_a_bundle_says_which_way_it_went() -> None:
    file = Path("cache.tar")

    assert answers.describe_bundle(file, "sample", "k" * 64, entries=2).text == (
        f"cache.tar: 2 entries of sample, key {'k' * 16}"
    )
    assert answers.describe_bundle(file, "sample", "k" * 64, entries=2, new=2).text == (
        f"cache.tar: 2 entries of sample, key {'k' * 16}: their hashes checked, 2 brought in"
    )
    assert answers.describe_bundle(file, "sample", "k" * 64, entries=2, new=0).text == (
        f"cache.tar: 2 entries of sample, key {'k' * 16}: their hashes checked, 0 brought in, 2 there already"
    )


@pytest.mark.parametrize("locked", [True, False], ids=["locked", "not locked"])
def test_a_recipe_is_shown_with_its_pins_and_patches(sample: Sample, locked: bool) -> None:
    if not locked:
        sample.recipe.with_suffix(".lock").unlink()
    recipe = read_recipe(sample.project, "sample")
    series = [read_series(sample.project, part) for part in recipe.components]
    answer = answers.describe_recipe(recipe, standing_lock(sample.project, recipe), series)

    assert answer.text.splitlines()[-2:] == [
        f"component  sample_npu: sample_npu==1.0{'' if locked else ' (not locked)'}",
        "  0001-right-answer: sample: give the right answer [answer]",
    ]
    (part,) = answer.document["components"]
    assert (part["base"], part["locked"]) == ("sample_npu==1.0", locked)
    assert part["patches"][0]["sha256"] == series[0].patches[0].sha256
    json.dumps(answer.document)


def test_a_recipe_for_diagnosis_is_listed_and_shown_as_one(sample: Sample) -> None:
    plain = read_recipe(sample.project, "sample")
    diagnostic = replace(plain, diagnostic="to narrow a fault down")
    listed = answers.describe_recipes([plain, diagnostic])
    series = [read_series(sample.project, part) for part in plain.components]

    assert listed.text.splitlines() == ["sample  a sample", "sample  a sample (for diagnosis only)"]
    assert [one["diagnostic"] for one in listed.document] == [None, "to narrow a fault down"]
    shown = answers.describe_recipe(diagnostic, None, series)
    assert shown.text.splitlines()[:2] == ["sample: a sample", "for diagnosis only: to narrow a fault down"]
    assert shown.document["diagnostic"] == "to narrow a fault down"


def test_a_sysroot_is_said_in_lines_that_a_shell_can_read() -> None:
    answer = answers.describe_sysroot(Path("/s/root"), {"ASCEND_HOME_PATH": "/s/it's here"})

    assert answer.text == "# /s/root\nexport ASCEND_HOME_PATH='/s/it'\"'\"'s here'"
    assert answer.document == {"root": "/s/root", "variables": {"ASCEND_HOME_PATH": "/s/it's here"}}
