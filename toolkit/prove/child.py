"""Run one job in a fresh interpreter and read back what it says; a child that says nothing usable is an error."""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from toolkit.errors import CommandError
from toolkit.files import remove_tree
from toolkit.model import Interpreter, Overlay, OverlayPackage, Runtime
from toolkit.process import compose_env, describe_code, last_lines, run
from toolkit.prove.plan import Job

log = logging.getLogger(__name__)

SCHEMA = 1
"""The version of the request and result files that this room speaks: verify/contract.py has the other end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageAsked:
    """One package as it must be found on one side."""

    component: str
    import_name: str
    distribution: str
    version: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """What the checks of one side stand on; a base has no manifest, and no folder of an overlay with env files."""

    site: Path
    manifest: Path | None
    packages: tuple[PackageAsked, ...]
    overlay: Path | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is asked of the child, besides the checks' names."""

    ground: Ground
    runtime: Runtime
    expect: Mapping[str, Any]
    can_load: bool
    time_limit: float


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One check's outcome as the child wrote it."""

    name: str
    status: Literal["pass", "fail", "error", "skip"]
    detail: str
    evidence: dict[str, Any]
    excused: bool
    seconds: float


class _Result(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    schema: Literal[1]
    environment: dict[str, Any]
    checks: list[Report]


@dataclass(frozen=True, kw_only=True, slots=True)
class JobResult:
    """What came of a job: one report for each of its checks, in order, and the child's own facts."""

    job: Job
    reports: tuple[Report, ...]
    environment: Mapping[str, object]
    log: Path


def ground_of_overlay(overlay: Overlay) -> Ground:
    """Say what the overlay's packages must be found as."""
    return Ground(
        site=overlay.site.absolute(),
        manifest=overlay.manifest.absolute(),
        packages=tuple(_ask(package, package.version) for package in overlay.packages),
        overlay=overlay.root.absolute(),
    )


def ground_of_base(overlay: Overlay, site: Path) -> Ground:
    """Say what the same packages must be found as in the unpatched base laid out at `site`."""
    return Ground(
        site=site.absolute(),
        manifest=None,
        packages=tuple(_ask(package, package.base_version) for package in overlay.packages),
    )


def stage_verify(verify_folder: Path, scratch: Path) -> Path:
    """Copy `verify/` into an otherwise empty folder below `scratch` and return that folder, for PYTHONPATH.

    Nothing else that lies beside the original can then be imported by its way.
    """
    stage = scratch.absolute() / "stage"
    remove_tree(stage)
    shutil.copytree(verify_folder, stage / "verify", ignore=shutil.ignore_patterns("__pycache__"))
    return stage


def run_job(
    job: Job,
    request: Request,
    *,
    stage: Path,
    interpreter: Interpreter,
    env: Mapping[str, str],
    environ: Mapping[str, str],
    scratch: Path,
    logs: Path,
) -> JobResult:
    """Run a job's checks in a new process and return a report for each, whatever becomes of the process.

    `env` holds what the runtime and the recipe set; `environ` is the caller's, of which little is passed on. What the
    job wrote in an earlier run is removed first, so that it cannot be taken for this one's.
    """
    room, evidence = scratch.absolute() / job.name, logs.absolute() / job.name
    log_file = logs.absolute() / f"{job.name}.log"
    for leftover in (room, evidence, log_file):
        remove_tree(leftover)
    for folder in (room / "cwd", evidence):
        folder.mkdir(parents=True)
    (room / "request.json").write_text(json.dumps(_request_body(job, request, evidence)), encoding="utf-8")
    own = {**env, **job.env, **_isolation(room, request.ground.site, stage)}
    began = time.monotonic()
    try:
        run(
            [interpreter.executable, "-m", "verify", room / "request.json", room / "result.json"],
            cwd=room / "cwd", env=compose_env(environ, own), log_file=log_file, timeout=request.time_limit,
        )  # fmt: skip
        result = read_result(room / "result.json", [check.name for check in job.checks])
    except CommandError as fault:
        return _all_broke(job, _describe_end(fault), fault.details, began, log_file)
    except (OSError, ValueError) as fault:
        lines = last_lines(log_file.read_bytes()) if log_file.exists() else []
        return _all_broke(job, str(fault), lines, began, log_file)
    return JobResult(job=job, reports=tuple(result.checks), environment=result.environment, log=log_file)


def read_result(path: Path, names: Sequence[str]) -> _Result:
    """Decode a result file; raise ValueError where it is missing, garbled, or not about exactly the checks asked."""
    if not path.exists():
        raise ValueError("the child ended with exit code 0 but wrote no result")
    try:
        result = msgspec.json.decode(path.read_bytes(), type=_Result)
    except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise ValueError(f"the child's result is not in its form: {fault}") from fault
    told = [report.name for report in result.checks]
    if told != list(names):
        raise ValueError(f"the child's result is about {', '.join(told) or 'nothing'}, asked was {', '.join(names)}")
    return result


def _ask(package: OverlayPackage, version: str) -> PackageAsked:
    return PackageAsked(
        component=package.component,
        import_name=package.import_name,
        distribution=package.distribution,
        version=version,
    )


def _request_body(job: Job, request: Request, evidence: Path) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "checks": [check.name for check in job.checks],
        "side": job.side,
        "runtime": request.runtime,
        "site": str(request.ground.site),
        "manifest": None if request.ground.manifest is None else str(request.ground.manifest),
        "scratch": str(evidence),
        "packages": [asdict(package) for package in request.ground.packages],
        "expect": dict(request.expect),
        "can_load": request.can_load,
        "time_limit": request.time_limit,
        "overlay": None if request.ground.overlay is None else str(request.ground.overlay),
    }


def _isolation(room: Path, site: Path, stage: Path) -> dict[str, str]:
    """Return what makes a run depend on the side's files alone: the import path, and caches of its own."""
    return {
        "PYTHONPATH": f"{site}{os.pathsep}{stage}",
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONFAULTHANDLER": "1",
        "TORCH_EXTENSIONS_DIR": str(room / "torch_extensions"),
        "TORCHINDUCTOR_CACHE_DIR": str(room / "inductor"),
        "TRITON_CACHE_DIR": str(room / "triton"),
        "TOOLKIT_LAUNCH_LOG": str(room / "launches.jsonl"),
    }


def _describe_end(fault: CommandError) -> str:
    if fault.returncode is None:
        return fault.message
    return f"the child ended with {describe_code(fault.returncode)}"


def _all_broke(job: Job, detail: str, lines: Sequence[str], began: float, log_file: Path) -> JobResult:
    seconds = round(time.monotonic() - began, 3)
    log.debug("%s: %s", job.name, detail)
    reports = tuple(
        Report(
            name=check.name, status="error", detail=detail, evidence={"last_lines": list(lines)},
            excused=False, seconds=seconds,
        )
        for check in job.checks
    )  # fmt: skip
    return JobResult(job=job, reports=reports, environment={}, log=log_file)
