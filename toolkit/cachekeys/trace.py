"""Read the structured trace that torch writes into the folder TORCH_TRACE names.

A record is a line `V1130 07:28:05.767000 5796 torch/…/file.py:1149] {JSON}`, after it the payload that it announces
(`"has_payload": md5`), each of its lines behind a tab. Which records there are, and what is in them, is the torch
version's own; this module knows the form only.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LINE = re.compile(r"[A-Z]\d{4} (?P<stamp>\d\d:\d\d:\d\d\.\d+) +\d+ [^\]]*\] (?P<header>\{.*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One record: when it was written, its JSON, and its payload, None where it has none or is not wanted."""

    stamp: str
    header: dict[str, Any]
    payload: str | None


@dataclass(kw_only=True, slots=True)
class Reading:
    """What came up while a file was read, for whoever must know how far it can be trusted."""

    unknown_lines: int = 0
    cut_payloads: int = 0
    records: int = 0


@dataclass(slots=True)
class _Open:
    """A record whose payload is still being read."""

    stamp: str
    header: dict[str, Any]
    wanted: bool
    lines: list[str] = field(default_factory=list)


def read_records(path: Path, reading: Reading, wants: Callable[[dict[str, Any]], bool]) -> Iterator[Record]:
    """Yield a file's records in their order, with the payloads of those that are wanted.

    A payload that is not what its record announces is counted and left out: whoever wrote it was killed meanwhile.
    """
    current: _Open | None = None
    with path.open(encoding="utf-8", errors="replace", newline="\n") as stream:
        for line in stream:
            if line.startswith("\t") and current is not None:
                if current.wanted:
                    current.lines.append(line[1:])
            elif opened := _open(line, wants):
                if current is not None:
                    yield _close(current, reading)
                current = opened
            else:
                reading.unknown_lines += 1
    if current is not None:
        yield _close(current, reading)


def _open(line: str, wants: Callable[[dict[str, Any]], bool]) -> _Open | None:
    if (found := LINE.match(line)) is None:
        return None
    try:
        header = json.loads(found["header"])
    except (ValueError, RecursionError):
        return None
    return _Open(found["stamp"], header, wants(header)) if isinstance(header, dict) else None


def _close(current: _Open, reading: Reading) -> Record:
    reading.records += 1
    payload: str | None = None
    if current.wanted and (announced := current.header.get("has_payload")):
        payload = "".join(current.lines).removesuffix("\n")
        if hashlib.md5(payload.encode("utf-8"), usedforsecurity=False).hexdigest() != announced:
            reading.cut_payloads += 1
            payload = None
    return Record(stamp=current.stamp, header=current.header, payload=payload)
