"""Applying series to trees with the real git: what goes in, what is refused, and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.series_cases import Tree, edit_diff, make_series, make_source, patch_text, read_tree, write_patches
from toolkit.errors import ApplyError
from toolkit.model import AppliedPatch, ChangedFile, PatchedTree, Series, SourceTree
from toolkit.series import apply_series, load_series

LINES = b"".join(b"line %d\n" % number for number in range(40))
BLOB = bytes(range(256)) * 4
REGENERATE = "write the patch again for this base, or drop it if upstream has solved the same in its own way"
UNMISTAKABLE = "write the patch again for this base, with enough context to be unmistakable (git format-patch -U10)"


def apply_to(tmp_path: Path, series: Series, source: SourceTree, *, accept: Sequence[str] = ()) -> PatchedTree:
    return apply_series(series, source, into=tmp_path / "out", accept_upstream=accept, scratch=tmp_path / "scratch")


def refusal(tmp_path: Path, series: Series, source: SourceTree, *, accept: Sequence[str] = ()) -> ApplyError:
    """Return the error, after a look that nothing was left and the base is as it was."""
    before = read_tree(source.root)
    with pytest.raises(ApplyError) as raised:
        apply_to(tmp_path, series, source, accept=accept)
    assert read_tree(source.root) == before
    assert not {path.name for path in tmp_path.iterdir()} & {"out", ".part-out"}
    assert not (tmp_path / "scratch" / "apply").exists()
    return raised.value


def handwritten(tmp_path: Path, *diffs: str) -> Series:
    folder = tmp_path / "patches"
    folder.mkdir()
    for number, diff in enumerate(diffs, 1):
        (folder / f"{number:04}-change.patch").write_text(patch_text(diff), encoding="utf-8", newline="")
    return load_series(folder, name="sample/1.0")


def replaced(source: bytes, **words: str) -> bytes:
    """Replace whole lines `line N` by others, given as lineN="…"."""
    for name, word in words.items():
        source = source.replace(b"line %d\n" % int(name[4:]), word.encode() + b"\n")
    return source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({"p/a.py": LINES}, {"p/a.py": replaced(LINES, line7="x", line30="y")}, id="two hunks"),
        pytest.param({"p/a.py": LINES}, {"p/a.py": replaced(LINES, line7="x  \t")}, id="trailing blanks added"),
        pytest.param({"p/a.py": b"a\nb"}, {"p/a.py": b"a\nc"}, id="no line end at the end"),
        pytest.param({"p/a.py": b"a\nb"}, {"p/a.py": b"a\nb\n"}, id="line end added"),
        pytest.param({"p/a.py": b"a\nb\n"}, {"p/a.py": b"a\nb"}, id="line end removed"),
        pytest.param({"x": b"1"}, {"x": b"1", "p/empty.py": b""}, id="empty file added"),
        pytest.param({"x": b"1", "p/empty.py": b""}, {"x": b"1"}, id="empty file deleted"),
        pytest.param({"x": b"1", "p/a.py": LINES}, {"x": b"1"}, id="file deleted"),
        pytest.param({"p/a.py": LINES}, {"p/a.py": b""}, id="file emptied"),
        pytest.param({"p/a.py": b""}, {"p/a.py": LINES}, id="empty file filled"),
        pytest.param({"p/a.py": LINES}, {"q/b.py": LINES}, id="rename"),
        pytest.param({"p/a.py": LINES}, {"q/b.py": replaced(LINES, line7="x")}, id="rename with edit"),
        pytest.param({"p/é ü.py": LINES}, {"p/é ü.py": replaced(LINES, line7="x")}, id="non-ASCII path"),
        pytest.param({"p q/a b.py": LINES}, {"p q/a b.py": LINES + b"x\n"}, id="blanks in path"),
        pytest.param({"p q/a.py": LINES}, {"p q/ü.py": replaced(LINES, line7="x")}, id="rename to non-ASCII"),
        pytest.param({"p/a.py": "ß\r\fx\x85y\n".encode()}, {"p/a.py": "ß\r\fx\x85z\n".encode()}, id="odd line ends"),
        pytest.param({"p/a.py": b"\xff\xfe\n1\n"}, {"p/a.py": b"\xff\xfe\n2\n"}, id="text that is not UTF-8"),
        pytest.param({"p/a.bin": b"\0" + BLOB}, {"p/a.bin": b"\0" + BLOB + b"x"}, id="binary delta"),
        pytest.param({"x": b"1"}, {"x": b"1", "p/a.bin": BLOB}, id="binary added"),
        pytest.param({"p/a.bin": BLOB, "x": b"1"}, {"x": b"1"}, id="binary deleted"),
    ],
)
def test_the_tree_becomes_what_the_patch_was_made_from(tmp_path: Path, before: Tree, after: Tree) -> None:
    series = make_series(tmp_path, before, after, options=["--binary"])
    done = apply_to(tmp_path, series, make_source(tmp_path, before))
    assert done.applied == (AppliedPatch(name="0001-change", status="clean"),)
    assert read_tree(done.root) == {path: raw for path, raw in after.items() if before.get(path) != raw}
    assert {file.path for file in done.changed} == {p for p in {*before, *after} if before.get(p) != after.get(p)}
    assert not (tmp_path / "scratch" / "apply").exists()


def test_changed_files_say_how_they_differ_from_the_base(tmp_path: Path) -> None:
    before = {"p/a.py": LINES, "p/gone.py": b"x\n", "p/old.py": LINES * 2, "p/same.py": b"same\n"}
    after = {"p/a.py": b"new\n" + LINES, "p/new.py": b"", "q/moved.py": LINES * 2, "p/same.py": b"same\n"}
    done = apply_to(tmp_path, make_series(tmp_path, before, after), make_source(tmp_path, before))
    assert [(file.path, file.kind, file.part) for file in done.changed] == [
        ("p/a.py", "modified", "python"),
        ("p/gone.py", "deleted", "python"),
        ("p/new.py", "added", "python"),
        ("p/old.py", "deleted", "python"),
        ("q/moved.py", "renamed", "python"),
    ]
    assert done.changed[2] == ChangedFile(
        path="p/new.py", kind="added", part="python",
        sha256="e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    )  # fmt: skip
    assert done.changed[1].sha256 is None
    assert sorted(read_tree(done.root)) == ["p/a.py", "p/new.py", "q/moved.py"]


def test_a_patch_may_build_on_the_one_before(tmp_path: Path) -> None:
    trees = [{"p/a.py": LINES}, {"p/a.py": replaced(LINES, line7="x")}, {"p/a.py": replaced(LINES, line7="y")}]
    done = apply_to(tmp_path, make_series(tmp_path, *trees), make_source(tmp_path, trees[0]))
    assert [patch.status for patch in done.applied] == ["clean", "clean"]
    assert read_tree(done.root) == trees[2]


def test_a_file_that_an_earlier_patch_adds_may_be_changed_and_moved(tmp_path: Path) -> None:
    trees = [{"x": b"1\n"}, {"x": b"1\n", "p/a.py": LINES}, {"x": b"1\n", "p/a.py": b"new\n" + LINES}]
    done = apply_to(tmp_path, make_series(tmp_path, *trees), make_source(tmp_path, trees[0]))
    assert [(file.path, file.kind) for file in done.changed] == [("p/a.py", "added")]


def test_a_patch_that_undoes_an_earlier_one_is_refused(tmp_path: Path) -> None:
    trees = [{"p/a.py": LINES, "b": b"1\n"}, {"p/a.py": LINES + b"x\n", "b": b"2\n"}, {"p/a.py": LINES, "b": b"2\n"}]
    fault = refusal(tmp_path, make_series(tmp_path, *trees), make_source(tmp_path, trees[0]))
    assert fault.message == "series 'sample/1.0' names p/a.py, which did not change"
    assert fault.hint == "0001-change, 0002-change cancel each other out there; drop or fold them"


def test_the_whole_series_goes_in_or_nothing(tmp_path: Path) -> None:
    trees = [{"p/a.py": LINES, "p/b.py": LINES}, {"p/a.py": LINES + b"x\n", "p/b.py": LINES}]
    series = make_series(tmp_path, *trees, {**trees[1], "p/b.py": replaced(LINES, line7="x")})
    source = make_source(tmp_path, {"p/a.py": LINES, "p/b.py": replaced(LINES, line8="other")})
    assert refusal(tmp_path, series, source).message == (
        "patch 0002-change does not apply to sample 1.0: hunk #1 of p/b.py conflicts at p/b.py:9"
    )


# --- offsets and near-identical places ---------------------------------------------------------------------------

TWIN = (
    b"    total = 0\n    for item in items:\n        total += item\n"
    b"    if total < 0:\n        total = 0\n    return total\n"
)
TWINS = b"import os\n\n\ndef first(items):\n" + TWIN + b"\n\ndef second(items):\n" + TWIN + b"\n\nlast = 1\n"


def test_a_pure_offset_is_accepted_and_reported(tmp_path: Path) -> None:
    before = {"p/a.py": b"def f():\n" + LINES}
    series = make_series(tmp_path, before, {"p/a.py": replaced(before["p/a.py"], line7="x", line30="y")})
    moved = b"import a\nimport b\n\n" + before["p/a.py"]
    done = apply_to(tmp_path, series, make_source(tmp_path, {"p/a.py": moved}))
    assert done.applied == (
        AppliedPatch(
            name="0001-change",
            status="offset",
            offsets=(
                "p/a.py: hunk #1 succeeded at 9 (offset 3 lines)",
                "p/a.py: hunk #2 succeeded at 32 (offset 3 lines)",
            ),
        ),
    )
    assert read_tree(done.root) == {"p/a.py": replaced(moved, line7="x", line30="y")}


def test_an_offset_that_lands_in_a_near_identical_function_is_refused(tmp_path: Path) -> None:
    series = make_series(tmp_path, {"p/a.py": TWINS}, {"p/a.py": TWINS.replace(b"total < 0", b"total < 1", 1)})
    source = make_source(tmp_path, {"p/a.py": TWINS.replace(b"total < 0", b"total <= 0", 1)})
    fault = refusal(tmp_path, series, source)
    assert fault.message == (
        "patch 0001-change cannot be trusted: hunk #1 of p/a.py fits at p/a.py:14, but it was made below"
        " 'def first(items):', but there it would stand below 'def second(items):'"
    )
    assert fault.hint == UNMISTAKABLE


def test_an_offset_with_two_possible_places_is_refused(tmp_path: Path) -> None:
    series = make_series(tmp_path, {"p/a.py": TWINS}, {"p/a.py": TWINS.replace(b"total < 0", b"total < 1", 1)})
    fault = refusal(tmp_path, series, make_source(tmp_path, {"p/a.py": b"import re\n" + TWINS}))
    assert fault.message == (
        "patch 0001-change cannot be trusted: hunk #1 of p/a.py fits at p/a.py:6,"
        " but it is ambiguous: its old lines stand at lines 6, 15"
    )


def test_a_repeated_place_is_no_matter_in_the_patchs_own_base(tmp_path: Path) -> None:
    after = {"p/a.py": TWINS.replace(b"total < 0", b"total < 1", 1)}
    done = apply_to(tmp_path, make_series(tmp_path, {"p/a.py": TWINS}, after), make_source(tmp_path, {"p/a.py": TWINS}))
    assert read_tree(done.root) == after


def test_a_patch_that_fits_both_ways_is_refused(tmp_path: Path) -> None:
    """The change is upstream in its own function; what it still fits is a twin under the same class heading."""
    old = b"".join(b"        old %d\n" % number for number in range(12))
    new = b"        new\n"
    one, two = b"    def one(self):\n        start\n", b"    def two(self):\n        start\n"
    end = b"        end\n        done\n        return\n\n"
    own = b"class Both:\n    x: int\n    y: int\n" + one + old + end + two + old + end + b"z = 1\n"
    patched = own.replace(old, new, 1)
    series = make_series(tmp_path, {"a.py": own}, {"a.py": patched}, options=["-U1"])
    fault = refusal(tmp_path, series, make_source(tmp_path, {"a.py": b"import re\n" + patched}))
    assert fault.message == "patch 0001-change is ambiguous: its old lines and its new lines both stand in a.py"
    assert fault.hint == ("see whether upstream has taken the change; if not, give the patch more context (-U10)")


# --- upstream ----------------------------------------------------------------------------------------------------


def test_a_patch_that_is_upstream_is_refused_until_the_recipe_accepts_it(tmp_path: Path) -> None:
    trees = [{"p/a.py": LINES, "b": b"1\n"}, {"p/a.py": replaced(LINES, line7="x"), "b": b"1\n"}]
    last = {**trees[1], "b": b"2\n"}
    series = make_series(tmp_path, *trees, last)
    source = make_source(tmp_path, trees[1])
    fault = refusal(tmp_path, series, source)
    assert fault.message == (
        "patch 0001-change has nothing to do: sample 1.0, or an earlier patch, has all of its change"
    )
    assert fault.hint == (
        "drop the patch, or add '0001-change' to accept_upstream of sample in the recipe: it is skipped then,"
        " and its witness (some-witness) must pass on the base"
    )
    done = apply_to(tmp_path, series, source, accept=["0001-change"])
    assert [(patch.name, patch.status) for patch in done.applied] == [
        ("0001-change", "upstream"), ("0002-change", "clean")
    ]  # fmt: skip
    assert read_tree(done.root) == {"b": b"2\n"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({"x": b"1"}, {"x": b"1", "p/new.py": LINES}, id="added"),
        pytest.param({"x": b"1", "p/old.py": LINES}, {"x": b"1"}, id="deleted"),
        pytest.param({"p/old.py": LINES}, {"p/new.py": replaced(LINES, line7="x")}, id="renamed"),
        pytest.param({"p/a.bin": b"\0" + BLOB}, {"p/a.bin": b"\0" + BLOB + b"x"}, id="binary"),
    ],
)
def test_any_kind_of_change_can_be_upstream(tmp_path: Path, before: Tree, after: Tree) -> None:
    series = make_series(tmp_path, before, after, options=["--binary"])
    done = apply_to(tmp_path, series, make_source(tmp_path, after), accept=["0001-change"])
    assert (done.applied[0].status, done.changed, read_tree(done.root)) == ("upstream", (), {})


def test_a_change_that_is_upstream_in_a_near_identical_function_only_is_not_upstream(tmp_path: Path) -> None:
    series = make_series(tmp_path, {"p/a.py": TWINS}, {"p/a.py": TWINS.replace(b"total < 0", b"total < 1", 1)})
    head, _, tail = TWINS.rpartition(b"total < 0")
    source = make_source(tmp_path, {"p/a.py": head.replace(b"total < 0", b"total <= 0") + b"total < 1" + tail})
    fault = refusal(tmp_path, series, source, accept=["0001-change"])
    assert fault.message == (
        "patch 0001-change cannot be trusted: hunk #1 of p/a.py seems to be in the base already at p/a.py:14,"
        " but it was made below 'def first(items):', but there it would stand below 'def second(items):'"
    )


def test_an_accepted_patch_that_is_not_upstream_is_applied(tmp_path: Path) -> None:
    trees = [{"p/a.py": LINES}, {"p/a.py": replaced(LINES, line7="x")}]
    done = apply_to(tmp_path, make_series(tmp_path, *trees), make_source(tmp_path, trees[0]), accept=["0001-change"])
    assert done.applied[0].status == "clean"


def test_accepting_a_patch_that_the_series_lacks_is_refused(tmp_path: Path) -> None:
    trees = [{"p/a.py": LINES}, {"p/a.py": replaced(LINES, line7="x")}]
    fault = refusal(tmp_path, make_series(tmp_path, *trees), make_source(tmp_path, trees[0]), accept=["0001-chnge"])
    assert fault.message == "accept_upstream names '0001-chnge', which is no patch of series 'sample/1.0'"
    assert fault.hint == "did you mean 0001-change?"


def test_a_patch_that_is_half_upstream_is_refused_hunk_by_hunk(tmp_path: Path) -> None:
    before = {"p/a.py": LINES, "p/b.py": b"1\n", "p/c.py": b"1\n2\n3\n"}
    after = {"p/a.py": replaced(LINES, line7="x", line30="y"), "p/b.py": b"2\n", "p/c.py": b"1\n2\nthree\n", "n": b"n"}
    base = {"p/a.py": replaced(LINES, line30="y"), "p/b.py": b"2\n", "p/c.py": b"other\n", "n": b"n"}
    fault = refusal(tmp_path, make_series(tmp_path, before, after), make_source(tmp_path, base), accept=["0001-change"])
    assert fault.message == "patch 0001-change does not apply to sample 1.0: it is partly there"
    assert fault.details == (
        "n: in the base already",
        "hunk #1 of p/a.py: not in the base",
        "hunk #2 of p/a.py: in the base already",
        "hunk #1 of p/b.py: in the base already",
        "hunk #1 of p/c.py: in conflict with the base",
    )
    assert fault.hint == (
        "write the patch again with only what this base lacks; accept_upstream is for those that are there whole"
    )


# --- conflicts ---------------------------------------------------------------------------------------------------


def test_a_conflict_shows_what_was_expected_and_what_is_there(tmp_path: Path) -> None:
    series = make_series(tmp_path, {"p/a.py": LINES}, {"p/a.py": replaced(LINES, line7="x", line30="y")})
    fault = refusal(tmp_path, series, make_source(tmp_path, {"p/a.py": b"new\n" + replaced(LINES, line31="other")}))
    assert fault.message == "patch 0001-change does not apply to sample 1.0: hunk #2 of p/a.py conflicts at p/a.py:33"
    assert fault.details == (r"expected: 'line 31\n'", r"base has: 'other\n'")
    assert fault.hint == REGENERATE


def test_a_conflict_with_a_file_that_shares_nothing_says_so(tmp_path: Path) -> None:
    series = make_series(tmp_path, {"p/a.py": LINES}, {"p/a.py": replaced(LINES, line7="x")})
    fault = refusal(tmp_path, series, make_source(tmp_path, {"p/a.py": b"quite\nother\n"}))
    assert fault.message == "patch 0001-change does not apply to sample 1.0: hunk #1 of p/a.py conflicts at p/a.py:5"
    assert fault.details == (
        *(rf"expected: 'line {number}\n'" for number in (4, 5, 6, 7)), "expected: … 3 more",
        "the base has nothing like it",
    )  # fmt: skip


def test_context_is_exact_in_its_blanks(tmp_path: Path) -> None:
    series = make_series(tmp_path, {"p/a.py": LINES}, {"p/a.py": replaced(LINES, line7="x")})
    fault = refusal(tmp_path, series, make_source(tmp_path, {"p/a.py": replaced(LINES, line6="line 6 ")}))
    assert fault.details == (r"expected: 'line 6\n'", r"base has: 'line 6 \n'")


def test_a_hunk_bound_to_the_end_does_not_float(tmp_path: Path) -> None:
    series = make_series(tmp_path, {"p/a.py": LINES}, {"p/a.py": LINES + b"x\n"})
    fault = refusal(tmp_path, series, make_source(tmp_path, {"p/a.py": LINES + b"more\n"}))
    assert fault.message == "patch 0001-change does not apply to sample 1.0: hunk #1 of p/a.py conflicts at p/a.py:38"
    assert fault.details[-1] == "the base has it, but not at the end of the file it is bound to"


def test_a_file_that_the_base_lacks_is_refused_with_the_near_miss(tmp_path: Path) -> None:
    series = make_series(tmp_path, {"p/_inductor/a.py": LINES}, {"p/_inductor/a.py": LINES + b"x\n"})
    source = make_source(tmp_path, {}, more_members=["p/inductor/a.py", "p/b.py"])
    assert refusal(tmp_path, series, source).message == (
        "patch 0001-change does not apply to sample 1.0: the base has no file p/_inductor/a.py;"
        " did you mean p/inductor/a.py?"
    )


@pytest.mark.parametrize(
    ("new", "members", "obstacle"),
    [
        ("p/new.py", {"p/new.py": b"other\n"}, "a file there already"),
        ("p/new.py/x.py", {"p/new.py": b"other\n"}, "a file p/new.py"),
        ("p", {"p/new.py": b"other\n"}, "a folder of that name"),
    ],
    ids=["file", "file as folder", "folder"],
)
def test_a_new_file_needs_its_place_free(tmp_path: Path, new: str, members: Tree, obstacle: str) -> None:
    series = make_series(tmp_path, {"x": b"1"}, {"x": b"1", new: b"new\n"})
    fault = refusal(tmp_path, series, make_source(tmp_path, members))
    assert fault.message.endswith(f"adds {new}, but the base has {obstacle}")


def test_a_rename_onto_a_file_of_the_base_is_refused(tmp_path: Path) -> None:
    series = make_series(tmp_path, {"p/a.py": LINES}, {"p/b.py": LINES})
    fault = refusal(tmp_path, series, make_source(tmp_path, {"p/a.py": LINES, "p/b.py": b"other\n"}))
    assert fault.message == (
        "patch 0001-change does not apply to sample 1.0: it adds p/b.py, but the base has a file there already"
    )


def test_a_deleted_file_must_be_the_one_that_was_meant(tmp_path: Path) -> None:
    series = make_series(tmp_path, {"x": b"1", "p/a.py": LINES}, {"x": b"1"})
    fault = refusal(tmp_path, series, make_source(tmp_path, {"p/a.py": LINES + b"more\n"}))
    assert fault.message == (
        "patch 0001-change does not apply to sample 1.0: p/a.py is not the file that the patch deletes"
    )


def test_a_binary_change_must_be_of_the_very_file(tmp_path: Path) -> None:
    series = make_series(tmp_path, {"p/a.bin": b"\0" + BLOB}, {"p/a.bin": b"\0" + BLOB + b"x"}, options=["--binary"])
    fault = refusal(tmp_path, series, make_source(tmp_path, {"p/a.bin": b"\0" + BLOB[1:]}))
    assert fault.message.startswith("patch 0001-change does not apply to sample 1.0: binary p/a.bin is not the file ")


# --- line ends ---------------------------------------------------------------------------------------------------


def test_crlf_lines_of_a_tree_are_patched_as_they_are(tmp_path: Path) -> None:
    before = {"p/a.py": LINES.replace(b"\n", b"\r\n")}
    after = {"p/a.py": before["p/a.py"].replace(b"line 7\r\n", b"x\r\n")}
    done = apply_to(tmp_path, make_series(tmp_path, before, after), make_source(tmp_path, before))
    assert read_tree(done.root) == after


def test_a_patch_whose_hunks_became_crlf_is_refused_with_a_hint(tmp_path: Path) -> None:
    crlf = {"p/a.py": LINES.replace(b"\n", b"\r\n")}
    series = make_series(tmp_path, crlf, {"p/a.py": crlf["p/a.py"].replace(b"line 7\r\n", b"x\r\n")})
    fault = refusal(tmp_path, series, make_source(tmp_path, {"p/a.py": LINES}))
    assert fault.message == "patch 0001-change does not apply to sample 1.0: hunk #1 of p/a.py conflicts at p/a.py:5"
    assert fault.details[0] == r"expected: 'line 4\r\n'"
    assert fault.hint == (
        "the patch's lines end in CRLF, the base's in LF: take the patch as `git format-patch` wrote it"
    )


def test_an_lf_patch_for_a_crlf_tree_is_refused_with_a_hint(tmp_path: Path) -> None:
    series = make_series(tmp_path, {"p/a.py": LINES}, {"p/a.py": replaced(LINES, line7="x")})
    fault = refusal(tmp_path, series, make_source(tmp_path, {"p/a.py": LINES.replace(b"\n", b"\r\n")}))
    assert fault.hint == (
        "the base's lines end in CRLF, the patch's in LF: write the patch from a tree with the base's line ends"
    )


def test_attributes_in_the_tree_convert_nothing(tmp_path: Path) -> None:
    before = {".gitattributes": b"* text eol=lf\n", "p/a.py": LINES + b"$Id$\n"}
    after = {".gitattributes": b"* text eol=crlf ident\n", "p/a.py": replaced(before["p/a.py"], line7="x")}
    last = {**after, "p/a.py": replaced(after["p/a.py"], line30="y")}
    done = apply_to(tmp_path, make_series(tmp_path, before, after, last), make_source(tmp_path, before))
    assert read_tree(done.root) == last


# --- what is not patched -----------------------------------------------------------------------------------------


def test_a_symlinked_folder_of_the_base_is_not_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_bytes(b"one\ntwo\n")
    source = make_source(tmp_path, {"p/b.py": b"1\n"}, more_members=["p/link/a.py"])
    (source.root / "p" / "link").symlink_to(outside)
    fault = refusal(tmp_path, handwritten(tmp_path, edit_diff("p/link/a.py")), source)
    assert fault.message == "p/link/a.py cannot be patched: p/link is a symlink in the base"
    assert fault.hint == "patch the file that it leads to, under that file's own path"
    assert (outside / "a.py").read_bytes() == b"one\ntwo\n"


def test_a_new_file_is_not_written_through_a_symlink_of_the_base(tmp_path: Path) -> None:
    source = make_source(tmp_path, {"p/b.py": b"1\n"})
    (source.root / "p" / "link").symlink_to(tmp_path)
    series = make_series(tmp_path, {"x": b"1"}, {"x": b"1", "p/link/new.py": b"new\n"})
    assert refusal(tmp_path, series, source).message == (
        "p/link/new.py cannot be patched: p/link is a symlink in the base"
    )


def test_a_symlinked_file_of_the_base_is_not_patched(tmp_path: Path) -> None:
    source = make_source(tmp_path, {"p/b.py": b"one\ntwo\n"}, more_members=["p/a.py"])
    (source.root / "p" / "a.py").symlink_to("b.py")
    assert refusal(tmp_path, handwritten(tmp_path, edit_diff("p/a.py")), source).message == (
        "p/a.py cannot be patched: p/a.py is a symlink in the base"
    )


def test_a_member_that_was_not_laid_out_is_refused(tmp_path: Path) -> None:
    source = make_source(tmp_path, {}, more_members=["p/a.py"])
    assert refusal(tmp_path, handwritten(tmp_path, edit_diff("p/a.py")), source).message == (
        f"p/a.py is a file of sample-1.0-py3-none-any.whl, but was not laid out in {source.root}"
    )


def test_a_patch_file_that_changed_after_it_was_read_is_refused(tmp_path: Path) -> None:
    series = handwritten(tmp_path, edit_diff("p/a.py"))
    path = series.patches[0].path
    path.write_text(patch_text(edit_diff("p/b.py")), encoding="utf-8")
    fault = refusal(tmp_path, series, make_source(tmp_path, {"p/a.py": b"one\ntwo\n"}))
    assert fault.message == f"{path} has changed since the series was read"


def test_a_place_for_the_result_that_is_taken_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    series = handwritten(tmp_path, edit_diff("p/a.py"))
    with pytest.raises(ApplyError) as raised:
        apply_to(tmp_path, series, make_source(tmp_path, {"p/a.py": b"one\ntwo\n"}))
    assert raised.value.message == f"{tmp_path / 'out'} is there already"


def test_a_read_only_base_is_patched_in_a_copy(tmp_path: Path) -> None:
    source = make_source(tmp_path, {"p/a.py": b"one\ntwo\n", "bin/tool": b"one\ntwo\n"})
    (source.root / "bin" / "tool").chmod(0o555)
    (source.root / "p" / "a.py").chmod(0o444)
    done = apply_to(tmp_path, handwritten(tmp_path, edit_diff("p/a.py") + edit_diff("bin/tool", mode="100755")), source)
    assert (done.root / "p" / "a.py").stat().st_mode & 0o777 == 0o644
    assert (done.root / "bin" / "tool").stat().st_mode & 0o777 == 0o755


def test_a_series_of_several_patches_is_written_by_git_in_order(tmp_path: Path) -> None:
    trees = [{"a": b"%d\n" % number} for number in range(12)]
    paths = write_patches(tmp_path / "repository", tmp_path / "patches", *trees)
    assert [path.name[:4] for path in paths] == [f"{number:04}" for number in range(1, 12)]
    done = apply_to(tmp_path, load_series(tmp_path / "patches", name="s"), make_source(tmp_path, trees[0]))
    assert read_tree(done.root) == trees[-1]
