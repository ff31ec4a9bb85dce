"""Keys on disk: what `toolkit key explain --json` printed, or what an overlay's manifest keeps."""

from __future__ import annotations

import json
from pathlib import Path

from toolkit.errors import UsageError
from toolkit.model import Key, make_key

MANIFEST = "manifest.json"


def read_key(path: Path) -> Key | None:
    """Read the key in a file, or in an overlay's folder or its recipe's; None where the path does not exist.

    Raises UsageError for something else than a key, or one that is not the digest of its inputs.
    """
    place = next((p for p in (path / "current" / MANIFEST, path / MANIFEST, path) if p.is_file()), None)
    if place is None:
        return None
    try:
        body = json.loads(place.read_bytes())
        found = make_key((str(name), str(value)) for name, value in _inputs(body).items())
        digest = body["key"]
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise UsageError(
            f"{place} holds no key", hint="expected what `toolkit key explain --json` prints, or an overlay's folder"
        ) from fault
    if found.digest != digest:
        raise UsageError(f"{place} holds the key {digest}, but its inputs give {found.digest}")
    return found


def _inputs(body: dict[str, dict[str, str]]) -> dict[str, str]:
    return body["inputs"] if "inputs" in body else body["key_inputs"]
