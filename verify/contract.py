"""The values that cross the process boundary: a request in, outcomes out.

Standard library only, in the syntax of Python 3.10, so that the oldest supported target can read it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

SCHEMA = 1
NAMED_FAULTS = 10
KEPT_FAULTS = 100

Side = Literal["base", "overlay"]
Runtime = Literal["host", "device"]
Status = Literal["pass", "fail", "error", "skip"]


class ContractError(ValueError):
    """The request is not one that this version of verify understands."""


@dataclass(frozen=True)
class Package:
    """One component as it must be found: `import_name` from `site`, as `distribution` at `version`."""

    component: str
    import_name: str
    distribution: str
    version: str


@dataclass(frozen=True)
class Request:
    """What one fresh interpreter is asked to check.

    `site` is the folder that must win on `sys.path`; `manifest` maps paths below it to their sha256 (JSON,
    `{"files": {path: {"sha256": hex, "size": bytes}}}`), None where the side has none; `expect` holds the contract's
    facts by name (`python_tag`, `torch`, ... ); `scratch` is an empty folder for evidence that is too long for the
    result. `can_load` is False where the packages are for another platform, so that only files can be looked at.
    After `time_limit` seconds the process will be killed (0: never). `overlay` is the folder that holds the side's
    env files and is activated by them, None where the side has none.
    """

    checks: tuple[str, ...]
    side: Side
    runtime: Runtime
    site: Path
    manifest: Path | None
    scratch: Path
    packages: tuple[Package, ...] = ()
    expect: Mapping[str, Any] = field(default_factory=dict)
    can_load: bool = True
    time_limit: float = 0.0
    overlay: Path | None = None

    @classmethod
    def read(cls, path: Path) -> Request:
        """Decode a request file; raise ContractError for another schema or a missing member."""
        raw = json.loads(path.read_text(encoding="utf-8"))
        schema = raw.get("schema") if isinstance(raw, dict) else None
        if schema != SCHEMA:
            raise ContractError(f"request schema {schema!r}, this verify speaks {SCHEMA}")
        try:
            return cls(
                checks=tuple(raw["checks"]),
                side=raw["side"],
                runtime=raw["runtime"],
                site=Path(raw["site"]),
                manifest=None if raw["manifest"] is None else Path(raw["manifest"]),
                scratch=Path(raw["scratch"]),
                packages=tuple(Package(**package) for package in raw["packages"]),
                expect=raw["expect"],
                can_load=raw["can_load"],
                time_limit=raw["time_limit"],
                overlay=None if raw.get("overlay") is None else Path(raw["overlay"]),
            )
        except (KeyError, TypeError) as fault:
            raise ContractError(f"request lacks or misnames a member: {fault}") from fault


@dataclass(frozen=True)
class Outcome:
    """What one check saw.

    `fail` means that the check did its work and saw the fault it looks for; `error` that it could not do its
    work; `skip` that it did not try. A skip is `excused` only where nobody could have run it on this target.
    """

    status: Status
    detail: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    excused: bool = False


def passed(detail: str, **evidence: Any) -> Outcome:
    """The check saw what it wants to see."""
    return Outcome("pass", detail, evidence)


def failed(detail: str, **evidence: Any) -> Outcome:
    """The check saw the fault that it looks for."""
    return Outcome("fail", detail, evidence)


def failed_with(faults: Sequence[str], **evidence: Any) -> Outcome:
    """The check saw these faults; where they are many, the sentence names the first ones."""
    more = f"; and {len(faults) - NAMED_FAULTS} more" if len(faults) > NAMED_FAULTS else ""
    detail = "; ".join(faults[:NAMED_FAULTS]) + more
    return failed(detail, faults=list(faults[:KEPT_FAULTS]), **evidence)


def broke(detail: str, **evidence: Any) -> Outcome:
    """The check could not be carried out, so it says nothing about the fault."""
    return Outcome("error", detail, evidence)


def skipped(detail: str, *, excused: bool = False, **evidence: Any) -> Outcome:
    """The check was not tried."""
    return Outcome("skip", detail, evidence, excused)


@dataclass(frozen=True)
class Record:
    """One check's outcome with its name and wall time in seconds, as it stands in result.json."""

    name: str
    status: Status
    detail: str
    evidence: Mapping[str, Any]
    excused: bool
    seconds: float


def write_result(path: Path, records: list[Record], environment: Mapping[str, Any]) -> None:
    """Write result.json aside and move it into place, so that a killed child leaves none."""
    body = {"schema": SCHEMA, "environment": dict(environment), "checks": [asdict(record) for record in records]}
    aside = path.with_suffix(".part")
    text = json.dumps(body, indent=1, sort_keys=True, default=str, ensure_ascii=False)
    # Undecodable bytes of file names stand in strings as lone surrogates, which no strict JSON reader takes.
    aside.write_bytes(text.encode("utf-8", "replace"))
    aside.replace(path)
