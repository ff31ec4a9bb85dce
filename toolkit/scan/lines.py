"""What one line of generated code says: which names it binds, what it launches, calls and compiles.

Generated files repeat the same few hundred lines, numbers aside. So a line is parsed once with its numbers made equal,
and what it says is kept by the places of its words: those of the real line are then looked up there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from toolkit.scan.facts import NO_STATEMENT, NOTHING, Bind, Call, Compiled, Facts, Launch, Line
from toolkit.scan.sources import called_name, dotted, find_binds, operator_of, source_of
from toolkit.scan.trees import parse
from toolkit.scan.values import UnreadableError

WORDS = re.compile(r"\w+")
ASCII_WORDS = re.compile(r"\w+", re.ASCII)
"""Finds the same where a line is ASCII, three times as fast."""

MOST_CHARACTERS = 1 << 18
"""How long a statement is parsed: `ast` takes some hundred bytes for each character of a long list."""

MOST_LINES = 50_000
"""How many different lines are remembered: beyond that all are forgotten, so that memory stays flat."""

EXTERN = "extern_kernels"
"""What a wrapper calls the library calls that stand in a kernel's stead."""

UNUSUAL = re.compile(r"[\t\f\v\r\0]|\\$|\b0[bBoO]")
"""What generated code does not have: odd white space, lines that go on, and numbers whose digits are not all alike."""

PLAIN_HEADER = re.compile(r"def \w+\([\w, *=]*\):|class \w+(\([\w., ]*\))?:|(else|try|finally):")
"""Heads of blocks in which nothing is called."""

_LINES: dict[str, Line] = {}
_FACTS: dict[str, Facts] = {}

_DIGITS = str.maketrans("23456789", "11111111")
_NAMES = re.compile(r"\b[A-Za-z_]+\d\w*", re.ASCII)
_NUMBERS = re.compile(r"\b[1-9]\d*", re.ASCII)


def equal_digits(text: str) -> str:
    """Make digits equal without a change to what is Python and what is not: a number that begins with 0 still does."""
    return text.translate(_DIGITS)


def look_up(lines: Sequence[str]) -> list[Line]:
    """Return what lines with equal digits say; NO_STATEMENT for one that is no statement by itself."""
    found = [known for known in map(_LINES.get, lines) if known is not None]
    if len(found) < len(lines):
        if len(_LINES) >= MOST_LINES:
            _LINES.clear()
        for line in lines:
            if line not in _LINES:
                _LINES[line] = _read(line)
        found = [_LINES[line] for line in lines]
    return found


def words_of(line: str) -> list[str]:
    """Return the words of a line, as their places count them."""
    return (ASCII_WORDS if line.isascii() else WORDS).findall(line)


def _read(line: str) -> Line:
    text = line.strip(" ")
    if not text or text.startswith("#"):
        return Line("", NOTHING)
    if len(text) > MOST_CHARACTERS:
        raise UnreadableError(f"a statement of {len(text)} characters: at most {MOST_CHARACTERS} are parsed")
    indent = line[: len(line) - len(line.lstrip(" "))]
    try:
        if UNUSUAL.search(line):
            return NO_STATEMENT
        if text.startswith("@"):
            return Line(f"{indent}{text}", _facts(text[1:]))
        if text.endswith(":"):
            return Line(f"{indent}{text}", _header_facts(text))
        return Line(f"{indent}pass", _facts(text))
    except SyntaxError:
        return NO_STATEMENT


def _header_facts(text: str) -> Facts:
    """Return what the head of a block says; `elif` counts as `if`. What is rare is left to the parser."""
    if PLAIN_HEADER.fullmatch(text):
        return NOTHING
    if text.startswith(("def ", "async ", "class ", "except")):
        raise SyntaxError("not as generated code is written")
    return _facts(f"{text.removeprefix('el')} pass")


def _facts(text: str) -> Facts:
    same = _NUMBERS.sub("1", _NAMES.sub("x1", text))
    known = _FACTS.get(same)
    if known is None:
        if len(_FACTS) >= MOST_LINES:
            _FACTS.clear()
        known = _FACTS[same] = find_facts(same)
    return known


def find_facts(text: str) -> Facts:
    """Parse a line and find what it says."""
    tree = parse(text)
    places = {match.start(): index for index, match in enumerate(WORDS.finditer(text))}
    reader = _Reader(text, places)
    binds = tuple(bind for statement in tree.body for bind in reader.binds(statement))
    found = Facts(
        binds,
        tuple(bind for bind in binds if bind.source.word >= 0 or bind.source.others),
        tuple(launch for node in ast.walk(tree) for launch in reader.launches(node)),
        tuple(call for node in ast.walk(tree) for call in reader.calls(node)),
        tuple(made for statement in tree.body for made in reader.compiled(statement)),
    )
    return NOTHING if found == NOTHING else found


class _Reader:
    """Finds words by the columns of a parsed line."""

    def __init__(self, text: str, places: dict[int, int]) -> None:
        self._raw = None if text.isascii() else text.encode("utf-8")
        self._places = places

    def binds(self, statement: ast.stmt) -> Iterator[Bind]:
        """Find the names that a statement binds."""
        for target, source in find_binds(statement, self._word):
            yield Bind(self._word(target), source)

    def launches(self, node: ast.AST) -> Iterator[Launch]:
        """Find `kernel.run(…)`."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name() as kernel, attr="run"), args=arguments):
                yield Launch(
                    self._word(kernel), tuple(source_of(one, self._word) for one in arguments), _is_plain(node)
                )

    def calls(self, node: ast.AST) -> Iterator[Call]:
        """Find calls of operators and of extern kernels."""
        names = dotted(node.func) if isinstance(node, ast.Call) else []
        if names and (names[0][0] == EXTERN or operator_of([name for name, _ in names])):
            yield Call(self._word(names[0][1]), len(names), called_name([name for name, _ in names], plain=True))

    def compiled(self, statement: ast.stmt) -> Iterator[Compiled]:
        """Find `kernel = async_compile.method(…)`."""
        match statement:
            case ast.Assign(targets=[ast.Name() as name], value=ast.Call(func=func)):
                word = self._word(name)
            case ast.Expr(value=ast.Call(func=func)):
                word = -1
            case _:
                return
        names = [one for one, _ in dotted(func)]
        if len(names) == 2 and names[0] == "async_compile":
            yield Compiled(names[1], word)

    def _word(self, node: ast.expr) -> int:
        column = node.col_offset if self._raw is None else len(self._raw[: node.col_offset].decode("utf-8"))
        return self._places.get(column, -1)


def _is_plain(call: ast.Call) -> bool:
    """Whether a launch passes its tensors one by one, and by name the stream alone."""
    return all(one.arg == "stream" for one in call.keywords) and not any(
        isinstance(one, ast.Starred) for one in call.args
    )
