"""The only place that talks to git, through GitPython, and never in anybody else's repository or configuration."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from toolkit.errors import CommandError
from toolkit.files import remove_tree
from toolkit.process import describe_code, last_lines

if TYPE_CHECKING:
    from git import Git

CHECKING = re.compile(r"Checking patch .*\.\.\.$")
OFFSET = re.compile(r"Hunk #(\d+) succeeded at (\d+) \(offset (-?\d+) lines?\)\.$")

RAW_FILES = "* -text !eol !ident !filter !working-tree-encoding !whitespace\n"
"""Attributes that outrank every `.gitattributes` in the tree, so that no byte is converted on its way in or out."""


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
        executable = _require_git()
        remove_tree(self.folder)
        for place in (self.tree, self.folder / "home"):
            place.mkdir(parents=True)
        self._git = _command_interface(self.tree)
        self._prefix = [*_only_this_environment(isolated_environment(self.folder, os.environ)), executable]
        try:
            self._run("init", "--quiet", "--template=")
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

    def _apply(self, diff: bytes, *options: str) -> Attempt:
        source = self.folder / "input.diff"
        source.write_bytes(diff)
        code, stderr = self._execute("apply", "--verbose", "--whitespace=nowarn", "-p1", *options, str(source))
        if code not in (0, 1, 128):
            raise self._failure("apply", code, stderr)
        messages = tuple(line for line in stderr.splitlines() if line.startswith(("error:", "fatal:")))
        return Attempt(fits=code == 0, offsets=_offsets(stderr), messages=messages)

    def _run(self, *arguments: str) -> None:
        code, stderr = self._execute(*arguments)
        if code != 0:
            raise self._failure(arguments[0], code, stderr)

    def _execute(self, *arguments: str) -> tuple[int, str]:
        code, _, stderr = self._git.execute(
            [*self._prefix, *arguments], with_extended_output=True, with_exceptions=False
        )
        return code, str(stderr)

    def _failure(self, command: str, code: int, stderr: str) -> CommandError:
        return CommandError(
            f"`git {command}` ended with {describe_code(code)}",
            argv=("git", command),
            returncode=code,
            details=last_lines(stderr),
        )


def git_version() -> str:
    """Return git's version, such as `2.39.5`."""
    executable = _require_git()
    printed = str(_command_interface(Path("/")).execute([*_only_this_environment({}), executable, "--version"]))
    return printed.removeprefix("git version ").split(" ")[0]


def isolated_environment(folder: Path, caller: Mapping[str, str]) -> dict[str, str]:
    """Compose the whole environment of a git child that works in a workspace at `folder`."""
    home = str(folder / "home")
    return {
        "PATH": caller.get("PATH", os.defpath),
        "HOME": home,
        "XDG_CONFIG_HOME": home,
        "LC_ALL": "C",
        "GIT_DIR": str(folder / "git"),
        "GIT_WORK_TREE": str(folder / "tree"),
        "GIT_CEILING_DIRECTORIES": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


def _require_git() -> str:
    executable = shutil.which("git")
    if executable is None:
        raise CommandError(
            "git cannot be started: there is none on PATH",
            argv=("git",),
            returncode=None,
            hint="install git (for example `apt-get install git`) and try again",
        )
    return executable


def _command_interface(folder: Path) -> Git:
    # GitPython runs git when it is imported and raises ImportError where that fails.
    try:
        from git import Git
    except ImportError as fault:
        raise CommandError(
            f"git cannot be used: {str(fault).splitlines()[0]}",
            argv=("git",),
            returncode=None,
            hint="see that `git --version` works, and unset GIT_PYTHON_GIT_EXECUTABLE and GIT_PYTHON_REFRESH",
        ) from fault
    return Git(folder)


def _only_this_environment(variables: Mapping[str, str]) -> list[str]:
    """Return the words that start a child with just these variables.

    GitPython always adds its own process's environment to what it is given, and git takes an empty GIT_INDEX_FILE or
    GIT_CONFIG_COUNT for a value, so that only `env -i` can keep a caller's variables out.
    """
    return ["env", "-i", *(f"{name}={value}" for name, value in variables.items())]


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
