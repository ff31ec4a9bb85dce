"""Cutting a series by the trees that it changes, and a patched tree by what has to be built again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.series_cases import edit_diff, make_series, make_source, patch_text, write_tree
from tests.unit.test_series_gitlinks import ADDITION, MOVE, REMOVAL
from toolkit.errors import SeriesError
from toolkit.model import PatchedTree, Series
from toolkit.series import apply_series, is_native_input, load_series, native_changes, python_changes, split_series

SUB = "third_party/sub"
TWO_PATCHES = "write two patches: what lies in a submodule is applied after its commit is fetched"


def series_of(tmp_path: Path, *diffs: str) -> Series:
    texts = {f"{number:04}-change.patch": patch_text(diff).encode() for number, diff in enumerate(diffs, 1)}
    return load_series(write_tree(tmp_path / "patches", texts), name="sample/1.0")


def numbers(series: Series) -> list[int]:
    return [patch.number for patch in series.patches]


@pytest.mark.parametrize(
    ("diffs", "submodules", "main", "inner"),
    [
        pytest.param([edit_diff("a.py"), edit_diff("b.py")], [SUB], [1, 2], [], id="none below a submodule"),
        pytest.param([edit_diff(f"{SUB}/a.h")], [], [1], [], id="no submodules"),
        pytest.param([edit_diff(f"{SUB}/a.h")], [SUB], [], [1], id="all below a submodule"),
        pytest.param(
            [edit_diff(f"{SUB}/a.h"), MOVE, edit_diff(f"{SUB}/b.h"), edit_diff("b.py")], [SUB], [2, 4], [1, 3],
            id="each in its order",
        ),
        pytest.param([MOVE + edit_diff(".gitmodules")], [SUB], [1], [], id="a submodule itself"),
        pytest.param([edit_diff("third_party/subject/a.h")], [SUB], [1], [], id="a folder of a like name"),
        pytest.param([edit_diff(f"{SUB}/inner/a.h")], [SUB, f"{SUB}/inner"], [], [1], id="nested"),
        pytest.param([edit_diff(f"{SUB}/a") + edit_diff("x/b")], [SUB, "x"], [], [1], id="two submodules"),
        pytest.param([ADDITION, edit_diff(f"{SUB}/a.h")], ["x"], [1], [2], id="one that the series adds"),
        pytest.param([edit_diff(f"{SUB}/a.h"), ADDITION], [], [1, 2], [], id="files that one takes the place of"),
        pytest.param([REMOVAL, edit_diff(f"{SUB}/a.h")], [SUB], [1, 2], [], id="files in place of one"),
    ],
)  # fmt: skip
def test_patches_are_sorted_by_the_tree_that_they_change(
    tmp_path: Path, diffs: Sequence[str], submodules: Sequence[str], main: list[int], inner: list[int]
) -> None:
    whole = series_of(tmp_path, *diffs)
    parts = split_series(whole, submodules)
    assert [numbers(part) for part in parts] == [main, inner]
    assert [part.name for part in parts] == ["sample/1.0"] * 2
    assert sorted([*parts[0].elsewhere, *parts[1].elsewhere]) == [patch.name for patch in whole.patches]


def test_a_series_without_submodules_is_its_own_main_part(tmp_path: Path) -> None:
    whole = series_of(tmp_path, edit_diff("a.py"))
    assert split_series(whole, [SUB])[0] == whole


RENAME = f"diff --git a/{SUB}/a.py b/a.py\nsimilarity index 100%\nrename from {SUB}/a.py\nrename to a.py\n"


@pytest.mark.parametrize(
    ("diff", "fault"),
    [
        pytest.param(edit_diff("a.py") + edit_diff(f"{SUB}/a.h"), f"a.py and, in submodule {SUB}, {SUB}/a.h",
                     id="a file outside"),
        pytest.param(MOVE + edit_diff(f"{SUB}/a.h"), f"{SUB} and, in submodule {SUB}, {SUB}/a.h",
                     id="the submodule itself"),
        pytest.param(RENAME, f"a.py and, in submodule {SUB}, {SUB}/a.py", id="a file renamed out of it"),
    ],
)  # fmt: skip
def test_a_patch_of_both_trees_is_refused(tmp_path: Path, diff: str, fault: str) -> None:
    with pytest.raises(SeriesError) as raised:
        split_series(series_of(tmp_path, diff), [SUB])
    assert raised.value.message == f"series 'sample/1.0' cannot be split: patch 0001-change changes {fault}"
    assert (raised.value.hint, raised.value.details) == (TWO_PATCHES, ())


@pytest.mark.parametrize(
    ("diffs", "fault"),
    [
        pytest.param(
            [edit_diff(f"{SUB}/inner/a.h"), REMOVAL],
            f"patch 0001-change changes {SUB}/inner/a.h, but patch 0002-change removes submodule {SUB}",
            id="removed around a nested one",
        ),
        pytest.param(
            [MOVE.replace(SUB, f"{SUB}/inner")],
            f"patch 0001-change moves {SUB}/inner, which submodule {SUB} records; move that instead", id="nested",
        ),
        pytest.param(
            [edit_diff(f"{SUB}/a.h"), REMOVAL],
            f"patch 0001-change changes {SUB}/a.h, but patch 0002-change removes submodule {SUB}", id="removed",
        ),
    ],
)  # fmt: skip
def test_a_change_that_no_tree_could_take_is_refused(tmp_path: Path, diffs: Sequence[str], fault: str) -> None:
    with pytest.raises(SeriesError) as raised:
        split_series(series_of(tmp_path, *diffs), [SUB, f"{SUB}/inner"])
    assert raised.value.message == f"series 'sample/1.0' cannot be split: {fault}"
    assert (
        raised.value.hint == "take that part out of the series, or write it for the tree that the other patches leave"
    )


def test_every_patch_that_cannot_be_split_is_named(tmp_path: Path) -> None:
    both = edit_diff("a.py") + edit_diff(f"{SUB}/a.h")
    with pytest.raises(SeriesError) as raised:
        split_series(series_of(tmp_path, both, edit_diff("b.py"), both), [SUB])
    assert raised.value.details == (f"patch 0003-change changes a.py and, in submodule {SUB}, {SUB}/a.h",)


# --- native and Python changes -----------------------------------------------------------------------------------


def patched_tree(tmp_path: Path) -> PatchedTree:
    before = {"pkg/a.py": b"1\n", "pkg/gone.py": b"x\n", "pkg/csrc/a.cpp": b"1\n", "setup.py": b"1\n"}
    after = {"pkg/a.py": b"2\n", "pkg/csrc/a.cpp": b"2\n", "setup.py": b"2\n"}
    series = make_series(tmp_path, before, after)
    return apply_series(series, make_source(tmp_path, before), into=tmp_path / "out", scratch=tmp_path / "scratch")


def is_native(path: str) -> bool:
    return is_native_input(path, package="pkg")


def test_a_patched_tree_is_sorted_by_what_has_to_be_built_again(tmp_path: Path) -> None:
    patched = replace(patched_tree(tmp_path), gitlinks={SUB: "1" * 40})
    native, python = native_changes(patched, is_native), python_changes(patched, is_native)
    assert [file.path for file in native.changed] == ["pkg/csrc/a.cpp", "setup.py"]
    assert [(file.path, file.kind) for file in python.changed] == [("pkg/a.py", "modified"), ("pkg/gone.py", "deleted")]
    assert (native.gitlinks, python.gitlinks) == ({SUB: "1" * 40}, {})
    assert (native.applied, native.root, python.series) == (patched.applied, patched.root, patched.series)


# --- which patches change native files ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("diff", "native"),
    [
        pytest.param(edit_diff("pkg/a.py"), (), id="Python"),
        pytest.param(edit_diff("pkg/a.py") + edit_diff("pkg/csrc/a.cpp"), ("0001-change",), id="both"),
        pytest.param(MOVE.replace(SUB, "pkg/sub"), ("0001-change",), id="submodule"),
        pytest.param(RENAME.replace(f"{SUB}/a.py", "pkg/a.cpp"), ("0001-change",), id="renamed from native"),
        pytest.param(edit_diff("pkg/_generated_ops.py"), (), id="generated"),
    ],
)
def test_a_series_says_which_patches_change_native_files(tmp_path: Path, diff: str, native: tuple[str, ...]) -> None:
    assert series_of(tmp_path, diff).native == native
