"""Writing a commit's tree to the disk as a repository of its own, which may be dirtied."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from toolkit.errors import CommandError
from toolkit.git.command import Answer, GitCommand, failure, refuse_full_disk, require_git
from toolkit.git.fetching import copy_commit
from toolkit.git.repository import (
    Tree,
    TreeEdit,
    git_in,
    make_repository,
    write_attributes,
    write_edits,
)
from toolkit.process import run

UMASK = 0o022
"""Of a written tree: builds put the modes of files into wheels."""


def check_out_commit(source: Path, commit: str, edits: Sequence[TreeEdit], into: Path, *, what: str) -> Tree:
    """Write a commit's tree, edited, into an empty folder and return it; `source` is a repository that has the commit.

    The folder gets a repository of its own, whose HEAD is the commit and whose index holds the edits: it borrows
    nothing from `source`, knows no remote and runs no hooks. Files are written byte for byte, whatever attributes say,
    with the modes 0644 or 0755, and folders with 0755, whatever the caller's umask.
    Nothing is written of a tree that may not be (SourceError).
    """
    folder = into.absolute() / ".git"
    make_repository(folder, commit)
    git = GitCommand(into.absolute(), git_in(folder, GIT_WORK_TREE=str(into.absolute())).environment)
    git.output("config", "core.bare", "false")
    git.output("config", "core.hooksPath", os.devnull)
    git.output("config", "core.logAllRefUpdates", "false")
    write_attributes(folder)
    copy_commit(source, commit, folder)
    git.output("update-ref", "--no-deref", "HEAD", commit)
    tree = write_edits(git, commit, edits, what=what)
    into.chmod(0o777 & ~UMASK)
    _write_files(git)
    if left := git.output("diff-files", "--name-only", "-z", "--ignore-submodules=all"):
        name = left.split(b"\0")[0].decode()
        raise CommandError(f"{name!r} was not written as it is in {what}", argv=("git", "checkout-index"), returncode=0)
    return tree


def _write_files(git: GitCommand) -> None:
    """Write what the index holds."""
    argv = (require_git(), "checkout-index", "--all", "--quiet", "--index")
    done = run(argv, cwd=git.folder, env=git.environment, check=False, umask=UMASK)
    if done.returncode != 0:
        refuse_full_disk(done.stderr, git.folder)
        raise failure("checkout-index", Answer(code=done.returncode, stdout=b"", stderr=done.stderr))
