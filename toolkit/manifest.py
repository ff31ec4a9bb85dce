"""An overlay's manifest, and whether its files still are what it says.

Kept light: every `toolkit env` goes through here.

`manifest.json` holds the hash of every file below `site/`. `seal.json` beside it holds the manifest's own hash and
each file's signature (size, times, inode) as it was when its hash was last seen to hold, so that a file is read again
only after somebody touched it. Who can set a file's change time can cheat the seal, not a `full` check.

Python's own `__pycache__/*.pyc` files are not listed and never shipped; they appear when the overlay is imported.
Python trusts them by their source's time and size, and so do we.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import OverlayError
from toolkit.files import FileSignature, sha256_bytes, sha256_files, tree_signatures, write_atomic

if TYPE_CHECKING:
    from toolkit.model import Key, ManifestEntry, Overlay, OverlayPackage

SCHEMA = 1
SEAL = "seal.json"
RACY = 20_000_000
"""Nanoseconds: a file that changed so shortly before it was sealed may change again without a new change time, as the
kernel's clock for files ticks every 4 to 10 ms. The seal has no signature of it, only its name, so that it is read
again next time, and missed if it is gone."""

UNSEALED: Sequence[int] = ()

BUILD_AGAIN = "build it again: toolkit build"


def write_manifest(overlay: Overlay, key: Key, files: Iterable[ManifestEntry], findings: Sequence[str]) -> None:
    """Write an overlay's manifest; nothing in it depends on where the overlay lies."""
    from dataclasses import asdict

    body = {
        "schema": SCHEMA,
        "recipe": overlay.recipe,
        "key": key.digest,
        "key_inputs": dict(key.inputs),
        "target": asdict(overlay.target),
        "contract": asdict(overlay.contract),
        "packages": [asdict(package) for package in overlay.packages],
        "env": dict(overlay.env),
        "diagnostic": overlay.diagnostic,
        "absent": list(overlay.absent),
        "findings": list(findings),
        "files": {entry.path: {"sha256": entry.sha256, "size": entry.size} for entry in files},
    }
    _write(overlay.manifest, body)


