"""`toolkit report`: which form it writes where, and what it refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.report_sample import KEY, Place, Wanted, make_place, result
from toolkit import cli


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return given(tmp_path, monkeypatch, Wanted())


def given(folder: Path, monkeypatch: pytest.MonkeyPatch, wanted: Wanted) -> Place:
    made = make_place(folder, wanted)
    monkeypatch.setenv("TOOLKIT_PROJECT", str(folder / "project"))
    monkeypatch.setenv("TOOLKIT_OVERLAYS", str(made.project.overlays))
    monkeypatch.setenv("TOOLKIT_RECIPE", "sample")
    monkeypatch.chdir(folder)
    return made


def run(*words: str) -> object:
    with pytest.raises(SystemExit) as ended:
        cli.main(["report", *words])
    return ended.value.code


@pytest.mark.parametrize(
    ("words", "file", "start"),
    [
        pytest.param(["-o", "a.html"], "a.html", "<!DOCTYPE html>", id="HTML"),
        pytest.param(["-o", "a"], "a", "<!DOCTYPE html>", id="no ending"),
        pytest.param(["-o", "new/a.MD"], "new/a.MD", "# sample: ✓ proven", id="Markdown by its ending"),
        pytest.param(["-o", "a.txt", "--format", "markdown"], "a.txt", "# sample: ✓ proven", id="Markdown"),
        pytest.param(["-o", "a.xml"], "a.xml", "<?xml version='1.0'", id="JUnit by its ending"),
        pytest.param(["-o", "a.html", "--format", "junit"], "a.html", "<?xml version='1.0'", id="JUnit"),
    ],
)
def test_the_form_is_the_ending_s_or_the_one_asked_for(
    place: Place, words: list[str], file: str, start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 0
    assert capsys.readouterr().out == f"report: {file}\n"
    assert Path(file).read_text(encoding="utf-8").startswith(start)


@pytest.mark.parametrize(
    ("form", "name"), [("html", "report.html"), ("markdown", "report.md"), ("junit", "report.xml")]
)
def test_without_a_place_it_lies_beside_the_proof_with_a_name_that_lasts(
    place: Place, form: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--format", form) == 0
    assert capsys.readouterr().out == f"report: {place.folder / name}\n"
    assert os.readlink(place.folder / name) == f"current/{name}"
    assert (place.generation / name).is_file()


def test_markdown_is_short_unless_the_whole_is_asked_for(place: Place) -> None:
    assert run("-o", "a.md") == 0
    short = Path("a.md").read_text(encoding="utf-8")
    assert run("-o", "a.md", "--full") == 0
    whole = Path("a.md").read_text(encoding="utf-8")

    assert "diff --git" not in short
    assert "diff --git" in whole


def test_a_page_is_whole_anyway(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-o", "a.html", "--full") == 2
    assert capsys.readouterr().err == (
        "error: --full is for Markdown only\nhint: add --format markdown, or leave it out: a page is whole\n"
    )


def test_a_report_that_is_there_is_replaced(place: Place) -> None:
    Path("a.html").write_text("old")
    assert run("-o", "a.html") == 0
    assert "old" not in Path("a.html").read_text(encoding="utf-8").partition("<style>")[0]


def test_junit_has_every_result(place: Place) -> None:
    run("-o", "a.xml")
    cases = ElementTree.parse("a.xml").getroot().iter("testcase")

    assert [(case.get("classname"), case.get("name")) for case in cases] == [
        ("sample.overlay", "origins"), ("sample.base", "aliased"), ("sample.overlay", "aliased"),
        ("sample.base", "accumulator"), ("sample.overlay", "accumulator"),
    ]  # fmt: skip


def test_json_gives_the_facts(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-o", "a.md", "--json") == 0
    facts = json.loads(capsys.readouterr().out)

    assert (facts["report"], facts["format"], facts["bytes"]) == ("a.md", "markdown", Path("a.md").stat().st_size)
    assert (facts["key"], facts["ok"]) == (KEY, True)


def test_a_proof_that_failed_is_reported_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given(tmp_path, monkeypatch, Wanted(results=[result("a", status="fail", ok=False, detail="broke")]))
    assert run("-o", "a.html") == 0
    assert "✗ not proven" in Path("a.html").read_text(encoding="utf-8")


# --- what it refuses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "message"),
    [
        pytest.param(".", ". is a folder\nhint: name a file with -o, such as report.html", id="a folder"),
        pytest.param("/dev/null", "/dev/null is no regular file\nhint: name a file with -o, such as report.html",
                     id="a device"),
        pytest.param("/dev/null/a.html", "/dev/null is no folder\nhint: name a file in a folder with -o, such as "
                     "report.html", id="below a file"),
    ],
)  # fmt: skip
def test_what_is_no_file_is_not_replaced(
    place: Place, output: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("-o", output) == 2
    assert capsys.readouterr().err == f"error: {message}\n"


def test_what_the_overlay_holds_is_not_replaced(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    proof = place.folder / "current" / "proof.json"
    before = proof.read_bytes()
    assert run("-o", str(proof)) == 2
    assert capsys.readouterr().err == (
        f"error: {proof} is a place of the overlay's own\nhint: name a file outside it with -o\n"
    )
    assert proof.read_bytes() == before


def test_a_pipe_is_not_replaced(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe")
    assert run("-o", "pipe") == 2
    assert Path("pipe").is_fifo()


def test_without_an_overlay_it_says_how_to_build_one(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    (place.folder / "current").unlink()
    assert run("-o", "a.html") == 13
    assert capsys.readouterr().err == (
        f"error: there is no overlay in {place.folder}\nhint: build it: toolkit build --recipe sample\n"
    )
    assert not Path("a.html").exists()


def test_a_recipe_that_is_not_there_is_named(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--recipe", "sampel", "-o", "a.html") == 2
    assert capsys.readouterr().err.startswith("error: there is no recipe 'sampel'; did you mean 'sample'?\n")


def test_without_a_proof_it_is_an_error_of_the_proof(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    (place.generation / "proof.json").unlink()
    assert run("-o", "a.html") == 16
    assert capsys.readouterr().err.startswith(f"error: cannot read the proof {place.folder}")


def test_half_a_target_is_none(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--python-tag", "cp311", "-o", "a.html") == 2
    assert capsys.readouterr().err == (
        "error: --python-tag and --platform name another target together\n"
        "hint: give both, or neither for this machine's\n"
    )


def test_the_overlay_of_another_target_is_found_by_both(place: Place) -> None:
    place.folder.rename(place.folder.with_name("sample.cp311-manylinux_2_28_x86_64"))

    assert run("--python-tag", "cp311", "--platform", "manylinux_2_28_x86_64", "-o", "a.html") == 0
