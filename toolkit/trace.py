"""What a finished build was made from, so that the next run can see at once that there is nothing to do.

A verifying trace: every input file with its signature and hash, and every folder with the names in it. Where all
still hold, the same inputs would give the same result. Standard library only: this is the no-op's whole path.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from toolkit.files import file_signature, sha256_bytes, sha256_file, write_atomic

SCHEMA = 2


class Trace(NamedTuple):
    """One finished build: its inputs by path, the facts that no file holds, and what it led to.

    `files` maps a path to [signature, sha256], `folders` a path to the names in it, `links` a path to what it leads to
    (nothing where there is nothing), `variables` the name of one of the caller's variables to `digest_variable` of it.
    `facts` are compared as they are.
    """

    files: Mapping[str, tuple[list[int], str]]
    folders: Mapping[str, list[str]]
    links: Mapping[str, str]
    variables: Mapping[str, str]
    facts: Mapping[str, str]
    result: Mapping[str, str]


def record_trace(
    *,
    files: Iterable[Path],
    folders: Iterable[Path],
    links: Iterable[Path] = (),
    variables: Mapping[str, str] | None = None,
    facts: Mapping[str, str] | None = None,
    result: Mapping[str, str] | None = None,
) -> Trace:
    """Take the inputs' state down as it is now; facts and result can be filled in when the build is done."""
    return Trace(
        files={str(path): (list(file_signature(path.stat())), sha256_file(path)) for path in files},
        folders={str(path): _names(str(path)) for path in folders},
        links={str(path): _lead(str(path)) for path in links},
        variables=dict(variables or {}),
        facts=dict(facts or {}),
        result=dict(result or {}),
    )


def write_trace(trace: Trace, path: Path) -> None:
    """Write a trace in one step."""
    body = {
        "schema": SCHEMA,
        "files": trace.files,
        "folders": trace.folders,
        "links": trace.links,
        "variables": trace.variables,
        "facts": trace.facts,
        "result": trace.result,
    }
    write_atomic(path, json.dumps(body, indent=1, sort_keys=True) + "\n")


def read_trace(path: Path) -> Trace | None:
    """Read a trace; None where there is none that can be used, which only means that the work is looked at again."""
    try:
        body = json.loads(path.read_bytes())
        if body["schema"] != SCHEMA:
            return None
        return Trace(
            files={path: (list(signature), str(digest)) for path, (signature, digest) in body["files"].items()},
            folders={path: list(names) for path, names in body["folders"].items()},
            links=dict(body["links"]),
            variables=dict(body["variables"]),
            facts=dict(body["facts"]),
            result=dict(body["result"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def digest_variable(environ: Mapping[str, str], name: str) -> str:
    """Name a variable's value without telling it, as it may be a secret and this is written down."""
    value = environ.get(name)
    return "not set" if value is None else f"sha256 {sha256_bytes(value.encode('utf-8', 'surrogateescape'))}"


def changed_input(
    trace: Trace, facts: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> str | None:  # fmt: skip
    """Name the first input that is not as it was, or None where all are; `environ` is the caller's environment."""
    for name, value in facts.items():
        if trace.facts.get(name) != value:
            return name
    for name, value in trace.variables.items():
        if digest_variable(environ, name) != value:
            return name
    for path, lead in trace.links.items():
        if _lead(path) != lead:
            return path
    for path, names in trace.folders.items():
        if _names(path) != names:
            return path
    for path, (signature, digest) in trace.files.items():
        if not _is_unchanged(path, signature, digest):
            return path
    return None


def _is_unchanged(path: str, signature: list[int], digest: str) -> bool:
    try:
        return list(file_signature(os.stat(path))) == signature or sha256_file(path) == digest
    except OSError:
        return False


def _lead(path: str) -> str:
    return os.path.realpath(path) if os.path.exists(path) else ""


def _names(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name != "__pycache__")
    except OSError:
        return []
