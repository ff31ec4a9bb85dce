"""How series stand to trees, told by the real git: every verdict, every hunk, and that nothing is ever guessed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.series_cases import Tree, edit_diff, make_series, make_source, patch_text, read_tree
from toolkit.model import Series, SourceTree
from toolkit.series import HunkVerdict, PatchVerdict, judge_series, load_series
from toolkit.series.lint import read_patch

LINES = b"".join(b"line %d\n" % number for number in range(40))
BLOB = bytes(range(256)) * 4
ALL_THERE = "the base has all of its change already"


def judge(
    tmp_path: Path, series: Series, source: SourceTree, read: Callable[[str], bytes] | None = None
) -> tuple[PatchVerdict, ...]:
    """Return the verdicts, after a look that the base is as it was and that nothing was left."""
    before = read_tree(source.root)
    verdicts = judge_series(series, source, scratch=tmp_path / "scratch", read_file=read)
    assert read_tree(source.root) == before
    assert not list((tmp_path / "scratch").iterdir())
    return verdicts


def judge_one(tmp_path: Path, before: Tree, after: Tree, base: Tree, *options: str) -> PatchVerdict:
    series = make_series(tmp_path, before, after, options=["--binary", *options])
    (verdict,) = judge(tmp_path, series, make_source(tmp_path, base))
    return verdict


def replaced(source: bytes, **words: str) -> bytes:
    """Replace whole lines `line N` by others, given as lineN="…"."""
    for name, word in words.items():
        source = source.replace(b"line %d\n" % int(name[4:]), word.encode() + b"\n")
    return source


def shown(hunks: tuple[HunkVerdict, ...]) -> list[tuple[str, int, str, int, int]]:
    return [(hunk.path, hunk.hunk, hunk.verdict, hunk.line, hunk.offset) for hunk in hunks]


def handwritten(tmp_path: Path, *diffs: str) -> Series:
    folder = tmp_path / "patches"
    folder.mkdir()
    for number, diff in enumerate(diffs, 1):
        (folder / f"{number:04}-change.patch").write_text(patch_text(diff), encoding="utf-8", newline="")
    return load_series(folder, name="sample/1.0")


def new_diff(path: str, *, gone: bool = False) -> str:
    """Return a diff that adds a file of one line, or deletes it."""
    if gone:
        return (
            f"diff --git a/{path} b/{path}\ndeleted file mode 100644\nindex 1111111..0000000\n"
            f"--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
        )
    return (
        f"diff --git a/{path} b/{path}\nnew file mode 100644\nindex 0000000..1111111\n"
        f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+one\n"
    )


# --- one patch ---------------------------------------------------------------------------------------------------


def test_a_patch_applies_to_its_own_base(tmp_path: Path) -> None:
    before, after = {"p/a.py": LINES}, {"p/a.py": replaced(LINES, line7="x", line30="y")}
    verdict = judge_one(tmp_path, before, after, before)
    assert (verdict.name, verdict.witness) == ("0001-change", "some-witness")
    assert (verdict.verdict, verdict.reason, verdict.details, verdict.goes_in) == ("applies", "", (), True)
    assert shown(verdict.hunks) == [("p/a.py", 1, "applies", 5, 0), ("p/a.py", 2, "applies", 28, 0)]


def test_an_offset_is_told_hunk_by_hunk_with_the_line_in_the_base(tmp_path: Path) -> None:
    before = {"p/a.py": b"def f():\n" + LINES}
    after = {"p/a.py": replaced(before["p/a.py"], line7="x\nmore", line30="y")}
    moved = b"import a\nimport b\n\n" + replaced(before["p/a.py"], line20="20\n20b")
    verdict = judge_one(tmp_path, before, after, {"p/a.py": moved})
    assert (verdict.verdict, verdict.reason) == ("offset", "")
    assert shown(verdict.hunks) == [("p/a.py", 1, "offset", 9, 3), ("p/a.py", 2, "offset", 33, 4)]
    assert moved.splitlines()[32] == b"line 27"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({"p/a.py": LINES}, {"p/a.py": replaced(LINES, line7="x")}, id="edited"),
        pytest.param({"x": b"1"}, {"x": b"1", "p/new.py": LINES}, id="added"),
        pytest.param({"x": b"1"}, {"x": b"1", "p/new.py": b""}, id="added and empty"),
        pytest.param({"x": b"1", "p/old.py": LINES}, {"x": b"1"}, id="deleted"),
        pytest.param({"p/old.py": LINES}, {"p/new.py": replaced(LINES, line7="x")}, id="renamed"),
        pytest.param({"p/old.py": LINES}, {"p/new.py": LINES}, id="renamed only"),
        pytest.param({"p/a.bin": b"\0" + BLOB}, {"p/a.bin": b"\0" + BLOB + b"x"}, id="binary"),
        pytest.param({"x": b"1"}, {"x": b"1", "p/a.bin": BLOB}, id="binary added"),
        pytest.param({"x": b"1", "p/a.bin": BLOB}, {"x": b"1"}, id="binary deleted"),
        pytest.param({"p/a.py": b""}, {"p/a.py": LINES}, id="filled"),
    ],
)
def test_any_kind_of_change_applies_or_is_upstream(tmp_path: Path, before: Tree, after: Tree) -> None:
    series = make_series(tmp_path, before, after, options=["--binary"])
    (applies,) = judge(tmp_path, series, make_source(tmp_path, before))
    assert (applies.verdict, {hunk.verdict for hunk in applies.hunks}) == ("applies", {"applies"})
    (upstream,) = judge(tmp_path, series, make_source(tmp_path, after))
    assert (upstream.verdict, upstream.reason) == ("upstream", ALL_THERE)
    assert {hunk.verdict for hunk in upstream.hunks} == {"upstream"}
    assert not upstream.goes_in


def test_an_upstream_hunk_is_where_it_stands_in_the_base(tmp_path: Path) -> None:
    before, after = {"p/a.py": LINES}, {"p/a.py": replaced(LINES, line7="x", line30="y")}
    verdict = judge_one(tmp_path, before, after, {"p/a.py": b"new\n" + after["p/a.py"]})
    assert shown(verdict.hunks) == [("p/a.py", 1, "upstream", 6, 1), ("p/a.py", 2, "upstream", 29, 1)]


def test_a_patch_that_is_half_upstream_is_partly_there(tmp_path: Path) -> None:
    before = {"p/a.py": LINES, "p/b.py": b"1\n2\n3\n"}
    after = {"p/a.py": replaced(LINES, line7="x", line30="y"), "p/b.py": b"1\n2\nthree\n"}
    base = {"p/a.py": b"new\n" + replaced(LINES, line30="y"), "p/b.py": b"1\nother\n3\n"}
    verdict = judge_one(tmp_path, before, after, base)
    assert verdict.verdict == "partly"
    assert verdict.reason == ("1 of 3 parts are in the base already: hunk #2 of p/a.py is, hunk #1 of p/a.py is not")
    assert shown(verdict.hunks) == [
        ("p/a.py", 1, "offset", 6, 1),
        ("p/a.py", 2, "upstream", 29, 1),
        ("p/b.py", 1, "conflict", 2, 1),
    ]
    assert verdict.details == (
        "hunk #1 of p/b.py conflicts at p/b.py:2", r"expected: '2\n'", r"base has: 'other\n'"
    )  # fmt: skip


def test_a_conflict_shows_its_first_hunk(tmp_path: Path) -> None:
    before, after = {"p/a.py": LINES}, {"p/a.py": replaced(LINES, line7="x", line30="y")}
    verdict = judge_one(tmp_path, before, after, {"p/a.py": b"new\n" + replaced(LINES, line31="other")})
    assert (verdict.verdict, verdict.reason) == ("conflict", "hunk #2 of p/a.py conflicts at p/a.py:33")
    assert verdict.details == (r"expected: 'line 31\n'", r"base has: 'other\n'")
    assert shown(verdict.hunks) == [("p/a.py", 1, "offset", 6, 1), ("p/a.py", 2, "conflict", 33, 5)]
    assert verdict.hunks[1].detail == r"expected: 'line 31\n'; base has: 'other\n'"


def test_a_hunk_that_has_no_place_at_all_is_on_line_0(tmp_path: Path) -> None:
    verdict = judge_one(tmp_path, {"a.py": LINES}, {"a.py": replaced(LINES, line7="x")}, {"a.py": b"quite\nother\n"})
    assert shown(verdict.hunks) == [("a.py", 1, "conflict", 0, 0)]
    assert verdict.hunks[0].detail == r"expected: 'line 4\n'; the base has nothing like it"


@pytest.mark.parametrize(
    ("before", "after", "base", "reason"),
    [
        pytest.param({"x": b"1", "a.bin": BLOB}, {"x": b"1", "a.bin": BLOB + b"x"}, {"a.bin": BLOB[1:]},
                     "binary a.bin is not the file c8b49c8cd518 that the patch was made for", id="another binary"),
        pytest.param({"x": b"1"}, {"x": b"1", "p/n.py": b"n\n"}, {"p/n.py": b"other\n"},
                     "it adds p/n.py, but the base has a file there already", id="a file in the way"),
        pytest.param({"x": b"1"}, {"x": b"1", "p": b"n\n"}, {"p/n.py": b"other\n"},
                     "adds p, but the base has a folder of that name", id="a folder in the way"),
        pytest.param({"x": b"1", "p/a.py": LINES}, {"x": b"1"}, {"p/a.py": LINES + b"more\n"},
                     "p/a.py is not the file that the patch deletes", id="another file deleted"),
        pytest.param({"p/a.py": LINES}, {"p/b.py": LINES}, {"p/a.py": LINES, "p/b.py": b"other\n"},
                     "it adds p/b.py, but the base has a file there already", id="renamed onto a file"),
    ],
)  # fmt: skip
def test_what_is_not_an_edit_can_conflict(tmp_path: Path, before: Tree, after: Tree, base: Tree, reason: str) -> None:
    verdict = judge_one(tmp_path, before, after, base)
    assert (verdict.verdict, verdict.reason) == ("conflict", reason)
    assert [hunk.verdict for hunk in verdict.hunks] == ["conflict"]


# --- near-identical places ---------------------------------------------------------------------------------------

TWIN = (
    b"    total = 0\n    for item in items:\n        total += item\n"
    b"    if total < 0:\n        total = 0\n    return total\n"
)
TWINS = b"import os\n\n\ndef first(items):\n" + TWIN + b"\n\ndef second(items):\n" + TWIN + b"\n\nlast = 1\n"
MENDED = TWINS.replace(b"total < 0", b"total < 1", 1)


def test_a_decoy_is_never_taken_for_the_place(tmp_path: Path) -> None:
    """The function changed, so that the old lines stand only in its twin."""
    verdict = judge_one(
        tmp_path, {"a.py": TWINS}, {"a.py": MENDED}, {"a.py": TWINS.replace(b"total < 0", b"total <= 0", 1)}
    )
    why = "it was made below 'def first(items):', but there it would stand below 'def second(items):'"
    assert verdict.verdict == "conflict"
    assert verdict.reason == f"cannot be trusted: hunk #1 of a.py fits at a.py:14, but {why}"
    assert verdict.hunks == (
        HunkVerdict(path="a.py", hunk=1, verdict="conflict", line=14, offset=9, detail=why),
    )  # fmt: skip


def test_two_possible_places_are_a_conflict(tmp_path: Path) -> None:
    verdict = judge_one(tmp_path, {"a.py": TWINS}, {"a.py": MENDED}, {"a.py": b"import re\n" + TWINS})
    assert verdict.reason == (
        "cannot be trusted: hunk #1 of a.py fits at a.py:6,"
        " but it is ambiguous: its old lines stand at lines 6, 15"
    )  # fmt: skip


def test_a_twin_that_has_the_change_does_not_make_it_upstream(tmp_path: Path) -> None:
    head, _, tail = TWINS.rpartition(b"total < 0")
    base = head.replace(b"total < 0", b"total <= 0") + b"total < 1" + tail
    verdict = judge_one(tmp_path, {"a.py": TWINS}, {"a.py": MENDED}, {"a.py": base})
    assert verdict.verdict == "conflict"
    assert verdict.reason.startswith("cannot be trusted: hunk #1 of a.py seems to be in the base already at a.py:14")


def test_a_decoy_for_one_hunk_makes_that_hunk_a_conflict_even_where_another_is_upstream(tmp_path: Path) -> None:
    before, after = {"a.py": TWINS, "b.py": LINES}, {"a.py": MENDED, "b.py": replaced(LINES, line7="x")}
    base = {"a.py": TWINS.replace(b"total < 0", b"total <= 0", 1), "b.py": after["b.py"]}
    verdict = judge_one(tmp_path, before, after, base)
    assert verdict.verdict == "partly"
    assert shown(verdict.hunks) == [("a.py", 1, "conflict", 14, 9), ("b.py", 1, "upstream", 5, 0)]
    assert verdict.hunks[0].detail.startswith("it fits at line 14, but it was made below 'def first(items):'")


OLD = b"".join(b"        old %d\n" % number for number in range(12))
END = b"        end\n        done\n        return\n\n"
BOTH = (
    b"class Both:\n    x: int\n    y: int\n"
    + b"".join(b"    def %s(self):\n        start\n" % name + OLD + END for name in (b"one", b"two"))
    + b"z = 1\n"
)
ONE_MENDED = BOTH.replace(OLD, b"        new\n", 1)


def test_a_patch_that_fits_both_ways_is_a_conflict(tmp_path: Path) -> None:
    verdict = judge_one(tmp_path, {"a.py": BOTH}, {"a.py": ONE_MENDED}, {"a.py": b"import re\n" + ONE_MENDED}, "-U1")
    assert verdict.reason == "is ambiguous: its old lines and its new lines both stand in a.py"
    assert [(hunk.verdict, hunk.detail) for hunk in verdict.hunks] == [("conflict", verdict.reason)]


def test_a_hunk_that_fits_both_ways_is_a_conflict_whatever_the_others_are(tmp_path: Path) -> None:
    base = {"a.py": b"import re\n" + ONE_MENDED, "b.py": b"other\n"}
    before, after = {"a.py": BOTH, "b.py": LINES}, {"a.py": ONE_MENDED, "b.py": replaced(LINES, line7="x")}
    verdict = judge_one(tmp_path, before, after, base, "-U1")
    assert shown(verdict.hunks) == [("a.py", 1, "conflict", 13, 8), ("b.py", 1, "conflict", 0, 0)]
    assert verdict.hunks[0].detail == (
        "it is ambiguous: its old lines stand at line 13, its new lines at line 6"
    )  # fmt: skip


# --- the whole series --------------------------------------------------------------------------------------------


def test_patches_are_judged_with_the_earlier_ones_in_the_tree(tmp_path: Path) -> None:
    trees = [{"a": LINES}, {"a": replaced(LINES, line7="x")}, {"a": replaced(LINES, line7="y")}, {"a": b"", "b": b"1"}]
    verdicts = judge(tmp_path, make_series(tmp_path, *trees), make_source(tmp_path, trees[0]))
    assert [verdict.verdict for verdict in verdicts] == ["applies"] * 3


def test_what_conflicts_is_left_out_and_named_where_a_later_one_needs_it(tmp_path: Path) -> None:
    trees = [
        {"a": LINES, "b": LINES},
        {"a": replaced(LINES, line7="x"), "b": LINES},
        {"a": replaced(LINES, line7="y"), "b": LINES},
        {"a": replaced(LINES, line7="y", line30="z"), "b": LINES},
        {"a": replaced(LINES, line7="y", line30="z"), "b": replaced(LINES, line7="x")},
    ]
    base = {"a": replaced(LINES, line6="other"), "b": LINES}
    verdicts = judge(tmp_path, make_series(tmp_path, *trees), make_source(tmp_path, base))
    assert [verdict.verdict for verdict in verdicts] == ["conflict", "conflict", "applies", "applies"]
    assert verdicts[0].reason == "hunk #1 of a conflicts at a:7"
    assert verdicts[1].reason == (
        "hunk #1 of a conflicts at a:7; 0001-change changes the same file and did not go in"
    )  # fmt: skip


def test_an_upstream_patch_is_left_out_and_the_next_one_stands_on_the_base(tmp_path: Path) -> None:
    trees = [{"a": LINES}, {"a": replaced(LINES, line7="x")}, {"a": replaced(LINES, line7="y")}]
    verdicts = judge(tmp_path, make_series(tmp_path, *trees), make_source(tmp_path, trees[1]))
    assert [verdict.verdict for verdict in verdicts] == ["upstream", "applies"]


def test_a_folder_that_one_patch_makes_is_there_for_the_next(tmp_path: Path) -> None:
    """The third can add the file `p` only once the second has emptied the folder of that name."""
    series = handwritten(tmp_path, new_diff("p/q/new.py"), new_diff("p/q/new.py", gone=True), new_diff("p"))
    verdicts = judge(tmp_path, series, make_source(tmp_path, {"x": b"1"}))
    assert [verdict.verdict for verdict in verdicts] == ["applies"] * 3
    series = Series(name="sample/1.0", patches=(series.patches[0], series.patches[2]))
    verdicts = judge(tmp_path, series, make_source(tmp_path, {"x": b"1"}))
    assert [verdict.reason for verdict in verdicts] == ["", "adds p, but the base has a folder of that name"]


def test_a_file_that_one_patch_deletes_makes_room_for_a_folder_of_the_next(tmp_path: Path) -> None:
    series = handwritten(tmp_path, new_diff("p", gone=True), new_diff("p/q/new.py"))
    verdicts = judge(tmp_path, series, make_source(tmp_path, {"p": b"one\n"}))
    assert [verdict.verdict for verdict in verdicts] == ["applies"] * 2


def test_many_patches_take_few_git_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve patches on files of their own: ten go in, one is upstream, one conflicts."""
    before = {f"p/{number:02}.py": LINES for number in range(12)}
    trees = [before]
    for number, path in enumerate(before):
        trees.append({**trees[-1], path: replaced(LINES, line7=f"x{number}", line30="y")})
    base = {path: b"new\n" + raw for path, raw in before.items()} | {"p/03.py": trees[-1]["p/03.py"], "p/04.py": b"x\n"}
    series, source = make_series(tmp_path, *trees), make_source(tmp_path, base)
    log = count_git(tmp_path, monkeypatch)
    verdicts = judge(tmp_path, series, source)
    assert [verdict.verdict for verdict in verdicts] == [
        *["offset"] * 3, "upstream", "conflict", *["offset"] * 7
    ]  # fmt: skip
    calls = [line for line in log.read_text().splitlines() if line.startswith("apply")]
    assert len(calls) == 4  # One to apply the ten, one for the upstream one, one each way for the hunks of the other.


