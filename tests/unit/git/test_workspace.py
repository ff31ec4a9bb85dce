"""A throwaway repository to try diffs in, without the caller's repositories, variables or configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.series_cases import edit_diff
from toolkit.errors import CommandError
from toolkit.git import HunkOffset, Workspace, isolated_environment


def test_a_child_gets_a_composed_environment(tmp_path: Path) -> None:
    caller = {"PATH": "/usr/bin", "HOME": "/home/x", "GIT_DIR": "/elsewhere", "LD_PRELOAD": "x", "LC_ALL": "de_DE"}
    assert isolated_environment(tmp_path, caller) == {
        "PATH": "/usr/bin",
        "HOME": f"{tmp_path}/home",
        "XDG_CONFIG_HOME": f"{tmp_path}/home",
        "LC_ALL": "C",
        "GIT_DIR": f"{tmp_path}/git",
        "GIT_WORK_TREE": f"{tmp_path}/tree",
        "GIT_CEILING_DIRECTORIES": f"{tmp_path}",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


def test_no_variable_of_the_caller_reaches_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shim = tmp_path / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text(f"#!/bin/sh\nenv > {tmp_path}/seen\necho git version 9.8.7\n", encoding="utf-8")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:/usr/bin:/bin")
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT", "GIT_OBJECT_DIRECTORY", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, "/elsewhere")
    with Workspace(tmp_path / "work"):
        seen = (tmp_path / "seen").read_text(encoding="utf-8")
    names = {line.partition("=")[0] for line in seen.splitlines()} - {"PWD", "OLDPWD", "SHLVL", "_"}
    assert names == set(isolated_environment(tmp_path, {}))


def test_a_workspace_is_empty_at_first_and_gone_afterwards(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    (folder / "tree").mkdir(parents=True)
    (folder / "tree" / "left").write_text("by a killed run", encoding="utf-8")
    (folder / "git").mkdir()
    (folder / "git" / "index.lock").touch()
    (folder / "git").chmod(0o500)
    with Workspace(folder) as workspace:
        assert list(workspace.tree.iterdir()) == []
        assert not (folder / "git" / "index.lock").exists()
        assert not (folder / "git" / "hooks").exists()
    assert not folder.exists()


def test_a_workspace_is_gone_after_a_failure_inside(tmp_path: Path) -> None:
    with pytest.raises(KeyError), Workspace(tmp_path / "work"):
        raise KeyError
    assert not (tmp_path / "work").exists()


def test_offsets_are_reported_by_file_and_hunk(tmp_path: Path) -> None:
    lines = [f"line {number}\n" for number in range(20)]
    diff = "".join(
        f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -4,3 +4,3 @@\n line 3\n-line 4\n+four\n line 5\n"
        for name in ("one", "two words", "three")
    )
    with Workspace(tmp_path / "work") as workspace:
        (workspace.tree / "one").write_text("".join(lines), encoding="utf-8")
        (workspace.tree / "two words").write_text("new\n" + "".join(lines), encoding="utf-8")
        (workspace.tree / "three").write_text("".join(lines[2:]), encoding="utf-8")
        attempt = workspace.check(diff.encode())
        assert (workspace.tree / "three").read_text(encoding="utf-8") == "".join(lines[2:])
    assert attempt.fits
    assert attempt.messages == ()
    assert attempt.offsets == (
        HunkOffset(file=1, hunk=1, line=5, offset=1),
        HunkOffset(file=2, hunk=1, line=2, offset=-2),
    )


def test_a_diff_that_does_not_fit_says_what_git_said(tmp_path: Path) -> None:
    with Workspace(tmp_path / "work") as workspace:
        (workspace.tree / "a").write_text("one\nthree\n", encoding="utf-8")
        attempt = workspace.check(edit_diff("a").encode())
    assert not attempt.fits
    assert attempt.messages == (
        "error: while searching for:",
        "error: patch failed: a:1",
        "error: a: patch does not apply",
    )


def test_trailing_blanks_are_taken_whatever_a_configuration_says(tmp_path: Path) -> None:
    with Workspace(tmp_path / "work") as workspace:
        with (workspace.folder / "git" / "config").open("a", encoding="utf-8") as config:
            config.write("[apply]\n\twhitespace = fix\n")
        (workspace.tree / "a").write_text("one\ntwo\n", encoding="utf-8")
        assert workspace.apply(edit_diff("a").replace("+2", "+2 \t").encode()).fits
        assert (workspace.tree / "a").read_text(encoding="utf-8") == "one\n2 \t\n"


@pytest.mark.parametrize("command", ["init", "apply"])
def test_a_failing_git_is_a_command_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    shim = tmp_path / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text(f"#!/bin/sh\n[ $1 = {command} ] || exit 0\necho broken >&2\nexit 3\n", encoding="utf-8")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:/usr/bin:/bin")
    with pytest.raises(CommandError) as raised, Workspace(tmp_path / "work") as workspace:
        workspace.check(b"")
    assert raised.value.message == f"`git {command}` ended with exit code 3"
    assert raised.value.details == ("broken",)
    assert not (tmp_path / "work").exists()


def hunk_of(path: str, **replaced: str) -> tuple[str, bytes]:
    """Return the path and the hunk of `edit_diff`, some of its lines replaced."""
    text = edit_diff(path).partition("+++ ")[2].partition("\n")[2]
    for old, new in replaced.items():
        text = text.replace(old, new)
    return path, text.encode()


def test_hunks_are_asked_about_each_by_itself(tmp_path: Path) -> None:
    """Two of one file would get into each other's way, were they one diff."""
    with Workspace(tmp_path / "work") as workspace:
        (workspace.tree / "p").mkdir()
        (workspace.tree / "p/a b.py").write_bytes(b"one\ntwo\n")
        (workspace.tree / "done").write_bytes(b"one\n2\n")
        hunks = [hunk_of("p/a b.py"), hunk_of("done"), hunk_of("p/a b.py", two="other"), hunk_of("p/a b.py")]
        assert workspace.fitting_hunks(hunks) == {0, 3}
        assert workspace.fitting_hunks(hunks, reverse=True) == {1}
        assert workspace.fitting_hunks([]) == frozenset()
        assert (workspace.tree / "p/a b.py").read_bytes() == b"one\ntwo\n"
        assert sorted(path.name for path in workspace.tree.iterdir()) == ["done", "p"]


def test_a_hunk_that_git_cannot_read_is_an_error_and_no_answer(tmp_path: Path) -> None:
    with Workspace(tmp_path / "work") as workspace:
        (workspace.tree / "a").write_bytes(b"one\ntwo\n")
        with pytest.raises(CommandError) as raised:
            workspace.fitting_hunks([("a", b"@@ -1,9 +1,9 @@\n one\n")])
    assert raised.value.message == "`git apply` ended with exit code 128"
