"""Starting git with nothing of the caller's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.errors import CommandError, StorageError
from toolkit.git.command import GitCommand, git_version, refuse_full_disk


def test_the_version_is_gits_own() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", git_version())


@pytest.mark.parametrize("code", ["git.git_version()", "git.Workspace(Path('work')).__enter__()"])
def test_a_machine_without_git_is_told_what_to_install(tmp_path: Path, code: str) -> None:
    program = (
        "from pathlib import Path; from toolkit import git, errors\n"
        f"try:\n    {code}\nexcept errors.CommandError as e:\n    print(e.message, '|', e.hint)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True,
        env={"PATH": str(tmp_path), "PYTHONPATH": str(Path.cwd())},
    )  # fmt: skip
    assert done.stdout == (
        "git cannot be started: there is none on PATH | install git (for example `apt-get install git`) and try again\n"
    )


def test_a_git_that_gitpython_cannot_use_is_a_clear_error(tmp_path: Path) -> None:
    program = (
        "from toolkit import git, errors\n"
        "try:\n    git.git_version()\nexcept errors.CommandError as e:\n    print(e.message, '|', e.hint)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=Path.cwd(), check=True, capture_output=True, text=True,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_PYTHON_GIT_EXECUTABLE": str(tmp_path / "no-git")},
    )  # fmt: skip
    # What stands between is GitPython's own wording.
    assert done.stdout.startswith("git cannot be used: ")
    assert done.stdout.endswith(
        "Bad git executable. |"
        " see that `git --version` works, and unset GIT_PYTHON_GIT_EXECUTABLE and GIT_PYTHON_REFRESH\n"
    )


def test_a_command_reads_what_it_is_given_and_prints_bytes_as_they_are(tmp_path: Path) -> None:
    git = GitCommand(tmp_path, {"PATH": os.environ["PATH"]})
    assert git.output("stripspace", stdin=b"a \xff \n\n\n") == b"a \xff\n"


def test_a_failing_command_says_what_git_said(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as raised:
        GitCommand(tmp_path, {"LC_ALL": "C"}).output("rev-parse", "--verify", "HEAD")
    assert raised.value.message == "`git rev-parse` ended with exit code 128"
    assert raised.value.details == ("fatal: not a git repository (or any of the parent directories): .git",)


def test_a_full_disk_is_told_from_other_failures(tmp_path: Path) -> None:
    refuse_full_disk("fatal: index-pack failed", tmp_path)
    with pytest.raises(StorageError) as raised:
        refuse_full_disk("fatal: write error: No space left on device\nfatal: index-pack failed", tmp_path)
    assert raised.value.message == (
        f"cannot write: {tmp_path} is full or read-only (fatal: write error: No space left on device)"
    )


@pytest.mark.parametrize(
    "said",
    [
        "error: unable to write file big",
        "error: failed to write new configuration file .git/config.lock",
        "fatal: could not set 'core.bare' to 'true'",
    ],
)
def test_a_full_disk_that_git_does_not_tell_is_looked_for(
    tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    refuse_full_disk(said, tmp_path, small_disk / "not" / "there")
    (small_disk / "filler").write_bytes(bytes((1 << 20) - (16 << 10)))

    def refuse_for(folder: Path, *others: Path) -> None:
        with pytest.raises(StorageError) as raised:
            refuse_full_disk(said, folder, *others)
        assert raised.value.message.startswith(f"cannot write: {small_disk}")
        assert raised.value.message.endswith(f" is full or read-only ({said})")

    refuse_full_disk(said, tmp_path)
    refuse_full_disk("fatal: bad object", small_disk)
    refuse_for(small_disk)
    refuse_for(tmp_path, small_disk / "not" / "there")
    monkeypatch.setattr("tempfile.tempdir", str(small_disk))
    refuse_for(tmp_path)


def test_where_else_a_command_writes_is_looked_at(tmp_path: Path, small_disk: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", small_disk / "bare"], check=True)
    git = GitCommand(tmp_path, {"PATH": os.environ["PATH"], "LC_ALL": "C", "GIT_DIR": str(small_disk / "bare")})
    stopped = ("-c", "alias.stopped=!echo error: unable to write file x >&2; exit 1", "stopped")
    with pytest.raises(CommandError):
        git.output(*stopped)

    with pytest.raises(OSError, match="No space left"):
        (small_disk / "filler").write_bytes(bytes(2 << 20))

    with pytest.raises(StorageError) as raised:
        git.output(*stopped)
    assert raised.value.message == (
        f"cannot write: {small_disk}/bare is full or read-only (error: unable to write file x)"
    )
