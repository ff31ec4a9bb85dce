"""`toolkit patch matrix` on a whole project: every patch on every base, with its witness, in every form."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from tests.matrix_sample import NAME, RELEASES, add_release, make_matrix_sample, write_line
from tests.release_index import serving
from tests.repositories import commit_files, make_upstream
from tests.sample import Sample
from toolkit.process import Completed, run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return make_matrix_sample(tmp_path_factory.mktemp("matrix"))


@pytest.fixture
def sample(made: Sample, tmp_path: Path) -> Sample:
    """Return a copy of the project, for the test alone; the store is everybody's."""
    root = shutil.copytree(made.root, tmp_path / "project")
    return replace(made, root=root, environ={**made.environ, "TOOLKIT_PROJECT": str(root)})


BREAKING = """\
    from importlib.metadata import version

    if version("sample_npu").startswith("1.1"):
        raise RuntimeError("no kernel")
    return passed"""


def matrix(sample: Sample, *words: str, environ: dict[str, str] | None = None) -> Completed:
    argv = sample.toolkit("patch", "matrix", *words)
    return run(argv, cwd=sample.root, env={**sample.environ, **(environ or {})}, check=False)


def document(sample: Sample, *words: str, environ: dict[str, str] | None = None) -> dict[str, Any]:
    done = matrix(sample, *words, "--json", environ=environ)
    assert done.returncode in (0, 23), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["ok"] == (done.returncode == 0)
    return found


def verdicts(found: dict[str, Any]) -> dict[str, dict[str, tuple[str | None, bool]]]:
    """Return verdict and coverage by series and base."""
    return {
        row["series"]: {name: (cell["verdict"], cell["covered"]) for name, cell in row["bases"].items()}
        for component in found["components"]
        for row in component["patches"]
    }


def witnesses(found: dict[str, Any], series: str) -> dict[str, tuple[str, str] | str]:
    """Return what the witness of a series' patch said on each base, or why it said nothing."""
    (row,) = (row for component in found["components"] for row in component["patches"] if row["series"] == series)
    return {
        name: (cell["witness"]["needed"], cell["witness"]["works"]) if cell["witness"] else cell["why"]
        for name, cell in row["bases"].items()
    }


def own_torch() -> str:
    """Return the torch of the interpreter that runs the tests, in the matrix's words."""
    try:
        return version("torch").partition("+")[0]
    except PackageNotFoundError:
        return "none"


# --- which bases -------------------------------------------------------------------------------------------------


def test_the_usual_bases_are_the_newest_release_of_every_upstream_line(sample: Sample) -> None:
    found = document(sample, environ={"TOOLKIT_STORE": str(sample.root / "store")})
    assert found["ok"]
    assert verdicts(found) == {
        "sample_npu/1": {"1.0": ("applies", True), "1.1": ("offset", True), "2.0": ("upstream", False),
                         "3.0": ("conflict", False)},
        "sample_npu/3": {"1.0": ("conflict", False), "1.1": ("conflict", False), "2.0": ("upstream", False),
                         "3.0": ("applies", True)},
    }  # fmt: skip


def test_an_older_line_and_what_was_yanked_are_left_out_and_a_newer_one_shows_up(sample: Sample) -> None:
    write_line(sample, "sample_npu/1", "sample_npu==1.1")
    for number in ("3.0.post1", "4.0", "5.0rc1"):
        add_release(sample, number)
    bad = add_release(sample, "4.0.post1")
    try:
        with serving(sample.wheel.parent, {bad.name: "broken"}) as settings:
            found = document(sample, "--series", "sample_npu/1", environ=settings)
    finally:
        for number in ("3.0.post1", "4.0", "4.0.post1", "5.0rc1"):
            next(sample.wheel.parent.glob(f"sample_npu-{number}-*.whl")).unlink()
    bases = [base["base"] for base in found["components"][0]["bases"]]
    assert bases == ["1.1", "2.0", "3.0.post1", "4.0"]


def test_offline_the_newest_covered_release_of_each_line_stands_in(sample: Sample) -> None:
    found = document(sample, "--offline")
    assert [base["base"] for base in found["components"][0]["bases"]] == ["1.0", "1.1", "3.0"]


def test_a_series_without_a_release_gets_its_own_bases_each_with_a_verdict_or_a_reason(
    sample: Sample, tmp_path: Path
) -> None:
    upstream = tmp_path / "upstream"
    commit = make_upstream(upstream, {"below/sample_npu/core.py": RELEASES["1.0"]})
    gone = "0" * 39 + "1"
    more = f'upstream = ["{upstream.as_uri()}"]\nsubfolder = "below"\n'
    write_line(sample, "sample_npu/1", f"git:{commit}", f"git:{gone}", "installed:sample_npu==1.0", more=more)
    done = matrix(sample, "--series", "sample_npu/1", "--json")
    cells = json.loads(done.stdout)["components"][0]["patches"][0]["bases"]
    assert {name: (cell["verdict"], cell["why"]) for name, cell in cells.items()} == {
        commit[:12]: ("applies", None),
        gone[:12]: (None, f"sample_npu: commit {gone} of upstream cannot be had from its address"),
        "installed 1.0": (None, "no sample_npu==1.0 on this machine"),
    }
    assert done.returncode == 23
    assert json.loads(done.stdout)["findings"] == [
        f"sample_npu/1 {NAME} on {gone[:12]}: sample_npu: commit {gone} of upstream cannot be had from its address"
    ]


