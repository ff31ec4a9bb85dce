"""Generated code before and after: what of a file is shown, which lines differ, and which call kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

KERNEL = re.compile(
    r"^@(dvm|pl|triton|triton_heuristics)\b"
    r"|\bspec_next\(|\.run\(|\bextern_kernels\.\w+\("
    r"|\b(torch\.ops|aten)\.\w+(\.\w+)*\(|\basync_compile\.(?!wait)\w+\("
)
"""Where generated code defines a kernel, divides one into stages, or calls one."""

STAGE = re.compile(r"^(\w+|vmain\b.*|\s*// stage \d+)$")
"""Where the compiler's listing begins another kernel, launch or stage."""

ADDRESS = re.compile(r"0x[0-9a-f]{8,}")
HEAD_END = re.compile(r'^("""|@)')
TAIL_START = re.compile(r"^def (get_args|benchmark_compiled_module)\(")
LEAST_FOLDED = 5
MOST_LINES = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One line: on one side only (`is_own`), of a kernel (`is_kernel`), or a remark of ours in place of others."""

    text: str
    is_own: bool = False
    is_kernel: bool = False
    is_remark: bool = False


def code_lines(source: str) -> list[Line]:
    """Return the lines of generated code that matter: without its imports, and without its benchmark."""
    lines = source.splitlines()
    first = next((number for number, line in enumerate(lines) if HEAD_END.match(line)), 0)
    last = next((number for number, line in enumerate(lines) if TAIL_START.match(line)), len(lines))
    first = first if LEAST_FOLDED <= first < last else 0
    last = last if len(lines) - last >= LEAST_FOLDED else len(lines)
    shown = [Line(text=line, is_kernel=is_kernel) for line, is_kernel in _marked(lines[first:last])]
    return [*_left_out(first, "imports and names"), *_capped(shown), *_left_out(len(lines) - last, "a benchmark of it")]


def stage_lines(listing: str) -> list[Line]:
    """Return the lines of the compiler's stages and disassembly."""
    return _capped([Line(text=line, is_kernel=bool(STAGE.match(line))) for line in listing.splitlines()])


def mark_differences(before: Sequence[Line], after: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """Return both with the lines marked that the other has not; addresses, which no two runs share, count for none."""
    matcher = SequenceMatcher(None, [_key(line) for line in before], [_key(line) for line in after], autojunk=False)
    old, new = list(before), list(after)
    for kind, start, end, other_start, other_end in matcher.get_opcodes():
        if kind != "equal":
            old[start:end] = [replace(line, is_own=not line.is_remark) for line in old[start:end]]
            new[other_start:other_end] = [
                replace(line, is_own=not line.is_remark) for line in new[other_start:other_end]
            ]
    return old, new


def are_equal(before: Sequence[Line], after: Sequence[Line]) -> bool:
    """Whether two files say the same, addresses apart."""
    return [_key(line) for line in before] == [_key(line) for line in after]


def _key(line: Line) -> str:
    return ADDRESS.sub("0x", line.text)


def _marked(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line and whether it is a kernel's; what a docstring shows of the graph is not."""
    is_inside = False
    for line in lines:
        turns = line.count('"""') % 2 == 1
        yield line, not is_inside and not turns and bool(KERNEL.search(line))
        is_inside = is_inside != turns


def _left_out(number: int, what: str) -> list[Line]:
    return [Line(text=f"… {number} lines left out: {what}", is_remark=True)] if number else []


def _capped(lines: Sequence[Line]) -> list[Line]:
    rest = len(lines) - MOST_LINES
    return [*lines[:MOST_LINES], *_left_out(rest if rest > 0 else 0, "the whole is in the file")]
