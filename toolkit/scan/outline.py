"""A generated file as lines, one for each statement, with the long strings taken out.

`outline_of` does it by the line where all of a file is of the known form, which it makes sure of: each line must be a
statement by itself, what stands over several lines must be a string or a call that is known, and the blocks must fit.
Whatever is not of that form is parsed whole by `ast`, which takes ten times as long and gives the same lines.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from toolkit.scan.facts import NO_STATEMENT, NOTHING, Facts, Line
from toolkit.scan.lines import equal_digits, find_facts, look_up
from toolkit.scan.trees import parse

WHOLE_STRINGS = re.compile(r"""(?:[^'"#\\\n]|'[^'\\\n]*'|"[^"\\\n]*")*""")
"""A piece of a line in which each string is whole, and no comment: what may stand before a string in triple quotes."""

KERNEL_INFO = re.compile(
    r"\n    k\.set_kernel_info\(\n {8}'[^'\\\n]*',(?:  # \w+)?\n {8}'[^'\\\n]*',(?:  # \w+)?\n    \)\n"
)
KERNEL_INFO_LINES = "\n    pass\n\n\n\n"

MOST_WHOLE = 2 << 20
"""How many characters are parsed whole: `ast` takes some hundred bytes for each."""

MOST_WORDS = 200_000
"""How many words are parsed whole."""

WORD = re.compile(r"\w+|[-+~!(\[{]")

MOST_SHAPES = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Outline:
    """A file's statements: their text with indentation, and the number of each one's line in the file.

    `facts` is what lines say, those that say something, by index; `strings` are the long strings that were taken out,
    each with the index of the line that it stands in.
    """

    lines: Sequence[str]
    facts: Sequence[tuple[int, Facts]]
    numbers: Sequence[int]
    strings: Sequence[tuple[int, str]]


class _UnusualError(Exception):
    """A file is not of the known form."""


_SHAPES: set[str] = set()


def outline_of(text: str) -> Outline:
    """Return a file's outline; raise SyntaxError where it is not Python."""
    try:
        return _by_lines(text)
    except (_UnusualError, SyntaxError):
        if len(text) > MOST_WHOLE:
            raise SyntaxError(
                f"not of the form of generated code, and too long to be parsed: {len(text)} characters"
            ) from None
        _require_few_words(text)
        return outline_by_parsing(text)


def _require_few_words(text: str) -> None:
    """Raise SyntaxError for a text that is a long list of numbers, or the like: each word is an object of `ast`."""
    count = sum(1 for _ in WORD.finditer(text))
    if count > MOST_WORDS:
        raise SyntaxError(f"not of the form of generated code, and too long to be parsed: {count} words")


# --- by the line -------------------------------------------------------------------------------------------------


def _by_lines(text: str) -> Outline:
    outer, strings, cuts = _take_strings(text)
    lines = KERNEL_INFO.sub(KERNEL_INFO_LINES, outer).split("\n")
    found = look_up(equal_digits("\n".join(lines)).split("\n"))
    if NO_STATEMENT in found:
        _join_lines(lines, [index for index, line in enumerate(found) if line is NO_STATEMENT])
        found = look_up(equal_digits("\n".join(lines)).split("\n"))
        if NO_STATEMENT in found:
            raise _UnusualError
    _require_blocks([line.shape for line in found])
    facts = [(index, line.facts) for index, line in enumerate(found) if line.facts is not NOTHING]
    return Outline(lines=lines, facts=facts, numbers=_numbers(len(lines), cuts), strings=strings)


def _join_lines(lines: list[str], beginnings: list[int]) -> None:
    """Put statements that stand over several lines, inside brackets, into their first ones; the others become blank."""
    done = 0
    for start in beginnings:
        if start < done:
            continue
        depth, end = _depth(lines[start]), start + 1
        while depth > 0 and end < len(lines):
            depth += _depth(lines[end])
            end += 1
        if not all(map(WHOLE_STRINGS.fullmatch, lines[start:end])):
            raise _UnusualError
        lines[start:end] = [" ".join(lines[start:end]), *[""] * (end - start - 1)]
        done = end


def _depth(line: str) -> int:
    """Return how many brackets a line leaves open; those in strings count too, and then the parser refuses the line."""
    return sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))


def _take_strings(text: str) -> tuple[str, list[tuple[int, str]], list[tuple[int, int]]]:
    """Take the strings in triple quotes out; return the rest, the strings, and after which line how many are gone."""
    pieces: list[str] = []
    strings: list[tuple[int, str]] = []
    cuts: list[tuple[int, int]] = []
    place = line = 0
    for start in _quotes(text):
        if start < place:  # in the string before
            continue
        prefix = _string_prefix(text, max(place, text.rfind("\n", 0, start) + 1), start)
        quotes = text[start : start + 3]
        end = text.find(quotes, start + 3)
        content = text[start + 3 : end]
        if end < 0 or content.endswith("\\") or text.startswith(quotes[0], end + 3):
            raise _UnusualError
        if "\\" in content:
            content = _value_of(f"{prefix}{quotes}{content}{quotes}")
        before = text[place : start - len(prefix)]
        pieces += [before, '""']
        line += before.count("\n")
        strings.append((line, content))
        cuts.append((line, text.count("\n", start, end)))
        place = end + 3
    pieces.append(text[place:])
    return "".join(pieces), strings, cuts


