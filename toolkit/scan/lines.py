"""What one line of generated code says: which names it binds, what it launches, calls and compiles.

Generated files repeat the same few hundred lines, numbers aside. So a line is parsed once with its numbers made equal,
and what it says is kept by the places of its words: those of the real line are then looked up there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from toolkit.scan.facts import NO_STATEMENT, NOTHING, Bind, Call, Compiled, Facts, Launch, Line, Source
from toolkit.scan.trees import parse

WORDS = re.compile(r"\w+")
ASCII_WORDS = re.compile(r"\w+", re.ASCII)
"""Finds the same where a line is ASCII, three times as fast."""

MOST_LINES = 50_000
"""How many different lines are remembered: beyond that all are forgotten, so that memory stays flat."""

OPERATORS = {"aten": ("torch", "ops", "aten"), "inductor_ops": ("torch", "ops", "inductor")}
"""Names that every wrapper has for namespaces of operators."""

EXTERN = "extern_kernels"
"""What a wrapper calls the library calls that stand in a kernel's stead."""

VIEWS = frozenset({
    "alias", "as_strided", "chunk", "contiguous", "copy_if_misaligned", "detach", "diagonal", "expand", "lift_fresh",
    "narrow", "permute", "reinterpret_tensor", "reshape", "select", "slice", "split", "split_with_sizes", "squeeze",
    "swapaxes", "swapdims", "t", "tensor_split", "to", "transpose", "unbind", "unfold", "unsafe_split", "unsqueeze",
    "view", "view_as", "_reshape_alias", "_unsafe_view",
})  # fmt: skip
"""Operators, methods and functions whose result may be in the memory of their first argument."""

PLACED_VIEWS = frozenset({"reinterpret_tensor", "as_strided"})
"""Views that say by sizes, strides and offset which part of the memory they are."""

SAME = frozenset({"copy_if_misaligned"})
"""Functions that give their argument back, or a copy of it."""

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
        tuple(bind for bind in binds if bind.source.word >= 0),
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
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
            return
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            if isinstance(target, ast.Name):
                yield Bind(self._word(target), self._source(statement.value))
            elif isinstance(target, (ast.Tuple, ast.List)):
                values = _matching(target, statement.value)
                for name, value in zip(target.elts, values, strict=True):
                    if isinstance(name, ast.Name):
                        yield Bind(self._word(name), Source(-1) if value is None else self._source(value))

    def launches(self, node: ast.AST) -> Iterator[Launch]:
        """Find `kernel.run(…)`."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name() as kernel, attr="run"), args=arguments):
                yield Launch(self._word(kernel), tuple(map(self._source, arguments)))

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

    def _source(self, value: ast.expr) -> Source:
        """Follow views down to the name that they are of."""
        match value:
            case ast.Name():
                return Source(self._word(value))
            case ast.Starred(value=inner):
                return self._within(inner, "part")
            case ast.Attribute(value=inner, attr="T" | "mT" | "H" | "mH" | "data"):
                return self._within(inner, "part")
            case ast.Subscript(value=ast.Name() as inner, slice=ast.Constant(value=int())):
                return Source(self._word(inner), "item")
            case ast.Subscript(value=inner):
                return self._within(inner, "part")
            case ast.Call(func=func, args=arguments):
                return self._called(func, arguments)
        return Source(-1)

    def _called(self, func: ast.expr, arguments: list[ast.expr]) -> Source:
        names = [name for name, _ in dotted(func)]
        operator = _operator(names)
        if arguments and operator is not None and (operator in VIEWS or _works_in_place(operator)):
            view = "placed" if operator in PLACED_VIEWS else "same" if _works_in_place(operator) else "part"
            return self._within(arguments[0], view)
        if arguments and len(names) == 1 and names[0] in VIEWS:
            view = "same" if names[0] in SAME else "placed" if names[0] in PLACED_VIEWS else "part"
            return self._within(arguments[0], view)
        if operator is None and isinstance(func, ast.Attribute) and (func.attr in VIEWS or _works_in_place(func.attr)):
            return self._within(func.value, "same" if _works_in_place(func.attr) else "part")
        return Source(-1)

    def _within(self, inner: ast.expr, view: str) -> Source:
        source = self._source(inner)
        if source.view == "same":
            return Source(source.word, view)
        return source if view == "same" else Source(source.word, "part")


def dotted(node: ast.expr) -> list[tuple[str, ast.Name]]:
    """Split `a.b.c` into its names, each with the node of the first; nothing for what is no such name."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return []
    first = node
    return [(name, first) for name in (first.id, *reversed(names))]


def called_name(names: list[str], *, plain: bool = False) -> str:
    """Return the whole name of what is called; with `plain`, nothing for a name whose numbers were made equal."""
    if plain and any(letter.isdigit() for name in names for letter in name):
        return ""
    return ".".join(operator_of(names) or names)


def operator_of(names: list[str]) -> list[str]:
    """Return an operator's whole name by the words of its call: `torch.ops.NAMESPACE.NAME[.OVERLOAD]`; [] if none."""
    whole = [*OPERATORS.get(names[0], names[:1]), *names[1:]]
    return whole if whole[:2] == ["torch", "ops"] and len(whole) >= 4 else []


def _operator(names: list[str]) -> str | None:
    """Return the bare name of the operator that is called, or None."""
    whole = operator_of(names) if names else []
    return whole[3] if whole else None


def _works_in_place(name: str) -> bool:
    return name.endswith("_") and not name.startswith("__")


def _matching(target: ast.Tuple | ast.List, value: ast.expr) -> list[ast.expr | None]:
    """Return what each name of `a, b = c, d` is bound to; None where that cannot be said."""
    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
        return [None if isinstance(one, ast.Starred) else one for one in value.elts]
    return [None] * len(target.elts)
