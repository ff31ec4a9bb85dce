"""The state of a shell as its text is followed: what its variables hold, and what words become of their parts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from toolkit.launch.values import MARK
from toolkit.launch.words import Expansion, Part, Text, Token

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=")
SET_BY_SHELL = {
    "PWD", "OLDPWD", "RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "EPOCHREALTIME", "HOSTNAME", "HOSTTYPE", "UID",
    "EUID", "PPID", "BASHPID", "BASH_SOURCE", "BASH", "BASH_VERSION", "LINENO", "MACHTYPE", "OSTYPE", "SHLVL", "IFS",
    "FUNCNAME",
}  # fmt: skip
"""Variables that are set, and to what, only the shell that runs the text knows."""

Variable = str | tuple[str, ...]
"""What a shell variable holds: text, or the words of an array."""


@dataclass(kw_only=True, slots=True)
class Block:
    """An open `if`, loop, case or group: whether what stands in it now is run, and whether a branch was."""

    kind: str
    is_run: bool | None = True
    was_run: bool | None = False


@dataclass(kw_only=True, slots=True)
class Shell:
    """The state of the shell at one place of the text."""

    variables: dict[str, Variable]
    exported: set[str]
    arguments: tuple[str, ...] | None
    name: str
    is_environ_whole: bool
    folder: Path | None
    assigned: set[str] = field(default_factory=set)
    sourced: tuple[str, ...] = ()
    exports_all: bool = False
    has_ended: bool = False
    last: bool | None = True
    is_assumed: bool = False
    is_negated: bool = False
    blocks: list[Block] = field(default_factory=list)


def find_assignment(token: Token) -> re.Match[str] | None:
    first = token.parts[0] if token.parts else None
    return ASSIGNMENT.match(first.text) if isinstance(first, Text) and not first.quoted else None


def assigned_value(shell: Shell, token: Token, found: re.Match[str]) -> Variable:
    name, adds = found[1], bool(found[2])
    before = shell.variables.get(name, "")
    if token.array is not None:
        items = tuple(word for item in token.array for word in expand_word(shell, item.parts))
        return (*(before if isinstance(before, tuple) else (before,) * bool(before)), *items) if adds else items
    first = token.parts[0]
    assert isinstance(first, Text)
    text = _text(shell, (Text(text=first.text[found.end() :]), *token.parts[1:]))
    return join_words(before) + text if adds else text


def assign(shell: Shell, name: str, value: Variable, state: bool | None) -> None:
    before = shell.variables.get(name)
    if state is None and before != value:
        value = _doubted(name, before, value)
    shell.variables[name] = value
    shell.assigned.add(name)
    if shell.exports_all:
        shell.exported.add(name)


def _doubted(name: str, before: Variable | None, value: Variable) -> Variable:
    """Return what a variable may hold now; what it held before stays known where it may only have been added to."""
    mark = f"{MARK}{name}{MARK}"
    if isinstance(before, tuple) and isinstance(value, tuple) and value[: len(before)] == before:
        return (*before, mark)
    if isinstance(before, str) and isinstance(value, str) and before and value.startswith(before):
        return f"{before} {mark}"
    return mark


def join_words(value: Variable) -> str:
    return value if isinstance(value, str) else " ".join(value)


# --- expansion ---------------------------------------------------------------------------------------------------


def expand_word(shell: Shell, parts: tuple[Part, ...]) -> list[str]:
    """Return the words that one word of the text becomes."""
    words: list[str] = []
    current: str | None = None
    for part in _at_home(shell, parts):
        if isinstance(part, Text):
            current = (current or "") + part.text
            continue
        pieces = _pieces(shell, part)
        if not pieces:
            continue
        pieces[0] = (current or "") + pieces[0]
        words += pieces[:-1]
        current = pieces[-1]
    return words if current is None else [*words, current]


def _pieces(shell: Shell, part: Expansion) -> list[str]:
    """Return the words that an expansion becomes; the first and last of them join on to what stands beside it."""
    values = _values(shell, part)
    if part.quoted:
        return [_value(shell, part)] if values is None else list(values)
    if values is not None:
        return " ".join(values).split()
    value, chosen = _value_or_word(shell, part)
    return _split(value) if chosen is None else _default_words(shell, chosen)


def _default_words(shell: Shell, parts: tuple[Part, ...]) -> list[str]:
    """Return the words of the default behind `:-`: it is split at its blanks that are not quoted."""
    groups: list[list[Part]] = [[]]
    for part in parts:
        if not isinstance(part, Text) or part.quoted:
            groups[-1].append(part)
            continue
        first, *others = re.split(r"\s+", part.text)
        groups[-1] += [Text(text=first)] * bool(first)
        groups += [[Text(text=one)] * bool(one) for one in others]
    return [word for group in groups for word in expand_word(shell, tuple(group))]


def _split(value: str) -> list[str]:
    """Split at blanks, and keep what is unknown in one piece."""
    return re.findall(rf"(?:{MARK}[^{MARK}]*{MARK}|\S)+", value)


def _text(shell: Shell, parts: tuple[Part, ...]) -> str:
    """Return what a word becomes where nothing is split, as behind `NAME=`."""
    return "".join(part.text if isinstance(part, Text) else _value(shell, part) for part in _at_home(shell, parts))


def _at_home(shell: Shell, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Put the home folder, where it is known, in a leading tilde's place."""
    first, home = parts[0] if parts else None, shell.variables.get("HOME")
    if isinstance(first, Text) and not first.quoted and isinstance(home, str) and re.match(r"~(/|$)", first.text):
        return (Text(text=home + first.text[1:], quoted=True), *parts[1:])
    return parts


