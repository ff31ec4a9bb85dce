"""A finished wheel in the store, with the record of what it was made from.

An entry holds the wheel under its own name and `wheel.json`: its hash, its version, its key with all inputs, and how
each patch went in. Nothing is believed on reading: the wheel's bytes are hashed again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from toolkit.errors import StoreError
from toolkit.files import sha256_file
from toolkit.model import AppliedPatch, BuildFacts, Key, Wheel, make_key

RECORD_FILE = "wheel.json"
SCHEMA = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredWheel:
    """A wheel with its key and how its patches went in; `findings` are what its maker noticed about the base."""

    wheel: Wheel
    key: Key
    applied: tuple[AppliedPatch, ...]
    findings: tuple[str, ...] = ()


class _Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """wheel.json, member for member."""

    schema: int
    component: str
    distribution: str
    import_name: str
    version: str
    file: str
    sha256: str
    patches: tuple[str, ...]
    key: Key
    applied: tuple[AppliedPatch, ...]
    findings: tuple[str, ...]
    built: BuildFacts | None = None


def write_wheel_record(stored: StoredWheel, folder: Path) -> None:
    """Write the record beside its wheel; `folder` is the entry being made."""
    wheel = stored.wheel
    record = _Record(
        schema=SCHEMA,
        component=wheel.component,
        distribution=wheel.distribution,
        import_name=wheel.import_name,
        version=wheel.version,
        file=wheel.path.name,
        sha256=wheel.sha256,
        patches=wheel.patches,
        key=stored.key,
        applied=stored.applied,
        findings=stored.findings,
        built=wheel.built,
    )
    (folder / RECORD_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def read_wheel_record(folder: Path) -> StoredWheel:
    """Read an entry and check it: the wheel's hash, and that the key is the digest of its inputs.

    Raises StoreError, naming the entry, where anything is missing or does not hold.
    """
    try:
        record = msgspec.json.decode((folder / RECORD_FILE).read_bytes(), type=_Record)
    except (OSError, msgspec.MsgspecError) as fault:
        raise _damaged(folder, f"its record cannot be read ({fault})") from fault
    if record.schema != SCHEMA:
        raise _damaged(folder, f"its record has schema {record.schema}, expected {SCHEMA}")
    if not _is_digest_of_inputs(record.key):
        raise _damaged(folder, "its key is not the digest of its inputs")
    wheel = _wheel(record, folder)
    if Path(record.file).name != record.file or not wheel.path.is_file():
        raise _damaged(folder, f"{record.file!r} is missing")
    if (actual := sha256_file(wheel.path)) != wheel.sha256:
        raise _damaged(folder, f"{record.file} has sha256 {actual}, expected {wheel.sha256}")
    return StoredWheel(wheel=wheel, key=record.key, applied=record.applied, findings=record.findings)


def _is_digest_of_inputs(key: Key) -> bool:
    try:
        return make_key(key.inputs).digest == key.digest
    except ValueError:
        return False


def _wheel(record: _Record, folder: Path) -> Wheel:
    return Wheel(
        component=record.component,
        distribution=record.distribution,
        import_name=record.import_name,
        version=record.version,
        path=folder / record.file,
        sha256=record.sha256,
        key=record.key.digest,
        patches=record.patches,
        built=record.built,
    )


def _damaged(folder: Path, why: str) -> StoreError:
    return StoreError(f"store entry {folder} is damaged: {why}", hint="remove that folder and build again")
