"""Which names of a wrapper are the same memory, followed statement by statement through each function."""

from __future__ import annotations

import ast
import os
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from toolkit.scan.facts import Bind, Launch, Source
from toolkit.scan.lines import words_of
from toolkit.scan.memory import Item, Memory
from toolkit.scan.outline import Outline
from toolkit.scan.placing import find_part, parse_line

FUNCTION = re.compile(r" *(async )?def ")


PLACES = frozenset({"placed", "pooled"})

NO_USE = re.compile(r"(?:async )?def |\w+ = \w+$|\w+ = async_compile\.| +k\.set_kernel_info\(")
"""Lines that have a kernel's name without running it."""

BRANCH = re.compile(r" +(?:if|elif|else|for|async for|while|try|except|finally|match|case)\b")


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One call `kernel.run(…)`: what it passes by name, and the memory of each; None for what is no tensor.

    `doubt` says why that is not known.
    """

    kernel: str
    line: int
    names: tuple[str, ...] = ()
    memory: tuple[Memory | None, ...] = ()
    doubt: str = ""


def find_runs(outline: Outline, kernels: Collection[str]) -> Iterator[Run]:
    """Yield those calls of some kernels in which two arguments may lie in one buffer, with the memory of each.

    What uses a kernel in any other way than `kernel.run(…)` is yielded as a doubt.
    """
    calls = [
        (index, words, launch)
        for index, facts in outline.facts
        if facts.launches and (words := words_of(outline.lines[index]))
        for launch in facts.launches
        if words[launch.word] in kernels
    ]
    yield from _other_uses(outline, kernels, Counter((words[one.word], index) for index, words, one in calls))
    other_names = _other_names(outline) if calls else {}
    names: _Names | None = None
    for index, words, launch in calls:
        run = Run(kernel=words[launch.word], line=outline.numbers[index])
        if not launch.is_plain:
            yield replace(run, doubt="passes tensors by name, or as `*` of something")
            continue
        passed = [words[word] for one in launch.arguments for word in (one.word, *one.others) if word >= 0]
        if not _may_share(passed, other_names):
            continue
        names = names or _Names(outline)
        if names.is_bound_in(index, passed):
            yield replace(run, doubt="binds what it passes")
            continue
        if names.is_branched(index):
            yield replace(run, doubt="stands after a branch or a loop, whose names are not followed")
            continue
        memory = names.passed_to(launch, words, index)
        roots = [root for one in memory if one is not None for root in one.roots]
        if len(set(roots)) < len(roots):
            shown = tuple(words[one.word] if one.word >= 0 else "" for one in launch.arguments)
            yield replace(run, names=shown, memory=memory)


def _other_uses(outline: Outline, kernels: Collection[str], runs: Counter[tuple[str, int]]) -> Iterator[Run]:
    """Yield a doubt for each line that uses a kernel otherwise: what it is then run on is not seen."""
    text = "\n".join(outline.lines)
    starts = list(accumulate((len(line) + 1 for line in outline.lines), initial=0))
    prefix = os.path.commonprefix(list(kernels))  # noqa: RUF071 - of names, not of paths
    found = re.finditer(rf"{re.escape(prefix)}\w*", text)  # Fast, as it begins literally.
    places = [(one[0], one.start()) for one in found if one[0] in kernels]
    used = Counter(
        (name, bisect_right(starts, at) - 1) for name, at in places if not re.match(r"[\w.]", text[at - 1 : at])
    )
    for (kernel, index), count in used.items():
        line = outline.lines[index]
        if count > runs[kernel, index] and not NO_USE.match(line) and kernel in line.partition("#")[0]:
            yield Run(kernel=kernel, line=outline.numbers[index], doubt="uses it in another way than `.run(…)`")


def _other_names(outline: Outline) -> dict[str, set[str]]:
    """Map each name to those that it stands for anywhere in the file."""
    found: dict[str, set[str]] = {}
    for index, facts in outline.facts:
        if facts.aliases:
            words = words_of(outline.lines[index])
            for bind in facts.aliases:
                source = bind.source
                names = {words[word] for word in (source.word, *source.others) if word >= 0}
                found.setdefault(words[bind.word], set()).update(names)
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
        self._branches = [at for at, line in enumerate(outline.lines) if line[:1] == " " and BRANCH.match(line)]
        for index, facts in outline.facts:
            if facts.binds:
                for name in _targets(outline.lines[index], facts.binds):
                    self._bound.setdefault(name, []).append(index)

    def is_branched(self, index: int) -> bool:
        """Whether a branch or a loop begins before a line in the same function."""
        return self._last(self._branches, index) is not None

    def is_bound_in(self, index: int, names: Collection[str]) -> bool:
        """Whether a line binds some of the names."""
        return not set(names).isdisjoint(_targets(self._outline.lines[index], self._facts[index].binds))

    def passed_to(self, launch: Launch, words: list[str], index: int) -> tuple[Memory | None, ...]:
        """Return what the arguments of a launch lie in as it is before its line."""
        texts = _arguments(self._outline.lines[index], words[launch.word], len(launch.arguments))
        return tuple(
            self._memory_of(one, words, index, text) for one, text in zip(launch.arguments, texts, strict=True)
        )

    def _memory_of(self, source: Source, words: list[str], index: int, node: ast.AST | None) -> Memory | None:
        if source.others:
            return Memory("", index, maybe=self._roots(source, words, index))
        if source.word < 0:
            return None
        return self._view(source, words, node, self._resolve(words[source.word], index), index)

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
                maybe = self._roots(source, self._words(at), at)
                known = self._known[name, at] = Memory(name, self._outline.numbers[at], maybe=maybe)
                break
            steps.append((name, at, source))
            name, index = self._words(at)[source.word], at
        memory = known or Memory(name)
        for name, at, source in reversed(steps):
            tree = parse_line(self._outline.lines[at]) if source.view in PLACES else None
            memory = self._known[name, at] = self._view(source, self._words(at), tree, memory, at)
        return memory

    def _roots(self, source: Source, words: list[str], index: int) -> frozenset[tuple[str, int]]:
        """Return every buffer that something may be made of."""
        pending = [(words[one], index) for one in source.others]
        seen: set[tuple[str, int]] = set()
        roots: set[tuple[str, int]] = set()
        while pending:
            name, before = pending.pop()
            at = self._binding(name, before)
            key = (name, -1 if at is None else at)
            if key in seen:
                continue
            seen.add(key)
            if at is None:
                roots.add((name, 0))
                continue
            inner = self._source(name, at)
            places = [one for one in (inner.word, *inner.others) if one >= 0]
            if inner.word < 0:
                roots.add((name, self._outline.numbers[at]))
            pending += [(self._words(at)[one], at) for one in places]
        return frozenset(roots)

    def _view(self, source: Source, words: list[str], node: ast.AST | None, base: Memory, index: int) -> Memory:
        """Return what a view of some memory lies in; `node` is what says where it is placed."""
        name = words[source.word]
        if source.view == "same":
            return base
        if source.view.startswith("item") and base.item is None and base.part is None:
            at = self._binding(name, index)
            return replace(base, is_whole=False, item=_item(name, -1 if at is None else at, source, words))
        if source.view in PLACES and base.is_whole and node is not None:
            return replace(base, is_whole=False, part=find_part(node, name), in_pool=source.view == "pooled")
        return replace(base, is_whole=False, part=base.part if base.in_pool else None)

    def _source(self, name: str, index: int) -> Source:
        """Return what a line binds a name to."""
        binds = self._facts[index].binds
        if len(binds) == 1:
            return binds[0].source
        words = self._words(index)
        place, source = next(
            (at, one.source) for at, one in reversed(list(enumerate(binds))) if words[one.word] == name
        )
        if source.word >= 0 and words[source.word] in {words[one.word] for one in binds[:place]}:
            every = (word for one in binds for word in (one.source.word, *one.source.others) if word >= 0)
            return Source(-1, "unknown", tuple(every))  # Bound in the same line, before or after it is used.
        return source

    def _words(self, index: int) -> list[str]:
        words = self._split.get(index)
        if words is None:
            words = self._split[index] = words_of(self._outline.lines[index])
        return words

    def _binding(self, name: str, index: int) -> int | None:
        """Return the last line before another one that binds a name in the same function."""
        return self._last(self._bound.get(name, []), index)

    def _last(self, lines: Sequence[int], index: int) -> int | None:
        place = bisect_left(lines, index) - 1
        start = bisect_left(self._starts, index) - 1
        return lines[place] if place >= 0 and (start < 0 or lines[place] > self._starts[start]) else None


def _targets(line: str, binds: tuple[Bind, ...]) -> list[str]:
    """Return the names that a line binds."""
    words = words_of(line)
    return [words[bind.word] for bind in binds]


def _item(name: str, line: int, source: Source, words: list[str]) -> Item | None:
    number = words[source.word + 1] if source.word + 1 < len(words) else ""
    if not number.isdecimal():
        return None
    return Item(name, line, int(number) if source.view == "item" else -int(number))


def _arguments(line: str, kernel: str, count: int) -> list[ast.expr] | list[None]:
    """Return the arguments of a launch; None for each where the line has several."""
    found = [
        node.args
        for node in ast.walk(parse_line(line))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "run"
        if isinstance(node.func.value, ast.Name) and node.func.value.id == kernel and len(node.args) == count
    ]
    return found[0] if len(found) == 1 else [None] * count