def read_overlay(root: Path) -> Overlay:
    """Read an overlay from its manifest; OverlayError where that is missing, garbled or of another schema."""
    from toolkit.model import Contract, Overlay, Target

    raw = _parse(root, _read(root))
    try:
        return Overlay(
            recipe=raw["recipe"],
            key=raw["key"],
            root=root,
            target=Target(**raw["target"]),
            contract=Contract(**_with_tuples(raw["contract"])),
            packages=tuple(_package(package) for package in raw["packages"]),
            env=dict(raw["env"]),
            diagnostic=raw["diagnostic"],
            absent=tuple(raw.get("absent", ())),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        raise _unreadable(root, f"it lacks or misnames a member ({fault})") from fault


def verify_site(root: Path, *, full: bool = False) -> None:
    """Raise OverlayError, naming the files, where `site/` is not what the manifest says: changed, missing, extra.

    Only files that were touched since they were sealed are read; those whose times alone changed are sealed anew if
    the overlay can be written. A manifest that was edited since is refused. With `full` the seal counts for nothing:
    all files are read and the manifest is believed as it stands, as a verify run judges the files themselves.
    """
    raw = _read(root)
    seal = None if full else _read_seal(root)
    if seal is not None and seal["manifest"] != (actual := sha256_bytes(raw)):
        raise OverlayError(
            f"the overlay at {root} has an edited manifest: sha256 {actual}, sealed as {seal['manifest']}",
            hint=BUILD_AGAIN,
        )
    found = _signatures(root)
    sealed = {} if seal is None else {path: tuple(one) for path, one in seal["signatures"].items()}
    if found == sealed:
        return
    files = _files(root, raw)
    if problems := _problems(root, files, found, sealed):
        rest = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise OverlayError(
            f"the overlay at {root} is not what its manifest says: {problems[0]}{rest}",
            hint=BUILD_AGAIN,
            details=problems if len(problems) > 1 else (),
        )
    if not full:
        with contextlib.suppress(OSError):
            _write_seal(root, raw, found)


def seal_site(root: Path) -> None:
    """Take the files' signatures down; call it when the hashes in the manifest are known to hold."""
    _write_seal(root, _read(root), _signatures(root))


def rehash_manifest(root: Path) -> None:
    """Make the manifest say what is below `site/` now. Its owner vouches for the files; no witness is asked."""
    body = _parse(root, _read(root))
    site = root / "site"
    paths = sorted(_signatures(root))
    body["files"] = {
        path: {"sha256": digest, "size": (site / path).stat().st_size}
        for path, digest in sorted(sha256_files(site, paths).items())
    }
    _write(root / "manifest.json", body)
    seal_site(root)


def _problems(
    root: Path, files: Mapping[str, str], found: Mapping[str, FileSignature], sealed: Mapping[str, object]
) -> list[str]:
    site = root / "site"
    problems = [f"{path} is missing" for path in files if path not in found]
    problems += [f"{path} is not in the manifest" for path in found if path not in files]
    touched = [path for path in files if path in found and sealed.get(path) != found[path]]
    regular = [path for path in touched if stat.S_ISREG(os.lstat(site / path).st_mode)]
    problems += [f"{path} is no regular file" for path in touched if path not in set(regular)]
    actual = sha256_files(site, regular)
    problems += [
        f"{path} was changed (sha256 {actual[path]}, expected {files[path]})"
        for path in regular
        if actual[path] != files[path]
    ]
    return sorted(problems)


def _signatures(root: Path) -> dict[str, FileSignature]:
    try:
        found = tree_signatures(str(root / "site"))
    except FileNotFoundError as fault:
        raise OverlayError(f"the overlay at {root} has lost files: {fault.filename}", hint=BUILD_AGAIN) from fault
    return {path: one for path, one in found.items() if not (path.endswith(".pyc") and "__pycache__/" in path)}


def _read_seal(root: Path) -> dict[str, Any] | None:
    """Return the seal, or None where there is none that can be used: then every file is read."""
    try:
        seal = json.loads((root / SEAL).read_bytes())
        return seal if {"manifest", "signatures"} <= seal.keys() else None
    except (OSError, ValueError, AttributeError):
        return None


def _write_seal(root: Path, manifest: bytes, found: Mapping[str, FileSignature]) -> None:
    limit = time.time_ns() - RACY
    body = {
        "manifest": sha256_bytes(manifest),
        "signatures": {path: one if one[2] < limit else UNSEALED for path, one in found.items()},
    }
    write_atomic(root / SEAL, json.dumps(body, separators=(",", ":")))


def _read(root: Path) -> bytes:
    try:
        return (root / "manifest.json").read_bytes()
    except (FileNotFoundError, NotADirectoryError) as fault:
        raise OverlayError(f"there is no overlay at {root}: it has no manifest.json", hint=BUILD_AGAIN) from fault


def _write(path: Path, body: Mapping[str, Any]) -> None:
    write_atomic(path, json.dumps(body, separators=(",", ":")) + "\n")


def _parse(root: Path, raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except ValueError as fault:
        raise _unreadable(root, f"it is not JSON ({fault})") from fault
    schema = body.get("schema") if isinstance(body, dict) else None
    if schema != SCHEMA:
        raise _unreadable(root, f"it has schema {schema!r}, expected {SCHEMA}")
    return dict(body)


def _files(root: Path, raw: bytes) -> dict[str, str]:
    try:
        return {path: entry["sha256"] for path, entry in _parse(root, raw)["files"].items()}
    except (KeyError, TypeError, AttributeError) as fault:
        raise _unreadable(root, f"it lacks or misnames a member ({fault})") from fault


def _package(raw: Mapping[str, Any]) -> OverlayPackage:
    from toolkit.model import BuildFacts, OverlayPackage

    built = raw.get("built")
    facts = None if built is None else BuildFacts(**_with_tuples(built))
    return OverlayPackage(**{**_with_tuples(raw), "built": facts})


def _with_tuples(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in raw.items()}


def _unreadable(root: Path, why: str) -> OverlayError:
    return OverlayError(f"the manifest of the overlay at {root} cannot be used: {why}", hint=BUILD_AGAIN)
