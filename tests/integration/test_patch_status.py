"""`toolkit patch status`: how a series stands to an upstream that has moved on, and what is not in order."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.looking_sample import SERIES, Looking, make_looking, recipe_text, toolkit_of
from tests.series_cases import make_source, read_tree
from toolkit.errors import ApplyError
from toolkit.series import apply_series, load_series


def function(name: str, returned: str) -> bytes:
    return (
        f'def {name}(x):\n    """Return {name}."""\n    first = x + 1\n'
        f"    result = {returned}\n    last = first + result\n    return last\n\n\n"
    ).encode()


HEAD = b"import math\n\n\n"
TAIL = b"LAST = 1\n"
TWIN = (
    b"    total = 0\n    for item in items:\n        total += item\n"
    b"    if total < 0:\n        total = 0\n    return total\n"
)
TWINS = HEAD + b"def first(items):\n" + TWIN + b"\n\ndef second(items):\n" + TWIN + b"\n\n" + TAIL


def module(**returned: str) -> bytes:
    """Return a module whose functions return what is given for each."""
    return HEAD + b"".join(function(name, value) for name, value in returned.items()) + TAIL


WRITTEN_ON = {
    "taken.py": module(alpha="0", beta="0", gamma="0"),
    "half.py": module(alpha="0", beta="0", gamma="0", delta="0"),
    "moved.py": module(alpha="0", beta="0", gamma="0", delta="0"),
    "twins.py": TWINS,
}
ALPHA_TAKEN = {**WRITTEN_ON, "taken.py": module(alpha="0", beta="mended", gamma="0")}
HALF_TAKEN = {**ALPHA_TAKEN, "half.py": module(alpha="mended", beta="0", gamma="0", delta="mended")}
MOVED = {**HALF_TAKEN, "moved.py": module(alpha="0", beta="mended", gamma="0", delta="0")}
DECOY = {**MOVED, "twins.py": TWINS.replace(b"total < 0", b"total < 1", 1)}

MOVED_ON = {
    "taken.py": b'"""It has the first patch."""\n' + module(alpha="0", beta="mended", gamma="0"),
    "half.py": module(alpha="mended", beta="0", gamma="0", delta="0"),
    "moved.py": module(alpha="0", gamma="0", delta="0", beta="0"),
    "twins.py": TWINS.replace(b"total < 0", b"total <= 0", 1),
}
"""An upstream that took the first patch and half of the second, moved the third's function and changed the fourth's."""


@pytest.fixture
def moved_on(tmp_path: Path) -> Looking:
    return make_looking(tmp_path, WRITTEN_ON, ALPHA_TAKEN, HALF_TAKEN, MOVED, DECOY, home=MOVED_ON)


def well(tmp_path: Path) -> Looking:
    """Return a project in which there is nothing to find."""
    return make_looking(tmp_path, WRITTEN_ON, ALPHA_TAKEN, home=WRITTEN_ON)


def test_status_tells_what_an_upstream_has_taken_moved_and_changed(
    moved_on: Looking, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = toolkit_of(moved_on, capsys)("status")
    assert ended.code == 23
    assert ended.out.splitlines() == [
        f"sample/1.0 on git:{moved_on.home[:12]}, its home",
        "  0001-change  upstream",
        "    the base has all of its change already",
        "  0002-change  partly",
        "    1 of 2 parts are in the base already: hunk #1 of half.py is, hunk #2 of half.py is not",
        "  0003-change  offset +16 in moved.py",
        "  0004-change  conflict",
        "    cannot be trusted: hunk #1 of twins.py fits at twins.py:14, but it was made below 'def",
        "      first(items):', but there it would stand below 'def second(items):'",
        "",
        "4 patches: 1 offset, 1 upstream, 1 partly, 1 conflict",
    ]
    assert ended.err.splitlines()[-2:] == [
        "error: 3 things to look at or to mend, as listed",
        "hint: nothing was changed; `toolkit patch show` shows a patch, `edit`, `rebase` and `retire` change it",
    ]


def test_a_decoy_is_never_patched(moved_on: Looking, tmp_path: Path) -> None:
    """What status says is what a build does: the moved function is found, the twin is left alone."""
    series, source = load_series(moved_on.series, name=SERIES), make_source(tmp_path, MOVED_ON)
    _, _, moved, decoy = (type(series)(name=SERIES, patches=(patch,)) for patch in series.patches)
    done = apply_series(moved, source, into=tmp_path / "out", scratch=tmp_path / "scratch")
    assert read_tree(done.root) == {"moved.py": module(alpha="0", gamma="0", delta="0", beta="mended")}
    with pytest.raises(ApplyError) as raised:
        apply_series(decoy, source, into=tmp_path / "decoy", scratch=tmp_path / "scratch")
    assert raised.value.message.startswith("patch 0004-change cannot be trusted: hunk #1 of twins.py fits at")
    assert not (tmp_path / "decoy").exists()


def test_the_document_has_every_hunk(moved_on: Looking, capsys: pytest.CaptureFixture[str]) -> None:
    ended = toolkit_of(moved_on, capsys)("status", "--json")
    assert (ended.code, ended.err) == (23, f"sample/1.0: download git:{moved_on.home[:12]}\n")
    assert ended.document["ok"] is False
    assert ended.document["findings"] == [
        f"sample/1.0 {name} on git:{moved_on.home[:12]}: {word}"
        for name, word in (("0001-change", "upstream"), ("0002-change", "partly"), ("0004-change", "conflict"))
    ]
    (shown,) = ended.document["series"]
    assert shown["patches"][1]["hunks"] == [
        {"path": "half.py", "hunk": 1, "verdict": "upstream", "line": 4, "offset": 0, "detail": ""},
        {"path": "half.py", "hunk": 2, "verdict": "applies", "line": 28, "offset": 0, "detail": ""},
    ]


def test_a_series_that_is_well_ends_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    looking = well(tmp_path)
    ended = toolkit_of(looking, capsys)("status", "--series", SERIES)
    assert ended.code == 0
    assert ended.out == (
        f"sample/1.0 on git:{looking.home[:12]}, its home\n  0001-change  applies\n\n1 patch: 1 applies\n"
    )


def test_a_file_renamed_upstream_is_found_without_a_checkout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = {"inner/taken.py": b"\n" + WRITTEN_ON["taken.py"], "half.py": b"x\n"}
    looking = make_looking(tmp_path, WRITTEN_ON, ALPHA_TAKEN, home=home)
    ended = toolkit_of(looking, capsys)("status", "--json")
    (patch,) = ended.document["series"][0]["patches"]
    assert (ended.code, patch["verdict"], patch["moved"]) == (23, "conflict", {"taken.py": "inner/taken.py"})
    assert patch["reason"] == (
        "the base has no file taken.py: it was renamed to inner/taken.py, which has the lines that the patch expects"
    )


def test_an_upstream_patch_that_a_recipe_accepts_is_no_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    looking = make_looking(tmp_path, WRITTEN_ON, ALPHA_TAKEN, home=ALPHA_TAKEN)
    recipe = looking.root / "recipes/sample.toml"
    recipe.write_text(recipe.read_text().replace('series = "', 'accept_upstream = ["0001-change"]\nseries = "'))
    ended = toolkit_of(looking, capsys)("status")
    assert ended.code == 0
    assert "  0001-change  upstream (accepted)" in ended.out


def test_a_base_that_cannot_be_had_is_a_row_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    looking = well(tmp_path)
    other = looking.root / "patches/sample/2.0"
    shutil.copytree(looking.series, other)
    line, gone = other / "series.toml", "0" * 39 + "1"
    line.write_text(line.read_text().replace(looking.home, gone))
    recipe = looking.root / "recipes/sample.toml"
    (looking.root / "recipes/two.toml").write_text(recipe.read_text().replace("1.0", "2.0").replace(looking.home, gone))
    ended = toolkit_of(looking, capsys)("status")
    assert ended.code == 23
    assert "  0001-change  applies" in ended.out
    assert "sample/2.0 on git:000000000000, its home\n  not judged: sample: commit 0000" in ended.out
    assert ended.out.endswith("1 patch: 1 applies; 1 of 2 series not judged\n")


def test_offline_the_store_serves_what_was_fetched_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    looking = well(tmp_path)
    toolkit = toolkit_of(looking, capsys)
    assert toolkit("status").code == 0
    shutil.rmtree(tmp_path / "upstream")
    assert toolkit("status", "--offline").code == 0
    shutil.rmtree(tmp_path / "store")
    ended = toolkit("status", "--offline")
    assert ended.code == 23
    assert "cannot be had from its address" in " ".join(ended.out.split())


def test_two_ways_to_choose_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ended = toolkit_of(well(tmp_path), capsys)("status", "--series", SERIES, "--recipe", "sample")
    assert (ended.code, ended.out) == (2, "")
    assert "error: --series and --recipe are two ways to choose" in ended.err


# --- what is not in order ----------------------------------------------------------------------------------------


def test_all_that_is_not_in_order_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The patches that can be read are judged beside it."""
    looking = make_looking(tmp_path, WRITTEN_ON, ALPHA_TAKEN, HALF_TAKEN, MOVED, home=WRITTEN_ON)
    first, second, third = sorted(looking.series.glob("*.patch"))
    first.write_bytes(first.read_bytes().replace(b"Witness: answer\n", b""))
    second.rename(second.with_name("0003-second.patch"))
    third.write_bytes(third.read_bytes().replace(b"Witness: answer\n", b"Witness: nobody\n"))
    (looking.series / "loose.patch").write_bytes(first.read_bytes())
    (looking.root / "patches/sample/loose.diff").touch()
    (looking.root / "patches/sample/2.0").mkdir()
    ended = toolkit_of(looking, capsys)("status", "--json")
    patches = looking.root / "patches"
    checks = looking.root / "verify/checks.json"
    assert ended.code == 23
    assert [(fault["path"], fault["what"]) for fault in ended.document["faults"]] == [
        (str(patches / "sample/loose.diff"),
         "lies outside of every series, expected <component>/<line>/NNNN-slug.patch"),
        (str(looking.series / "loose.patch"), "outside the order, expected NNNN-slug.patch"),
        (str(looking.series / "0003-change.patch"), "has number 0003, expected 0002"),
        (str(looking.series / "0003-second.patch"), "has number 0003, as 0003-change.patch has"),
        (str(first), "has no `Witness:` trailer, expected the name of its witness"),
        (str(patches / "sample/2.0"), "has no patch, expected files named NNNN-slug.patch"),
        (str(patches / "sample/2.0/series.toml"),
         "series 'sample/2.0' does not say which bases it is for: no file "
         f"{patches / 'sample/2.0/series.toml'}"),
        (str(third), f"no witness 'nobody' in {checks}"),
        (str(patches / "sample/2.0"), "no recipe uses this series"),
    ]  # fmt: skip
    judged, empty = ended.document["series"]
    assert [patch["verdict"] for patch in judged["patches"]] == ["applies"] * 3
    assert empty["why"] == "it does not say which its home is"


