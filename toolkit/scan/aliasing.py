"""Which names of a wrapper are the same memory, followed statement by statement through each function."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from toolkit.scan.facts import Bind, Source
from toolkit.scan.lines import words_of
from toolkit.scan.outline import Outline
from toolkit.scan.trees import parse

FUNCTION = re.compile(r" *(async )?def ")


class Memory(NamedTuple):
    """What a tensor lies in: a buffer by the name and the line that it came with, 0 for a function's own argument.

    `start` and `end` are the elements of it that a view has; None for all of them, or where that is unknown.
    """

    buffer: str
    line: int = 0
    start: int | None = None
    end: int | None = None

    def overlaps(self, other: Memory) -> bool:
        """Whether the two may share an element."""
        if (self.buffer, self.line) != (other.buffer, other.line):
            return False
        if self.start is None or self.end is None or other.start is None or other.end is None:
            return True
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One call `kernel.run(…)`: what it passes by name, and the memory of each; None for what is no tensor."""

    kernel: str
    line: int
    names: tuple[str, ...]
    memory: tuple[Memory | None, ...]


def find_runs(outline: Outline, kernels: Container[str]) -> Iterator[Run]:
    """Yield those calls of some kernels in which two arguments lie in one buffer, with the memory of each argument."""
    calls = [
        (index, words, launch)
        for index, facts in outline.facts
        if facts.launches and (words := words_of(outline.lines[index]))
        for launch in facts.launches
        if words[launch.word] in kernels
    ]
    other_names = _other_names(outline) if calls else {}
    names: _Names | None = None
    for index, words, launch in calls:
        passed = [words[one.word] for one in launch.arguments if one.word >= 0]
        if not _may_share(passed, other_names):
            continue
        names = names or _Names(outline)
        memory = tuple(names.memory_of(one, words, index) for one in launch.arguments)
        buffers = [(one.buffer, one.line) for one in memory if one is not None]
        if len(set(buffers)) < len(buffers):
            yield Run(
                kernel=words[launch.word],
                line=outline.numbers[index],
                names=tuple(words[one.word] if one.word >= 0 else "" for one in launch.arguments),
                memory=memory,
            )


def _other_names(outline: Outline) -> dict[str, set[str]]:
    """Map each name to those that it stands for anywhere in the file."""
    found: dict[str, set[str]] = {}
    for index, facts in outline.facts:
        if facts.aliases:
            words = words_of(outline.lines[index])
            for bind in facts.aliases:
                found.setdefault(words[bind.word], set()).add(words[bind.source.word])
    return found


def _may_share(names: list[str], other_names: dict[str, set[str]]) -> bool:
    """Whether two of the names may stand for one buffer, whatever is bound when."""
    seen: set[str] = set()
    for name in names:
        reached, pending = {name}, [name]
        while pending:
            new = other_names.get(pending.pop(), set()) - reached
            reached |= new
            pending += new
        if reached & seen:
            return True
        seen |= reached
    return False


class _Names:
    """What the names of a wrapper are bound to, line by line; each function begins anew."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._facts = dict(outline.facts)
        self._bound: dict[str, list[int]] = {}
        self._known: dict[tuple[str, int], Memory] = {}
        self._split: dict[int, list[str]] = {}
        self._starts = [at for at, line in enumerate(outline.lines) if "def " in line and FUNCTION.match(line)]
        for index, facts in outline.facts:
            if facts.binds:
                for name in _targets(outline.lines[index], facts.binds):
                    self._bound.setdefault(name, []).append(index)

    def memory_of(self, source: Source, words: list[str], index: int) -> Memory | None:
        """Return what an expression in a line, whose words are given, lies in as it is before that line."""
        if source.word < 0:
            return None
        return self._view(source, words, index, self._resolve(words[source.word], index))

    def _resolve(self, name: str, index: int) -> Memory:
        """Follow a name back through what it was bound to; each step goes to an earlier line."""
        steps: list[tuple[str, int, Source]] = []
        while True:
            at = self._binding(name, index)
            known = Memory(name) if at is None else self._known.get((name, at))
            if at is None or known is not None:
                break
            source = self._source(name, at)
            if source.word < 0:
                known = self._known[name, at] = Memory(name, self._outline.numbers[at])
                break
            steps.append((name, at, source))
            name, index = self._words(at)[source.word], at
        memory = known or Memory(name)
        for name, at, source in reversed(steps):
            memory = self._known[name, at] = self._view(source, self._words(at), at, memory)
        return memory

    def _source(self, name: str, index: int) -> Source:
        """Return what a line binds a name to."""
        binds = self._facts[index].binds
        if len(binds) == 1:
            return binds[0].source
        words = self._words(index)
        return next(bind.source for bind in reversed(binds) if words[bind.word] == name)

    def _words(self, index: int) -> list[str]:
        words = self._split.get(index)
        if words is None:
            words = self._split[index] = words_of(self._outline.lines[index])
        return words

    def _binding(self, name: str, index: int) -> int | None:
        """Return the last line before another one that binds a name in the same function."""
        lines = self._bound.get(name, [])
        place = bisect_left(lines, index) - 1
        start = bisect_left(self._starts, index) - 1
        return lines[place] if place >= 0 and (start < 0 or lines[place] > self._starts[start]) else None

    def _view(self, source: Source, words: list[str], index: int, base: Memory) -> Memory:
        if source.view == "item":
            return Memory(f"{base.buffer}[{words[source.word + 1]}]", base.line)
        if source.view == "placed":
            return _placed(base, words[source.word], self._outline.lines[index])
        return base


def _targets(line: str, binds: tuple[Bind, ...]) -> list[str]:
    """Return the names that a line binds."""
    if len(binds) == 1 and binds[0].word == 0:
        return [line.split(None, 1)[0].rstrip(":,")]
    words = words_of(line)
    return [words[bind.word] for bind in binds]


def _placed(base: Memory, name: str, line: str) -> Memory:
    """Return the part of a buffer that a view says by sizes, strides and offset; all of it where that is not told."""
    spans = {
        span
        for node in ast.walk(parse(line.strip(" ")))
        if isinstance(node, ast.Call) and (span := _span(node, name)) is not None
    }
    if base.start is not None or len(spans) != 1:
        return Memory(base.buffer, base.line)
    start, end = spans.pop()
    return Memory(base.buffer, base.line, start, end)


def _span(call: ast.Call, name: str) -> tuple[int, int] | None:
    """Return the elements of `name` that a view has; None for another call, or for sizes that are not numbers."""
    match call.args:
        case [ast.Name(id=base), sizes, strides, *rest] if base == name and len(rest) <= 1:
            numbers = [_numbers(sizes), _numbers(strides), _numbers(rest[0]) if rest else (0,)]
        case _:
            return None
    size, stride, offset = numbers
    if size is None or stride is None or offset is None or len(size) != len(stride) or len(offset) != 1:
        return None
    return offset[0], offset[0] + sum((count - 1) * step for count, step in zip(size, stride, strict=True)) + 1


def _numbers(node: ast.expr) -> tuple[int, ...] | None:
    parts = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
    found = tuple(one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, int))
    return found if len(found) == len(parts) else None
