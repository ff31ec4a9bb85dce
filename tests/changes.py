"""Changes to files that are taken back, so that many tests can share what is slow to make."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def content(path: Path, raw: bytes | None) -> Iterator[None]:
    """Let a file have other bytes, or (None) not be there; a file that was not there is gone again afterwards."""
    before = path.read_bytes() if path.exists() else None
    _write(path, raw)
    try:
        yield
    finally:
        _write(path, before)


def edited(path: Path, old: str, new: str) -> contextlib.AbstractContextManager[None]:
    """Let a file have `new` in place of `old`, which it must have once."""
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (old, path)
    return content(path, text.replace(old, new).encode())


def edited_json(path: Path, change: Callable[[Any], object]) -> contextlib.AbstractContextManager[None]:
    """Let a JSON file hold another document: `change` alters the one that it is given."""
    body = json.loads(path.read_bytes())
    change(body)
    return content(path, json.dumps(body).encode())


def _write(path: Path, raw: bytes | None) -> None:
    if raw is None:
        path.unlink()
    else:
        path.write_bytes(raw)
