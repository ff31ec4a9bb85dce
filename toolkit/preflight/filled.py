"""The command as it would be started, with the overlay's variables in front of it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.envfile import PYTHONPATH

if TYPE_CHECKING:
    from toolkit.preflight.subject import Subject

PATH = "PATH"


def started_environment(subject: Subject) -> dict[str, str]:
    """Return the whole environment that the command is started in, its own variables over the overlay's."""
    return {**subject.environ, **subject.launch.own}


def filled_variables(subject: Subject) -> dict[str, str]:
    """Return the variables that the overlay and the command set, by name; PATH has the interpreter's folder alone."""
    environ = started_environment(subject)
    names = (*subject.launch.own, PYTHONPATH, *subject.activation.variables)
    found = {name: environ[name] for name in names if name in environ}
    return {PATH: str(subject.interpreter.absolute().parent), **found}


def filled_command(variables: Mapping[str, str], argv: Sequence[str]) -> str:
    """Write a command that can be pasted into a POSIX shell: its variables, then its words, a line for each few.

    PATH is put before the one that the shell has.
    """
    first = [
        f'{PATH}={shlex.quote(value)}:"$PATH"' if name == PATH else f"{name}={shlex.quote(value)}"
        for name, value in variables.items()
    ]
    words = [shlex.quote(word) for word in argv]
    at = next((place for place, word in enumerate(argv) if word.startswith("--")), len(argv))
    lines = [*first, " ".join(words[:at]), *_with_values(words[at:])]
    return " \\\n  ".join(line for line in lines if line)


def script_command(script: Path, arguments: Sequence[str]) -> list[str]:
    """Return the words that start a run script that was given as a file."""
    return ["bash", os.fspath(script), *arguments]


def _with_values(words: Sequence[str]) -> list[str]:
    """Put what follows an option on its line."""
    lines: list[str] = []
    for word in words:
        if word.startswith("--") or not lines:
            lines.append(word)
        else:
            lines[-1] += f" {word}"
    return lines
