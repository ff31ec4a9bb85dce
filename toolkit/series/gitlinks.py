"""Submodules as a patch shows them: a file of mode 160000 whose only line is the commit, which git would not apply."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from toolkit.series.diff import FileDiff

GITLINK_MODE = "160000"
SUBPROJECT = re.compile(rb"Subproject commit (?!0+\n)([0-9a-f]{40}|[0-9a-f]{64})\n$")
LOGGED = re.compile(rb"^Submodule .* [0-9a-f]{7,}\.{2,3}[0-9a-f]{7,}", re.MULTILINE)
"""How git writes a submodule's move where `diff.submodule` is `log` or `diff`: outside of any diff."""

LINES_OF_KIND = {"modified": (1, 1), "added": (0, 1), "deleted": (1, 0)}
"""How many `Subproject commit` lines there are before and after."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GitlinkMove:
    """The commit that a patch expects of a submodule and the one that it leaves, None where there is no submodule."""

    path: str
    old: str | None
    new: str | None


def is_gitlink(file: FileDiff) -> bool:
    """Say whether a section of a diff is about a submodule itself, not about a file."""
    return GITLINK_MODE in (file.old_mode, file.new_mode)


def read_move(file: FileDiff) -> GitlinkMove:
    """Return what a patch does to a submodule; ValueError says what is not as git writes it."""
    before, after = (file.hunks[0].before, file.hunks[0].after) if len(file.hunks) == 1 else ((), ())
    found = [SUBPROJECT.match(line) for line in (*before, *after)]
    commits = [match[1].decode("ascii") for match in found if match]
    if (len(before), len(after)) != LINES_OF_KIND.get(file.kind) or len(commits) < len(found):
        raise ValueError(f"does not say which commits submodule {file.path} is moved between, as git does")
    return GitlinkMove(path=file.path, old=commits[0] if before else None, new=commits[-1] if after else None)


def gitlink_faults(file: FileDiff) -> Iterator[str]:
    """Say what is wrong with a patch's change to a submodule."""
    if any(mode not in ("", GITLINK_MODE) for mode in (file.old_mode, file.new_mode)):
        yield f"makes {file.path} a submodule of a file, or a file of a submodule; remove it in a patch of its own"
    elif file.path != file.old_path:
        yield f"renames or copies submodule {file.old_path}; export with `git format-patch --no-renames`"
    else:
        yield from _commit_faults(file)


def is_logged(raw: bytes) -> bool:
    """Say whether a patch file has a submodule's move in a form that no tool can apply."""
    return LOGGED.search(raw.partition(b"\n---\n")[2]) is not None


def _commit_faults(file: FileDiff) -> Iterator[str]:
    try:
        move = read_move(file)
    except ValueError as fault:
        yield str(fault)
        return
    if move.old == move.new:
        yield f"names {file.path} without changing it"
    for blob, commit in ((file.old_blob, move.old), (file.new_blob, move.new)):
        if not (commit or "0" * len(blob)).startswith(blob):
            yield f"names submodule {file.path} at {commit or 'no commit'}, but at {blob} in its index line"