def test_a_wrong_series_toml_is_told_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    looking = well(tmp_path)
    line = looking.series / "series.toml"
    line.write_text(line.read_text().replace("covers", "cover"))
    ended = toolkit_of(looking, capsys)("status", "--json")
    assert [fault["what"] for fault in ended.document["faults"]] == [
        "covers: missing key", "line 2: cover: unknown key; did you mean 'covers'?"
    ]  # fmt: skip


def test_a_witness_that_no_patch_names_is_an_orphan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    looking = well(tmp_path)
    checks = looking.root / "verify/checks.json"
    checks.write_text(checks.read_text().replace('"answer"', '"orphan"', 1))
    ended = toolkit_of(looking, capsys)("status", "--json")
    assert (ended.code, ended.document["ok"]) == (23, False)
    assert [fault["what"] for fault in ended.document["faults"]] == [
        f"no witness 'answer' in {checks}", "no patch names the witness 'orphan'"
    ]  # fmt: skip


def test_a_base_that_no_recipe_uses_is_only_remarked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    looking = well(tmp_path)
    line = looking.series / "series.toml"
    line.write_text(line.read_text().replace('"]\nupstream', '", "sample==1.1"]\nupstream'))
    ended = toolkit_of(looking, capsys)("status")
    assert ended.code == 0
    assert "remarks:\n  sample/1.0 covers sample==1.1, which no recipe uses\n" in ended.out


def test_a_recipe_that_cannot_be_read_is_told_and_nothing_is_called_unused_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    looking = well(tmp_path)
    recipe = looking.root / "recipes/sample.toml"
    recipe.write_text(recipe_text("file:///x", looking.home, series="sample/9.9"))
    ended = toolkit_of(looking, capsys)("status", "--json")
    assert [fault["path"] for fault in ended.document["faults"]] == [str(recipe)]
    assert "unknown series 'sample/9.9'" in ended.document["faults"][0]["what"]


def test_what_is_retired_or_hidden_is_no_series(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    looking = well(tmp_path)
    for place in ("retired/sample/1.0", ".kept/1.0", "sample/.part-1.0"):
        shutil.copytree(looking.series, looking.root / "patches" / place)
    assert looking.project.series_names() == [SERIES]
    assert toolkit_of(looking, capsys)("status").code == 0
