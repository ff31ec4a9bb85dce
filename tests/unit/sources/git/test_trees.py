"""A commit's tree laid out, named and checked out."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.git_cases import Upstream, is_native, patch
from tests.repositories import add_submodule, commit_files, commit_tree, git, snapshot
from toolkit.errors import SourceError
from toolkit.model import Submodule
from toolkit.sources import git as source


def test_only_the_asked_files_are_laid_out(upstream: Upstream, tmp_path: Path) -> None:
    os.chmod(upstream.folder / "setup.py", 0o755)
    upstream.commit = commit_files(upstream.folder, {})
    base = upstream.fetch()

    tree = source.lay_out(base, ["pkg/a.py", "setup.py", "none.py"], tmp_path / "tree")

    assert snapshot(tmp_path / "tree") == {"pkg/a.py": b"1\n", "setup.py": b"s\n"}
    assert [os.access(tmp_path / "tree" / name, os.X_OK) for name in ("pkg/a.py", "setup.py")] == [False, True]
    assert tree.members == {"setup.py", "pkg/a.py", "pkg/csrc/a.cpp", "ext/pkg/b.py", "ext/n.cpp"}


def test_in_a_subfolder_paths_begin_there(upstream: Upstream, tmp_path: Path) -> None:
    for path in ("ext/m", "other"):
        upstream.commit = add_submodule(upstream.folder, path, "https://h/m", "2" * 40)
    base = upstream.fetch(subfolder="ext")

    tree = source.lay_out(base, ["pkg/b.py", "setup.py"], tmp_path / "tree")

    assert snapshot(tmp_path / "tree") == {"pkg/b.py": b"2\n"}
    assert tree.members == {"pkg/b.py", "n.cpp"}
    assert tree.gitlinks == {"m": "2" * 40}


def test_a_tree_that_may_not_be_written_is_refused_by_path(upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit = commit_tree(upstream.folder, [("120000", "a", b"/etc/passwd"), ("100644", "b", b"x")])
    with pytest.raises(SourceError) as raised:
        upstream.fetch()
    assert raised.value.message == (
        f"x@{upstream.commit[:12]} cannot be checked out: the symlink 'a' to '/etc/passwd' is absolute or unreadable"
    )


# --- digests and check-outs ------------------------------------------------------------------------------------


def test_the_digest_is_gits_tree_id_and_the_native_one_leaves_python_out(upstream: Upstream, tmp_path: Path) -> None:
    base = upstream.fetch()
    python = patch(base, {"pkg/a.py": "11\n", "pkg/new.py": "n\n"}, tmp_path / "p")
    native = patch(base, {"pkg/csrc/a.cpp": "cc\n"}, tmp_path / "n")

    plain, with_python, with_native = (
        source.digest_tree(base, patched, is_native=is_native) for patched in ([], [python], [native])
    )

    assert plain[0] == git(upstream.folder, "rev-parse", "HEAD^{tree}")
    commit_files(upstream.folder, {"pkg/a.py": "11\n", "pkg/new.py": "n\n"})
    assert with_python[0] == git(upstream.folder, "rev-parse", "HEAD^{tree}")
    assert with_python[1] == plain[1]
    assert len({plain[0], with_python[0], with_native[0]}) == 3
    assert with_native[1] != plain[1]


def test_the_native_digest_has_the_commit_and_the_submodules_choice_in_it(upstream: Upstream) -> None:
    first = upstream.fetch()
    native = source.digest_tree(first, [], is_native=is_native)[1]
    upstream.commit = git(upstream.folder, "commit-tree", "HEAD^{tree}", "-m", "same tree")
    git(upstream.folder, "update-ref", "refs/heads/x", upstream.commit)

    assert source.digest_tree(upstream.fetch(), [], is_native=is_native)[1] != native
    assert source.digest_tree(replace(first, submodules=False), [], is_native=is_native)[1] != native


def test_outside_of_the_subfolder_everything_is_native(upstream: Upstream) -> None:
    asked: list[str] = []

    def remember(path: str) -> bool:
        asked.append(path)
        return True

    base = upstream.fetch(subfolder="ext")
    source.digest_tree(base, [], is_native=remember)
    without_project = source.digest_tree(base, [], is_native=lambda path: False)[1]
    with_nothing = source.digest_tree(replace(base, subfolder=""), [], is_native=lambda path: False)[1]

    assert sorted(asked) == ["n.cpp", "pkg/b.py"]
    assert without_project != with_nothing


def test_a_check_out_has_the_patched_tree_and_its_digests(upstream: Upstream, tmp_path: Path) -> None:
    base = upstream.fetch(subfolder="ext")
    patched = patch(base, {"pkg/b.py": "22\n", "n.cpp": None}, tmp_path / "p")

    tree = source.check_out(base, (), [patched], tmp_path / "tree", is_native=is_native)

    assert (tree.digest, tree.native_digest) == source.digest_tree(base, [patched], is_native=is_native)
    assert tree.root == tmp_path / "tree"
    assert (tree.root / "ext" / "pkg" / "b.py").read_text(encoding="utf-8") == "22\n"
    assert not (tree.root / "ext" / "n.cpp").exists()
    assert (tree.root / "pkg" / "a.py").exists()
    assert git(tree.root, "rev-parse", "HEAD") == upstream.commit


def test_a_check_out_that_fails_leaves_nothing(upstream: Upstream, tmp_path: Path) -> None:
    base = upstream.fetch()
    module = Submodule(path="m", commit="2" * 40, repository=base.path)
    with pytest.raises(SourceError) as raised:
        source.check_out(base, [module], [], tmp_path / "tree", is_native=is_native)
    assert raised.value.message == (
        f"submodule 'm' of {base.file} is to be at {'2' * 40}, but is not in the tree at that commit"
    )
    assert [path.name for path in tmp_path.iterdir() if "tree" in path.name] == []