# --- bases that are asked for ------------------------------------------------------------------------------------


def test_a_release_and_a_ref_are_judged_side_by_side(sample: Sample, tmp_path: Path) -> None:
    upstream = tmp_path / "upstream"
    make_upstream(upstream, {"sample_npu/core.py": RELEASES["1.0"]})
    commit = commit_files(upstream, {"sample_npu/core.py": f"# new\n{RELEASES['1.0']}"})
    found = document(
        sample, "--offline", "--series", "sample_npu/1", "--against", "sample_npu==1.0", "--against",
        f"git:{upstream}@main",
    )  # fmt: skip
    assert verdicts(found) == {"sample_npu/1": {"1.0": ("applies", True), f"main ({commit[:12]})": ("offset", False)}}


@pytest.mark.parametrize(
    ("against", "code", "message"),
    [
        ("sample_npu==7.0", 5, "error: sample_npu: no wheel of sample_npu==7.0 is in the store at {store}, and offline "
         "nobody is asked"),
        ("git:{upstream}@maim", 5, "error: {upstream} has no ref 'maim'"),
        ("git:{upstream}", 2, "error: 'git:{upstream}' names no base: it has no @REF behind the address"),
        ("sampel_npu==1.0", 2, "error: 'sampel_npu==1.0' is no release of what the patches are for; did you mean "
         "'sample-npu'?"),
        ("newest", 2, "error: 'newest' names no base"),
    ],
    ids=["no-release", "no-ref", "no-at", "unknown", "nonsense"],
)  # fmt: skip
def test_a_base_that_is_asked_for_must_be_there(
    sample: Sample, tmp_path: Path, against: str, code: int, message: str
) -> None:
    upstream = tmp_path / "upstream"
    make_upstream(upstream, {"README": "nothing\n"})
    places = {"upstream": upstream, "store": sample.means.store.root}
    done = matrix(sample, "--offline", "--against", against.format(**places))
    assert done.stderr.splitlines()[-2 if "hint" in done.stderr else -1].startswith("error: ")
    assert (done.returncode, message.format(**places) in done.stderr.splitlines()) == (code, True)
    assert done.stdout == ""


def test_a_base_that_may_belong_to_two_components_is_refused(sample: Sample, tmp_path: Path) -> None:
    shutil.copytree(sample.root / "patches/sample_npu/1", sample.root / "patches/sample_ops/1")
    write_line(sample, "sample_ops/1", "sample_ops==1.0")
    upstream = tmp_path / "upstream"
    make_upstream(upstream, {"README": "nothing\n"})
    done = matrix(sample, "--offline", "--against", f"git:{upstream}@main")
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == (f"error: 'git:{upstream}@main' may be a base of sample_npu or sample_ops")
    mirrored = document(sample, "--offline", "--against", f"git:{upstream}@main", "--mirror", f"sample_ops={upstream}")
    assert [one["component"] for one in mirrored["components"]] == ["sample_ops"]


def test_a_series_that_does_not_exist_is_refused(sample: Sample) -> None:
    done = matrix(sample, "--series", "sample_npu/4")
    assert done.returncode == 2
    assert done.stderr.splitlines()[0].startswith("error: there is no series 'sample_npu/4'")


# --- what a person has to look at --------------------------------------------------------------------------------


def test_a_conflict_on_a_base_that_is_covered_ends_with_23_after_the_report(sample: Sample) -> None:
    write_line(sample, "sample_npu/1", "sample_npu==1.0", "sample_npu==3.0")
    done = matrix(sample, "--offline", "--series", "sample_npu/1")
    assert done.returncode == 23
    assert "  0001-change  applies  conflict [1]\n" in done.stdout
    assert done.stderr.splitlines()[-3:] == [
        "error: 1 cell of the matrix must be looked at",
        f"  sample_npu/1 {NAME} on 3.0: conflict",
        "hint: `-v` shows every hunk; nothing was changed",
    ]


@pytest.mark.parametrize("accepted", [False, True], ids=["by-nobody", "by-a-recipe"])
def test_a_covered_base_may_have_the_change_where_a_recipe_accepts_that(sample: Sample, accepted: bool) -> None:
    write_line(sample, "sample_npu/1", "sample_npu==1.0", "sample_npu==2.0")
    if accepted:
        series = 'series = "sample_npu/1"\n'
        text = sample.recipe.read_text().replace(series, f'{series}accept_upstream = ["{NAME}"]\n')
        sample.recipe.write_text(text, encoding="utf-8")
    found = document(sample, "--offline", "--series", "sample_npu/1")
    assert found["findings"] == ([] if accepted else [f"sample_npu/1 {NAME} on 2.0: upstream"])


# --- witnesses ---------------------------------------------------------------------------------------------------


