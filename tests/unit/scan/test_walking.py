"""Which files are looked into: each once, whatever links there are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolkit.errors import UsageError
from toolkit.scan.walking import Candidate, find_files


def paths(root: Path, found: list[Candidate]) -> list[tuple[str, bool]]:
    return [(os.path.relpath(one.path, root), one.is_named) for one in found]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("b/output_code.py", "a/cabcdef.py", "a/notes.txt", "a/kernel.so", "c/deep/er/output_code.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_python_files_are_found_in_the_order_of_names(tree: Path) -> None:
    search = find_files([tree])

    assert paths(tree, list(search.candidates)) == [
        ("a/cabcdef.py", False), ("b/output_code.py", True), ("c/deep/er/output_code.py", True)
    ]  # fmt: skip
    assert (list(search.unreadable), list(search.repeated)) == ([], [])


def test_a_file_that_is_named_counts_whatever_its_name(tree: Path) -> None:
    search = find_files([tree / "a/notes.txt"])

    assert paths(tree, list(search.candidates)) == [("a/notes.txt", True)]


def test_loops_of_links_are_gone_through_once(tree: Path) -> None:
    (tree / "a/up").symlink_to("..")
    (tree / "b/self").symlink_to(".")
    (tree / "c/other").symlink_to("../b")
    search = find_files([tree])

    assert sorted(paths(tree, list(search.candidates))) == [
        ("a/cabcdef.py", False), ("b/output_code.py", True), ("c/deep/er/output_code.py", True)
    ]  # fmt: skip
    assert [os.path.relpath(path, tree) for path in search.repeated] == ["a/up", "b/self", "c/other"]


def test_links_out_of_the_tree_are_followed(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "output_code.py").touch()
    (tree / "empty/run").symlink_to(elsewhere)

    assert ("empty/run/output_code.py", True) in paths(tree, list(find_files([tree]).candidates))


def test_a_file_under_two_names_is_looked_into_once(tree: Path) -> None:
    (tree / "z.py").symlink_to("b/output_code.py")
    search = find_files([tree / "b", tree, tree / "b/output_code.py"])

    assert len(search.candidates) == 3
    assert [os.path.relpath(path, tree) for path in search.repeated] == ["z.py", "b", "b/output_code.py"]


def test_copies_by_hard_links_are_files_of_their_own(tree: Path) -> None:
    os.link(tree / "b/output_code.py", tree / "empty/output_code.py")

    assert len(find_files([tree]).candidates) == 4


def test_the_debug_mode_s_copy_of_a_cached_wrapper_is_left_out(tree: Path) -> None:
    for name, copy in (("same", "a"), ("other", "b"), ("gone", "a")):
        (tree / f"empty/{name}.debug").mkdir()
        (tree / f"empty/{name}.debug/output_code.py").write_text(copy, encoding="utf-8")
    for name in ("same", "other"):
        (tree / f"empty/{name}.py").write_text("a", encoding="utf-8")
    search = find_files([tree / "empty"])

    assert paths(tree, list(search.candidates)) == [
        ("empty/other.py", False), ("empty/same.py", False), ("empty/gone.debug/output_code.py", True),
        ("empty/other.debug/output_code.py", True),
    ]  # fmt: skip
    assert [os.path.relpath(path, tree) for path in search.repeated] == ["empty/same.debug/output_code.py"]
    assert len(find_files([tree / "empty/same.debug"]).candidates) == 1


def test_links_that_lead_nowhere_are_left_to_the_reader(tree: Path) -> None:
    (tree / "empty/gone.py").symlink_to("nowhere")
    (tree / "empty/loop.py").symlink_to("loop.py")
    (tree / "empty/gone").symlink_to("nowhere")
    (tree / "empty/loop").symlink_to("loop")
    found = paths(tree, list(find_files([tree / "empty"]).candidates))

    assert found == [("empty/gone.py", False), ("empty/loop.py", False)]


def test_a_folder_that_cannot_be_listed_is_told(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    def refuse(path: str) -> object:  # Nobody refuses root anything.
        if str(path).endswith("/b"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    search = find_files([tree])

    assert len(search.candidates) == 2
    assert [(one.path, one.state, one.why) for one in search.unreadable] == [
        (str(tree / "b"), "unreadable", "the folder cannot be listed: Permission denied")
    ]


def test_a_place_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as fault:
        find_files([tmp_path / "gone"])

    assert fault.value.message == f"there is no {str(tmp_path / 'gone')!r}"
    assert fault.value.hint == "name folders of a run, or files of generated code"
