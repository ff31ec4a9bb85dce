"""`toolkit patch import`: what is refused, with what a person can do about it, and nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.moving_sample import Moving, Toolkit, copy_of, core, make_moving, toolkit_of, twin
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


def test_files_outside_of_the_component_are_refused_and_may_be_left_out(moving: Moving, toolkit: Toolkit) -> None:
    before = moving.files()
    commit = moving.commit(
        {"ext/pkg/core.py": core(eight="8 + 0"), "docs/notes.md": "More.\n", "tests/t.py": "pass\n"}, "core: mend eight"
    )

    refused = toolkit("import", commit, "--witness", "answer")

    assert refused.code == 2
    assert refused.err == (
        f"error: commit {commit[:12]} changes 2 files outside of what the series is for\n"
        "  docs/notes.md: it is not below ext/\n"
        "  tests/t.py: it is not below ext/\n"
        "hint: leave them out, if what is left does its work without them: --leave-out PATH (a folder too); "
        "or take what is wanted: --only PATH\n"
    )
    assert moving.files() == before

    done = toolkit("import", commit, "--witness", "answer", "--leave-out", "docs/", "--leave-out", "tests/t.py")

    assert done.code == 0
    assert done.out.endswith("  left out: docs/notes.md\n  left out: tests/t.py\n")
    assert "\nLeft-out: docs/notes.md, tests/t.py\n---\n" in moving.patch("0003-core-mend-eight")


def test_only_takes_what_it_names(moving: Moving, toolkit: Toolkit) -> None:
    commit = moving.commit({"ext/pkg/core.py": core(eight="8 + 0"), "docs/notes.md": "More.\n"}, "core: mend eight")

    assert toolkit("import", commit, "--witness", "answer", "--only", "ext").code == 0
    assert "\nLeft-out: docs/notes.md\n---\n" in moving.patch("0003-core-mend-eight")


def test_a_path_that_the_change_does_not_have(moving: Moving, toolkit: Toolkit) -> None:
    commit = moving.commit({"ext/pkg/core.py": core(eight="8 + 0")}, "core: mend eight")

    done = toolkit("import", commit, "--witness", "answer", "--leave-out", "ext/pkg/cor.py")

    assert done.code == 2
    assert done.err == (
        f"error: commit {commit[:12]} changes nothing at 'ext/pkg/cor.py'; did you mean 'ext/pkg/core.py'?\n"
        "hint: it changes ext/pkg/core.py\n"
    )


def test_a_merge_is_refused_with_its_parents(moving: Moving, toolkit: Toolkit) -> None:
    before = moving.files()
    git(moving.upstream, "checkout", "--quiet", "-b", "side")
    side = moving.commit({"ext/pkg/shapes.py": "SIZE = 2\n"})
    main = moving.commit({"ext/pkg/core.py": core(eight="8 + 0")}, onto=moving.home)
    git(moving.upstream, "merge", "--quiet", "--no-ff", "-m", "merge", "side")
    merge = git(moving.upstream, "rev-parse", "HEAD")

    done = toolkit("import", merge, "--witness", "answer")

    assert done.code == 2
    assert done.err == (
        f"error: commit {merge[:12]} is a merge of 2 lines of commits, and no one change\n"
        f"  parent {main}\n  parent {side}\n"
        "hint: import the commits that it brought in, each by its id, or the pull request that they came in\n"
    )
    assert moving.files() == before


def test_a_request_that_holds_a_merge_is_refused(moving: Moving, toolkit: Toolkit) -> None:
    git(moving.upstream, "checkout", "--quiet", "-b", "request", moving.home)
    moving.commit({"ext/pkg/core.py": core(eight="8 + 0")})
    git(moving.upstream, "checkout", "--quiet", "main")
    moving.commit({"README.md": "Read more.\n"})
    git(moving.upstream, "checkout", "--quiet", "request")
    git(moving.upstream, "merge", "--quiet", "--no-ff", "-m", "merge", "main")
    git(moving.upstream, "update-ref", HEAD, "HEAD")
    git(moving.upstream, "checkout", "--quiet", "main")

    done = toolkit("import", f"file://{moving.upstream}/pull/7", "--witness", "answer")

    assert done.code == 2
    assert "is a merge of 2 lines of commits, and no one change" in done.err


def test_an_empty_commit_is_refused(moving: Moving, toolkit: Toolkit) -> None:
    commit = moving.commit({})

    done = toolkit("import", commit, "--witness", "answer")

    assert done.code == 2
    assert done.err == (f"error: commit {commit[:12]} changes no file\nhint: there is nothing to import in it\n")


def test_a_witness_that_is_not_there_is_named_and_nothing_is_written(moving: Moving, toolkit: Toolkit) -> None:
    before = moving.files()
    commit = moving.commit({"ext/pkg/core.py": core(eight="8 + 0")}, "core: mend eight")

    unknown = toolkit("import", commit, "--witness", "anwser")
    none = toolkit("import", commit)
    check = toolkit("import", commit, "--witness", "loads")

    assert [unknown.code, none.code, check.code] == [2, 2, 2]
    verify = moving.root / "verify"
    assert unknown.err == (
        "error: there is no witness 'anwser'; did you mean 'answer'?; nothing was written\n"
        f"hint: write it first, as a module below {verify}/witnesses, with an entry in {verify}/checks.json "
        'that has both sides and "witness": true\n'
    )
    assert none.err.startswith(
        f"error: nothing says what witnesses the fault that commit {commit[:12]} is for\n"
        "hint: name one with --witness: answer\n"
    )
    assert check.err.startswith("error: 'loads' is a check, not a witness\n")
    assert moving.files() == before
    assert not moving.room.exists()


def test_a_ref_that_does_not_exist_says_what_is_near(moving: Moving, toolkit: Toolkit) -> None:
    git(moving.upstream, "branch", "v1.2.0")

    done = toolkit("import", f"file://{moving.upstream}@v1.20", "--witness", "answer")

    assert done.code == 5
    assert done.err == f"error: file://{moving.upstream} has no ref 'v1.20'\nhint: near it are v1.2.0\n"


def test_a_short_id_is_refused(moving: Moving, toolkit: Toolkit) -> None:
    done = toolkit("import", moving.home[:12], "--witness", "answer")

    assert done.code == 2
    assert done.err == (
        f"error: '{moving.home[:12]}' names nothing that can be imported\n"
        "hint: a commit is named by its full id of 40 digits\n"
    )


def test_what_is_in_the_series_already_is_said_to_be(moving: Moving, toolkit: Toolkit) -> None:
    before = moving.files()
    commit = moving.commit({"ext/pkg/core.py": core(two="2 + 0")}, "core: two")

    done = toolkit("import", commit, "--witness", "answer")

    assert done.code == 9
    assert "patch 0003-core-two has nothing to do" in done.err
    assert moving.files() == before


def test_a_near_identical_place_is_never_taken(moving: Moving, toolkit: Toolkit) -> None:
    """The change is of a function that the base lacks; another one is alike in all that the hunk shows."""
    before = moving.files()
    moving.commit({"ext/pkg/twins.py": f"{twin('left')}\n\n{twin('right')}"})
    commit = moving.commit({"ext/pkg/twins.py": f"{twin('left')}\n\n{twin('right', 'steps + 1')}"}, "twins: mend right")

    done = toolkit("import", commit, "--witness", "answer")

    assert done.code == 9
    assert done.err.startswith(
        "error: patch 0003-twins-mend-right cannot be trusted: hunk #1 of pkg/twins.py fits at pkg/twins.py:6, but "
    )
    assert moving.files() == before
