"""Starting git: with an environment that is composed, and with nobody's configuration."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import CommandError, StorageError
from toolkit.process import describe_code, last_lines

if TYPE_CHECKING:
    from git import Git

RAW_FILES = "* -text !eol !ident !filter !working-tree-encoding !whitespace\n"
"""Attributes that outrank every `.gitattributes` in the tree, so that no byte is converted on its way in or out."""

STOPPED = re.compile(r"(?:unable|failed) to (?:write|create)|could not (?:set|write)|cannot write|write error")
"""What git says, and no more, where it cannot write a file."""

NO_SPACE = ("No space left on device", "Disk quota exceeded", "Read-only file system")
"""What git says where the file system refuses."""

WRITTEN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "TMPDIR")
"""The variables that name where git writes, beside the folder that it runs in."""

NEXT_TO_NOTHING = 1 << 16
"""A file system with fewer bytes free is full."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a git command gave; `stderr` is text, undecodable bytes replaced."""

    code: int
    stdout: bytes
    stderr: str


class GitCommand:
    """Runs git commands that are quick and stay on this machine, in one folder with one whole environment."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = dict(environment)

    def attempt(self, *arguments: str, stdin: bytes = b"") -> Answer:
        """Run a command to its end, whatever that is."""
        argv = [*_only_this_environment(self.environment), require_git(), *arguments]
        with tempfile.TemporaryFile() as source:
            source.write(stdin)
            source.seek(0)
            code, stdout, stderr = _command_interface(self.folder).execute(
                argv, istream=source, with_extended_output=True, with_exceptions=False,
                stdout_as_string=False, strip_newline_in_stdout=False,
            )  # fmt: skip
        return Answer(code=code, stdout=bytes(stdout), stderr=str(stderr))

    def output(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run a command and return what it printed; CommandError where it fails, StorageError on a full disk."""
        answer = self.attempt(*arguments, stdin=stdin)
        if answer.code != 0:
            refuse_full_disk(answer.stderr, self.folder, *_written_places(self.environment))
            raise failure(arguments[0], answer)
        return answer.stdout


def failure(command: str, answer: Answer) -> CommandError:
    """Make the error for a command that failed."""
    return CommandError(
        f"`git {command}` ended with {describe_code(answer.code)}",
        argv=("git", command),
        returncode=answer.code,
        details=last_lines(answer.stderr),
    )


def refuse_full_disk(stderr: str, folder: Path, *others: Path) -> None:
    """Raise StorageError where the file system refused what git had to write.

    Mostly git does not say why. Then the disks are looked at: of `folder`, `others` and of temporary files.
    """
    lines = [line.strip() for line in stderr.splitlines()]
    full = folder
    why = next((line for line in lines if any(reason in line for reason in NO_SPACE)), None)
    if why is None and (stopped := next((line for line in lines if STOPPED.search(line)), None)):
        for place in (folder, *others, Path(tempfile.gettempdir())):
            if _is_full(place):
                full, why = place, stopped
                break
    if why is not None:
        raise StorageError(
            f"cannot write: {full} is full or read-only ({why})",
            hint="free or choose another place with --store; nothing half-made was left under a final name",
        )


def _is_full(place: Path) -> bool:
    while not place.exists():  # Its making may be what failed.
        place = place.parent
    return shutil.disk_usage(place).free < NEXT_TO_NOTHING


def _written_places(environment: Mapping[str, str]) -> list[Path]:
    return [Path(environment[name]) for name in WRITTEN if environment.get(name, "").startswith("/")]


def git_version() -> str:
    """Return git's version, such as `2.39.5`."""
    printed = GitCommand(Path("/"), {}).output("--version").decode()
    return printed.strip().removeprefix("git version ").split(" ")[0]


def base_environment(caller: Mapping[str, str], home: Path) -> dict[str, str]:
    """Compose what every git child gets: no configuration, attributes or prompts but its repository's own.

    `home` need not exist: nobody's settings are there.
    """
    return {
        "PATH": caller.get("PATH", os.defpath),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


def require_git() -> str:
    """Return git's executable; CommandError says what to install where there is none."""
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
