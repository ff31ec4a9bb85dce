"""RECORD, a wheel's list of its own files: read, compared with what is there, written.

pip does not check it, so an upstream's may be wrong while the wheel's own hash is right. That is no reason to refuse
a pinned wheel; it is told, and what we write is true.
"""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

RECORD = "RECORD"
SIGNATURES = ("RECORD.jws", "RECORD.p7s")
"""Signatures over RECORD: they cannot stand in it."""

FileDigest = tuple[str, int]
"""A file's sha256 in hex and its size in bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordLine:
    """One line as it stands: `hash` is `<algorithm>=<urlsafe base64>` or empty, `size` None where there is none."""

    path: str
    hash: str
    size: int | None


def parse_record(text: str) -> tuple[RecordLine, ...]:
    """Read RECORD's lines; raise ValueError saying which one cannot be read."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as fault:
        raise ValueError(f"RECORD is not CSV: {fault}") from fault
    return tuple(_parse_row(number, row) for number, row in enumerate(rows, 1) if row)


def format_record(digests: Mapping[str, FileDigest], own_path: str) -> str:
    """Write RECORD for these files, in their order, with its own line last."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for path, (digest, size) in digests.items():
        writer.writerow([path, record_hash(digest), size])
    writer.writerow([own_path, "", ""])
    return out.getvalue()


def record_hash(digest: str) -> str:
    """Return a sha256 in hex as RECORD writes it."""
    return "sha256=" + base64.urlsafe_b64encode(bytes.fromhex(digest)).rstrip(b"=").decode("ascii")


def record_problems(lines: Iterable[RecordLine], digests: Mapping[str, FileDigest], dist_info: str) -> list[str]:
    """List where RECORD does not say what is there; `digests` covers every member that has to stand in it."""
    exempt = {f"{dist_info}/{name}" for name in (RECORD, *SIGNATURES)}
    problems: list[str] = []
    seen: set[str] = set()
    for line in lines:
        if line.path in seen:
            problems.append(f"RECORD lists {line.path!r} more than once")
        elif line.path not in exempt:
            problems.extend(_line_problems(line, digests.get(line.path)))
        seen.add(line.path)
    problems.extend(f"RECORD has no line for {path!r}" for path in digests if path not in seen | exempt)
    return problems


def _parse_row(number: int, row: list[str]) -> RecordLine:
    if len(row) != 3:
        raise ValueError(f"RECORD line {number} has {len(row)} fields, expected 3")
    path, digest, size = row
    if size and not (size.isascii() and size.isdigit()):
        raise ValueError(f"RECORD line {number} has the size {size!r}, expected a number")
    return RecordLine(path=path, hash=digest, size=int(size) if size else None)


def _line_problems(line: RecordLine, actual: FileDigest | None) -> list[str]:
    if actual is None:
        return [f"RECORD lists {line.path!r}, which the wheel does not have"]
    digest, size = actual
    problems = []
    if line.hash != record_hash(digest):
        algorithm = line.hash.partition("=")[0]
        if algorithm in ("sha256", ""):
            problems.append(f"RECORD gives {line.path!r} the hash {line.hash!r}, it has {record_hash(digest)!r}")
        else:
            problems.append(f"RECORD gives {line.path!r} a {algorithm} hash, which is not checked")
    if line.size != size:
        problems.append(f"RECORD gives {line.path!r} the size {line.size}, it has {size}")
    return problems
