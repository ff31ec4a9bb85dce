"""What git knows of the person at the keyboard: the one look at a user's own configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from toolkit.git.command import GitCommand

OF_A_REPOSITORY = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX",
)  # fmt: skip
"""What says which repository is meant: a caller's own, inside a hook for one."""


def person_environment(caller: Mapping[str, str]) -> dict[str, str]:
    """Return the caller's environment, for git in a work tree of ours: his settings, not his repository."""
    return {name: value for name, value in caller.items() if name not in OF_A_REPOSITORY}


def author_of(folder: Path, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Return who commits in a folder, as `Name <address>`, and the time in git's raw form; None where git is not told.

    A name that git would make up from the user's account and machine is none.
    """
    git = GitCommand(folder, person_environment(environ))
    answer = git.attempt("-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT")
    if answer.code != 0:
        return None
    author, _, date = answer.stdout.decode("utf-8", "replace").strip().rpartition("> ")
    return f"{author}>", date


def editor_of(folder: Path, environ: Mapping[str, str]) -> str | None:
    """Return the shell command that git edits messages with there, None where nobody has chosen one."""
    answer = GitCommand(folder, person_environment(environ)).attempt("var", "GIT_EDITOR")
    return answer.stdout.decode("utf-8", "replace").strip() or None if answer.code == 0 else None
