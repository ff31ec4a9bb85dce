"""`toolkit patch edit`, `new` and `split --shell`: a person in a work tree, who is never robbed of what he did."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from tests.changing_sample import NAMES, SERIES, Changing, copy_of, in_process, make_changing, start
from tests.personal import make_personal_git

FOUR = "sed -i 's/return 40$/return 400/' sample_npu/core.py"
AMEND = "git commit --quiet --all --amend --no-edit"
MESSAGE = "core: mend five\n\nIt is wrong.\n\nUpstream-Status: Pending [x]\nWitness: answer\n"


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Changing:
    return make_changing(tmp_path_factory.mktemp("changing"))


@pytest.fixture
def changing(
    made_once: Changing, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Changing:
    return copy_of(made_once, tmp_path, in_process(capfd, monkeypatch))


def git_in_tree(changing: Changing, *words: str) -> str:
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    done = subprocess.run(["git", *identity, *words], cwd=changing.tree, check=True, capture_output=True, text=True)
    return done.stdout


# --- edit ------------------------------------------------------------------------------------------------------


def test_an_amended_patch_is_written_and_the_others_stay_byte_for_byte(changing: Changing) -> None:
    before = changing.files()
    done = changing.patch("edit", "2", "--command", f"{FOUR} && {AMEND}")

    assert (done.code, done.err) == (0, "")
    assert done.out == (
        f"{SERIES}: wrote {changing.folder}\n  {NAMES[0]}\n  {NAMES[1]} (written anew)\n  {NAMES[2]} (written anew)\n"
    )
    after = changing.files()
    assert b"+    return 400\n" in after[f"{NAMES[1]}.patch"]
    assert [name for name in before if before[name] != after[name]] == [f"{NAMES[1]}.patch", f"{NAMES[2]}.patch"]
    assert after[f"{NAMES[2]}.patch"].split(b"\nindex ")[0] == before[f"{NAMES[2]}.patch"].split(b"\nindex ")[0]
    assert not changing.tree.exists()


def test_the_shell_of_the_user_is_opened_with_the_series_as_commits(changing: Changing, tmp_path: Path) -> None:
    shell = tmp_path / "shell"
    shell.write_text('#!/bin/sh\ngit log --format=%s > "$SEEN"\npwd >> "$SEEN"\nls >> "$SEEN"\nexit 3\n')
    shell.chmod(0o755)
    done = changing.patch("edit", "2", SHELL=str(shell), SEEN=str(tmp_path / "seen"))

    assert (done.code, done.out) == (0, f"{SERIES}: nothing changed\n")
    assert done.err == (f"series {SERIES} at patch 2: {changing.tree}; leave the shell when you are done (exit)\n")
    assert (tmp_path / "seen").read_text().splitlines() == [
        "mend four and eight", "core: mend two", "base", str(changing.tree), "sample_npu", "sample_npu-1.0.dist-info",
    ]  # fmt: skip


def test_changes_that_are_in_no_commit_are_kept_and_nothing_is_written(changing: Changing) -> None:
    before = changing.files()
    done = changing.patch("edit", "2", "--command", f"{FOUR}; echo new > sample_npu/new.py")

    assert (done.code, done.out) == (22, "")
    assert done.err == (
        f"error: {changing.tree} has changes that are in no commit: sample_npu/core.py, sample_npu/new.py; nothing was"
        f" written\nhint: commit them there and run `toolkit patch edit --series {SERIES} --continue`, or put them into"
        f" patch 2 with --continue --amend; `toolkit patch edit --series {SERIES} --abort` gives them up\n"
    )
    assert changing.files() == before
    assert (changing.tree / "sample_npu/new.py").read_text() == "new\n"


def test_changes_can_be_folded_into_the_patch_afterwards(changing: Changing) -> None:
    assert changing.patch("edit", "2", "--command", f"{FOUR}; echo new > sample_npu/new.py").code == 22
    done = changing.patch("edit", "--continue", "--amend")

    assert (done.code, done.err) == (0, "")
    patch = changing.files()[f"{NAMES[1]}.patch"]
    assert b"+    return 400\n" in patch
    assert b" create mode 100644 sample_npu/new.py\n" in patch
    assert b"From: Ann Author <ann@example.org>\nDate: Tue, 1 Sep 2026 02:00:00 +0200\n" in patch


def test_changes_can_be_committed_as_a_patch_of_their_own_afterwards(changing: Changing) -> None:
    assert changing.patch("edit", "2", "--command", "sed -i 's/return 5$/return 50/' sample_npu/core.py").code == 22
    git_in_tree(changing, "commit", "--quiet", "--all", "-m", MESSAGE)
    done = changing.patch("edit", "--continue", "--json")

    assert done.code == 0, done.err
    assert [(patch["name"], patch["fate"]) for patch in json.loads(done.out)["patches"]] == [
        (NAMES[0], "kept"), (NAMES[1], "kept"), ("0003-core-mend-five", "new"),
        ("0004-core-mend-two-again", "rewritten"),
    ]  # fmt: skip


def test_given_up_work_leaves_the_series_byte_for_byte(changing: Changing) -> None:
    before = changing.files()
    assert changing.patch("edit", "2", "--command", FOUR).code == 22
    done = changing.patch("edit", "--abort")

    assert (done.code, done.out) == (0, f"{SERIES} is as it was; {changing.tree.parent} is removed\n")
    assert changing.files() == before
    assert changing.patch("edit", "--abort").err == f"error: no `toolkit patch edit` waits on series {SERIES}\n"


def test_a_later_patch_that_conflicts_waits_with_its_place_shown(changing: Changing) -> None:
    before = changing.files()
    done = changing.patch("edit", "1", "--command", f"sed -i 's/return 20$/return 21/' sample_npu/core.py; {AMEND}")
    assert done.code == 22
    first, *conflict = done.err.splitlines()
    assert first == f"error: patch {NAMES[2]} conflicts in sample_npu/core.py; the work tree is kept in {changing.tree}"
    assert conflict[0] == "  sample_npu/core.py:8:"
    assert changing.files() == before

    path = changing.tree / "sample_npu/core.py"
    lines = path.read_text().splitlines(keepends=True)
    start, end = (next(at for at, line in enumerate(lines) if line.startswith(mark)) for mark in ("<<<<<<<", ">>>>>>>"))
    path.write_text("".join([*lines[:start], "    return 3 * 7\n", *lines[end + 1 :]]))
    assert changing.patch("edit", "--continue").code == 22
    git_in_tree(changing, "add", "sample_npu/core.py")
    done = changing.patch("edit", "--continue")

    assert (done.code, done.err) == (0, "")
    assert b"-    return 21\n+    return 3 * 7\n" in changing.files()[f"{NAMES[2]}.patch"]
    assert changing.patch("refresh").out == f"{SERIES}: nothing changed\n"


def test_a_later_patch_with_nothing_left_is_left_out_only_when_a_person_says_so(changing: Changing) -> None:
    done = changing.patch("edit", "1", "--command", f"sed -i 's/return 20$/return 2 * 10/' sample_npu/core.py; {AMEND}")
    assert done.code == 22
    assert done.err.startswith(f"error: patch {NAMES[2]} has nothing left to do: patch 1 as it is now has all of its")

    done = changing.patch("edit", "--skip")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith(f"  {NAMES[2]} is no longer there\n")


def test_a_message_without_its_trailers_is_refused_and_the_tree_kept(changing: Changing) -> None:
    before = changing.files()
    done = changing.patch("edit", "3", "--command", "git commit --quiet --amend -m 'no trailers'")

    assert (done.code, done.out) == (8, "")
    assert done.err.splitlines()[0] == f"error: series {SERIES} was not written: series {SERIES!r} has 2 faults"
    assert done.err.splitlines()[-1] == f"hint: its work tree is {changing.tree}"
    assert changing.files() == before
    git_in_tree(changing, "commit", "--quiet", "--amend", "-m", MESSAGE)
    assert changing.patch("edit", "--continue").code == 0


def test_a_message_that_would_end_early_is_refused(changing: Changing) -> None:
    done = changing.patch("edit", "3", "--command", "git commit --quiet --amend -m 'subject' -m '---' -m 'Fixes: x'")

    assert done.code == 8
    assert "'subject': the line '---' would end the message there; indent it" in done.err


def test_a_command_that_fails_writes_nothing(changing: Changing) -> None:
    before = changing.files()
    done = changing.patch("edit", "2", "--command", f"{FOUR}; {AMEND}; false")

    assert done.code == 22
    assert done.err.splitlines()[0] == (
        f"error: `{FOUR}; {AMEND}; false` ended with exit code 1; nothing was written, and the work tree is kept in "
        f"{changing.tree}"
    )
    assert changing.files() == before
    assert changing.patch("edit", "--continue").code == 0


def test_a_git_command_that_is_not_finished_is_named(changing: Changing) -> None:
    command = (
        "git config user.name x; git config user.email x; "
        "GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase --quiet -i base 2> /dev/null"
    )
    done = changing.patch("edit", "2", "--command", command)

    assert done.code == 22
    assert done.err.splitlines()[0] == f"error: a `git rebase` is not finished in {changing.tree}; nothing was written"


def test_a_merge_in_the_work_tree_is_refused(changing: Changing) -> None:
    before = changing.files()
    command = (
        "git config user.name x; git config user.email x; git checkout --quiet -b side HEAD^; echo 1 > side.py; "
        "git add side.py; git commit --quiet -m side; git checkout --quiet series; git merge --quiet -m merge side"
    )
    done = changing.patch("edit", "3", "--command", command)

    assert done.code == 22
    assert "is a merge, and a series is a line of commits" in done.err
    assert changing.files() == before


@pytest.mark.parametrize("number", ["0", "4", "-1"])
def test_a_number_that_no_patch_has_is_named(changing: Changing, number: str) -> None:
    done = changing.patch("edit", "--command", "true", "--", number)

    assert (done.code, done.err) == (
        2, f"error: series {SERIES} has no patch {number}\nhint: it has {', '.join(NAMES)}\n",
    )  # fmt: skip
    assert not changing.tree.exists()


def test_a_series_that_was_changed_meanwhile_is_not_overwritten(changing: Changing) -> None:
    words = f"echo more >> {changing.folder}/README.md; {FOUR}; {AMEND}"
    done = changing.patch("edit", "2", "--command", words)

    assert done.code == 22
    assert done.err.startswith(f"error: series {SERIES} was changed by somebody else meanwhile; the new one is in ")
    assert changing.files()["README.md"] == b"A companion.\nmore\n"
    done = changing.patch("edit", "--continue")
    assert done.err.startswith(f"error: series {SERIES} was changed since `toolkit patch edit` began")


def test_two_commands_at_once_and_the_second_is_told_who_is_at_work(changing: Changing, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    done = tmp_path / "done"
    command = f"touch {begun}; while [ ! -e {done} ]; do sleep 0.1; done"
    with start(changing, "patch", "edit", "2", "--series", SERIES, "--command", command) as first:
        while not begun.exists():
            time.sleep(0.05)
        second = changing.patch("reorder", "2", "1", "3")
        done.touch()
        first.communicate(timeout=20)

    assert (second.code, second.err) == (
        22,
        f"error: another `toolkit patch` command is at work on series {SERIES} (process {first.pid})\n"
        "hint: wait until it ends, or leave the shell that it has opened\n",
    )


def test_what_is_written_does_not_depend_on_the_users_configuration(changing: Changing, tmp_path: Path) -> None:
    """He amends with his own settings; the same is done by one who has none."""
    (tmp_path / "other").mkdir()
    other = copy_of(changing, tmp_path / "other")
    amend = "git -c core.hooksPath=/dev/null commit --quiet --no-gpg-sign --all --amend --no-edit"
    command = f"{FOUR}; printf '$Id$ \\r\\n' > sample_npu/new.txt; git add --force sample_npu/new.txt; {amend}"
    assert changing.patch("edit", "2", "--command", command).code == 0
    done = other.patch("edit", "2", "--command", command, **make_personal_git(tmp_path / "home"))

    assert (done.code, done.err) == (0, "")
    assert other.files() == changing.files()
    assert b"+$Id$ \r\n" in changing.files()[f"{NAMES[1]}.patch"]


# --- new -------------------------------------------------------------------------------------------------------

NEW = ("new", "--subject", "core: mend five", "--witness", "answer")
ANN = {"GIT_AUTHOR_NAME": "Ann Ünï", "GIT_AUTHOR_EMAIL": "ann@example.org", "GIT_AUTHOR_DATE": "@1788220800 +0000"}
FIVE = "sed -i 's/return 5$/return 50/' sample_npu/core.py"


@pytest.fixture
def why(tmp_path: Path) -> Path:
    path = tmp_path / "why.txt"
    path.write_text("Five is wrong: it is 50.\n\n# this line stays\n", encoding="utf-8")
    return path


def test_a_change_becomes_the_next_patch(changing: Changing, why: Path) -> None:
    done = changing.patch(*NEW, "--message", str(why), "--command", FIVE, **ANN)

    assert (done.code, done.err) == (0, "")
    assert done.out.endswith(f"  {NAMES[2]}\n  0004-core-mend-five (new)\n")
    patch = changing.files()["0004-core-mend-five.patch"].decode()
    assert patch.partition("\n---\n")[0] == (
        f"From {'0' * 40} Mon Sep 17 00:00:00 2001\n"
        "From: =?UTF-8?q?Ann=20=C3=9Cn=C3=AF?= <ann@example.org>\n"
        "Date: Tue, 1 Sep 2026 00:00:00 +0000\n"
        "Subject: [PATCH] core: mend five\n"
        "\n"
        "Five is wrong: it is 50.\n"
        "\n"
        "# this line stays\n"
        "\n"
        "Upstream-Status: Pending [not sent yet]\n"
        "Witness: answer"
    )


def test_a_diff_that_is_at_hand_becomes_the_next_patch(changing: Changing, why: Path, tmp_path: Path) -> None:
    diff = tmp_path / "five.diff"
    diff.write_text(
        "diff --git a/sample_npu/other.py b/sample_npu/other.py\n--- a/sample_npu/other.py\n+++ b/sample_npu/other.py\n"
        "@@ -4,3 +4,3 @@\n FOUR = 40\n-FIVE = 5\n+FIVE = 50\n SIX = 6\n"
    )
    done = changing.patch(*NEW, "--from", str(diff), "--message", str(why), "--status", "Submitted [a link]", **ANN)

    assert (done.code, done.err) == (0, "")
    patch = changing.files()["0004-core-mend-five.patch"]
    assert b"\nUpstream-Status: Submitted [a link]\n" in patch
    assert b"@@ -2,7 +2,7 @@ ONE = 1\n" in patch

    before = changing.files()
    done = changing.patch(*NEW, "--from", str(diff), "--message", str(why), **ANN)
    assert done.code == 9
    assert done.err.splitlines()[0] == f"error: the diff does not apply on top of series {SERIES}"
    assert (changing.files(), changing.tree.exists()) == (before, False)


def test_commits_of_the_users_own_are_taken_as_they_are(changing: Changing) -> None:
    command = (
        f"git config user.name Bob; git config user.email b@example.org; {FIVE}; git commit --quiet -a -m '{MESSAGE}';"
        f" sed -i 's/return 6$/return 60/' sample_npu/core.py; git commit --quiet --all -m '{MESSAGE}'"
    )
    done = changing.patch(*NEW, "--command", command)

    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("  0004-core-mend-five (new)\n  0005-core-mend-five-2 (new)\n")


def test_a_link_to_a_series_stays_one(changing: Changing, tmp_path: Path) -> None:
    changing.folder.rename(tmp_path / "elsewhere")
    changing.folder.symlink_to(tmp_path / "elsewhere")

    assert changing.patch("edit", "2", "--command", f"{FOUR} && {AMEND}").code == 0
    assert changing.folder.is_symlink()
    assert "+    return 400\n" in (tmp_path / "elsewhere" / f"{NAMES[1]}.patch").read_text(encoding="utf-8")


def test_a_head_that_was_moved_off_the_series_loses_no_patch(changing: Changing, why: Path) -> None:
    before = changing.files()
    words = ("--subject", "core: mend five", "--witness", "answer", "--message", str(why))
    done = changing.patch(
        "new", *words, "--command", "git checkout -q HEAD~1 && sed -i 's/return 5$/return 50/' sample_npu/core.py"
    )

    assert (done.code, done.out) == (22, "")
    assert f"HEAD no longer has the commits of {NAMES[2]}; nothing was written" in done.err
    assert changing.files() == before
    assert changing.tree.exists()


def test_a_message_that_is_not_utf_8_is_refused_and_the_change_kept(changing: Changing, tmp_path: Path) -> None:
    (tmp_path / "latin1.txt").write_bytes(b"It is n\xe9cessaire.\n")
    words = ("--subject", "core: mend five", "--witness", "answer", "--message", str(tmp_path / "latin1.txt"))
    done = changing.patch("new", *words, "--command", "sed -i 's/return 5$/return 50/' sample_npu/core.py", **ANN)

    assert done.code == 22
    assert f"the message in {tmp_path / 'latin1.txt'} is not UTF-8: byte 7 is 0xe9" in done.err
    assert "return 50" in (changing.tree / "sample_npu/core.py").read_text(encoding="utf-8")


def test_an_empty_message_is_refused_and_the_change_kept(changing: Changing, tmp_path: Path, why: Path) -> None:
    before = changing.files()
    empty = tmp_path / "empty.txt"
    empty.write_text(" \n")
    done = changing.patch(*NEW, "--message", str(empty), "--command", FIVE, **ANN)

    assert (done.code, done.err) == (
        22,
        "error: the patch's message does not say what fails without it: sample_npu/core.py in no commit; nothing was "
        f"written, and the work tree is kept in {changing.tree}\n"
        "hint: write that into a file and give it with --message FILE, then run `toolkit patch new --series "
        f"{SERIES} --continue`; `toolkit patch new --series {SERIES} --abort` gives it up\n",
    )
    assert changing.files() == before
    done = changing.patch("new", "--continue", "--message", str(why), **ANN)
    assert done.code == 0, done.err
    assert b"+    return 50\n" in changing.files()["0004-core-mend-five.patch"]


def test_the_users_editor_is_asked_for_the_message(changing: Changing, tmp_path: Path) -> None:
    editor = tmp_path / "my editor"
    editor.write_text('#!/bin/sh\ncp "$1" "$SEEN"\nsed -i "s/^# Lines.*/Because./" "$1"\n')
    editor.chmod(0o755)
    seen = tmp_path / "seen"
    done = changing.patch(*NEW, "--command", FIVE, **ANN, EDITOR=f"'{editor}'", SEEN=str(seen))

    assert (done.code, done.err) == (0, "")
    assert seen.read_text().startswith("core: mend five\n\n# What fails without the change: ")
    assert (
        b"\n\nBecause.\n\nUpstream-Status: Pending [not sent yet]\nWitness: answer\n---\n"
        in (changing.files()["0004-core-mend-five.patch"])
    )


def test_without_a_terminal_and_an_editor_the_message_is_asked_for(changing: Changing) -> None:
    done = changing.patch(*NEW, "--command", FIVE, **ANN)

    assert done.code == 22
    assert done.err.splitlines()[0] == (
        "error: there is no terminal to write the patch's message in: sample_npu/core.py in no commit; nothing was "
        f"written, and the work tree is kept in {changing.tree}"
    )
    assert changing.patch("new", "--abort").code == 0


def test_without_a_name_nothing_is_committed(changing: Changing, why: Path, tmp_path: Path) -> None:
    done = changing.patch(*NEW, "--command", FIVE, "--message", str(why), HOME=str(tmp_path))

    assert done.code == 22
    assert done.err.startswith("error: git does not know who you are (user.name and user.email); nothing was written")


def test_no_change_is_no_patch(changing: Changing) -> None:
    before = changing.files()
    done = changing.patch(*NEW, "--command", "true")

    assert (done.code, done.out, changing.files()) == (0, f"{SERIES}: nothing changed\n", before)


def test_a_document_is_all_that_is_printed_whatever_the_command_prints(changing: Changing, why: Path) -> None:
    done = changing.patch(*NEW, "--message", str(why), "--command", f"echo hello; {FIVE}", "--json", **ANN)

    assert json.loads(done.out)["patches"][-1] == {
        "name": "0004-core-mend-five", "old": "", "fate": "new", "subject": "core: mend five",
    }  # fmt: skip
    assert done.err == "hello\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("new", "--subject", "x"), "--subject and --witness are needed for a new patch."),
        (("new", "--subject", "a\nb", "--witness", "w"), "Invalid value for '--subject': it has to be one line"),
        (("new", "--continue", "--abort"), "--continue and --abort are two things."),
        (("edit",), "the number of a patch is needed."),
        (("edit", "1", "--base", "sample_npu==2.0"), "sample_npu==2.0"),
    ],
    ids=["no witness", "two lines", "both", "no number", "another base"],
)  # fmt: skip
def test_a_command_that_makes_no_sense_is_refused(changing: Changing, words: tuple[str, ...], message: str) -> None:
    before = changing.files()
    done = changing.patch(*words)

    assert done.code in (2, 4)
    assert message in done.err
    assert (changing.files(), changing.tree.exists()) == (before, False)


# --- split by hand ---------------------------------------------------------------------------------------------


def test_a_patch_is_split_as_its_parts_are_committed(changing: Changing) -> None:
    commit = "git -c user.name=x -c user.email=x@example.org commit --quiet -C refs/patches/0002-mend-four-and-eight"
    done = changing.patch("split", "2", "--command", f"git add sample_npu/other.py; {commit}; git add -A; {commit}")

    assert (done.code, done.err) == (0, "")
    assert sorted(name for name in changing.files() if name.endswith(".patch")) == [
        f"{NAMES[0]}.patch", f"{NAMES[1]}.patch", "0003-mend-four-and-eight-2.patch", "0004-core-mend-two-again.patch",
    ]  # fmt: skip


def test_parts_that_were_not_committed_wait(changing: Changing) -> None:
    before = changing.files()
    done = changing.patch("split", "2", "--shell", SHELL="/bin/true")

    assert done.code == 22
    assert "sample_npu/core.py, sample_npu/other.py" in done.err
    assert changing.patch("split", "--abort").code == 0
    assert changing.files() == before