def _string_prefix(text: str, line: int, quotes: int) -> str:
    """Return the `r` of a string that begins at its quotes, or nothing; any other letter there is unusual."""
    before = WHOLE_STRINGS.fullmatch(text, line, quotes)
    letters = re.search(r"\w*$", text[line:quotes])
    if before is None or letters is None or letters[0] not in ("", "r"):
        raise _UnusualError
    return letters[0]


def _quotes(text: str) -> list[int]:
    """List the places of triple quotes."""
    places = []
    for quotes in ('"""', "'''"):
        place = text.find(quotes)
        while place >= 0:
            places.append(place)
            place = text.find(quotes, place + 3)
    return sorted(places)


def _value_of(literal: str) -> str:
    value = ast.literal_eval(parse(literal).body[0].value)  # type: ignore[attr-defined]
    if not isinstance(value, str):
        raise _UnusualError
    return value


def _require_blocks(shapes: list[str]) -> None:
    """Raise SyntaxError where the blocks do not fit; runs of simple statements count as one."""
    skeleton = "\n".join(shape for shape, _ in groupby(shapes) if shape)
    if skeleton not in _SHAPES:
        parse(skeleton)
        if len(_SHAPES) >= MOST_SHAPES:
            _SHAPES.clear()
        _SHAPES.add(skeleton)


def _numbers(count: int, cuts: list[tuple[int, int]]) -> Sequence[int]:
    """Return the number in the file of each line that is left."""
    if not cuts:
        return range(1, count + 1)
    numbers: list[int] = []
    gone = 1
    for line, lines in cuts:
        numbers.extend(range(len(numbers) + gone, line + 1 + gone))
        gone += lines
    numbers.extend(range(len(numbers) + gone, count + gone))
    return numbers


# --- whole -------------------------------------------------------------------------------------------------------


def outline_by_parsing(text: str) -> Outline:
    """Return a file's outline by parsing it whole; raise SyntaxError where it is not Python."""
    writer = _Writer()
    try:
        writer.write(parse(text).body, depth=0)
    except RecursionError as fault:
        raise SyntaxError("too deeply nested") from fault
    return Outline(lines=writer.lines, facts=writer.facts, numbers=writer.numbers, strings=writer.strings)


class _Writer:
    """Writes parsed statements as the lines that generated code has."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.facts: list[tuple[int, Facts]] = []
        self.numbers: list[int] = []
        self.strings: list[tuple[int, str]] = []

    def write(self, body: Sequence[ast.stmt], *, depth: int) -> None:
        for statement in body:
            self._statement(statement, depth)

    def _statement(self, statement: ast.stmt, depth: int) -> None:
        decorators: Sequence[ast.expr] = getattr(statement, "decorator_list", ())
        blocks = list(_blocks(statement))
        if not blocks:
            self._line(ast.unparse(self._without_strings(statement)), statement.lineno, depth)
            return
        if head := _head_of(statement):
            self._line(head, statement.lineno, depth)
        for expression in _heads(statement):
            if expression not in decorators:
                self._line(ast.unparse(self._without_strings(expression)), expression.lineno, depth)
        for decorator in decorators:
            self._line(f"@{ast.unparse(self._without_strings(decorator))}", decorator.lineno, depth)
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            word = "class" if isinstance(statement, ast.ClassDef) else "def"
            self._line(f"{word} {statement.name}():", statement.lineno, depth)
        for block in blocks:
            self.write(block, depth=depth + 1)

    def _line(self, text: str, number: int, depth: int) -> None:
        line = "    " * depth + text
        (read,) = look_up([equal_digits(line)])
        if read is NO_STATEMENT:  # Digits of other bases, and the like.
            read = Line("", find_facts(line.strip(" ").removeprefix("@")))
        if read.facts is not NOTHING:
            self.facts.append((len(self.lines), read.facts))
        self.lines.append(line)
        self.numbers.append(number)

    def _without_strings(self, node: ast.AST) -> ast.AST:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str) and "\n" in inner.value:
                self.strings.append((len(self.lines), inner.value))
                inner.value = ""
        return node


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of a statement, those of its handlers and cases too."""
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value:
            if isinstance(value[0], ast.stmt):
                yield value
            elif isinstance(value[0], (ast.ExceptHandler, ast.match_case)):
                for inner in value:
                    yield from _blocks(inner)


def _head_of(statement: ast.stmt) -> str:
    """Write what a block binds, or that it is a branch, without what is called there; nothing for any other block."""
    match statement:
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            return f"for {ast.unparse(target)} in [{_names_in(value)}]:"
        case ast.With(items=items) | ast.AsyncWith(items=items):
            heads = [
                f"[{_names_in(one.context_expr)}] as {ast.unparse(name)}"
                for one in items
                if (name := one.optional_vars)
            ]
            return f"with {', '.join(heads)}:" if heads else ""
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return ""
    return "if None:"


def _names_in(node: ast.expr) -> str:
    return ", ".join(sorted({one.id for one in ast.walk(node) if isinstance(one, ast.Name)}))


def _heads(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions of a statement that stand in none of its blocks."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.expr):
            yield inner
        elif not isinstance(inner, ast.stmt):
            yield from _heads(inner)