def _values(shell: Shell, part: Expansion) -> tuple[str, ...] | None:
    """Return the words of `$@` or of an array; None for any other expansion."""
    if part.name in ("@", "*") and not part.operator:
        return (f"{MARK}@{MARK}",) if shell.arguments is None else shell.arguments
    if part.operator in ("[@]", "[*]"):
        held = shell.variables.get(part.name)
        if held is None:
            return () if shell.is_environ_whole else (f"{MARK}{part.name}{MARK}",)
        return held if isinstance(held, tuple) else (held,) * bool(held)
    return None


def _value(shell: Shell, part: Expansion) -> str:
    """Return what an expansion stands for, marked where nobody can know."""
    value, chosen = _value_or_word(shell, part)
    return value if chosen is None else _text(shell, chosen)


def _value_or_word(shell: Shell, part: Expansion) -> tuple[str, tuple[Part, ...] | None]:
    """Return what an expansion stands for, or the word behind its operator where that takes its place."""
    values = _values(shell, part)
    if values is not None:
        return " ".join(values), None
    unknown = f"{MARK}{part.name}{MARK}"
    if not part.name or part.operator == "?" or part.operator.startswith("["):
        return unknown, None
    held = _held(shell, part.name)
    kind = part.operator.lstrip(":")
    is_set = held is not None and not (part.operator.startswith(":") and held == "")
    if kind == "+" and is_set:
        return "", part.word
    if kind == "+":
        return "" if shell.is_environ_whole or held == "" else unknown, None
    if is_set and held is not None:
        return held, None
    if kind == "=":
        shell.variables[part.name] = _text(shell, part.word)
    if kind in ("-", "="):
        return "", part.word
    is_unset = shell.is_environ_whole and not part.name.isdecimal()
    return "" if held == "" or (is_unset and kind == "") else unknown, None


def _held(shell: Shell, name: str) -> str | None:
    """Return what a variable or argument holds; None for one that is not set, as far as is known."""
    if name.isdecimal() and (shell.arguments is not None or name == "0"):
        words = (shell.name, *(shell.arguments or ()))
        return words[int(name)] if len(name) < 10 and int(name) < len(words) else ""
    if name == "#" and shell.arguments is not None:
        return str(len(shell.arguments))
    if not name.isidentifier():
        return None if name.isdecimal() else f"{MARK}{name}{MARK}"
    held = shell.variables.get(name)
    if held is None and name == "PWD" and shell.folder is not None and shell.folder.is_absolute():
        return str(shell.folder)
    if held is None and name in SET_BY_SHELL:
        return f"{MARK}{name}{MARK}"
    return None if held is None else join_words(held)
