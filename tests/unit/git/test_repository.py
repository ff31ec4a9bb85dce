"""Reading repositories of ours, and naming trees that patches make of theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.repositories import commit_tree, git, make_upstream, snapshot, tree_bytes
from toolkit.errors import CommandError, SourceError
from toolkit.git.repository import (
    TreeEdit,
    commit_time,
    edit_tree,
    git_in,
    is_marked,
    make_repository,
    mark,
    missing_part,
    read_blobs,
    read_settings,
    read_tree,
)

FILES: dict[str, str | bytes] = {
    "a.txt": "one\n",
    "d/run.sh": "#!/bin/sh\n",
    "d/raw.bin": bytes(range(256)),
    "empty": "",
}


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    make_upstream(tmp_path / "up", FILES)
    return tmp_path / "up" / ".git"


def head(folder: Path) -> str:
    return git(folder, "rev-parse", "HEAD")


def test_a_new_repository_is_bare_and_has_nothing_of_a_template(tmp_path: Path) -> None:
    make_repository(tmp_path / "bare", "0" * 40)

    assert sorted(path.name for path in (tmp_path / "bare").iterdir()) == ["HEAD", "config", "objects", "refs"]


@pytest.mark.parametrize(("length", "form"), [(40, "sha1"), (64, "sha256")])
def test_a_repository_takes_ids_of_the_commits_kind(tmp_path: Path, length: int, form: str) -> None:
    make_repository(tmp_path / "bare", "0" * length)

    assert git(tmp_path / "bare", "rev-parse", "--show-object-format") == form


def test_the_time_of_a_commit_is_the_committers(upstream: Path) -> None:
    assert commit_time(upstream, head(upstream)) == 1700000000


def test_blobs_are_read_byte_for_byte(upstream: Path) -> None:
    entries = read_tree(upstream, head(upstream), what="x").entries

    found = read_blobs(git_in(upstream), [entry.id for entry in entries.values()])

    assert {path: found[entry.id] for path, entry in entries.items()} == {
        path: content.encode() if isinstance(content, str) else content for path, content in FILES.items()
    }
    assert read_blobs(git_in(upstream), []) == {}


def test_a_blob_that_is_not_there_is_an_error(upstream: Path) -> None:
    with pytest.raises(CommandError) as raised:
        read_blobs(git_in(upstream), ["1" * 40])
    assert raised.value.message == f"{upstream} has no file {'1' * 40}"


def test_a_tree_is_listed_with_its_id(upstream: Path) -> None:
    tree = read_tree(upstream, head(upstream), what="x")

    assert tree.id == git(upstream, "rev-parse", "HEAD^{tree}")
    assert {path: entry.mode for path, entry in tree.entries.items()} == dict.fromkeys(FILES, "100644")


# --- whole or not ----------------------------------------------------------------------------------------------


def test_a_commit_is_whole_or_says_what_is_missing(upstream: Path) -> None:
    commit = head(upstream)
    blob = git(upstream, "rev-parse", "HEAD:a.txt")

    assert missing_part(upstream, commit) == ""
    (upstream / "objects" / blob[:2] / blob[2:]).unlink()
    assert missing_part(upstream, commit) == f"fatal: missing blob object '{blob}'"
    assert missing_part(upstream, "1" * 40) == f"there is no commit {'1' * 40}"


def test_a_tag_or_a_tree_is_no_commit(upstream: Path) -> None:
    git(upstream, "tag", "-a", "-m", "x", "v1")
    tag, tree = git(upstream, "rev-parse", "v1"), git(upstream, "rev-parse", "HEAD^{tree}")

    assert missing_part(upstream, tag) == f"{tag} is no commit, but leads to the commit {head(upstream)}"
    assert missing_part(upstream, tree) == f"there is no commit {tree}"


def test_a_mark_is_kept(upstream: Path) -> None:
    assert not is_marked(upstream, head(upstream))
    mark(upstream, head(upstream))
    assert is_marked(upstream, head(upstream))


# --- edited trees ----------------------------------------------------------------------------------------------


def test_an_edited_trees_id_is_gits_own_and_the_repository_stays_as_it_is(upstream: Path, tmp_path: Path) -> None:
    before = snapshot(upstream)
    commit = head(upstream)
    (tmp_path / 'odd "name\\').mkdir()
    new, run = tmp_path / 'odd "name\\' / "a\n.txt", tmp_path / "run"
    new.write_bytes(b"two\r\n")
    run.write_bytes(b"#!/bin/sh\n")
    run.chmod(0o755)
    edits = [
        TreeEdit(path="a.txt", source=new),
        TreeEdit(path="d/run.sh", source=run),
        TreeEdit(path="empty/x/y.txt", source=new),
        TreeEdit(path="empty"),
        TreeEdit(path="m", commit="2" * 40),
    ]

    tree = edit_tree(upstream, commit, edits, what="x")

    assert snapshot(upstream) == before
    work = tmp_path / "up"
    (work / "a.txt").write_bytes(b"two\r\n")
    (work / "d" / "run.sh").chmod(0o755)
    (work / "empty").unlink()
    (work / "empty" / "x").mkdir(parents=True)
    (work / "empty" / "x" / "y.txt").write_bytes(b"two\r\n")
    git(work, "add", "--all")
    git(work, "update-index", "--add", "--cacheinfo", f"160000,{'2' * 40},m")
    assert tree.id == git(work, "write-tree")
    assert tree.entries["d/run.sh"].mode == "100755"


def test_no_edits_give_the_commits_own_tree(upstream: Path) -> None:
    assert edit_tree(upstream, head(upstream), [], what="x").id == git(upstream, "rev-parse", "HEAD^{tree}")


def test_an_edit_that_makes_a_tree_unwritable_is_refused(upstream: Path, tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    with pytest.raises(SourceError) as raised:
        edit_tree(upstream, head(upstream), [TreeEdit(path="A.TXT", source=tmp_path / "f")], what="x")
    assert raised.value.message == "x cannot be checked out: 'A.TXT' and 'a.txt' differ only in case"


def test_a_file_below_a_submodule_that_is_not_there_is_refused(upstream: Path, tmp_path: Path) -> None:
    commit = commit_tree(tmp_path / "up", [("160000", "m", b"2" * 40)])
    (tmp_path / "f").touch()
    with pytest.raises(SourceError) as raised:
        edit_tree(upstream, commit, [TreeEdit(path="m/f", source=tmp_path / "f")], what="x")
    assert raised.value.message == "x: a patch puts a file into the submodule 'm', which was not fetched"


@pytest.mark.parametrize(
    ("mode", "name", "why"),
    [
        pytest.param("40000", ".git", "'.git/config' reaches into a '.git' folder", id=".git"),
        pytest.param("40000", "..", "'../config' leaves its folder through '..'", id=".."),
        pytest.param("40000", "a/b/..", "'a/b/../config' leaves its folder through '..'", id="a slash in a name"),
    ],
)
def test_a_hostile_tree_of_real_objects_is_refused(upstream: Path, mode: str, name: str, why: str) -> None:
    work = upstream.parent
    commit = commit_tree(work, [(mode, name, tree_bytes(work, [("100644", "config", b"x")]))])
    with pytest.raises(SourceError) as raised:
        read_tree(upstream, commit, what="x@1")
    assert raised.value.message == f"x@1 cannot be checked out: {why}"


def test_a_symlink_of_a_real_tree_is_judged_by_where_it_leads(upstream: Path) -> None:
    commit = commit_tree(upstream.parent, [("120000", "a", b"../outside")])
    with pytest.raises(SourceError) as raised:
        read_tree(upstream, commit, what="x")
    assert raised.value.message == "x cannot be checked out: the symlink 'a' to '../outside' leaves the tree"


# --- settings --------------------------------------------------------------------------------------------------


def test_settings_are_read_by_git_without_files_that_they_include(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("[a]\n\tc = 2\n", encoding="utf-8")
    (tmp_path / "f").write_text('[include]\n\tpath = other\n[s "a.b"]\n\turl = "x # y" # z\n\tflag\n', encoding="utf-8")

    assert read_settings(tmp_path / "f", what="f") == [
        ("include.path", "other"),
        ("s.a.b.url", "x # y"),
        ("s.a.b.flag", ""),
    ]


def test_settings_that_git_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("[a\n", encoding="utf-8")
    with pytest.raises(SourceError) as raised:
        read_settings(tmp_path / "f", what="x: .gitmodules")
    assert raised.value.message == "x: .gitmodules cannot be read"
    assert raised.value.details == (f"fatal: bad config line 1 in file {tmp_path}/f",)
