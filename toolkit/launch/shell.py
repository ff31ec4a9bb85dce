"""Follow shell text as far as it says what it does: assignments, exports, conditions; nothing is run.

What a condition decides that nobody can know from the text is followed both ways, and what differs is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolkit.launch.expansion import (
    Block,
    Shell,
    Variable,
    assign,
    assigned_value,
    expand_word,
    find_assignment,
    join_words,
)
from toolkit.launch.values import MARK, is_known, shown
from toolkit.launch.words import Text, Token, cut_text

TESTS = ("[", "[[", "test")
FUNCTION = re.compile(r"[A-Za-z_][\w-]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One command that the text starts: its words, its environment, the shell's variables, and how sure it is.

    `own` are the variables that stand in front of it, `assigned` those that the text has set, exported or not.
    """

    words: tuple[str, ...]
    own: Mapping[str, str]
    environ: Mapping[str, str]
    assigned: Mapping[str, str]
    is_sure: bool
    is_environ_whole: bool
    sourced: tuple[str, ...]
    folder: Path | None


def follow_text(
    text: str,
    *,
    environ: Mapping[str, str] | None = None,
    arguments: Sequence[str] | None = None,
    name: str = "",
    folder: Path | None = None,
) -> list[Step]:
    """Return the commands that shell text starts, in order; the last one stands for the state at the end.

    `environ` is the environment that the shell is started in, None where nobody knows it; `arguments` are its `$@`,
    None too. Raises UsageError where a quote is not closed.
    """
    shell = Shell(
        variables=dict(environ or {}), exported=set(environ or {}), name=name,
        arguments=None if arguments is None else tuple(arguments), is_environ_whole=environ is not None, folder=folder,
    )  # fmt: skip
    steps: list[Step] = []
    command: list[Token] = []
    joint = ""
    for token in [*cut_text(text), Token(operator="\n")]:
        if command and command[0].keyword == "[[" and command[-1].keyword != "]]" and token.operator != "\n":
            command.append(token if token.parts else Token(parts=(Text(text=token.operator),)))
            continue
        if not token.operator:
            command += _opened(shell, token) if not command else [token]
            continue
        if token.operator == ")" and shell.blocks and shell.blocks[-1].kind == "case":
            command = []  # It was a pattern.
            continue
        if token.operator == "(" and len(command) == 1 and FUNCTION.fullmatch(command[0].keyword):
            shell.blocks.append(Block(kind="function", is_run=None))
            command = []
            continue
        if command and not shell.has_ended:
            steps += _run(shell, command, joint)
        command = []
        joint = token.operator
    return [*steps, _step(shell, (), {})]


# --- blocks ------------------------------------------------------------------------------------------------------


def _opened(shell: Shell, token: Token) -> list[Token]:
    """Return the word that begins a command, or nothing for one that opens or closes a block."""
    word = token.keyword
    blocks = shell.blocks
    if word == "function":
        blocks.append(Block(kind="function", is_run=None))
    elif blocks and blocks[-1].kind == "function" and blocks[-1].was_run is False:
        blocks[-1].was_run = None if word == "{" else False
    elif word in ("if", "while", "until"):
        blocks.append(Block(kind=word))
    elif word in ("then", "elif", "else") and blocks:
        _branch(shell, blocks[-1], word)
    elif word == "do" and blocks:
        blocks[-1].is_run = None
    elif word == "{":
        blocks.append(Block(kind="{"))
    elif word in ("fi", "done", "esac", "}") and blocks:
        blocks.pop()
    elif word in ("for", "select", "case"):
        blocks.append(Block(kind=word, is_run=None))
        return [token]
    elif word == "!":
        shell.is_negated = not shell.is_negated
    elif word != "time":
        return [token]
    return []


def _branch(shell: Shell, block: Block, word: str) -> None:
    """Say whether the branch that begins here is run; the condition of one that is not decides nothing."""
    if word == "then":
        decided = None if shell.is_assumed else shell.last
        said = decided if block.is_run is not False else False
        block.is_run = None if said and block.was_run is None else said
        block.was_run = _either(block.was_run, block.is_run)
    elif word == "else":
        block.is_run = _opposite(block.was_run)
    else:
        block.is_run = not block.was_run


def _either(one: bool | None, other: bool | None) -> bool | None:
    return True if one or other else None if None in (one, other) else False


def _opposite(value: bool | None) -> bool | None:
    return None if value is None else not value


def _is_run(shell: Shell) -> bool | None:
    states = [block.is_run for block in shell.blocks]
    return False if False in states else None if None in states else True


# --- commands ----------------------------------------------------------------------------------------------------


