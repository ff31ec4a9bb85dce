"""Read an environment from what tools print and keep: `env`, `env -0`, `export -p`, env files, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from toolkit.errors import UsageError

LINE = re.compile(r"(?:export\s+|declare\s+-\w*x\w*\s+|typeset\s+-\w*x\w*\s+)?([A-Za-z_][\w.]*)=(.*)", re.DOTALL)
DECLARED = re.compile(r"(export|declare|typeset)\s")
BETWEEN = re.compile(r"#|BASH_FUNC_|declare -|export \w+$|[A-Z_][A-Z0-9_]*$")
"""Begins a line that has no variable and belongs to none: comments, functions, names without a value."""

ESCAPED = re.compile(r"""\\(["\\$`nt'])""")
MEANING = {"n": "\n", "t": "\t"}


def read_environment_text(text: str) -> Mapping[str, str]:
    """Return the variables of an environment that was written down.

    `env` and env files have a variable a line (a line that has no name continues the one before; comments and names
    alone count for nothing; quotes around a whole value are taken off), `env -0` has NUL between them, `export -p` and
    `declare -p` quote as a shell does; JSON is an object of texts, a list of `NAME=value` or of
    names and values as a pod has them, or what `toolkit env --json` prints. Raises UsageError for JSON that is none of
    these.
    """
    body = text.lstrip("\ufeff \t\r\n")
    if body.startswith(("{", "[")):
        return dict(_read_json(body))
    if "\0" in text:
        return dict(_pairs(text.split("\0")))
    return {name: _unquoted(value) for name, value in _pairs(_joined_lines(text))}


def _pairs(entries: Iterator[str] | list[str]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        if found := LINE.fullmatch(entry):
            yield found[1], found[2]


def _joined_lines(text: str) -> Iterator[str]:
    """Yield a variable at a time: a value with line breaks goes on in lines that begin no other."""
    current: str | None = None
    for line in text.splitlines():
        begins = LINE.fullmatch(line.strip() if DECLARED.match(line.strip()) else line)
        ends = current is None or not _is_open(current)
        if begins or (ends and BETWEEN.match(line)):
            if current is not None:
                yield current
            current = line.strip() if begins else None
        elif current is not None and (line.strip() or _is_open(current)):
            current += f"\n{line}"
    if current is not None:
        yield current


def _is_open(entry: str) -> bool:
    """Whether an entry's value has an opening quote and no closing one yet."""
    value = entry.partition("=")[2]
    return value[:1] in ("'", '"') and (len(value) == 1 or value[-1] != value[0])


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("'\\''", "'")
    if len(value) > 1 and value[0] == value[-1] == '"':
        return _unescaped(value[1:-1])
    if value.startswith("$'") and len(value) > 2 and value.endswith("'"):
        return _unescaped(value[2:-1])
    return value


def _unescaped(text: str) -> str:
    return ESCAPED.sub(lambda found: MEANING.get(found[1], found[1]), text)


def _read_json(text: str) -> Iterator[tuple[str, str]]:
    try:
        document = json.loads(text)
    except ValueError as fault:
        raise UsageError(
            f"the environment looks like JSON and is not: {fault}", hint="give what `env` prints, or a JSON object"
        ) from fault
    if isinstance(document, list):
        yield from _pairs([item for item in document if isinstance(item, str)])
        tables = [item for item in document if isinstance(item, dict)]
        yield from ((item["name"], item["value"]) for item in tables if _is_text(item, "name", "value"))
        return
    is_ours = isinstance(document.get("set"), dict) and isinstance(document.get("prepend"), dict)
    given = {**document["set"], **document["prepend"]} if is_ours else document
    if wrong := [name for name, value in given.items() if not isinstance(value, str)]:
        raise UsageError(
            f"the environment's {wrong[0]!r} is no text",
            hint="give a JSON object of names and texts, or what `env` prints",
        )
    yield from given.items()


def _is_text(table: Mapping[str, object], *keys: str) -> bool:
    return all(isinstance(table.get(key), str) for key in keys)
