"""Writing a tree as a repository of its own that a build may dirty."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.repositories import commit_files, commit_index, commit_tree, git, make_upstream, snapshot
from toolkit.errors import SourceError, StorageError
from toolkit.git import Limits, TreeEdit, check_out_commit, fetch_commit, make_repository

CONVERTED = {
    ".gitattributes": "*.txt text eol=crlf\n*.id ident\n*.f filter=x\n*.enc working-tree-encoding=UTF-16\n",
    "a.txt": "one\r\ntwo\nthree\r\n",
    "b.id": "$Id$\n",
    "c.f": "x\n",
    "d.enc": "é\n",
    "sub/e.sh": "#!/bin/sh\n",
}


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    make_repository(tmp_path / "bare", "0" * 40)
    return tmp_path / "bare"


def fetch(bare: Path, upstream: Path, commit: str) -> None:
    assert fetch_commit(bare, commit, str(upstream), env=os.environ, limits=Limits()) is None


def raw_upstream(folder: Path) -> str:
    """Make a repository whose files are in it byte for byte, whatever its attributes say."""
    make_upstream(folder, {"first": "1"})
    entries = [(("100755" if name.endswith(".sh") else "100644"), name, content.encode())
               for name, content in CONVERTED.items() if "/" not in name]  # fmt: skip
    return commit_tree(folder, [*entries, ("120000", "link", b"a.txt"), ("100755", "run.sh", b"#!/bin/sh\n")])


def test_files_are_written_as_they_are_with_their_modes(bare: Path, tmp_path: Path) -> None:
    commit = raw_upstream(tmp_path / "up")
    fetch(bare, tmp_path / "up", commit)

    check_out_commit(bare, commit, [], tmp_path / "tree", what="x")

    tree = tmp_path / "tree"
    for name in ("a.txt", "b.id", "c.f", "d.enc", ".gitattributes"):
        assert (tree / name).read_bytes() == CONVERTED[name].encode()
        assert not os.access(tree / name, os.X_OK)
    assert os.access(tree / "run.sh", os.X_OK)
    assert os.readlink(tree / "link") == "a.txt"
    assert sorted(path.name for path in tree.iterdir()) == [
        ".git", ".gitattributes", "a.txt", "b.id", "c.f", "d.enc", "link", "run.sh",
    ]  # fmt: skip


def test_the_callers_umask_does_not_reach_the_files(bare: Path, tmp_path: Path) -> None:
    commit = make_upstream(tmp_path / "up", {"a": "1", "sub/deep/b": "1"})
    git(tmp_path / "up", "update-index", "--chmod=+x", "a")
    commit = commit_index(tmp_path / "up")
    fetch(bare, tmp_path / "up", commit)
    edits = [TreeEdit(path="m", commit="2" * 40)]

    before = os.umask(0o077)
    try:
        check_out_commit(bare, commit, edits, tmp_path / "tree", what="x")
    finally:
        os.umask(before)

    tree = tmp_path / "tree"
    modes = {name: (tree / name).stat().st_mode & 0o777 for name in ("", "a", "sub", "sub/deep", "sub/deep/b", "m")}
    assert modes == {"": 0o755, "a": 0o755, "sub": 0o755, "sub/deep": 0o755, "sub/deep/b": 0o644, "m": 0o755}
    assert git(tree, "diff-files", "--name-only") == ""


def test_the_folder_is_a_repository_of_its_own_at_the_commit(bare: Path, tmp_path: Path) -> None:
    make_upstream(tmp_path / "up", {"a": "1"})
    commit = commit_files(tmp_path / "up", {"a": "2"})
    fetch(bare, tmp_path / "up", commit)

    check_out_commit(bare, commit, [], tmp_path / "tree", what="x")

    tree = tmp_path / "tree"
    bare.rename(tmp_path / "gone")
    assert git(tree, "rev-parse", "HEAD") == commit
    assert (tree / ".git" / "HEAD").read_text(encoding="ascii") == f"{commit}\n"
    assert git(tree, "status", "--porcelain") == ""
    assert git(tree, "remote") == ""
    assert git(tree, "for-each-ref") == ""
    assert git(tree, "fsck", "--full") == ""
    assert git(tree, "rev-list", "--count", "HEAD") == "1"
    assert not (tree / ".git" / "objects" / "info" / "alternates").exists()
    assert not (tree / ".git" / "hooks").exists()
    assert not (tree / ".git" / "logs").exists()
    assert [path for path in tree.rglob("*") if path.is_file() and path.stat().st_nlink > 1] == []


def test_edits_lie_over_the_commit_and_are_not_committed(bare: Path, tmp_path: Path) -> None:
    commit = make_upstream(tmp_path / "up", {"a": "1", "b": "1", "c/d": "1", "run": "1"})
    fetch(bare, tmp_path / "up", commit)
    new = tmp_path / "new"
    new.write_text("2\r\n", encoding="utf-8", newline="")
    new.chmod(0o755)

    edits = [
        TreeEdit(path="a", source=new),
        TreeEdit(path="b"),
        TreeEdit(path="c/d"),
        TreeEdit(path="c", source=new),
        TreeEdit(path="m", commit="2" * 40),
    ]
    tree = check_out_commit(bare, commit, edits, tmp_path / "tree", what="x")

    root = tmp_path / "tree"
    assert (root / "a").read_bytes() == (root / "c").read_bytes() == b"2\r\n"
    assert os.access(root / "a", os.X_OK)
    assert not (root / "b").exists()
    assert list((root / "m").iterdir()) == []
    assert git(root, "rev-parse", "HEAD") == commit
    assert git(root, "write-tree") == tree.id
    assert git(root, "diff", "--name-only") == ""


def test_a_dirtied_tree_does_not_reach_the_store(bare: Path, tmp_path: Path) -> None:
    commit = make_upstream(tmp_path / "up", {"a": "1"})
    fetch(bare, tmp_path / "up", commit)
    before = snapshot(bare)
    check_out_commit(bare, commit, [], tmp_path / "tree", what="x")

    tree = tmp_path / "tree"
    commit_files(tree, {"a": "2", "b": "3"})
    git(tree, "gc", "--quiet", "--prune=now")
    for path in (tree / ".git").rglob("*"):
        if path.is_file():
            path.chmod(0o644)
            path.write_bytes(b"")

    assert snapshot(bare) == before


def test_nothing_is_written_of_a_tree_that_may_not_be(bare: Path, tmp_path: Path) -> None:
    make_upstream(tmp_path / "up", {"first": "1"})
    commit = commit_tree(tmp_path / "up", [("100644", "A", b"x"), ("120000", "a", b"/etc")])
    fetch(bare, tmp_path / "up", commit)
    with pytest.raises(SourceError) as raised:
        check_out_commit(bare, commit, [], tmp_path / "tree", what="x@1")
    assert raised.value.message == "x@1 cannot be checked out: 'A' and 'a' differ only in case"
    assert [path.name for path in (tmp_path / "tree").iterdir()] == [".git"]


def test_a_full_disk_is_a_storage_error(bare: Path, small_disk: Path, tmp_path: Path) -> None:
    commit = make_upstream(tmp_path / "up", {"big": os.urandom(700 << 10)})  # It is written in a pack and as a file.
    fetch(bare, tmp_path / "up", commit)
    with pytest.raises(StorageError) as raised:
        check_out_commit(bare, commit, [], small_disk / "tree", what="x")
    assert raised.value.message.startswith(f"cannot write: {small_disk}/tree is full or read-only (")
