"""A work tree of ours: a base, commits on it, and what is read from it whatever its user has configured."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.personal import make_personal_git
from toolkit.errors import ApplyError, WorkTreeError
from toolkit.git import WorkTree, split_message

ANN = "Ann <ann@example.org>"
DAY = "1788220800 +0200"
FILES = {"pkg/a.py": b"one\ntwo\nthree\n", "pkg/dos.txt": b"one\r\ntwo\r\n", "pkg/end.txt": b"no end"}


@pytest.fixture
def worktree(tmp_path: Path) -> WorkTree:
    made = WorkTree(tmp_path / "tree")
    made.start(files=FILES)
    return made


def commit_files(worktree: WorkTree, files: dict[str, bytes | None], message: str = "change\n\nBody.\n") -> str:
    for name, raw in files.items():
        path = worktree.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink() if raw is None else path.write_bytes(raw)
    worktree.stage_all()
    return worktree.commit(message, author=ANN, date=DAY)


def users_git(worktree: WorkTree, *words: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run git as a user with his own settings does, in the folder."""
    names = {f"GIT_{who}_{what}": f"u@{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return subprocess.run(
        ["git", *words], cwd=worktree.folder, env={"PATH": os.environ["PATH"], **names, **variables},
        capture_output=True, check=False,
    )  # fmt: skip


def test_the_same_files_give_the_same_base(tmp_path: Path, worktree: WorkTree) -> None:
    again = WorkTree(tmp_path / "again")
    again.start(files=FILES)

    assert again.base == worktree.base == worktree.head
    assert (worktree.commits(), worktree.uncommitted(), worktree.is_clean()) == ([], [], True)


