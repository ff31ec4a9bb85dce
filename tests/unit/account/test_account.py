"""What is gathered of an overlay, and what is said where something is not as it was."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.report_sample import (
    BASE_DIGEST,
    KEY,
    PATCH,
    RECIPE,
    Place,
    Wanted,
    all_results,
    make_place,
    number,
    plain_results,
    program,
    result,
)
from toolkit.account import evidence, facts_document, gather_account, write_page
from toolkit.errors import OverlayError, ProofError
from toolkit.page import Account, render_html

IDLE = result("idle", status="not run", required=False, ok=False, detail="elsewhere")


def gather(place: Place, **given: Any) -> Account:
    return gather_account(place.generation, project=place.project, **{"recipe": RECIPE, **given})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path)


# --- what there is -----------------------------------------------------------------------------------------------


def test_a_whole_overlay_needs_no_notice(place: Place) -> None:
    account = gather(place)

    assert account.notices == ()
    assert account.description == "a sample, with <em>care</em>"
    assert [check.name for check in account.checks] == ["origins", "aliased", "accumulator"]
    assert [check.summary for check in account.checks] == ["", "old is kept", ""]


def test_the_base_has_its_digest_and_the_lock_s_file(place: Place) -> None:
    (part,) = gather(place).components

    assert (part.kind, part.digest, part.places) == ("wheel", BASE_DIGEST, ("sample_npu-1.0.whl",))
    assert (part.base_version, part.version) == ("sample_npu 1.0", "sample_npu 1.0+p1.k01234567")


def test_a_patch_is_found_by_its_hash_whatever_it_is_called_now(place: Place) -> None:
    file = place.project.patches[0] / "sample_npu/1.0/0001-keep-accumulator.patch"
    retired = file.parents[2] / "retired/sample_npu/1.0/0009-old.patch"
    retired.parent.mkdir(parents=True)
    file.rename(retired)
    ((patch,),) = (part.patches for part in gather(place).components)

    assert patch.name == "0001-keep-accumulator"
    assert patch.file == "retired/sample_npu/1.0/0009-old.patch"
    assert patch.reason.startswith("sample: keep the accumulator\n\nWithout it `a < b && c` is lost:")
    assert "Upstream-Status" not in patch.reason
    assert (patch.upstream_status, patch.witness) == ("Pending [a sample]", "aliased")
    assert patch.diff.startswith("diff --git a/sample_npu/core.py")
    assert (patch.is_in, patch.remark) == (True, "")


def test_a_patch_that_was_edited_since_is_not_shown_for_the_one_that_was_built_in(tmp_path: Path) -> None:
    account = gather(make_place(tmp_path, Wanted(patch=PATCH.replace("42", "43"))))
    ((patch,),) = (part.patches for part in account.components)

    assert (patch.diff, patch.reason) == ("", "")
    assert "43" not in render_html(account).partition("</style>")[2].partition('id="checks"')[0]
    assert patch.remark.startswith("The patch that was built in is not among the project's patches any more")
    assert patch.remark in render_html(account).replace("&#x27;", "'")


def test_both_sides_of_a_graph_come_together(place: Place) -> None:
    graphs = gather(place).graphs

    assert [(graph.check, graph.graph) for graph in graphs] == [
        ("aliased", "running_mean"), ("accumulator", "sinkhorn"),
    ]  # fmt: skip
    assert {side: file.path for side, file in graphs[0].code.items()} == {
        "base": "logs/base-aliased/aliased-running_mean.py",
        "overlay": "logs/overlay-aliased/aliased-running_mean.py",
    }
    assert set(graphs[0].stages) == {"base", "overlay"}


def test_a_file_goes_to_the_check_with_the_longest_name_that_it_begins_with(place: Place) -> None:
    job = place.generation / "logs/overlay-a"
    job.mkdir()
    for name in ("a.py", "a-b-c.py", "a-x.das", "other.py", "a-b.json"):
        (job / name).write_text(name)
    results = [result("a", log="overlay-a.log"), result("a-b", log="overlay-a.log")]
    graphs, _ = evidence.read_graphs(results, place.generation / "logs")

    assert [(graph.check, graph.graph) for graph in graphs] == [
        ("a-b", "c"), ("a", "x"), ("a", ""), ("a", "other"),
    ]  # fmt: skip


def test_links_and_what_is_no_file_are_left_alone(place: Place, tmp_path: Path) -> None:
    job = place.generation / "logs/overlay-aliased"
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (job / "aliased-link.py").symlink_to(secret)
    (job / "aliased-folder.py").mkdir()
    os.mkfifo(job / "aliased-pipe.py")

    assert [graph.graph for graph in gather(place).graphs] == ["running_mean", "sinkhorn"]


def test_a_long_file_is_read_in_part(place: Place) -> None:
    path = place.generation / "logs/base-aliased/aliased-running_mean.py"
    path.write_bytes(b"\xff" * (evidence.READ_LIMIT + 5))

    assert gather(place).graphs[0].code["base"].cut == 5


def test_numbers_and_programs_are_read_from_both_sides(place: Place) -> None:
    account = gather(place)

    assert {row.side for row in account.numbers} == {"base", "overlay"}
    assert [row.maximum_absolute_error for row in account.numbers if row.value == "overflow"] == [None]
    assert [(one.check, one.side, one.graph, len(one.kernels)) for one in account.programs] == [
        ("aliased", "base", "running_mean", 1), ("aliased", "overlay", "running_mean", 2),
        ("accumulator", "base", "running_mean", 1), ("accumulator", "base", "sinkhorn", 1),
        ("accumulator", "overlay", "running_mean", 2), ("accumulator", "overlay", "sinkhorn", 1),
    ]  # fmt: skip
    assert account.programs[0].lost == {"old": "launch 1 writes it"}
    assert account.programs[2].seconds == {"compile": 0.75, "run": 0.031}


def test_every_line_has_the_command_that_repeats_it(place: Place) -> None:
    account = gather(place, recipe="recipes/of mine.toml")

    assert account.checks[1].command == "toolkit verify --recipe 'recipes/of mine.toml' --check aliased"
    assert ("Prove it again, every check", "toolkit verify --recipe 'recipes/of mine.toml'") in account.commands


def test_an_overlay_for_another_machine_names_its_target(place: Place) -> None:
    place.folder.rename(place.folder.with_name("sample.cp311-manylinux_2_28_x86_64"))
    generation = place.folder.with_name("sample.cp311-manylinux_2_28_x86_64") / "generations" / KEY[:16]
    account = gather_account(generation, project=place.project, recipe=RECIPE)

    options = "--recipe sample --python-tag cp311 --platform manylinux_2_28_x86_64"
    assert account.commands[0][1] == f"toolkit build {options}"


# --- what is missing or wrong ------------------------------------------------------------------------------------


def test_a_proof_without_numeric_evidence_is_told_without(tmp_path: Path) -> None:
    account = gather(make_place(tmp_path, Wanted(results=plain_results())))

    assert (account.numbers, account.notices) == ((), ())
    assert "No check of this proof has recorded numbers." in render_html(account)


@pytest.mark.parametrize(
    ("rows", "left", "remark"),
    [
        pytest.param([number("g", "x", 0.5), {"graph": "g"}, 7], 1, "2 of the numbers", id="some rows"),
        pytest.param("none", 0, "1 of the numbers", id="no list"),
        pytest.param([number("g", "x", 0.5, ulps={"0": "many"})], 0, "1 of the numbers", id="another form"),
        pytest.param([number("g", "x", 0.5, more=1)], 1, "", id="more than is known"),
    ],
)
def test_numbers_that_cannot_be_read_are_counted(tmp_path: Path, rows: object, left: int, remark: str) -> None:
    account = gather(make_place(tmp_path, Wanted(results=[result("a", evidence={"numbers": rows})])))

    assert len(account.numbers) == left
    told = f"{remark} that a recorded on the overlay cannot be read; see proof.json"
    assert account.notices == ((told,) if remark else ())


def test_an_input_that_is_only_read_is_told_apart(tmp_path: Path) -> None:
    rows = [number("g", "x", 0.5), number("g", "y", 0.0, written=False)]
    place = make_place(tmp_path, Wanted(results=[result("a", evidence={"numbers": rows})]))

    assert [row.written for row in gather(place).numbers] == [True, False]


def test_programs_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    programs = [program("g", "spec"), {"graph": "g", "kernels": "two"}]
    account = gather(make_place(tmp_path, Wanted(results=[result("a", evidence={"programs": programs})])))

    assert len(account.programs) == 1
    assert account.notices == ("1 of the programs that a recorded on the overlay cannot be read; see proof.json",)


def test_logs_that_were_removed_are_told(place: Place) -> None:
    shutil.rmtree(place.generation / "logs")
    account = gather(place)

    assert account.graphs == ()
    assert [check.files for check in account.checks] == [(), (), ()]
    assert account.notices == (
        "the overlay's logs were removed: there is no generated code to show, and no log that the proof names",
    )


def test_a_side_whose_logs_were_removed_is_told_by_the_other(place: Place) -> None:
    shutil.rmtree(place.generation / "logs/base-aliased")

    assert set(gather(place).graphs[0].code) == {"overlay"}


@pytest.mark.parametrize(
    ("wanted", "notice"),
    [
        pytest.param(
            Wanted(overlay_in_proof="f" * 64),
            "the proof is of another overlay, ffffffffffffffff: prove this one with `toolkit verify`",
            id="another overlay",
        ),
        pytest.param(
            Wanted(environment={"manifest": "0" * 64}),
            "the proof is of other files than this overlay has now: prove it again with `toolkit verify`",
            id="other files",
        ),
        pytest.param(
            Wanted(
                results=[*all_results(), result("x", status="not run", required=False, ok=False, detail="elsewhere")]
            ),
            "1 of 6 results are not required, as they could not be had: elsewhere",
            id="not run",
        ),
    ],
)
def test_a_proof_that_is_not_of_all_this_is_told(tmp_path: Path, wanted: Wanted, notice: str) -> None:
    account = gather(make_place(tmp_path, wanted))

    assert account.notices == (notice,)
    assert notice.replace("'", "&#x27;") in render_html(account)


def test_files_that_were_changed_since_are_told(place: Place) -> None:
    (place.generation / "site/sample_npu.py").write_text("answer = 41\n")
    (notice,) = gather(place).notices

    assert "is not what its manifest says: sample_npu.py was changed" in notice
    assert notice.endswith(". What the proof says is not true of these files any more.")


def test_more_graphs_than_a_page_can_hold_are_counted(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "MOST_GRAPHS", 1)
    account = gather(place)

    assert len(account.graphs) == 1
    assert account.notices == ("the code of 1 more graphs is in logs/ only",)


def test_without_recipe_lock_patches_and_checks_the_rest_is_told(place: Place) -> None:
    for folder in ("recipes", "patches", "verify"):
        shutil.rmtree(place.project.overlays.parent / folder)
    account = gather(place)

    assert account.description == ""
    assert [part.places for part in account.components] == [()]
    assert [check.summary for check in account.checks] == ["", "", ""]
    assert account.notices == ()


def test_without_a_manifest_there_is_nothing_to_tell(place: Place) -> None:
    (place.generation / "manifest.json").unlink()
    with pytest.raises(OverlayError, match=r"^there is no overlay at .*: it has no manifest.json$"):
        gather(place)


def test_without_a_proof_there_is_nothing_to_tell(place: Place) -> None:
    (place.generation / "proof.json").write_text("{")
    with pytest.raises(ProofError, match=r"^cannot read the proof .*proof\.json"):
        gather(place)


# --- what is written ---------------------------------------------------------------------------------------------


def test_the_page_lies_beside_the_proof_and_is_written_again_alike(place: Place) -> None:
    first = write_page(place.generation, project=place.project, recipe=RECIPE)
    before = first.read_bytes()

    assert first == place.generation / "report.html"
    assert write_page(place.generation, project=place.project, recipe=RECIPE).read_bytes() == before
    assert not [path for path in place.generation.iterdir() if path.name.startswith(".")]


def test_the_facts_are_a_document(place: Place) -> None:
    document = facts_document(gather(place))

    assert (document["recipe"], document["ok"], document["key"]) == (RECIPE, True, KEY)
    assert document["checks"][1]["base"]["status"] == "fail"
    assert document["components"][0]["patches"][0]["witness"] == "aliased"
    assert document["numbers"][0]["ulps"] == {"0": 3, "65537-131072": 32765}
    assert document["graphs"][0]["stages"]["base"] == "logs/base-aliased/aliased-running_mean.das"
