"""The values that a training command is read into."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

CONFIG_FILE = "job.config_file"
"""The option that names a configuration file."""

MARK = "\0"
"""Stands on both sides of what a shell would have put in place of a word's part, and nobody can know from the text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One option of the training program, by its normal name: no dashes in front, `_` for `-`, no `no-`.

    `value` is that of the last time it was given, "true" or "false" for a bare switch, None where only a shell could
    tell; `written` is how it stood there, `earlier` are the values that it replaced, first given first.
    """

    name: str
    value: str | None
    written: str
    earlier: tuple[str | None, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """A training command.

    `environ` are the variables that the training program will find: the given ones, and over them those of the command
    itself (`own`) and of its run script; `unknown` are those that are set to what nobody can know from the text, and
    `is_environ_whole` says whether a variable that is in neither is known to be unset.
    `argv` is what is started, with the variables in front of it taken off; what only a shell could tell is written
    `${NAME}` in it, and `is_exact` is false then. `program` is its first word behind prefixes such as nohup: a run
    script, torchrun, python; `starter` is the one that starts the training in the end, where a run script was read.
    `options` and `positionals` are those of the training program `target` (a module or a
    file; "" where it cannot be seen), `launcher` the options of torchrun and its like; `is_open` says that there may be
    options that cannot be seen (`"$@"` of a script alone, a list that a condition adds to).
    `script_path` is the run script that was read, `script` its variables as they stand when it starts the training,
    `passes_on` whether it hands its arguments to it; None where there is no script, or it starts nothing known.
    `config` is what the configuration file at `config_path` says, by the options' names; None where none was read.
    `sourced` are the files that shell text takes in before, which may set anything. `folder` is where it starts.
    """

    environ: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()
    is_environ_whole: bool = False
    argv: tuple[str, ...] = ()
    is_exact: bool = True
    program: str = ""
    starter: str = ""
    target: str = ""
    options: Mapping[str, Option] = field(default_factory=dict)
    positionals: tuple[str, ...] = ()
    launcher: Mapping[str, Option] = field(default_factory=dict)
    is_open: bool = False
    script_path: str = ""
    script: Mapping[str, str] = field(default_factory=dict)
    passes_on: bool | None = None
    sourced: tuple[str, ...] = ()
    config: Mapping[str, str] | None = None
    config_path: str = ""
    folder: Path | None = None

    def variable(self, name: str) -> str | None:
        """Return what the training program will find in a variable: "" if it is known to be unset, None if unknown."""
        if name in self.unknown:
            return None
        return self.environ.get(name, "" if self.is_environ_whole else None)

    def option(self, name: str) -> str | None:
        """Return an option's value: "" where it is not given, None where nobody can know it.

        That is so for what only a shell could tell, and for what is not seen where there may be more than is seen:
        options that are not in the text, or a configuration file that was not read. Where it was, it says the rest.
        """
        if name in self.options:
            return self.options[name].value
        if self.is_open:
            return None
        if self.config is None:
            return None if CONFIG_FILE in self.options else ""
        return self.config.get(name, "")


def is_known(word: str) -> bool:
    """Whether a word holds nothing that only a shell could tell."""
    return MARK not in word


def shown(word: str) -> str:
    """Write a word for people: `${NAME}` for what only a shell could tell, `$(…)` for what a command would print."""
    return re.sub(f"{MARK}([^{MARK}]*){MARK}", lambda found: f"${{{found[1]}}}" if found[1] else "$(…)", word)