def test_what_lies_in_the_folder_already_is_the_base_and_ignored_files_too(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/.gitignore").write_text("*.log\n")
    (tmp_path / "tree/kept.log").write_text("a member of the base\n")
    worktree = WorkTree(tmp_path / "tree")
    worktree.start()

    assert worktree.members() == {".gitignore", "kept.log"}


def test_a_folder_with_a_repository_is_not_begun_again(worktree: WorkTree) -> None:
    with pytest.raises(WorkTreeError) as caught:
        worktree.start()
    assert caught.value.message == f"there is a repository in {worktree.folder} already"


def test_a_patch_becomes_a_commit_with_its_author_and_date(worktree: WorkTree) -> None:
    diff = (
        b"diff --git a/pkg/a.py b/pkg/a.py\n--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    )
    made = worktree.add_patch(diff, "subject\n\nbody\n\nmore\n", author="Jörg Ünï <j@example.org>", date=DAY)

    (commit,) = worktree.commits()
    assert (commit.id, commit.subject, commit.body) == (made, "subject", "body\n\nmore")
    assert (commit.author, commit.date) == ("Jörg Ünï <j@example.org>", DAY)
    assert (worktree.folder / "pkg/a.py").read_bytes() == b"one\n2\nthree\n"
    assert worktree.is_clean()


def test_a_diff_with_other_context_is_refused_and_changes_nothing(worktree: WorkTree) -> None:
    diff = b"diff --git a/pkg/a.py b/pkg/a.py\n--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -1,2 +1,2 @@\n ONE\n-two\n+2\n"
    with pytest.raises(ApplyError) as caught:
        worktree.add_patch(diff, "subject\n", author=ANN, date=DAY)

    assert caught.value.details == ("error: patch failed: pkg/a.py:1", "error: pkg/a.py: patch does not apply")
    assert (worktree.head, worktree.uncommitted()) == (worktree.base, [])


def test_not_one_line_of_context_may_be_another(tmp_path: Path) -> None:
    worktree = WorkTree(tmp_path / "tree")
    worktree.start(files={"a.py": b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"})
    diff = b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -2,7 +2,7 @@\n X\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
    with pytest.raises(ApplyError):
        worktree.apply(diff)

    worktree.apply(diff.replace(b" X\n", b" 2\n"))
    assert worktree.uncommitted() == ["a.py"]


def test_every_kind_of_uncommitted_change_is_listed(worktree: WorkTree) -> None:
    (worktree.folder / "pkg/a.py").write_bytes(b"edited\n")
    (worktree.folder / "pkg/dos.txt").unlink()
    (worktree.folder / "pkg/new file.txt").write_bytes(b"new\n")
    (worktree.folder / "pkg/__pycache__").mkdir()
    (worktree.folder / "pkg/__pycache__/a.pyc").write_bytes(b"")
    (worktree.folder / "staged.py").write_bytes(b"new\n")
    users_git(worktree, "add", "staged.py")

    assert worktree.uncommitted() == ["pkg/a.py", "pkg/dos.txt", "pkg/new file.txt", "staged.py"]


def test_a_merge_is_refused(worktree: WorkTree) -> None:
    base = worktree.head
    first = commit_files(worktree, {"pkg/a.py": b"first\n"})
    worktree.checkout(base)
    commit_files(worktree, {"pkg/b.py": b"second\n"})
    users_git(worktree, "merge", "--quiet", "-m", "merge", first)

    with pytest.raises(WorkTreeError) as caught:
        worktree.commits()
    merge = worktree.head[:12]
    assert caught.value.message == f"commit {merge} in {worktree.folder} is a merge, and a series is a line of commits"


def test_another_history_is_refused(worktree: WorkTree) -> None:
    users_git(worktree, "checkout", "--quiet", "--orphan", "other")
    users_git(worktree, "commit", "--quiet", "-m", "other")

    with pytest.raises(WorkTreeError) as caught:
        worktree.commits()
    assert caught.value.message == f"the base is no longer below what is checked out in {worktree.folder}"


def test_a_commit_is_written_in_normal_form(worktree: WorkTree) -> None:
    commit = commit_files(worktree, {"pkg/a.py": b"one\n2\nthree\n"})

    assert worktree.export(commit).decode() == (
        "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"
        "From: Ann <ann@example.org>\n"
        "Date: Tue, 1 Sep 2026 02:00:00 +0200\n"
        "Subject: [PATCH] change\n"
        "\n"
        "Body.\n"
        "---\n"
        " pkg/a.py | 2 +-\n"
        " 1 file changed, 1 insertion(+), 1 deletion(-)\n"
        "\n"
        "diff --git a/pkg/a.py b/pkg/a.py\n"
        f"index 4cb29ea38f70d7c61b2a3a25b02e3bdf44905402..{blob_id(worktree, commit, 'pkg/a.py')} 100644\n"
        "--- a/pkg/a.py\n"
        "+++ b/pkg/a.py\n"
        "@@ -1,3 +1,3 @@\n"
        " one\n"
        "-two\n"
        "+2\n"
        " three\n"
    )


def test_no_setting_of_the_user_or_the_repository_changes_what_is_read(tmp_path: Path, worktree: WorkTree) -> None:
    edits: dict[str, bytes | None] = {
        "pkg/a.py": b"one\n2\nthree\n", "pkg/dos.txt": b"one\r\n2\r\n", "pkg/end.txt": b"still none",
        "pkg/new.txt": b"$Id$\r\n",
    }  # fmt: skip
    commit = commit_files(worktree, edits)
    plain, commits = worktree.export(commit), worktree.commits()

    personal = make_personal_git(tmp_path / "home")
    for line in users_git(worktree, "config", "--global", "--list", **personal).stdout.decode().splitlines():
        name, _, value = line.partition("=")
        if not name.startswith("core."):
            users_git(worktree, "config", name, value, **personal)
    (worktree.folder / ".git/info/attributes").write_text("* text eol=crlf diff=shouting\n")
    users_git(worktree, "replace", commit, worktree.base)

    assert worktree.export(commit) == plain
    assert worktree.commits() == commits
    assert worktree.uncommitted() == []


def test_what_a_user_commits_with_all_his_settings_comes_out_as_it_is(tmp_path: Path, worktree: WorkTree) -> None:
    """His add and commit convert nothing, and his encoding is taken back."""
    personal = make_personal_git(tmp_path / "home")
    for name, raw in {"pkg/dos.txt": b"one\r\n2\r\n", "pkg/a.py": b"one\n2\nthree\n", "more.py": b"1\r\n"}.items():
        (worktree.folder / name).write_bytes(raw)
    users_git(worktree, "add", "--all", **personal)
    latin = tmp_path / "message"
    latin.write_bytes("größer\n\nKörper.\n".encode("latin-1"))
    words = ("commit", "--quiet", "--no-gpg-sign", "--no-verify", "-F", str(latin))
    users_git(worktree, "-c", "core.hooksPath=/dev/null", *words, **personal)

    (commit,) = worktree.commits()
    assert (commit.subject, commit.body) == ("größer", "Körper.")
    assert worktree.uncommitted() == []
    assert b"\n-two\r\n+2\r\n" in worktree.export(commit.id)
    assert worktree.history.blob(commit.id, "pkg/dos.txt") == b"one\r\n2\r\n"
    assert worktree.history.blob(commit.id, "more.py") == b"1\r\n"


def test_attributes_in_the_tree_change_nothing_either(tmp_path: Path) -> None:
    """Upstream's own say, for one, that headings are Python's, or that a file is shown as binary."""
    body = b"class Shape:\n    def area(self):\n" + b"        # a line\n" * 9 + b"        return 1\n"
    attributes = b"*.py diff=python\n*.txt -diff\n* ident text eol=crlf\n"
    worktree = WorkTree(tmp_path / "tree")
    worktree.start(files={".gitattributes": attributes, "a.py": body, "b.txt": b"$Id$\n1\n"})
    commit = commit_files(worktree, {"a.py": body.replace(b"1", b"2"), "b.txt": b"$Id$\n2\n"})

    patch = worktree.export(commit)
    assert b"@@ -9,4 +9,4 @@ class Shape:\n" in patch
    assert b" $Id$\n-1\n+2\n" in patch


def test_without_modes_an_executable_file_is_no_change(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/a.py").write_bytes(b"1\n")
    (tmp_path / "tree/a.py").chmod(0o755)
    worktree = WorkTree(tmp_path / "tree")
    worktree.start(has_modes=False)
    commit = commit_files(worktree, {"a.py": b"2\n"})
    (tmp_path / "tree/a.py").chmod(0o755)

    assert b" 100644\n" in worktree.export(commit)
    assert worktree.is_clean()


def test_a_pick_keeps_author_date_and_message(worktree: WorkTree) -> None:
    base = worktree.head
    first = commit_files(worktree, {"pkg/b.py": b"1\n"}, "first\n")
    second = commit_files(worktree, {"pkg/a.py": b"one\n2\nthree\n"}, "second\n\n# no remark\n\n\nTwo blanks.\n")
    worktree.checkout(base)
    picked = worktree.pick(second)

    (commit,) = worktree.commits()
    assert (picked.status, picked.commit) == ("done", commit.id)
    assert (commit.author, commit.date) == (ANN, DAY)
    assert commit.message == "second\n\n# no remark\n\n\nTwo blanks.\n"
    assert first not in (commit.id, worktree.base)


def test_a_pick_of_what_is_there_already_is_empty_and_leaves_nothing(worktree: WorkTree) -> None:
    base = worktree.head
    there = commit_files(worktree, {"pkg/a.py": b"one\n2\nthree\n"})
    worktree.checkout(base)
    again = commit_files(worktree, {"pkg/a.py": b"one\n2\nthree\n"}, "again\n")

    assert worktree.pick(there).status == "empty"
    assert (worktree.head, worktree.is_picking, worktree.is_clean()) == (again, False, True)


def test_a_conflict_waits_until_it_is_resolved_and_added(worktree: WorkTree) -> None:
    base = worktree.head
    theirs = commit_files(worktree, {"pkg/a.py": b"one\n2\nthree\n"}, "theirs\n")
    worktree.checkout(base)
    commit_files(worktree, {"pkg/a.py": b"one\nTWO\nthree\n"}, "ours\n")
    picked = worktree.pick(theirs)
    assert (picked.status, picked.paths, worktree.is_picking) == ("conflict", ("pkg/a.py",), True)

    with pytest.raises(WorkTreeError) as caught:
        worktree.finish_pick()
    assert caught.value.message == f"pkg/a.py in {worktree.folder}: the conflict is not resolved"

    (worktree.folder / "pkg/a.py").write_bytes(b"one\n2 TWO\nthree\n")
    worktree.stage_all()
    assert worktree.finish_pick().status == "done"
    assert [commit.subject for commit in worktree.commits()] == ["ours", "theirs"]


def test_commits_can_be_named_and_the_names_replaced(worktree: WorkTree) -> None:
    commit = commit_files(worktree, {"pkg/a.py": b"2\n"})
    worktree.keep({"0001-old": commit})
    worktree.keep({"0001-new": commit})

    listed = users_git(worktree, "for-each-ref", "--format=%(refname)", "refs/patches").stdout.decode()
    assert listed == "refs/patches/0001-new\n"


def test_the_base_is_written_as_it_was_before_any_patch(tmp_path: Path, worktree: WorkTree) -> None:
    commit_files(worktree, {"pkg/a.py": b"2\n"})
    worktree.write_base(["pkg/a.py"], tmp_path / "out")

    assert (tmp_path / "out/pkg/a.py").read_bytes() == FILES["pkg/a.py"]


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        pytest.param("subject\n", ("subject", ""), id="subject alone"),
        pytest.param("subject\n\nbody\n\n  more\n", ("subject", "body\n\n  more"), id="body"),
        pytest.param("a subject\nof two lines\n\nbody", ("a subject of two lines", "body"), id="folded subject"),
        pytest.param("\n\nsubject\n\n\n\nbody\n\n", ("subject", "body"), id="blank lines around"),
    ],
)
def test_a_message_is_split_as_git_does(message: str, parts: tuple[str, str]) -> None:
    assert split_message(message) == parts


def blob_id(worktree: WorkTree, commit: str, path: str) -> str:
    return users_git(worktree, "rev-parse", f"{commit}:{path}").stdout.decode().strip()
