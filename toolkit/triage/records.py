"""Lines that hold other lines: records of loggers and containers in JSON, tracebacks with their line ends escaped."""

from __future__ import annotations

from typing import Any

import msgspec

MESSAGES = ("log", "message", "msg", "text", "event", "MESSAGE")
TRACES = (
    "exc_info", "exception", "exc_text", "traceback", "stack", "stack_trace", "stacktrace", "error", "extraInfo",
    "py_callstack",
)  # fmt: skip
TIMES = ("time", "timestamp", "ts", "asctime", "@timestamp")
LEVELS = ("level", "severity", "levelname", "lvl")
RANKS = ("rank", "global_rank", "process_rank", "RANK")
HEADER = "Traceback (most recent call last)"


def inner_lines(raw: str) -> list[str]:
    """Return the lines that a line holds; itself where it holds none.

    What a record says of its time, level and rank is put in front of each line, as loggers write it.
    """
    if raw.startswith("{") and raw.rstrip().endswith("}"):
        return _lines_of_record(raw) or [raw]
    if "\\n" in raw and HEADER in raw:
        return raw.replace("\\r", "").replace("\\t", "\t").replace('\\"', '"').split("\\n")
    return [raw]


def _lines_of_record(raw: str) -> list[str]:
    try:
        record = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return []
    if not isinstance(record, dict):
        return []
    prefix = _prefix(record)
    return [f"{prefix}{line}" for text in _texts(record, depth=3) for line in text.splitlines()]


def _texts(record: dict[str, Any], *, depth: int) -> list[str]:
    """Return what a record says, its message first; torchrun's error files nest it."""
    said = []
    for name in (*MESSAGES, *TRACES):
        value = record.get(name)
        if isinstance(value, str) and value:
            said.append(value)
        elif isinstance(value, dict) and depth:
            said += _texts(value, depth=depth - 1)
    return said


def _prefix(record: dict[str, Any]) -> str:
    time, level, rank = (_first(record, names) for names in (TIMES, LEVELS, RANKS))
    words = [str(time)] if isinstance(time, str) and time[:2].isdigit() else []
    words += [level.upper()] if isinstance(level, str) and level.isalpha() else []
    words += [f"[rank{rank}]:"] if isinstance(rank, int) and not isinstance(rank, bool) and rank >= 0 else []
    return "".join(f"{word} " for word in words)


def _first(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((record[name] for name in names if name in record), None)
