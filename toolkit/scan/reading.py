"""One file: told apart by what it holds, read without being executed, and counted."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable
from itertools import takewhile

from toolkit.scan.facts import Call
from toolkit.scan.hazards import find_hazards
from toolkit.scan.kernels import FALLBACK, Kernel, find_kernels
from toolkit.scan.lines import EXTERN, words_of
from toolkit.scan.outline import Outline, outline_of
from toolkit.scan.sources import called_name
from toolkit.scan.values import FileReport, NoTextError, UnreadableError

MOST_BYTES = 64 << 20
"""How large a file is read: the largest generated ones have a few megabytes."""

DEBUG_NAME = "output_code.py"
"""What `torch_compile_debug` calls the generated code of a graph."""

WRAPPER = re.compile(
    r"^(async_compile = |from torch\._inductor\.hooks import run_intermediate_hooks$|cpp_wrapper_src = )", re.MULTILINE
)
"""What the head of every wrapper has."""

KERNEL = re.compile(
    r"^@(dvm\.kernel|triton\.jit|triton_heuristics\.|npu_triton_heuristics\.|pl\.|pallas\.)", re.MULTILINE
)

CACHED_NAME = re.compile(r"c[a-z2-7]{51}\.py")
"""What Inductor's cache calls a file: the hash of what it holds."""

FOREIGN = "not code that Inductor has generated: no `async_compile`, no kernel"

HEAD = 1 << 16
"""How much of a file is looked at to tell whether it is a wrapper."""

CALL = re.compile(r" *def call\(")
"""The function that runs a graph."""

COMMENT = re.compile(r" *#")

BUILT_IN = frozenset({
    "aten", "prims", "prim", "inductor", "higher_order", "c10d", "c10d_functional", "_c10d_functional",
    "_c10d_functional_autograd", "symm_mem", "rngprims", "debugprims", "profiler", "quantized", "_quantized",
    "quantized_decomposed", "onednn", "mkldnn", "mkl", "sparse", "fsdp",
})  # fmt: skip
"""Namespaces of operators that torch brings itself; all others are custom."""


def read_file(path: str, *, is_named: bool) -> FileReport:
    """Look into a file; `is_named` says that the user, or its name, has it as generated code.

    A file that is none of that, and holds none, is "other"; one that cannot be read is told as such. A name that
    Inductor's cache gives tells at least that the file was whole once.
    """
    is_cached = CACHED_NAME.fullmatch(os.path.basename(path)) is not None
    try:
        text = _text(_bytes(path))
        is_wrapper = WRAPPER.search(text, 0, HEAD) is not None
        if is_wrapper or KERNEL.search(text) is not None:
            outline = outline_of(text)
            if is_wrapper:
                _require_end(outline)
            return _count(path, outline, is_wrapper=is_wrapper)
        if is_named or is_cached:
            outline_of(text)
    except NoTextError as fault:
        is_other = not (is_named or is_cached)
        return FileReport(path=path, state="other") if is_other else _unreadable(path, str(fault))
    except UnreadableError as fault:
        return _unreadable(path, str(fault))
    except SyntaxError as fault:
        return _unreadable(path, describe_syntax_error(fault))
    return _unreadable(path, FOREIGN) if is_named else FileReport(path=path, state="other")


def _unreadable(path: str, why: str) -> FileReport:
    return FileReport(path=path, state="unreadable", why=why)


def _require_end(outline: Outline) -> None:
    """Raise UnreadableError for a wrapper that ends before its time: a file may be cut where a statement ends."""
    lines = [(index, line) for index, line in enumerate(outline.lines) if line.strip(" ") and not COMMENT.match(line)]
    starts = [at for at, (_, line) in enumerate(lines) if CALL.match(line)]
    if not starts and not any(line.startswith("call = ") for _, line in lines):
        raise UnreadableError("cut off: it defines no `call`")
    for start in starts:
        _require_end_of([line for _, line in lines[start:]], outline.numbers[lines[start][0]])


def _require_end_of(lines: list[str], number: int) -> None:
    """Raise UnreadableError where a function, from its head on, or what has to come after it, is cut."""
    depth = _depth(lines[0])
    body = list(takewhile(lambda line: _depth(line) > depth, lines[1:]))
    after = [line for line in lines[1 + len(body) :] if not line.startswith(" ")]
    if not body or not body[-1].lstrip(" ").startswith("return"):
        raise UnreadableError(f"cut off: `call` of line {number} does not end with a return")
    if not after or (depth and not any(line.startswith("call = ") for line in after)):
        raise UnreadableError(f"cut off: the module does not go on after `call` of line {number}")


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def describe_syntax_error(fault: SyntaxError) -> str:
    """Say in a line what is wrong with a file that is not Python, or not to its end."""
    place = f" in line {fault.lineno}" if fault.lineno else ""
    return f"not Python{place}: {fault.msg}"


# --- bytes -------------------------------------------------------------------------------------------------------


def _bytes(path: str) -> bytes:
    """Read a plain file that is not too large; a pipe is never waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise UnreadableError("not a plain file")
            if found.st_size > MOST_BYTES:
                raise UnreadableError(f"too large: {found.st_size} bytes, at most {MOST_BYTES} are read")
            with open(descriptor, "rb", closefd=False) as stream:
                return stream.read(MOST_BYTES + 1)
        finally:
            os.close(descriptor)
    except OSError as fault:
        raise UnreadableError(fault.strerror or str(fault)) from fault


def _text(raw: bytes) -> str:
    if not raw.strip():
        raise NoTextError("empty")
    if b"\0" in raw:
        raise NoTextError("not text: it has NUL bytes")
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as fault:
        raise NoTextError(f"not UTF-8 from byte {fault.start} on") from fault


# --- counts ------------------------------------------------------------------------------------------------------


def _count(path: str, outline: Outline, *, is_wrapper: bool) -> FileReport:
    kernels, decorators = find_kernels(outline)
    custom, extern = _calls(outline)
    hazards, doubts = find_hazards(outline, kernels)
    return FileReport(
        path=path,
        state="wrapper" if is_wrapper else "kernels",
        kernels=_tally(kernel.backend for kernel in kernels),
        types=_tally(kernel.type for kernel in kernels if kernel.backend == "dvm"),
        decorators=_tally(decorators),
        custom=custom,
        extern=extern,
        fallbacks=_tally(kernel.name for kernel in _fallbacks(kernels)),
        hazards=tuple(hazards),
        doubts=tuple(doubts),
    )


def _fallbacks(kernels: Iterable[Kernel]) -> Iterable[Kernel]:
    return (kernel for kernel in kernels if kernel.backend == FALLBACK)


def _calls(outline: Outline) -> tuple[dict[str, int], dict[str, int]]:
    """Count the calls of custom operators, and of all others that are called in a kernel's stead."""
    calls = [(index, call) for index, facts in outline.facts if facts.calls for call in facts.calls]
    counts = Counter([call.name or _real_name(outline.lines[index], call) for index, call in calls])
    custom = {name: count for name, count in counts.items() if _is_custom(name)}
    return custom, {name: count for name, count in counts.items() if name not in custom}


def _real_name(line: str, call: Call) -> str:
    return called_name(words_of(line)[call.word : call.word + call.words])


def _is_custom(name: str) -> bool:
    names = name.split(".")
    return names[0] != EXTERN and names[2] not in BUILT_IN


def _tally(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(names))
