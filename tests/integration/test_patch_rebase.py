"""`toolkit patch rebase`: three-way, patch by patch, kept where a person is needed, and never a patch lost."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.moving_sample import AUTHOR, SERIES, Moving, Toolkit, copy_of, core, make_moving, toolkit_of
from tests.repositories import git

NEXT = "sample/2.0"


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Moving:
    return make_moving(tmp_path_factory.mktemp("moving"))


@pytest.fixture
def moving(made_once: Moving, tmp_path: Path) -> Moving:
    return copy_of(made_once, tmp_path)


@pytest.fixture
def toolkit(moving: Moving, capsys: pytest.CaptureFixture[str]) -> Toolkit:
    return toolkit_of(moving, capsys)


def onto(moving: Moving, commit: str) -> tuple[str, ...]:
    return ("--onto", f"git:{moving.upstream}@{commit}")


def resolve(moving: Moving, text: str) -> None:
    """Write a text in the place of the first conflict in core.py."""
    path = moving.tree / "pkg/core.py"
    old = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"<{7} .*?\n>{7} [^\n]*\n", text, old, count=1, flags=re.DOTALL), encoding="utf-8")


def start_conflict(moving: Moving, toolkit: Toolkit, **changed: str) -> str:
    """Begin to move the series to a base on which its first patch conflicts; return that base."""
    base = moving.commit({"ext/pkg/core.py": core(**{"two": "2 * 1", **changed})}, "upstream goes on")
    stopped = toolkit("rebase", *onto(moving, base))
    assert stopped.code == 22, stopped.err
    assert stopped.err == (
        "error: patch 0001-core-mend-two conflicts in pkg/core.py; the work tree is kept in "
        f"{moving.tree}\n"
        "  pkg/core.py:10:\n"
        "  <<<<<<< HEAD\n      return 2 * 1\n"
        f"  ||||||| parent of {sha(moving, '0001-core-mend-two')} (core: mend two)\n      return 2\n"
        f"  =======\n      return 2 + 0\n"
        f"  >>>>>>> {sha(moving, '0001-core-mend-two')} (core: mend two)\n"
        f"hint: resolve it there and `git add` the files, then: toolkit patch rebase --series {SERIES} --continue; "
        "or leave the patch out with --skip, or end it all with --abort\n"
    )
    return base


def sha(moving: Moving, name: str) -> str:
    return git(moving.tree, "rev-parse", "--short=7", f"refs/patches/{name}")


# --- going through ---------------------------------------------------------------------------------------------


def test_a_series_that_still_fits_moves_with_its_lines(moving: Moving, toolkit: Toolkit) -> None:
    base = moving.commit({"ext/pkg/core.py": "# One line more.\n" + core()})
    before = moving.files()

    done = toolkit("rebase", *onto(moving, base), "--json")

    assert (done.code, done.err) == (0, "")
    document = json.loads(done.out)
    assert [(patch["name"], patch["kept"]) for patch in document["patches"]] == [
        ("0001-core-mend-two", "moved"), ("0002-core-mend-five", "moved"),
    ]  # fmt: skip
    assert document["covers"] == [f"git:{base}", f"git:{moving.home}"]
    assert document["dropped"] == []
    listed = f'\n  "git:{base}",\n  "git:{moving.home}",\n'
    line = before["series.toml"].decode().replace(f'"git:{moving.home}"', listed)
    assert moving.files()["series.toml"].decode() == line
    assert moving.files()["README.md"] == before["README.md"]
    assert "@@ -8,7 +8,7 @@ " in moving.patch("0001-core-mend-two")
    assert f"\nFrom: {AUTHOR}\nDate: Thu, 28 May 2026 22:26:40 +0200\n" in moving.patch("0001-core-mend-two")
    assert not moving.room.exists()


def test_a_base_that_the_moved_patches_no_longer_fit_is_reported(moving: Moving, toolkit: Toolkit) -> None:
    start_conflict(moving, toolkit)
    resolve(moving, "    return 2 * 1 + 0\n")
    git(moving.tree, "add", "pkg/core.py")

    done = toolkit("rebase", "--continue")

    assert done.code == 0, done.err
    base = git(moving.upstream, "rev-parse", "HEAD")
    assert done.out == (
        f"{SERIES} is on git:{base} now\n"
        "  0001-core-mend-two: content changed\n"
        "    pkg/core.py: other lines are removed or added, first in hunk #1\n"
        "  0002-core-mend-five: unchanged\n"
        f"for git:{base}\n"
        f"no longer for git:{moving.home}: patch 0001-core-mend-two does not apply to sample {moving.home[:12]}: "
        "hunk #1 of pkg/core.py conflicts at pkg/core.py:10\n"
    )
    assert f'covers = ["git:{base}"]\n' in (moving.series / "series.toml").read_text(encoding="utf-8")


def test_into_a_new_line_the_old_one_stays_byte_for_byte(moving: Moving, toolkit: Toolkit) -> None:
    base = moving.commit({"ext/pkg/core.py": "# One line more.\n" + core()})
    before = moving.files()

    done = toolkit("rebase", *onto(moving, base), "--into", NEXT)

    assert done.code == 0, done.err
    new = moving.root / "patches" / NEXT
    assert moving.files() == before
    assert sorted(path.name for path in new.iterdir()) == sorted(before)
    assert (new / "series.toml").read_bytes() == before["series.toml"].replace(moving.home.encode(), base.encode())
    again = toolkit("rebase", *onto(moving, base), "--into", NEXT)
    assert (again.code, again.err) == (
        2, f"error: there is a series {NEXT!r} already\nhint: name another with --into\n",
    )  # fmt: skip


def test_a_file_that_upstream_renamed_is_followed(moving: Moving, toolkit: Toolkit) -> None:
    base = moving.commit({"ext/pkg/core.py": None, "ext/pkg/inner/heart.py": core(nine="9 * 1")})

    done = toolkit("rebase", *onto(moving, base))

    assert done.code == 0, done.err
    assert "--- a/pkg/inner/heart.py\n+++ b/pkg/inner/heart.py\n" in moving.patch("0001-core-mend-two")
    assert "    pkg/core.py: it is no longer changed\n" in done.out


def test_a_commit_with_a_comment_in_its_message_keeps_it_through_a_conflict(moving: Moving, toolkit: Toolkit) -> None:
    path = moving.series / "0001-core-mend-two.patch"
    path.write_text(
        path.read_text(encoding="utf-8").replace("\nWhy.\n", "\nWhy.\n\n#12 is the issue.\n"), encoding="utf-8"
    )
    start_conflict(moving, toolkit)
    resolve(moving, "    return 2 * 1 + 0\n")
    git(moving.tree, "-c", "user.name=B", "-c", "user.email=b@x", "commit", "--quiet", "--all", "--no-edit")

    done = toolkit("rebase", "--continue")

    assert done.code == 0, done.err
    assert "\n#12 is the issue.\n" in moving.patch("0001-core-mend-two")
    assert f"\nFrom: {AUTHOR}\n" in moving.patch("0001-core-mend-two")


# --- what a person decides -------------------------------------------------------------------------------------


def test_a_patch_that_upstream_has_is_left_out_only_by_a_person_and_retired(moving: Moving, toolkit: Toolkit) -> None:
    before = moving.files()
    base = moving.commit({"ext/pkg/core.py": "# One line more.\n" + core(two="2 + 0")})

    stopped = toolkit("rebase", *onto(moving, base))

    assert stopped.code == 22
    assert stopped.err == (
        f"error: patch 0001-core-mend-two has nothing left to do: {base[:12]} has all of its change\n"
        f"hint: see that it has, then: toolkit patch rebase --series {SERIES} --skip; or commit what is missing in "
        f"{moving.tree} and --continue, or end it all with --abort\n"
    )
    assert toolkit("rebase", "--continue").err == stopped.err
    assert toolkit("rebase", "--skip").err == (
        "error: --skip leaves a patch out, and nothing says why\nhint: say it: --why 'TEXT'\n"
    )
    assert moving.files() == before

    done = toolkit("rebase", "--skip", "--why", "upstream has it")

    assert done.code == 0, done.err
    assert sorted(moving.files()) == ["0001-core-mend-five.patch", "README.md", "series.toml"]
    retired = moving.root / "patches/retired" / SERIES / "0001-core-mend-two.patch"
    assert f"\nWitness: answer\nRetired: upstream has it (moving to git:{base})\n---\n" in retired.read_text()
    assert f"  0001-core-mend-two: left out: upstream has it\n  kept in {retired}\n" in done.out
    assert f"no longer for git:{moving.home}" not in done.out


def test_all_patches_left_out_leave_no_series(moving: Moving, toolkit: Toolkit) -> None:
    before = moving.files()
    base = moving.commit({"ext/pkg/core.py": core(two="2 + 0", five="5 + 0")})
    toolkit("rebase", *onto(moving, base))
    toolkit("rebase", "--skip", "--why", "upstream has it")

    done = toolkit("rebase", "--skip", "--why", "upstream has it")

    assert done.code == 8
    assert done.err.startswith(f"error: series {SERIES} was not moved: series {SERIES!r} has 1 fault\n")
    assert moving.files() == before
    assert toolkit("rebase", "--abort").code == 0
    assert not (moving.root / "patches/retired").exists()


def test_a_conflict_in_the_middle_and_abort_leave_the_series_as_it_was(moving: Moving, toolkit: Toolkit) -> None:
    before = moving.files()
    base = moving.commit({"ext/pkg/core.py": "# One line more.\n" + core(five="5 * 1")})
    stopped = toolkit("rebase", *onto(moving, base))
    assert stopped.code == 22
    assert stopped.err.startswith("error: patch 0002-core-mend-five conflicts in pkg/core.py; ")
    (moving.tree / "pkg/core.py").write_text("what a person tried\n", encoding="utf-8")

    done = toolkit("rebase", "--abort")

    assert (done.code, done.out) == (0, f"{SERIES}: the rebase is given up; the series is as it was\n")
    assert moving.files() == before
    assert not moving.room.exists()
    assert toolkit("rebase", "--abort").code == 2
    assert toolkit("rebase", "--continue").err == f"error: no `toolkit patch rebase` waits on series {SERIES}\n"


def test_continue_with_the_conflict_unresolved(moving: Moving, toolkit: Toolkit) -> None:
    start_conflict(moving, toolkit)

    done = toolkit("rebase", "--continue")

    assert done.code == 22
    assert done.err == (
        "error: the conflict in pkg/core.py is not resolved\n"
        f"hint: edit the files in {moving.tree}, `git add` them there, then: toolkit patch rebase --series {SERIES} "
        "--continue\n"
    )


@pytest.mark.parametrize("how", ["added", "committed"])
def test_continue_with_a_marker_left_in(moving: Moving, toolkit: Toolkit, how: str) -> None:
    start_conflict(moving, toolkit)
    git(moving.tree, "add", "pkg/core.py")
    if how == "committed":
        git(moving.tree, "commit", "--quiet", "--no-edit")

    done = toolkit("rebase", "--continue")

    assert done.code == 22
    assert done.err == (
        f"error: pkg/core.py:10 in {moving.tree} has a conflict's marker left in: '<<<<<<< HEAD'\n"
        f"hint: resolve it and `git add` the file, then: toolkit patch rebase --series {SERIES} --continue\n"
    )


def test_continue_with_a_change_after_git_add(moving: Moving, toolkit: Toolkit) -> None:
    start_conflict(moving, toolkit)
    resolve(moving, "    return 2 * 1 + 0\n")
    git(moving.tree, "add", "pkg/core.py")
    (moving.tree / "pkg/core.py").write_text("later\n", encoding="utf-8")

    done = toolkit("rebase", "--continue")

    assert done.code == 22
    assert done.err.startswith(f"error: pkg/core.py in {moving.tree} changed after `git add`\n")


def test_continue_with_two_commits_for_one_patch(moving: Moving, toolkit: Toolkit) -> None:
    start_conflict(moving, toolkit)
    resolve(moving, "    return 2 * 1 + 0\n")
    git(moving.tree, "commit", "--quiet", "--all", "--no-edit")
    git(moving.tree, "commit", "--quiet", "--allow-empty", "--message", "one more")

    done = toolkit("rebase", "--continue")

    assert done.code == 22
    assert done.err.startswith(f"error: 2 commits stand in {moving.tree} for patch 0001-core-mend-two, expected one\n")


def test_two_at_once(moving: Moving, toolkit: Toolkit) -> None:
    base = start_conflict(moving, toolkit)

    done = toolkit("rebase", *onto(moving, base))

    assert done.code == 22
    assert done.err == (
        f"error: `toolkit patch rebase` on series {SERIES} is not finished: its work tree is {moving.tree}\n"
        f"hint: go on with `toolkit patch rebase --continue --series {SERIES}`, or give it up with --abort\n"
    )


def test_a_series_that_was_changed_meanwhile_is_not_written_over(moving: Moving, toolkit: Toolkit) -> None:
    start_conflict(moving, toolkit)
    resolve(moving, "    return 2 * 1 + 0\n")
    git(moving.tree, "add", "pkg/core.py")
    (moving.series / "README.md").write_text("Somebody else's.\n", encoding="utf-8")
    before = moving.files()

    done = toolkit("rebase", "--continue")

    assert done.code == 22
    assert done.err.startswith(f"error: series {SERIES} was changed since `toolkit patch rebase` began; ")
    assert moving.files() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--onto", "sample==one"), "error: 'sample==one' names no base: 'one' is no version\n"),
        ((), "error: nothing was asked for\n"),
        (("--continue", "--abort"), "error: --continue and --abort do not go together\n"),
        (("--onto", "sample==2.0", "--into", "other/2.0"), "error: --into 'other/2.0' is no line of sample\n"),
    ],
    ids=["no base", "nothing", "two", "another component"],
)
def test_bad_words(toolkit: Toolkit, words: tuple[str, ...], message: str) -> None:
    done = toolkit("rebase", *words)

    assert done.code == 2
    assert done.err.startswith(message)


def test_the_base_that_it_is_on_already(moving: Moving, toolkit: Toolkit) -> None:
    done = toolkit("rebase", *onto(moving, moving.home))

    assert done.code == 2
    assert done.err.startswith(f"error: series {SERIES} is written on git:{moving.home} already\n")
    assert not moving.room.exists()


# --- killed ----------------------------------------------------------------------------------------------------


def start_and_kill(moving: Moving, base: str, when: str) -> None:
    """Kill a rebase as soon as it has noted that it stands and has written a word into its row."""
    words = [sys.executable, "-m", "toolkit", "patch", "rebase", *onto(moving, base), "--project", str(moving.root)]
    words += ["--store", str(moving.root.parent / "store"), "--series", SERIES]
    environ = {**moving.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    child = subprocess.Popen(words, env=environ, start_new_session=True, stderr=subprocess.DEVNULL)
    row = moving.room / "moving.json"
    while child.poll() is None:
        if (moving.room / "work.json").exists() and when in row.read_text(encoding="utf-8"):
            os.killpg(child.pid, signal.SIGKILL)
            break
        time.sleep(0.0005)
    assert child.wait() == -signal.SIGKILL, "it was through before it could be killed"


@pytest.mark.parametrize("ending", ["--continue", "--abort"])
@pytest.mark.parametrize("when", ['"schema"', '"waits": false', '"result": "'], ids=["begun", "picking", "one done"])
def test_a_killed_rebase_goes_on_or_is_given_up(moving: Moving, toolkit: Toolkit, when: str, ending: str) -> None:
    before = moving.files()
    base = moving.commit({"ext/pkg/core.py": "# One line more.\n" + core()})
    start_and_kill(moving, base, when)
    assert moving.files() == before

    done = toolkit("rebase", ending)

    assert done.code == 0, done.err
    assert not moving.room.exists()
    if ending == "--abort":
        assert moving.files() == before
    else:
        assert sorted(moving.files()) == sorted(before)
        assert "\n-    return 2\n+    return 2 + 0\n" in moving.patch("0001-core-mend-two")
        assert "\n-    return 5\n+    return 5 + 0\n" in moving.patch("0002-core-mend-five")
        assert f'"git:{base}"' in (moving.series / "series.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("leftover", ["half a pick", "a whole pick", "a lock"])
def test_what_a_killed_pick_leaves_is_not_taken_for_a_decision(
    moving: Moving, toolkit: Toolkit, leftover: str
) -> None:  # fmt: skip
    base = moving.commit({"ext/pkg/core.py": "# One line more.\n" + core(five="5 * 1")})
    assert toolkit("rebase", *onto(moving, base)).code == 22
    row = json.loads((moving.room / "moving.json").read_text(encoding="utf-8"))
    first = row["steps"][0]
    git(moving.tree, "cherry-pick", "--abort")
    git(moving.tree, "reset", "--quiet", "--hard", row["base"])
    made, first["result"], row["waits"], row["top"] = first["result"], "", False, row["base"]
    (moving.room / "moving.json").write_text(json.dumps(row), encoding="utf-8")
    if leftover == "half a pick":
        (moving.tree / "pkg/core.py").write_text("half\n", encoding="utf-8")
    elif leftover == "a whole pick":
        git(moving.tree, "reset", "--quiet", "--hard", made)
    else:
        (moving.tree / ".git/index.lock").touch()

    again = toolkit("rebase", "--continue")

    assert again.code == 22
    assert again.err.startswith("error: patch 0002-core-mend-five conflicts in pkg/core.py; ")
    assert "return 2 + 0" in (moving.tree / "pkg/core.py").read_text(encoding="utf-8")


def test_a_run_killed_after_the_series_was_put_in_place_is_finished(
    moving: Moving, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = moving.commit({"ext/pkg/core.py": "# One line more.\n" + core()})

    def die(_folder: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("toolkit.upkeep.rebasing.drop_work", die)
        assert toolkit("rebase", *onto(moving, base)).code == 130
    moved = moving.files()

    done = toolkit("rebase", "--continue", "--json")

    assert done.code == 0, done.err
    assert [patch["kept"] for patch in json.loads(done.out)["patches"]] == ["moved", "moved"]
    assert moving.files() == moved
    assert not moving.room.exists()
