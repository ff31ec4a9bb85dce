"""The kernels that a file defines: functions with a backend's decorator, and what `async_compile` makes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from toolkit.scan.facts import Compiled
from toolkit.scan.lines import words_of
from toolkit.scan.outline import Outline
from toolkit.scan.sources import dotted
from toolkit.scan.trees import parse

DECORATED = {
    "dvm": "dvm",
    "triton": "triton",
    "triton_heuristics": "triton",
    "npu_triton_heuristics": "triton",
    "pl": "pl",
    "pallas": "pl",
    "cute": "cutedsl",
}
"""The backend of a kernel by the first word of its decorators."""

COMPILED = {
    "triton": "triton",
    "pallas": "pl",
    "cpp": "cpp",
    "cpp_pybinding": "cpp",
    "import_fx": "fallback",
    "mlir": "mlir",
    "mlir_auto_fallback": "mlir",
    "auto_fallback": "mlir",
}
"""The backend of a kernel by the method of `async_compile` that makes it; any other method's is its own name."""

NO_KERNELS = frozenset({"wait", "multi_kernel", "size_hint_multi_kernel", "warm_pool", "use_process_pool", "get"})
"""Methods of `async_compile` that make no kernel of their own."""

FALLBACK = "fallback"
DEFAULT_TYPE = "split"
"""The type of a DVM kernel that names none."""

STRING_DECORATOR = re.compile(r"^@([A-Za-z_][\w.]*)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernel:
    """One definition: `decorators` by their dotted names, `body` the lines of a function, `line` its number."""

    name: str
    backend: str
    decorators: tuple[str, ...]
    line: int
    type: str = ""
    body: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Decorator:
    """A decorator's dotted name, and the constants among its keywords."""

    name: str
    keywords: tuple[tuple[str, object], ...]


def find_kernels(outline: Outline) -> tuple[list[Kernel], list[str]]:
    """List the kernels that a file defines, and the names of all decorators in it, those of other functions too."""
    kernels, others = [], []
    for index in _first_decorators(outline):
        kernel, names = _decorated(outline, index)
        others += names if kernel is None else []
        kernels += [] if kernel is None else [kernel]
    kernels += _compiled(outline)
    return kernels, [name for kernel in kernels for name in kernel.decorators] + others


def published_names(outline: Outline) -> dict[str, str]:
    """Map names to the functions that they are other names of: `kernel = kernel_build`."""
    found: dict[str, str] = {}
    for index, facts in outline.facts:
        line = outline.lines[index]
        if facts.aliases and line[0] != " ":
            words = words_of(line)
            found |= {words[one.word]: words[one.source.word] for one in facts.aliases if one.source.view == "same"}
    return found


def _first_decorators(outline: Outline) -> Iterator[int]:
    """Yield the lines in which decorators begin."""
    before = -2
    for index in [at for at, line in enumerate(outline.lines) if "@" in line]:
        if outline.lines[index].lstrip(" ").startswith("@"):
            if index != before + 1:
                yield index
            before = index


def _decorated(outline: Outline, index: int) -> tuple[Kernel | None, list[str]]:
    """Read a decorated function; it is a kernel if one of its decorators is a backend's."""
    start = index
    lines = outline.lines
    decorators = []
    while index < len(lines) and lines[index].lstrip(" ").startswith("@"):
        decorators.append(read_decorator(lines[index].strip(" ")))
        index += 1
    names = [one.name for one in decorators]
    backend = next((DECORATED[word] for name in names if (word := name.partition(".")[0]) in DECORATED), None)
    head = re.match(r" *(?:async )?def (\w+)\(", lines[index]) if index < len(lines) else None
    if backend is None or head is None:
        return None, names
    keywords = dict(pair for one in decorators for pair in one.keywords)
    return Kernel(
        name=head[1],
        backend=backend,
        decorators=tuple(names),
        line=outline.numbers[start],
        type=str(keywords.get("ktype", DEFAULT_TYPE)) if backend == "dvm" else "",
        body=_body(outline, index),
    ), names  # fmt: skip


def _body(outline: Outline, head: int) -> tuple[str, ...]:
    """Return the lines of a function's body."""
    lines = outline.lines
    deeper = " " * (len(lines[head]) - len(lines[head].lstrip(" ")) + 1)
    end = head + 1
    while end < len(lines) and (not lines[end] or lines[end].startswith(deeper)):
        end += 1
    return tuple(lines[head + 1 : end])


def _compiled(outline: Outline) -> Iterator[Kernel]:
    strings: dict[int, list[str]] = {}
    for index, text in outline.strings:
        strings.setdefault(index, []).append(text)
    for index, facts in outline.facts:
        for made in facts.compiled:
            if made.method not in NO_KERNELS:
                yield _made(made, outline, index, strings.get(index, []))


def _made(made: Compiled, outline: Outline, index: int, strings: list[str]) -> Kernel:
    name = words_of(outline.lines[index])[made.word] if made.word >= 0 else "(no name)"
    return Kernel(
        name=name,
        backend=COMPILED.get(made.method, made.method),
        decorators=tuple(one for text in strings for one in STRING_DECORATOR.findall(text)),
        line=outline.numbers[index],
    )


@lru_cache(maxsize=4096)
def read_decorator(text: str) -> Decorator:
    """Read `@a.b(c=1)`."""
    node = parse(text.removeprefix("@")).body[0]
    value = node.value if isinstance(node, ast.Expr) else None
    call = value.func if isinstance(value, ast.Call) else value
    keywords = value.keywords if isinstance(value, ast.Call) else []
    names = dotted(call) if call is not None else []
    return Decorator(
        name=".".join(name for name, _ in names) or text.removeprefix("@"),
        keywords=tuple(
            (one.arg, one.value.value) for one in keywords if one.arg and isinstance(one.value, ast.Constant)
        ),
    )