def test_witnesses_say_whether_a_base_needs_a_patch_and_whether_it_works(sample: Sample) -> None:
    found = document(sample, "--witness", "--against", "sample_npu==1.0", "--against", "sample_npu==1.1",
                     "--against", "sample_npu==2.0", "--against", "sample_npu==3.0", "--offline")  # fmt: skip
    assert found["runtime"] == "host"
    assert witnesses(found, "sample_npu/1") == {
        "1.0": ("still needed", "still works"),
        "1.1": ("still needed", "still works"),
        "2.0": ("no longer needed", ""),
        "3.0": "not run: needs torch 9, the interpreter has " + own_torch(),
    }
    assert witnesses(found, "sample_npu/3")["1.0"] == ("still needed", "")
    assert found["ok"]
    assert not sample.overlays.exists()


def test_a_patch_that_no_longer_works_is_found(sample: Sample) -> None:
    patch = sample.root / "patches/sample_npu/1/0001-change.patch"
    patch.write_text(patch.read_text().replace("+    return total + 2", "+    return total + 3"), encoding="utf-8")
    found = document(sample, "--witness", "--offline", "--series", "sample_npu/1", "--against", "sample_npu==1.0")
    assert witnesses(found, "sample_npu/1") == {"1.0": ("still needed", "no longer works")}
    assert found["findings"] == [f"sample_npu/1 {NAME} on 1.0: no longer works, its witness says: the answer is 43"]


def test_a_base_that_cannot_be_imported_is_told_and_stops_no_other(sample: Sample) -> None:
    witness = sample.root / "verify/answer.py"
    text = witness.read_text(encoding="utf-8")
    witness.write_text(text.replace("    return passed", BREAKING), encoding="utf-8")
    found = document(sample, "--witness", "--offline", "--series", "sample_npu/1",
                     "--against", "sample_npu==1.1", "--against", "sample_npu==1.0")  # fmt: skip
    assert witnesses(found, "sample_npu/1") == {"1.1": ("", ""), "1.0": ("still needed", "still works")}
    (finding,) = found["findings"]
    assert finding.startswith(f"sample_npu/1 {NAME} on 1.1: its witness on the base: error, ")
    assert "no kernel" in finding


def test_a_series_that_cannot_be_built_is_told_and_stops_no_other(sample: Sample) -> None:
    patch = sample.root / "patches/sample_npu/1/0001-change.patch"
    patch.write_text(patch.read_text().replace("Witness: answer", "Witness: nobody"), encoding="utf-8")
    found = document(sample, "--witness", "--offline", "--against", "sample_npu==1.0")
    assert witnesses(found, "sample_npu/1") == {"1.0": ("", "")}
    assert witnesses(found, "sample_npu/3") == {"1.0": ("still needed", "")}
    assert found["findings"] == [
        f"sample_npu/1 {NAME} on 1.0: its witness on the base: error, "
        "a patch names a witness that verify/ does not have"
    ]


def test_an_interpreter_that_is_none_is_refused(sample: Sample) -> None:
    done = matrix(sample, "--witness", "--offline", "--python", "/nowhere/python")
    assert done.returncode == 17
    assert "error: the interpreter '/nowhere/python' does not exist" in done.stderr.splitlines()


# --- forms -------------------------------------------------------------------------------------------------------


def test_the_markdown_is_the_same_every_time_and_names_no_place(sample: Sample, tmp_path: Path) -> None:
    words = ("--offline", "--witness", "--format", "markdown")
    texts = []
    for number in range(2):
        done = matrix(sample, *words, "--output", str(tmp_path / f"{number}.md"))
        assert done.stdout == f"wrote {tmp_path / f'{number}.md'}\n"
        texts.append((tmp_path / f"{number}.md").read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    assert "| 0001-change | applies<br>needed, works | offset<br>needed, works |" in texts[0]
    for place in (str(tmp_path), os.uname().nodename):
        assert place not in texts[0]


class Page(HTMLParser):
    """Collects a page's tags and what they lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.leads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.leads += [f"{name}={value}" for name, value in attrs if name in ("src", "href")]


def test_the_page_stands_by_itself(sample: Sample) -> None:
    done = matrix(sample, "--offline", "--format", "html")
    page = Page(done.stdout)
    assert done.stdout.startswith("<!DOCTYPE html>\n")
    assert page.leads == []
    assert "script" not in page.tags
    assert page.tags.count("td") == 6
    assert page.tags.count("details") == 6


def test_a_terminal_gets_no_line_of_more_than_100_columns(sample: Sample) -> None:
    done = matrix(sample, "--offline")
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if len(line) > 100] == []
    assert done.stdout.splitlines()[:5] == [
        "sample_npu     1.0         1.1         3.0",
        "sample_npu/1",
        "  0001-change  applies     offset      (conflict)",
        "sample_npu/3",
        "  0001-change  (conflict)  (conflict)  applies",
    ]


def test_every_hunk_is_shown_where_more_is_asked_for(sample: Sample) -> None:
    done = matrix(sample, "--offline", "--series", "sample_npu/1", "--against", "sample_npu==1.1", "-v")
    assert "  sample_npu/core.py #1: offset at line 6 (offset 2)" in done.stdout.splitlines()
