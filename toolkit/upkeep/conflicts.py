"""Conflicts as git writes them into files: the first of them for a message, and the markers that were left in."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

MARKER = re.compile(rb"^(?:<{7}|\|{7}|>{7})(?: [^\n]*)?$", re.MULTILINE)
CONFLICT = re.compile(rb"^<{7}.*?^>{7}[^\n]*", re.MULTILINE | re.DOTALL)
SIDE = re.compile(rb"(<{7}|\|{7}|={7}|>{7})( |$)")
SHOWN_LINES = 5
"""How many lines of each side of a conflict a message has."""


def first_conflict(folder: Path, paths: Sequence[str]) -> list[str]:
    """Show the first conflict that stands in some files; one of whole files has no lines to show."""
    for path in paths:
        raw = _read(folder / path)
        if found := CONFLICT.search(raw):
            return [f"{path}:{_line(raw, found.start())}:", *_shortened(found[0].split(b"\n"))]
    return [f"{path}: changed on one side, taken away or renamed on the other" for path in paths]


def first_marker(file: Path, lawful: Collection[bytes]) -> tuple[int, str] | None:
    """Return line and text of the first marker in a file, None where it has none besides the `lawful` ones."""
    raw = _read(file)
    for found in MARKER.finditer(raw):
        if found[0] not in lawful:
            return _line(raw, found.start()), _text(found[0])
    return None


def markers_in(raw: bytes) -> set[bytes]:
    """Return the lines that look like markers."""
    return {found[0] for found in MARKER.finditer(raw)}


def _shortened(lines: Sequence[bytes]) -> Iterator[str]:
    """Yield a conflict's markers, and the first lines of each of its sides."""
    sides: list[list[str]] = [[]]
    for line in lines:
        sides += [[]] if SIDE.match(line) else []
        sides[-1].append(_text(line))
    for side in sides:
        yield from side[: SHOWN_LINES + 1]
        if (more := len(side) - SHOWN_LINES - 1) > 0:
            yield f"… {more} more {'line' if more == 1 else 'lines'}"


def _line(raw: bytes, at: int) -> int:
    return raw.count(b"\n", 0, at) + 1


def _read(file: Path) -> bytes:
    return file.read_bytes() if file.is_file() else b""


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")
