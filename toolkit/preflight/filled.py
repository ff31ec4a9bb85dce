"""The command as it would be started, with the overlay's variables in front of it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from toolkit.envfile import PYTHONPATH

if TYPE_CHECKING:
    from toolkit.preflight.subject import Subject

PATH = "PATH"


def started_environment(subject: Subject) -> dict[str, str]:
    """Return the whole environment that the command is started in, its own variables over the overlay's."""
    return {**subject.environ, **subject.own}


def filled_variables(subject: Subject) -> dict[str, str]:
    """Return the variables that the overlay and the command set, by name; PATH has the interpreter's folder alone."""
    environ = started_environment(subject)
    names = (*subject.own, PYTHONPATH, *subject.activation.variables)
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
    return " \\\n  ".join([*first, *_with_values(argv)])


def _with_values(words: Sequence[str]) -> list[str]:
    """Quote words, the program and each option on a line of its own with what follows it."""
    lines: list[str] = []
    for word in words:
        if word.startswith("--") or not lines:
            lines.append(shlex.quote(word))
        else:
            lines[-1] += f" {shlex.quote(word)}"
    return lines
