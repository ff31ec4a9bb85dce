"""A throwaway repository to try diffs in: strict, and whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from toolkit.files import remove_tree
from toolkit.git.command import RAW_FILES, Answer, GitCommand, base_environment, failure, require_git

CHECKING = re.compile(r"Checking patch .*\.\.\.$")
REFUSED = re.compile(r"error: (\d+): ")
"""How git begins what it says of a file that `fitting_hunks` has named by a number."""

OFFSET = re.compile(r"Hunk #(\d+) succeeded at (\d+) \(offset (-?\d+) lines?\)\.$")


@dataclass(frozen=True, kw_only=True, slots=True)
class HunkOffset:
    """One hunk that fits, but not at its own line. `file` counts the files of the diff from 0, `hunk` from 1."""

    file: int
    hunk: int
    line: int
    offset: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """What `git apply` made of a diff. `messages` are its error lines, empty where it fits."""

    fits: bool
    offsets: tuple[HunkOffset, ...]
    messages: tuple[str, ...]


class Workspace:
    """A throwaway repository of our own in `folder`: files go below `tree`, git works on them there.

    Entering empties the folder (a killed run may have left anything in it) and leaving removes it. Children see none
    of the caller's GIT_* variables, no system or user configuration, no templates, hooks or attributes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.tree = self.folder / "tree"

    def __enter__(self) -> Workspace:
        require_git()
        remove_tree(self.folder)
        for place in (self.tree, self.folder / "home"):
            place.mkdir(parents=True)
        self._git = GitCommand(self.tree, isolated_environment(self.folder, os.environ))
        try:
            self._git.output("init", "--quiet", "--template=")
            attributes = self.folder / "git" / "info" / "attributes"
            attributes.parent.mkdir(parents=True, exist_ok=True)
            attributes.write_text(RAW_FILES, encoding="ascii")
        except BaseException:
            remove_tree(self.folder)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        remove_tree(self.folder)

    def check(self, diff: bytes, *, reverse: bool = False) -> Attempt:
        """Say whether a diff fits the tree, or with `reverse` whether it is in there already; changes nothing."""
        return self._apply(diff, "--check", *(["--reverse"] if reverse else []))

    def apply(self, diff: bytes) -> Attempt:
        """Apply a diff to the tree: exact context, all of it or nothing."""
        return self._apply(diff)

    def fitting_hunks(self, hunks: Sequence[tuple[str, bytes]], *, reverse: bool = False) -> frozenset[int]:
        """Say which hunks fit the files at their paths, each as if it were the only one, as their numbers from 0.

        git is asked once for all of them: each is put to a link of its file that has the hunk's number for a name.
        """
        if not hunks:
            return frozenset()
        asked = self.folder / "asked"
        remove_tree(asked)
        asked.mkdir()
        for number, (path, _) in enumerate(hunks):
            os.link(self.tree / path, asked / str(number))
        diff = b"".join(_numbered(number, hunk) for number, (_, hunk) in enumerate(hunks))
        answer = self._ask(
            GitCommand(asked, self._git.environment | {"GIT_WORK_TREE": str(asked)}),
            diff,
            "--check",
            *(["--reverse"] if reverse else []),
        )
        refused = {int(found[1]) for line in answer.stderr.splitlines() if (found := REFUSED.match(line))}
        if (answer.code == 0) == bool(refused):
            raise failure("apply", answer)
        return frozenset(range(len(hunks))) - refused

    def _apply(self, diff: bytes, *options: str) -> Attempt:
        answer = self._ask(self._git, diff, "--verbose", *options)
        messages = tuple(line for line in answer.stderr.splitlines() if line.startswith(("error:", "fatal:")))
        return Attempt(fits=answer.code == 0, offsets=_offsets(answer.stderr), messages=messages)

    def _ask(self, git: GitCommand, diff: bytes, *options: str) -> Answer:
        source = self.folder / "input.diff"
        source.write_bytes(diff)
        answer = git.attempt("apply", "--whitespace=nowarn", "-p1", *options, str(source))
        if answer.code not in (0, 1, 128):
            raise failure("apply", answer)
        return answer


def isolated_environment(folder: Path, caller: Mapping[str, str]) -> dict[str, str]:
    """Compose the whole environment of a git child that works in a workspace at `folder`."""
    return base_environment(caller, folder / "home") | {
        "GIT_DIR": str(folder / "git"),
        "GIT_WORK_TREE": str(folder / "tree"),
        "GIT_CEILING_DIRECTORIES": str(folder),
    }


def _numbered(number: int, hunk: bytes) -> bytes:
    return b"diff --git a/%d b/%d\n--- a/%d\n+++ b/%d\n" % ((number,) * 4) + hunk


def _offsets(stderr: str) -> tuple[HunkOffset, ...]:
    found = []
    file = -1
    for line in stderr.splitlines():
        if CHECKING.match(line):
            file += 1
        elif moved := OFFSET.match(line):
            hunk, at, offset = (int(number) for number in moved.groups())
            found.append(HunkOffset(file=file, hunk=hunk, line=at, offset=offset))
    return tuple(found)