def _run(shell: Shell, command: list[Token], joint: str) -> list[Step]:
    """Do what one simple command does to the shell, and return what it starts; `joint` is the operator before it."""
    state = _is_run(shell)
    if joint in ("&&", "||") and state is not False:
        needed = _follows(shell, joint)
        state = False if needed is False else None if needed is None else state
    if state is False or command[0].keyword == "case":
        return []
    if command[0].keyword in ("for", "select"):
        name = command[1].keyword if len(command) > 1 else "_"
        assign(shell, name, f"{MARK}{name}{MARK}", state)
        return []
    own: dict[str, Variable] = {}
    while command and (found := find_assignment(command[0])):
        own[found[1]] = assigned_value(shell, command[0], found)
        command = command[1:]
    if not command:
        for name, value in own.items():
            assign(shell, name, value, state)
        _end(shell, True, is_assumed=not all(is_known(join_words(value)) for value in own.values()))
        return []
    within = any(block.kind == "function" for block in shell.blocks)
    seen = replace(shell, arguments=None) if within else shell
    words = tuple(word for token in command for word in expand_word(seen, token.parts))
    ended = _built_in(shell, words, command, state)
    if ended is not None or not words or words[0] in TESTS:
        _end(shell, ended, is_assumed=False)
        return []
    _end(shell, True, is_assumed=True)
    return [_step(shell, words, {name: join_words(value) for name, value in own.items()}, state)]


def _end(shell: Shell, status: bool | None, *, is_assumed: bool) -> None:
    """Keep how a command ended; one that would be started is only assumed to end well."""
    shell.last = _opposite(status) if shell.is_negated else status
    shell.is_assumed, shell.is_negated = is_assumed, False


def _follows(shell: Shell, joint: str) -> bool | None:
    """Say whether what stands behind `&&` or `||` is run; that a start went well decides for `&&` only."""
    needed = shell.last if joint == "&&" else _opposite(shell.last)
    return None if shell.is_assumed and needed is False else needed


def _step(shell: Shell, words: tuple[str, ...], own: dict[str, str], state: bool | None = True) -> Step:
    variables = {name: join_words(value) for name, value in shell.variables.items()}
    return Step(
        words=words,
        own=own,
        environ={**{name: variables[name] for name in variables if name in shell.exported}, **own},
        assigned={name: variables[name] for name in variables if name in shell.assigned},
        is_sure=state is True,
        is_environ_whole=shell.is_environ_whole,
        sourced=shell.sourced,
        folder=shell.folder,
    )


def _built_in(shell: Shell, words: tuple[str, ...], command: list[Token], state: bool | None) -> bool | None:
    """Do what a command of the shell's own does; None for any other, and for a test that nobody can decide."""
    name, rest = (words[0], words[1:]) if words else ("", ())
    if name in TESTS:
        return _decide(tuple(word for word in rest if word not in ("]", "]]")))
    if name in ("export", "declare", "typeset", "readonly", "local"):
        _declare(shell, name, command[1:], state)
    elif name == "unset":
        for word in rest:
            if state is None and word in shell.variables:
                assign(shell, word, "", state)
            else:
                shell.variables.pop(word, None)
                shell.exported.discard(word)
    elif name in ("set", "shift"):
        _set_arguments(shell, name, rest, state)
    elif name == "cd":
        known = rest and is_known(rest[-1]) and state is True
        shell.folder = shell.folder / rest[-1] if known and shell.folder is not None else None
    elif name in ("source", "."):
        shell.is_environ_whole = False
        shell.sourced += tuple(map(shown, rest[:1]))
    elif name in ("exit", "return"):
        shell.has_ended = state is True
    elif name == "false":
        return False
    elif name not in ("", "true", ":", "echo", "printf", "ulimit", "umask", "trap", "wait", "mkdir", "sleep"):
        return None
    return True


def _set_arguments(shell: Shell, name: str, rest: tuple[str, ...], state: bool | None) -> None:
    before = shell.arguments
    if name == "shift" and before is not None:
        shell.arguments = before[int(rest[0][:9]) if rest and rest[0].isdecimal() else 1 :]
    elif name == "set":
        shell.exports_all = shell.exports_all or (bool(rest) and bool(re.match(r"-\w*a", rest[0])))
        shell.arguments = rest[rest.index("--") + 1 :] if "--" in rest else before
    if state is None and shell.arguments != before:
        shell.arguments = None


def _declare(shell: Shell, kind: str, command: list[Token], state: bool | None) -> None:
    words = [word for token in command for word in expand_word(shell, token.parts)]
    flags = "".join(word for word in words if word.startswith("-"))
    exports = (kind == "export" and "n" not in flags) or "x" in flags
    for token in command:
        if found := find_assignment(token):
            assign(shell, found[1], assigned_value(shell, token, found), state)
        for name in [found[1]] if found else [word for word in expand_word(shell, token.parts) if word.isidentifier()]:
            if exports:
                shell.exported.add(name)


def _decide(words: tuple[str, ...]) -> bool | None:
    """Return what a test says, where it can be known."""
    if words[:1] == ("!",):
        return _opposite(_decide(words[1:]))
    if not all(map(is_known, words)) or len(words) > 3:
        return None
    if len(words) == 1:
        return bool(words[0])
    if len(words) == 2 and words[0] in ("-n", "-z"):
        return bool(words[1]) is (words[0] == "-n")
    if len(words) == 3 and words[1] in ("=", "==", "!="):
        return (words[0] == words[2]) is (words[1] != "!=")
    return None
