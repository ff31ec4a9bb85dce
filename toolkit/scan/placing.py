"""Which part of a buffer a view says by sizes, strides and offset."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from toolkit.scan.trees import parse

Part = tuple[int, int]
"""From which element, or byte of a pool, up to which."""

ITEM_SIZES = {
    "bool": 1, "int8": 1, "uint8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "float16": 2, "bfloat16": 2, "int16": 2,
    "float32": 4, "int32": 4, "float64": 8, "int64": 8, "complex64": 8,
}  # fmt: skip


def parse_line(line: str) -> ast.Module:
    """Parse a line of an outline, whatever block it stands in."""
    text = line.strip(" ")
    return parse(f"{text.removeprefix('el')} pass" if text.endswith(":") else text)


def find_part(node: ast.AST, name: str) -> Part | None:
    """Return the part of the buffer `name` that a view in an expression is; None where that is not told."""
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call) and one.args and _is_name(one.args[0], name)]
    parts = {_part(one.args[1:]) for one in calls}
    return parts.pop() if len(parts) == 1 else None


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _part(arguments: Sequence[ast.expr]) -> Part | None:
    match arguments:
        case [sizes, strides]:
            return _span(_numbers(sizes), _numbers(strides), (0,), 1)
        case [sizes, strides, offset]:
            return _span(_numbers(sizes), _numbers(strides), _numbers(offset), 1)
        case [offset, ast.Attribute(attr=dtype), sizes, strides]:
            return _span(_numbers(sizes), _numbers(strides), _numbers(offset), ITEM_SIZES.get(dtype, 0))
    return None


def _span(
    size: tuple[int, ...] | None, stride: tuple[int, ...] | None, offset: tuple[int, ...] | None, item: int
) -> Part | None:
    """Return from where up to where a view lies; `offset` counts bytes where `item` is more than 1."""
    if size is None or stride is None or offset is None or len(size) != len(stride) or len(offset) != 1 or not item:
        return None
    if any(count < 1 for count in size) or any(step < 0 for step in stride):
        return None
    last = sum((count - 1) * step for count, step in zip(size, stride, strict=True))
    return offset[0], offset[0] + (last + 1) * item


def _numbers(node: ast.expr) -> tuple[int, ...] | None:
    parts = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
    found = tuple(one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, int))
    return found if len(found) == len(parts) else None
