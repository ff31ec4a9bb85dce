"""What refs name, at an address or in a folder with a clone, whatever its settings say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.repositories import commit_files, git, make_upstream
from toolkit.errors import FetchError
from toolkit.git.fetching import Limits
from toolkit.git.refs import list_refs, list_unmerged, objects_folder, resolve_ref, shown_address


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    make_upstream(tmp_path / "up 1", {"a": "1"})
    return tmp_path / "up 1"


def resolve(address: str | Path, ref: str) -> str:
    return resolve_ref(str(address), ref, env=os.environ)


def test_a_branch_a_tag_a_whole_name_and_head_are_commits(upstream: Path) -> None:
    first = git(upstream, "rev-parse", "HEAD")
    git(upstream, "tag", "-a", "-m", "annotated", "v1")
    git(upstream, "update-ref", "refs/pull/7/head", first)
    second = commit_files(upstream, {"a": "2"})

    found = [resolve(upstream, ref) for ref in ("v1", "tags/v1", "refs/pull/7/head", "main", "refs/heads/main", "HEAD")]

    assert found == [first, first, first, second, second, second]


@pytest.mark.parametrize("kind", ["clone", "its .git", "bare", "file://", "worktree", "packed", "sha256"])
def test_every_shape_of_a_clone_can_be_read(upstream: Path, tmp_path: Path, kind: str) -> None:
    there = tmp_path / "there"
    if kind == "bare":
        git(tmp_path, "clone", "--quiet", "--bare", str(upstream), str(there))
    elif kind == "worktree":
        git(upstream, "worktree", "add", "--quiet", "--detach", str(there))
    elif kind == "packed":
        git(upstream, "pack-refs", "--all")
    elif kind == "sha256":
        there.mkdir()
        git(there, "init", "--quiet", "--initial-branch=main", "--object-format=sha256")
        commit_files(there, {"a": "1"})
    place = there if there.exists() else upstream
    address = {"its .git": f"{upstream}/.git", "file://": f"file://{tmp_path}/up%201"}.get(kind, str(place))

    assert resolve(address, "main") == git(place, "rev-parse", "main")


def test_a_loose_ref_outranks_a_packed_one(upstream: Path) -> None:
    git(upstream, "pack-refs", "--all")
    second = commit_files(upstream, {"a": "2"})

    assert resolve(upstream, "main") == second


def test_a_clones_settings_are_not_read(upstream: Path) -> None:
    (upstream / ".git/config").write_text("[core\n", encoding="utf-8")

    assert len(resolve(upstream, "main")) == 40


def test_a_full_id_is_taken_as_it_is_without_a_look() -> None:
    assert resolve("/nonexistent", "1" * 40) == "1" * 40


@pytest.mark.parametrize(
    ("ref", "hint"),
    [
        ("v1.20", "near it are v1.2.0"),
        ("mian", "near it are main"),
        ("deadbeef", "a commit is named by its full id of 40 digits"),
        ("something-else", "nothing there is called like that; its branches are main"),
    ],
)
def test_a_ref_that_does_not_exist_says_what_is_near(upstream: Path, ref: str, hint: str) -> None:
    git(upstream, "tag", "v1.2.0")

    with pytest.raises(FetchError) as caught:
        resolve(upstream, ref)

    assert caught.value.message == f"{upstream} has no ref {ref!r}"
    assert caught.value.hint == hint


def test_a_branch_and_a_tag_of_one_name_that_differ_are_not_chosen_from(upstream: Path) -> None:
    first = git(upstream, "rev-parse", "HEAD")
    git(upstream, "tag", "next", first)
    git(upstream, "branch", "same")
    git(upstream, "tag", "same")
    second = commit_files(upstream, {"a": "2"})
    git(upstream, "branch", "next")

    with pytest.raises(FetchError) as caught:
        resolve(upstream, "next")

    assert caught.value.message == f"'next' is a branch and a tag of {upstream}, and they differ"
    assert caught.value.details == (f"refs/heads/next {second}", f"refs/tags/next {first}")
    assert resolve(upstream, "heads/next") == second
    assert resolve(upstream, "same") == first


def test_an_empty_repository_has_no_refs(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "empty")

    with pytest.raises(FetchError) as caught:
        resolve(tmp_path / "empty", "main")

    assert caught.value.hint == "it has no refs at all"


def test_a_folder_without_a_repository(tmp_path: Path) -> None:
    with pytest.raises(FetchError) as caught:
        resolve(tmp_path, "main")

    assert caught.value.message == f"{tmp_path} has no git repository"
    assert objects_folder(tmp_path) is None


def test_an_address_that_nobody_answers_is_shown_without_its_password() -> None:
    with pytest.raises(FetchError) as caught:
        list_refs("https://user:secret@localhost:9/x.git", env=os.environ, limits=Limits(whole=20, silence=5))

    assert caught.value.message.startswith("the refs of https://localhost:9/x.git cannot be read: ")
    assert "secret" not in caught.value.message
    assert caught.value.hint == "try again, or name a folder with a clone"


def test_a_transport_that_runs_a_program_is_not_used(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="transport 'ext' not allowed"):
        list_refs(f"ext::touch {tmp_path}/ran", env=os.environ)

    assert not (tmp_path / "ran").exists()


def test_an_answer_that_takes_too_long_is_not_waited_for(upstream: Path) -> None:
    with pytest.raises(FetchError, match=r"the refs of .* cannot be read: it did not end within 0 s"):
        list_refs(str(upstream), env=os.environ, limits=Limits(whole=0.0))


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://u:p@ss@host/x.git?token=1", "https://host/x.git"),
        ("ssh://git@host:22/x@y.git", "ssh://host:22/x@y.git"),
        ("git@host:x.git", "git@host:x.git"),
        ("file:///a@b", "file:///a@b"),
        ("/a@b", "/a@b"),
    ],
)
def test_an_address_is_shown_without_credentials(address: str, shown: str) -> None:
    assert shown_address(address) == shown


# --- commits that a branch lacks -------------------------------------------------------------------------------


def unmerged(upstream: Path, head: str, scratch: Path) -> list[str]:
    return list_unmerged(str(upstream), f"refs/heads/{head}", "refs/heads/main", env=os.environ, scratch=scratch)


def test_the_commits_that_one_branch_has_more_come_oldest_first(upstream: Path, tmp_path: Path) -> None:
    git(upstream, "checkout", "--quiet", "-b", "side")
    made = [commit_files(upstream, {"b": str(number)}) for number in range(3)]
    git(upstream, "checkout", "--quiet", "main")
    commit_files(upstream, {"a": "2"})

    assert unmerged(upstream, "side", tmp_path / "scratch") == made
    assert unmerged(upstream, "main", tmp_path / "again") == []


def test_a_merge_is_listed_and_what_is_behind_it_is_not(upstream: Path, tmp_path: Path) -> None:
    git(upstream, "checkout", "--quiet", "-b", "side")
    commit_files(upstream, {"b": "1"})
    git(upstream, "checkout", "--quiet", "main")
    commit_files(upstream, {"a": "2"})
    git(upstream, "checkout", "--quiet", "side")
    git(upstream, "merge", "--quiet", "-m", "merge", "main")
    merge = git(upstream, "rev-parse", "HEAD")
    last = commit_files(upstream, {"b": "2"})

    assert unmerged(upstream, "side", tmp_path / "scratch") == [merge, last]
