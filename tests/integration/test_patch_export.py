"""`toolkit patch export`: what upstream gets applies there, has nothing of ours in it, and touches nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.moving_sample import AUTHOR, SERIES, Moving, Toolkit, copy_of, core, make_moving, toolkit_of
from tests.repositories import commit_files, git, snapshot

OTHER = "B Else <b@example.org>"


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Moving:
    return make_moving(tmp_path_factory.mktemp("moving"))


@pytest.fixture
def moving(made_once: Moving, tmp_path: Path) -> Moving:
    return copy_of(made_once, tmp_path)


@pytest.fixture
def toolkit(moving: Moving, capsys: pytest.CaptureFixture[str]) -> Toolkit:
    return toolkit_of(moving, capsys)


@pytest.fixture
def clone(moving: Moving, tmp_path: Path) -> Path:
    """Return a clone that is in use: with changes in its work tree and index, and settings that would spoil a diff."""
    place = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(moving.upstream), str(place))
    for name, value in (
        ("user.name", "Cleo Clone"), ("user.email", "cleo@example.org"), ("core.autocrlf", "true"),
        ("apply.whitespace", "error"), ("diff.noprefix", "true"), ("commit.gpgSign", "true"),
    ):  # fmt: skip
        git(place, "config", name, value)
    hook = place / ".git/hooks/reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch hooked\nexit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    (place / "README.md").write_text("being edited\n", encoding="utf-8")
    return place


def branch(clone: Path, *words: str, name: str = "fixes", onto: str = "origin/main") -> tuple[str, ...]:
    return ("--format", "branch", "--repository", str(clone), "--branch", name, "--onto", onto, *words)


def all_but_objects(clone: Path) -> dict[str, bytes]:
    return {name: raw for name, raw in snapshot(clone).items() if not name.startswith(".git/objects/")}


def test_the_mbox_and_the_branch_give_the_same_tree(
    moving: Moving, toolkit: Toolkit, clone: Path, tmp_path: Path
) -> None:  # fmt: skip
    mbox = tmp_path / "out.mbox"

    mailed = toolkit("export", "--output", str(mbox))
    branched = toolkit("export", *branch(clone))

    assert (mailed.code, branched.code) == (0, 0), mailed.err + branched.err
    assert mailed.out == (
        f"{SERIES}: 2 mails in {mbox}; upstream takes them with `git am`\n"
        "  0001-core-mend-two: core: mend two\n  0002-core-mend-five: core: mend five\n"
    )
    assert branched.out.startswith(f"{SERIES}: branch fixes in {clone}, 2 commits on {moving.home[:12]}\n  ")
    git(moving.upstream, "am", "--quiet", str(mbox))
    assert git(clone, "rev-parse", "fixes^{tree}") == git(moving.upstream, "rev-parse", "HEAD^{tree}")
    assert git(clone, "rev-parse", "fixes~2") == moving.home
    shown = git(clone, "log", "-1", "--format=%an <%ae>|%ad|%cn <%ce>|%B", "--date=raw", "fixes")
    assert shown == f"{AUTHOR}|1780000000 +0200|Cleo Clone <cleo@example.org>|core: mend five\n\nWhy."
    assert git(moving.upstream, "show", "HEAD:ext/pkg/core.py") == core(two="2 + 0", five="5 + 0").strip()


def test_a_mail_has_upstreams_paths_a_number_and_no_trailer_of_ours(
    moving: Moving, toolkit: Toolkit, tmp_path: Path
) -> None:  # fmt: skip
    assert toolkit("export", "--output", str(tmp_path / "out.mbox")).code == 0

    text = (tmp_path / "out.mbox").read_text(encoding="utf-8")

    assert "\nSubject: [PATCH 1/2] core: mend two\n\nWhy.\n---\n" in text
    assert "\nSubject: [PATCH 2/2] core: mend five\n" in text
    assert "diff --git a/ext/pkg/core.py b/ext/pkg/core.py\n" in text
    assert "Witness" not in text
    assert "Upstream-Status" not in text


def test_trailers_are_kept_when_asked_and_one_patch_can_be_chosen(
    moving: Moving, toolkit: Toolkit, tmp_path: Path
) -> None:  # fmt: skip
    words = ("--output", str(tmp_path / "out.mbox"), "--patch", "2", "--keep-trailers")

    assert toolkit("export", *words).code == 0

    text = (tmp_path / "out.mbox").read_text(encoding="utf-8")
    assert (
        "\nSubject: [PATCH] core: mend five\n\nWhy.\n\nUpstream-Status: Pending [not sent yet]\nWitness: answer\n---\n"
        in text
    )
    git(moving.upstream, "am", "--quiet", str(tmp_path / "out.mbox"))
    assert git(moving.upstream, "show", "HEAD:ext/pkg/core.py") == core(five="5 + 0").strip()


def test_nothing_but_objects_and_one_ref_comes_into_the_clone(toolkit: Toolkit, clone: Path) -> None:
    before = all_but_objects(clone)

    assert toolkit("export", *branch(clone)).code == 0

    after = all_but_objects(clone)
    assert sorted(after.keys() - before.keys()) == [".git/logs/refs/heads/fixes", ".git/refs/heads/fixes"]
    assert {name: after[name] for name in before} == before
    git(clone, "fsck", "--strict")


def test_a_linked_work_tree_gets_the_branch_in_its_repository(toolkit: Toolkit, clone: Path, tmp_path: Path) -> None:
    (clone / ".git/hooks/reference-transaction").unlink()
    git(clone, "worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))

    assert toolkit("export", *branch(tmp_path / "linked", onto="HEAD")).code == 0

    assert git(clone, "rev-list", "--count", "origin/main..fixes") == "2"


# --- what is refused -------------------------------------------------------------------------------------------


def test_a_patch_that_does_not_apply_there_leaves_the_clone_as_it_was(
    moving: Moving, toolkit: Toolkit, clone: Path
) -> None:  # fmt: skip
    git(clone, "-c", "commit.gpgSign=false", "-c", "core.hooksPath=/dev/null", "checkout", "--quiet", "-f", "-b", "old")
    git(clone, "config", "core.hooksPath", "/dev/null")
    git(clone, "config", "commit.gpgSign", "false")
    commit_files(clone, {"ext/pkg/core.py": core(five="5 * 1")})
    before = snapshot(clone)

    done = toolkit("export", *branch(clone, onto="old"))

    assert done.code == 9
    assert done.err == (
        f"error: patch 0002-core-mend-five does not apply to what was asked for in {clone}; no branch was made\n"
        "  error: patch failed: ext/pkg/core.py:25\n  error: ext/pkg/core.py: patch does not apply\n"
        "hint: name another commit with --onto, or move the series there first: toolkit patch rebase\n"
    )
    assert snapshot(clone) == before


def test_a_hunk_that_fits_in_a_place_that_is_not_its_own_is_refused(
    moving: Moving, toolkit: Toolkit, clone: Path
) -> None:  # fmt: skip
    git(clone, "config", "core.hooksPath", "/dev/null")
    git(clone, "config", "commit.gpgSign", "false")
    git(clone, "config", "core.autocrlf", "false")
    commit_files(clone, {"ext/pkg/core.py": "# One line.\n" * 20 + core() + "\n\n" + core()})

    done = toolkit("export", *branch(clone, onto="HEAD"))

    assert done.code == 9
    assert "hunk #1 of ext/pkg/core.py fits at line " in done.err
    assert git(clone, "for-each-ref", "refs/heads/fixes") == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (branch(Path("clone"), name="main"), "clone has a branch 'main' already"),
        (branch(Path("clone"), name="a..b"), "'a..b' is no name for a branch"),
        (branch(Path("clone"), name="HEAD"), "'HEAD' is no name for a branch"),
        (branch(Path("clone"), name="-f"), "'-f' is no name for a branch"),
        (branch(Path("clone"), onto="nowhere"), "clone has no commit 'nowhere'"),
        (branch(Path("clone"), onto="--all"), "clone has no commit '--all'"),
        (branch(Path("clone"), "--committer", "Ann"), "--committer 'Ann' is not NAME <ADDRESS>"),
        (branch(Path("project")), "project has no git repository"),
        (("--format", "branch"), "a branch needs --repository DIR, --branch NAME and --onto REF"),
        (("--branch", "x"), "--format mbox takes no --branch"),
        (("--patch", "7"), f"series {SERIES!r} has no patch 7"),
    ],
    ids=[
        "taken",
        "no name",
        "HEAD",
        "an option",
        "no commit",
        "an option for one",
        "no address",
        "no repository",
        "nothing",
        "mbox",
        "no patch",
    ],
)
def test_bad_words(
    toolkit: Toolkit, clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = snapshot(clone)

    done = toolkit("export", *words)

    assert done.code in (2, 5)
    assert done.err.partition("\n")[0] == f"error: {message}"
    assert snapshot(clone) == before
    assert not list(tmp_path.glob("*.mbox"))


def test_who_commits_is_asked_for_where_nothing_says_it(toolkit: Toolkit, clone: Path) -> None:
    git(clone, "config", "--unset", "user.email")

    asked = toolkit("export", *branch(clone))
    done = toolkit("export", *branch(clone, "--committer", OTHER))

    assert asked.code == 2
    assert asked.err == (
        f"error: nothing says who commits in {clone}: no user.name and user.email\n"
        'hint: say it: --committer "NAME <ADDRESS>"\n'
    )
    assert done.code == 0
    assert git(clone, "log", "-1", "--format=%cn <%ce>", "fixes") == OTHER


def test_the_users_own_name_is_taken_where_the_clone_has_none(toolkit: Toolkit, clone: Path) -> None:
    for name in ("user.name", "user.email"):
        git(clone, "config", "--unset", name)
    Path(os.environ["HOME"], ".gitconfig").write_text("[user]\nname = G\nemail = g@example.org\n", encoding="utf-8")

    assert toolkit("export", *branch(clone)).code == 0
    assert git(clone, "log", "-1", "--format=%cn <%ce>", "fixes") == "G <g@example.org>"


def test_a_file_is_not_written_over(toolkit: Toolkit, tmp_path: Path) -> None:
    (tmp_path / "out.mbox").write_text("mine\n", encoding="utf-8")

    done = toolkit("export", "--output", str(tmp_path / "out.mbox"))

    assert done.code == 2
    assert done.err == f"error: {tmp_path}/out.mbox is there already\nhint: name another file with --output\n"
    assert (tmp_path / "out.mbox").read_text(encoding="utf-8") == "mine\n"


def test_what_went_out_comes_back_the_same(moving: Moving, toolkit: Toolkit, tmp_path: Path) -> None:
    toolkit("export", "--output", str(tmp_path / "out.mbox"), "--patch", "2")
    path = moving.series / "0002-core-mend-five.patch"
    before = path.read_bytes()
    path.unlink()

    done = toolkit(
        "import", str(tmp_path / "out.mbox"), "--witness", "answer", "--status", "Pending [not sent yet]", "--json"
    )

    assert done.code == 0, done.err
    assert json.loads(done.out)["patches"][0]["equal"]
    assert path.read_bytes() == before
