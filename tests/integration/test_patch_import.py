"""`toolkit patch import`: what comes from upstream is proven to be the same, or noted not to be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.moving_sample import AUTHOR, SERIES, Moving, Toolkit, copy_of, core, make_moving, toolkit_of
from tests.repositories import git

HEAD = "refs/pull/7/head"


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Moving:
    return make_moving(tmp_path_factory.mktemp("moving"))


@pytest.fixture
def moving(made_once: Moving, tmp_path: Path) -> Moving:
    return copy_of(made_once, tmp_path)


@pytest.fixture
def toolkit(moving: Moving, capsys: pytest.CaptureFixture[str]) -> Toolkit:
    return toolkit_of(moving, capsys)


def test_a_commit_of_upstream_comes_with_author_date_message_and_the_same_hunks(
    moving: Moving, toolkit: Toolkit
) -> None:
    commit = moving.commit({"ext/pkg/core.py": core(eight="8 + 0")}, "core: mend eight\n\nIt was wrong.\n")

    done = toolkit("import", commit, "--witness", "answer")

    assert (done.code, done.err) == (0, "")
    assert done.out == (
        f"{SERIES}: 0003-core-mend-eight: core: mend eight\n"
        "  its hunks equal its origin's: the same lines removed and added, with the same context\n"
    )
    patch = moving.patch("0003-core-mend-eight")
    assert (
        "\nFrom: A <a@example.org>\nDate: Tue, 14 Nov 2023 22:13:20 +0000\nSubject: [PATCH] core: mend eight\n" in patch
    )
    assert (
        "\n\nIt was wrong.\n\n"
        f"Upstream-Status: Backport [upstream/commit/{commit}]\nWitness: answer\nOrigin: upstream {commit}\n---\n"
    ) in patch
    assert "\n--- a/pkg/core.py\n+++ b/pkg/core.py\n" in patch
    assert "\n-    return 8\n+    return 8 + 0\n" in patch
    assert not moving.room.exists()


def test_a_ref_at_an_address_is_resolved(moving: Moving, toolkit: Toolkit) -> None:
    commit = moving.commit({"ext/pkg/core.py": core(eight="8 + 0")}, "core: mend eight")
    git(moving.upstream, "tag", "-a", "-m", "tagged", "v8")

    done = toolkit("import", f"file://{moving.upstream}@v8", "--witness", "answer")

    assert done.code == 0
    assert f"Origin: upstream {commit}\n" in moving.patch("0003-core-mend-eight")


def test_a_clone_may_be_named_instead_of_an_upstream_that_is_away(moving: Moving, toolkit: Toolkit) -> None:
    commit = moving.commit({"ext/pkg/core.py": core(eight="8 + 0")}, "core: mend eight")
    away = "https://away.invalid/name/upstream.git"
    toml = moving.series / "series.toml"
    toml.write_text(toml.read_text().replace(f"file://{moving.upstream}", away), encoding="utf-8")

    done = toolkit("import", commit, "--witness", "answer", "--mirror", f"sample={moving.upstream}")

    assert done.code == 0
    patch = moving.patch("0003-core-mend-eight")
    assert f"Upstream-Status: Backport [https://away.invalid/name/upstream/commit/{commit}]\n" in patch
    assert f"Origin: https://away.invalid/name/upstream.git {commit}\n" in patch


@pytest.mark.parametrize(
    ("word", "ref"),
    [
        ("/pull/7", "refs/pull/7/head"),
        ("/-/merge_requests/7", "refs/merge_requests/7/head"),
        ("/pull/7", "refs/merge-requests/7/head"),
        ("/pull/7/files?w=1", "refs/pull/7/head"),
    ],
)
def test_a_request_of_two_commits_becomes_two_patches_in_order(
    moving: Moving, toolkit: Toolkit, word: str, ref: str
) -> None:
    moving.commit({"ext/pkg/core.py": core(seven="7 + 0")}, "core: mend seven")
    moving.commit({"ext/pkg/core.py": core(seven="7 + 0", eight="8 + 0")}, "core: mend eight")
    git(moving.upstream, "update-ref", ref, "HEAD")
    git(moving.upstream, "reset", "--quiet", "--hard", moving.home)
    moving.commit({"README.md": "Read more.\n"}, "main goes on")
    repository = f"file://{moving.upstream}"

    done = toolkit("import", f"{repository}{word}", "--witness", "answer", "--json")

    assert done.code == 0
    assert [patch["name"] for patch in json.loads(done.out)["patches"]] == [
        "0003-core-mend-seven", "0004-core-mend-eight",
    ]  # fmt: skip
    assert all(patch["equal"] for patch in json.loads(done.out)["patches"])
    shown = f"{repository}{word}".partition("?")[0] if "?" in word else f"{repository}{word}"
    assert f"Upstream-Status: Submitted [{shown}" in moving.patch("0003-core-mend-seven")


def test_a_request_whose_commits_are_in_its_target_is_said_to_be(moving: Moving, toolkit: Toolkit) -> None:
    commit = moving.commit({"ext/pkg/core.py": core(seven="7 + 0")}, "core: mend seven")
    git(moving.upstream, "update-ref", HEAD, commit)

    done = toolkit("import", f"file://{moving.upstream}/pull/7", "--witness", "answer")

    assert done.code == 2
    assert done.err == (
        f"error: all commits of file://{moving.upstream}/pull/7 are in 'HEAD' already\n"
        f"hint: import them by their ids: its last one is {commit}; or name the branch it is for with --target\n"
    )


def test_a_request_that_is_not_there(moving: Moving, toolkit: Toolkit) -> None:
    done = toolkit("import", f"file://{moving.upstream}/pull/9", "--witness", "answer")

    assert done.code == 5
    assert done.err == (
        f"error: file://{moving.upstream} has no request file://{moving.upstream}/pull/9: no ref refs/pull/9/head, "
        "refs/merge-requests/9/head, refs/merge_requests/9/head\n"
        "hint: see that the number is right; a host may drop the commits of a closed request\n"
    )


# --- files -----------------------------------------------------------------------------------------------------


def mails(moving: Moving, folder: Path, *options: str) -> Path:
    """Write an mbox of two commits on the series' home."""
    git(moving.upstream, "checkout", "--quiet", "--detach", moving.home)
    moving.commit({"ext/pkg/core.py": core(seven="7 + 0")}, "core: mend sieben — 七\n\nBody.\n\nSigned-off-by: A <a@b>")
    moving.commit({"ext/pkg/core.py": core(seven="7 + 0", nine="9 + 0")}, "[dvm] mend nine")
    path = folder / "fixes.mbox"
    path.write_text(git(moving.upstream, "format-patch", "--stdout", "-2", *options) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("options", [(), ("-U10",), ("-U1",), ("-U0", "--no-stat"), ("--attach",)], ids=str)
def test_an_mbox_becomes_a_patch_for_each_mail(
    moving: Moving, toolkit: Toolkit, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = mails(moving, tmp_path, *options)

    done = toolkit("import", str(path), "--witness", "answer", "--status", "Submitted [by mail]", "--json")

    if options and options[0] == "-U0":
        assert done.code == 8, "without context nothing says where a hunk belongs"
        return
    assert done.code == 0, done.err
    assert [(one["subject"], one["equal"]) for one in json.loads(done.out)["patches"]] == [
        ("core: mend sieben — 七", True), ("[dvm] mend nine", True),
    ]  # fmt: skip
    patch = moving.patch("0003-core-mend-sieben")
    assert "Body.\n\nSigned-off-by: A <a@b>\nUpstream-Status: Submitted [by mail]\nWitness: answer\n---\n" in patch


@pytest.mark.parametrize("kind", ["git diff", "diff -u"])
def test_a_diff_alone_needs_an_author_and_a_message(
    moving: Moving, toolkit: Toolkit, tmp_path: Path, kind: str
) -> None:
    moving.commit({"ext/pkg/core.py": core(seven="7 + 0")})
    diff = git(moving.upstream, "diff", "HEAD^", "HEAD") + "\n"
    if kind == "diff -u":
        diff = "Made by hand.\n" + diff[diff.index("--- a/") :]
    path = tmp_path / "fix.diff"
    path.write_text(diff, encoding="utf-8")
    words = ("--witness", "answer", "--status", "Pending [not sent]")

    bare = toolkit("import", str(path), *words)
    done = toolkit("import", str(path), *words, "--author", AUTHOR, "--message", "core: mend seven")

    assert bare.code == 2
    assert bare.err == (
        "error: fix.diff is a diff alone: it does not say who made it, nor what it is for\n"
        "hint: say it: --author 'NAME <ADDRESS>' --message 'SUBJECT'\n"
    )
    assert (done.code, done.err) == (0, "")
    assert f"\nFrom: {AUTHOR}\n" in moving.patch("0003-core-mend-seven")


def test_a_file_without_a_diff(moving: Moving, toolkit: Toolkit, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("Nothing here.\n", encoding="utf-8")

    done = toolkit("import", str(tmp_path / "note.txt"), "--witness", "answer")

    assert done.code == 8
    assert done.err == (
        "error: note.txt has no diff\n"
        "hint: give a mail of `git format-patch`, an mbox of several, or what `git diff` wrote\n"
    )


# --- three-way -------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_merged_when_asked_and_the_difference_is_noted(moving: Moving, toolkit: Toolkit) -> None:
    before = moving.files()
    changed = core(one="1 + 10").replace("first = x * 3\n    return 3", "first = x * 30\n    return 3")
    parent = moving.commit({"ext/pkg/core.py": changed})
    commit = moving.commit({"ext/pkg/core.py": changed.replace("return 3", "return 3 + 0")}, "core: mend three", parent)

    strictly = toolkit("import", commit, "--witness", "answer")
    assert strictly.code == 9
    assert "conflicts at pkg/core.py" in strictly.err
    assert moving.files() == before

    merged = toolkit("import", commit, "--witness", "answer", "--three-way")
    assert merged.code == 22, merged.out
    assert "patch core-mend-three conflicts in pkg/core.py" in merged.err
    assert moving.files() == before

    path = moving.tree / "pkg/core.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.index("<<<<<<<")] + "    first = x * 3\n    return 3 + 0\n"
                    + text[text.index("\n", text.index(">>>>>>>")) + 1 :], encoding="utf-8")  # fmt: skip
    git(moving.tree, "add", "pkg/core.py")
    done = toolkit("import", "--continue")

    assert done.code == 0, done.err
    assert (
        "  it is not what its origin has; noted in its trailer Adapted:\n"
        "    pkg/core.py: the lines removed and added are the same, the context around them is not\n"
    ) in done.out
    patch = moving.patch("0003-core-mend-three")
    assert "\nAdapted: pkg/core.py: the lines removed and added are the same, the context around them is not\n" in patch
    assert f"\nOrigin: upstream {commit}\n" in patch
    assert not moving.room.exists()


def test_a_merge_that_stands_can_be_given_up(moving: Moving, toolkit: Toolkit) -> None:
    before = moving.files()
    parent = moving.commit({"ext/pkg/core.py": core(two="20")})
    commit = moving.commit({"ext/pkg/core.py": core(two="200")}, "core: two", parent)
    assert toolkit("import", commit, "--witness", "answer", "--three-way").code == 22

    second = toolkit("import", commit, "--witness", "answer")
    done = toolkit("import", "--abort")

    assert second.code == 22
    assert second.err == (
        f"error: `toolkit patch import` on series {SERIES} is not finished: its work tree is {moving.tree}\n"
        f"hint: go on with `toolkit patch import --continue --series {SERIES}`, or give it up with --abort\n"
    )
    assert (done.code, done.out) == (0, f"{SERIES}: the import is given up; the series is as it was\n")
    assert moving.files() == before
    assert not moving.room.exists()


def test_a_mail_alone_cannot_be_merged(moving: Moving, toolkit: Toolkit, tmp_path: Path) -> None:
    moving.commit({"ext/pkg/core.py": core(two="20")})
    moving.commit({"ext/pkg/core.py": core(two="200")}, "core: two")
    path = tmp_path / "two.patch"
    path.write_text(git(moving.upstream, "format-patch", "--stdout", "-1") + "\n", encoding="utf-8")

    done = toolkit("import", str(path), "--witness", "answer", "--status", "Pending [x]", "--three-way")

    assert done.code == 2
    assert done.err == (
        "error: two.patch has not the files that it was made from, which a three-way merge goes by\n"
        "hint: import the commit instead, by its id or its pull request\n"
    )
    assert not moving.room.exists()