def count_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make `git` a program that notes its words in a file before it is git."""
    shim, log = tmp_path / "bin" / "git", tmp_path / "git.log"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\necho "$*" >>\'{log}\'\nexec {shutil.which("git")} "$@"\n', encoding="utf-8")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    return log


# --- files that are gone -----------------------------------------------------------------------------------------


def gone(tmp_path: Path, members: Tree, *, path: str = "p/_inductor/lowering.py") -> PatchVerdict:
    """Judge an edit of a file that the base has not, whose other members are read one by one."""
    series = make_series(tmp_path, {path: LINES}, {path: replaced(LINES, line7="x")})
    source = make_source(tmp_path, {}, more_members=list(members))
    (verdict,) = judge(tmp_path, series, source, lambda name: members[name])
    return verdict


def test_a_file_that_was_renamed_is_found_by_its_name_in_another_folder(tmp_path: Path) -> None:
    verdict = gone(tmp_path, {"p/inductor/lowering.py": b"new\n" + LINES, "q/lowering.py": b"x\n", "p/b.py": LINES})
    assert verdict.verdict == "conflict"
    assert verdict.moved == {"p/_inductor/lowering.py": "p/inductor/lowering.py"}
    assert verdict.reason == (
        "the base has no file p/_inductor/lowering.py: it was renamed to p/inductor/lowering.py,"
        " which has the lines that the patch expects"
    )
    assert shown(verdict.hunks) == [("p/_inductor/lowering.py", 1, "conflict", 0, 0)]


@pytest.mark.parametrize(
    ("members", "found"),
    [
        pytest.param(["p/_inductor/lower.py", "q/other.py"], "p/_inductor/lower.py", id="another name beside it"),
        pytest.param(["q/other.py", "p/_inductor/lowering.txt"], "q/other.py", id="another name elsewhere"),
    ],
)
def test_a_file_that_was_renamed_is_found_by_its_lines(tmp_path: Path, members: list[str], found: str) -> None:
    verdict = gone(tmp_path, dict.fromkeys(members, b"new\n" + LINES) | {"p/_inductor/x.py": b"x\n"})
    assert verdict.moved == {"p/_inductor/lowering.py": found}


def test_a_file_that_was_renamed_may_have_the_change(tmp_path: Path) -> None:
    verdict = gone(tmp_path, {"p/lowering.py": replaced(LINES, line7="x")})
    assert verdict.moved == {"p/_inductor/lowering.py": "p/lowering.py"}
    assert verdict.reason.endswith("it was renamed to p/lowering.py, which has its change already")


def test_two_places_for_a_file_that_is_gone_are_both_named_and_none_is_chosen(tmp_path: Path) -> None:
    verdict = gone(tmp_path, {"a/lowering.py": LINES, "b/lowering.py": LINES})
    assert verdict.moved == {}
    assert verdict.reason == (
        "the base has no file p/_inductor/lowering.py; its lines stand in a/lowering.py and in b/lowering.py"
    )


def test_a_file_that_is_gone_says_so(tmp_path: Path) -> None:
    verdict = gone(tmp_path, {"p/lowering.py": b"other\n", "p/_inductor/x.py": b"x\n", "p/_inductor/y.txt": LINES})
    assert (verdict.verdict, verdict.moved) == ("conflict", {})
    assert verdict.reason == (
        "the base has no file p/_inductor/lowering.py, and no other has the lines that the patch expects"
    )


def test_a_search_among_very_many_files_is_given_up_and_says_so(tmp_path: Path) -> None:
    far = {f"q/r/{number:03}.py": LINES if number == 450 else b"x\n" for number in range(500)}
    near = {"p/_inductor/x.py": b"x\n"}
    read: list[str] = []
    series = make_series(tmp_path, {"p/_inductor/l.py": LINES}, {"p/_inductor/l.py": replaced(LINES, line7="x")})
    source = make_source(tmp_path, {}, more_members=[*far, *near])
    (verdict,) = judge(tmp_path, series, source, lambda name: (read.append(name), {**far, **near}[name])[1])
    assert verdict.reason == (
        "the base has no file p/_inductor/l.py, and none of the 400 nearest has the lines that the patch expects"
    )
    assert (read[0], len(read)) == ("p/_inductor/x.py", 400)


def test_without_a_reader_only_what_is_laid_out_is_searched(tmp_path: Path) -> None:
    series = make_series(tmp_path, {"p/a.py": LINES}, {"p/a.py": replaced(LINES, line7="x")})
    source = make_source(tmp_path, {"q/b.py": LINES}, more_members=["r/a.py"])
    (verdict,) = judge(tmp_path, series, source)
    assert verdict.moved == {"p/a.py": "q/b.py"}


def test_a_file_that_was_not_laid_out_is_read(tmp_path: Path) -> None:
    series = make_series(tmp_path, {"p/a.py": LINES}, {"p/a.py": replaced(LINES, line7="x")})
    source = make_source(tmp_path, {}, more_members=["p/a.py"])
    (verdict,) = judge(tmp_path, series, source, {"p/a.py": LINES}.__getitem__)
    assert verdict.verdict == "applies"


# --- what nobody can be asked about ------------------------------------------------------------------------------


def test_a_patch_through_a_symlink_of_the_base_is_a_conflict(tmp_path: Path) -> None:
    source = make_source(tmp_path, {"p/b.py": b"one\ntwo\n"}, more_members=["p/link/a.py"])
    (source.root / "p" / "link").symlink_to(tmp_path)
    verdicts = judge_series(
        handwritten(tmp_path, edit_diff("p/link/a.py"), edit_diff("p/b.py")), source, scratch=tmp_path / "scratch"
    )
    assert [verdict.verdict for verdict in verdicts] == ["conflict", "applies"]
    assert verdicts[0].reason == "p/link/a.py cannot be patched: p/link is a symlink in the base"


def test_a_damaged_patch_is_a_conflict_that_says_what_is_damaged(tmp_path: Path) -> None:
    series = handwritten(tmp_path, edit_diff("a"))
    path = series.patches[0].path
    path.write_text(path.read_text().replace("@@ -1,2 +1,2 @@", "@@ -1,3 +1,2 @@"))
    damaged, _ = read_patch(path, 1)
    (verdict,) = judge(tmp_path, Series(name="s", patches=(damaged,)), make_source(tmp_path, {"a": b"one\ntwo\n"}))
    assert verdict.verdict == "conflict"
    assert verdict.reason == "it cannot be read: diff --git a/a b/a: unexpected line '2.39.5' after its end"


def test_a_patch_whose_lines_were_converted_cannot_be_read(tmp_path: Path) -> None:
    series = handwritten(tmp_path, edit_diff("a"))
    path = series.patches[0].path
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    converted, _ = read_patch(path, 1)
    (verdict,) = judge(tmp_path, Series(name="s", patches=(converted,)), make_source(tmp_path, {"a": b"one\ntwo\n"}))
    assert verdict.verdict == "conflict"
    assert verdict.reason.startswith("it cannot be read: ")
