"""Fetching one commit from folders: whole, proven, and with nothing of the mirror obeyed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.repositories import add_submodule, commit_files, git, make_upstream
from toolkit.errors import StorageError
from toolkit.git.fetching import Limits, Refusal, clear_leftovers, fetch_commit, network_environment
from toolkit.git.repository import is_marked, make_repository, missing_part

LIMITS = Limits(whole=20, silence=5)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    make_repository(tmp_path / "bare", "0" * 40)
    return tmp_path / "bare"


def fetch(bare: Path, commit: str, address: str | Path) -> Refusal | None:
    return fetch_commit(bare, commit, str(address), env=os.environ, limits=LIMITS)


def test_one_commit_comes_with_its_tree_and_without_history(bare: Path, tmp_path: Path) -> None:
    make_upstream(tmp_path / "up", {"old": "1"})
    middle = commit_files(tmp_path / "up", {"old": None, "a": "2"})
    tip = commit_files(tmp_path / "up", {"a": "3"})

    assert fetch(bare, middle, tmp_path / "up") is None

    assert is_marked(bare, middle)
    assert missing_part(bare, middle) == ""
    assert missing_part(bare, tip) == f"there is no commit {tip}"
    assert git(bare, "rev-list", "--count", middle) == "1"
    assert git(bare, "for-each-ref", "--format=%(refname)") == f"refs/toolkit/{middle}"
    assert not (bare / "FETCH_HEAD").exists()
    assert not (bare / "reading").exists()


def test_a_second_commit_joins_the_first(bare: Path, tmp_path: Path) -> None:
    first = make_upstream(tmp_path / "up", {"a": "1"})
    second = commit_files(tmp_path / "up", {"a": "2"})

    assert fetch(bare, first, tmp_path / "up") is None
    assert fetch(bare, second, tmp_path / "up") is None

    assert missing_part(bare, first) == missing_part(bare, second) == ""


@pytest.mark.parametrize("kind", ["clone", "its .git", "bare", "file://", "worktree", "shared clone", "shallow"])
def test_every_shape_of_a_clone_is_a_mirror(bare: Path, tmp_path: Path, kind: str) -> None:
    commit = make_upstream(tmp_path / "up 1", {"a": "1"})
    up, there = tmp_path / "up 1", tmp_path / "there"
    if kind == "bare":
        git(tmp_path, "clone", "--quiet", "--bare", str(up), str(there))
    elif kind == "worktree":
        git(up, "worktree", "add", "--quiet", "--detach", str(there))
    elif kind == "shared clone":
        git(tmp_path, "clone", "--quiet", "--shared", "--bare", str(up), str(there))
    elif kind == "shallow":
        commit = commit_files(up, {"a": "2"})
        git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{up}", str(there))
    address = {"clone": str(up), "its .git": f"{up}/.git", "file://": f"file://{tmp_path}/up%201"}.get(kind, str(there))

    assert fetch(bare, commit, address) is None


def test_a_shallow_mirror_adds_to_what_is_there(bare: Path, tmp_path: Path) -> None:
    make_upstream(tmp_path / "up", {"a": "1"})
    first = commit_files(tmp_path / "up", {"a": "2"})
    second = commit_files(tmp_path / "up", {"a": "3"})
    git(tmp_path, "clone", "--quiet", "--depth=2", f"file://{tmp_path}/up", str(tmp_path / "there"))

    assert fetch(bare, first, tmp_path / "up") is None
    assert fetch(bare, second, tmp_path / "there") is None
    assert missing_part(bare, first) == missing_part(bare, second) == ""


def test_a_sha256_repository_can_be_fetched_from(tmp_path: Path) -> None:
    (tmp_path / "up").mkdir()
    git(tmp_path / "up", "init", "--quiet", "--object-format=sha256")
    commit = commit_files(tmp_path / "up", {"a": "1"})
    make_repository(tmp_path / "bare", commit)

    assert fetch(tmp_path / "bare", commit, tmp_path / "up") is None


def test_an_unknown_commit_is_said_to_be_unknown(bare: Path, tmp_path: Path) -> None:
    make_upstream(tmp_path / "up", {"a": "1"})

    refusal = fetch(bare, "1" * 40, tmp_path / "up")

    assert refusal is not None
    assert f"upload-pack: not our ref {'1' * 40}" in refusal.why
    assert not refusal.passing
    assert not is_marked(bare, "1" * 40)


@pytest.mark.parametrize("what", ["nothing", "an empty folder", "a file", "another folder's objects gone"])
def test_a_folder_without_a_repository(bare: Path, tmp_path: Path, what: str) -> None:
    place = tmp_path / "place"
    if what == "a file":
        place.touch()
    elif what != "nothing":
        place.mkdir()
    if what == "another folder's objects gone":
        (place / ".git").write_text(f"gitdir: {tmp_path}/gone\n", encoding="utf-8")

    assert fetch(bare, "1" * 40, place) == Refusal(why="there is no git repository there")


def test_a_clone_that_lacks_a_file_is_refused(bare: Path, tmp_path: Path) -> None:
    commit = make_upstream(tmp_path / "up", {"a": "1"})
    blob = git(tmp_path / "up", "rev-parse", "HEAD:a")
    (tmp_path / "up" / ".git" / "objects" / blob[:2] / blob[2:]).unlink()

    assert fetch(bare, commit, tmp_path / "up") is not None
    assert not is_marked(bare, commit)


def test_a_tag_under_the_commits_name_is_not_the_commit(bare: Path, tmp_path: Path) -> None:
    commit = make_upstream(tmp_path / "up", {"a": "1"})
    git(tmp_path / "up", "tag", "-a", "-m", "x", "v1")
    tag = git(tmp_path / "up", "rev-parse", "v1")

    assert fetch(bare, tag, tmp_path / "up") == Refusal(
        why=f"what it sent is not the commit: {tag} is no commit, but leads to the commit {commit}"
    )
    assert not is_marked(bare, tag)


def test_submodules_are_not_fetched_with_it(bare: Path, tmp_path: Path) -> None:
    inner = make_upstream(tmp_path / "inner", {"a": "1"})
    make_upstream(tmp_path / "up", {"a": "1"})
    commit = add_submodule(tmp_path / "up", "m", f"{tmp_path}/inner", inner)

    assert fetch(bare, commit, tmp_path / "up") is None
    assert missing_part(bare, inner) == f"there is no commit {inner}"


def test_faults_of_old_histories_stop_no_fetch(bare: Path, tmp_path: Path) -> None:
    make_upstream(tmp_path / "up", {"a": "1"})
    tree = git(tmp_path / "up", "rev-parse", "HEAD^{tree}")
    raw = f"tree {tree}\nauthor a <a> 1700000000 +051800\ncommitter <a@b> 1700000000 +0000\n\nold\n".encode()
    commit = git(tmp_path / "up", "hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=raw)

    assert fetch(bare, commit, tmp_path / "up") is None


def test_a_broken_object_stops_a_fetch(bare: Path, tmp_path: Path) -> None:
    make_upstream(tmp_path / "up", {"a": "1"})
    tree = git(tmp_path / "up", "rev-parse", "HEAD^{tree}")
    raw = f"tree {tree}\nauthor a <a> 1700000000 +0000\n\nno committer\n".encode()
    commit = git(tmp_path / "up", "hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=raw)

    assert fetch(bare, commit, tmp_path / "up") is not None
    assert not is_marked(bare, commit)


# --- nothing of the mirror is obeyed ---------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_mirror_that_belongs_to_somebody_else_is_read(bare: Path, tmp_path: Path) -> None:
    commit = make_upstream(tmp_path / "up", {"a": "1"})
    for path in [tmp_path / "up", *(tmp_path / "up").rglob("*")]:
        os.chown(path, 12345, 12345)

    assert fetch(bare, commit, tmp_path / "up") is None


def test_a_mirrors_configuration_and_hooks_are_not_run(bare: Path, tmp_path: Path) -> None:
    commit = make_upstream(tmp_path / "up", {"a": "1"})
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n", encoding="utf-8")
    trap.chmod(0o755)
    for name, value in (("uploadpack.packObjectsHook", trap), ("core.fsmonitor", trap), ("core.sshCommand", trap),
                        ("core.hooksPath", tmp_path), ("uploadpack.hideRefs", "refs"),
                        ("protocol.version", "0")):  # fmt: skip
        git(tmp_path / "up", "config", name, str(value))
    for hook in ("reference-transaction", "post-checkout"):
        shutil.copy(trap, tmp_path / hook)

    assert fetch(bare, commit, tmp_path / "up") is None
    assert not (tmp_path / "sprung").exists()


# --- what is left behind ---------------------------------------------------------------------------------------


def test_what_a_killed_fetch_left_is_cleared_and_the_rest_is_kept(bare: Path, tmp_path: Path) -> None:
    commit = make_upstream(tmp_path / "up", {"a": "1"})
    assert fetch(bare, commit, tmp_path / "up") is None
    (bare / "shallow.lock").touch()
    (bare / "refs" / "toolkit" / f"{'2' * 40}.lock").touch()
    (bare / "objects" / "pack" / "tmp_pack_abc").touch()
    (bare / "reading" / "objects").mkdir(parents=True)

    clear_leftovers(bare)

    left = {path.name for path in bare.rglob("*") if path.is_file()}
    assert not {name for name in left if name.endswith(".lock") or name.startswith("tmp_")}
    assert not (bare / "reading").exists()
    assert missing_part(bare, commit) == ""


def test_leftover_locks_stop_no_fetch(bare: Path, tmp_path: Path) -> None:
    make_upstream(tmp_path / "up", {"a": "1"})
    commit = commit_files(tmp_path / "up", {"a": "2"})
    (bare / "shallow.lock").touch()

    assert fetch(bare, commit, tmp_path / "up") is None


def test_a_full_disk_is_a_storage_error(small_disk: Path, tmp_path: Path) -> None:
    commit = make_upstream(tmp_path / "up", {"a": os.urandom(2 << 20)})
    make_repository(small_disk / "bare", commit)
    with pytest.raises(StorageError) as raised:
        fetch(small_disk / "bare", commit, tmp_path / "up")
    assert raised.value.message.startswith(f"cannot write: {small_disk}/bare is full or read-only (")
    assert not is_marked(small_disk / "bare", commit)


# --- the environment -------------------------------------------------------------------------------------------


def test_only_the_users_network_settings_reach_git(tmp_path: Path) -> None:
    caller = dict.fromkeys(
        ("GIT_DIR", "GIT_SSH_COMMAND", "GIT_PROXY_COMMAND", "GIT_EXEC_PATH", "GIT_CONFIG_PARAMETERS", "LD_PRELOAD",
         "HOME", "https_proxy", "no_proxy", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "GIT_TRACE", "GIT_ASKPASS"), "theirs",
    )  # fmt: skip

    env = network_environment(tmp_path, caller, "https://u:p@h/a", LIMITS)

    assert {name for name, value in env.items() if value == "theirs"} == {
        "https_proxy", "no_proxy", "SSH_AUTH_SOCK", "GIT_SSL_CAINFO",
    }  # fmt: skip
    assert env["GIT_ALLOW_PROTOCOL"] == "file:https:ssh"
    assert env["GIT_TERMINAL_PROMPT"] == "0"
    assert "BatchMode=yes" in env["GIT_SSH_COMMAND"]
    settings = {env[f"GIT_CONFIG_KEY_{n}"]: env[f"GIT_CONFIG_VALUE_{n}"] for n in range(int(env["GIT_CONFIG_COUNT"]))}
    assert settings["remote.mirror.url"] == "https://h/a"
    assert settings["http.https://h/a.extraHeader"] == "Authorization: Basic dTpw"
    assert settings["http.lowSpeedTime"] == "5"
    assert settings["credential.helper"] == ""


def test_git_has_its_own_variable_for_certificates_before_the_common_one(tmp_path: Path) -> None:
    env = network_environment(tmp_path, {"SSL_CERT_FILE": "a", "GIT_SSL_CAINFO": "b"}, "/x", LIMITS)

    assert env["GIT_SSL_CAINFO"] == "b"
