"""Prove an overlay: run its checks in fresh interpreters and judge what they saw.

plan = plan_checks(catalogue, ...)  ->  run_job for each job, two at a time  ->  judge  ->  Proof
"""

from __future__ import annotations

import contextlib
import platform
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from pathlib import Path

import toolkit
from toolkit.model import CheckResult, Interpreter, Overlay, Proof, Runtime
from toolkit.process import stop_running
from toolkit.prove.child import (
    JobResult,
    Request,
    ground_of_base,
    ground_of_overlay,
    run_job,
    stage_verify,
)
from toolkit.prove.inputs import proof_inputs
from toolkit.prove.plan import CATALOGUE, CheckSpec, Job, Plan, PlannedCheck, load_catalogue, plan_checks
from toolkit.prove.record import LIMITS, proof_document, read_proof, write_junit, write_proof
from toolkit.prove.verdict import judge, not_loadable, withdraw_lone_excuses

__all__ = [
    "CATALOGUE",
    "LIMITS",
    "CheckSpec",
    "Job",
    "Plan",
    "PlannedCheck",
    "load_catalogue",
    "plan_checks",
    "proof_document",
    "proof_inputs",
    "prove",
    "read_proof",
    "write_junit",
    "write_proof",
]

TIME_LIMIT = 300.0
JOBS = 2
STOP_INTERVAL = 0.1


def prove(
    *,
    overlay: Overlay,
    base_site: Path,
    verify_folder: Path,
    interpreter: Interpreter,
    runtime: Runtime,
    runtime_env: Mapping[str, str],
    wanted: Sequence[str],
    witnesses: Sequence[str],
    upstream: Collection[str] = (),
    can_load: bool = True,
    scratch: Path,
    logs: Path,
    environ: Mapping[str, str],
    timeout: float = TIME_LIMIT,
    jobs: int = JOBS,
    on_result: Callable[[CheckResult], None] = lambda result: None,
) -> Proof:
    """Run the wanted checks on the overlay and the witnesses on the base and the overlay, and record the verdicts.

    `base_site` is the unpatched base laid out as a site folder. `runtime_env` is what the runtime needs (the host
    sysroot's variables, or a device's own). Each process gets `timeout` seconds, `jobs` run at once. `can_load` is
    False for an overlay of another platform: then only static checks run. `on_result` hears each result as it comes,
    in no fixed order; the proof has them in the plan's. Leaves in
    `logs`, for each process, its log and a folder of evidence.
    """
    plan = plan_checks(
        load_catalogue(verify_folder), wanted=wanted, witnesses=witnesses, upstream=upstream, can_load=can_load
    )
    stage = stage_verify(verify_folder, scratch)
    grounds = {"base": ground_of_base(overlay, base_site), "overlay": ground_of_overlay(overlay)}

    def run_one(job: Job) -> JobResult:
        request = Request(
            ground=grounds[job.side], runtime=runtime, expect=_expectations(overlay), can_load=can_load,
            time_limit=timeout,
        )  # fmt: skip
        return run_job(
            job, request, stage=stage, interpreter=interpreter, env={**overlay.env, **runtime_env}, environ=environ,
            scratch=scratch, logs=logs,
        )  # fmt: skip

    found: dict[PlannedCheck, CheckResult] = {}
    facts: dict[str, Mapping[str, object]] = {}

    def take(check: PlannedCheck, result: CheckResult) -> None:
        found[check] = result
        on_result(result)

    for check in plan.unloadable:
        take(check, not_loadable(check))
    with contextlib.closing(_side_by_side(plan.jobs, run_one, jobs)) as finished:
        for done in finished:
            facts[done.job.name] = done.environment
            for check, report in zip(done.job.checks, done.reports, strict=True):
                take(check, judge(check, report, done.log))
    return Proof(
        recipe=overlay.recipe,
        overlay=overlay.key,
        runtime=runtime,
        results=withdraw_lone_excuses([found[check] for check in plan.checks]),
        environment=_environment(overlay, interpreter, _facts_of_overlay(plan, facts)),
    )


def _side_by_side(jobs: Sequence[Job], run_one: Callable[[Job], JobResult], count: int) -> Generator[JobResult]:
    """Yield each job's result as it comes; when the caller stops, stop what is running and start nothing more."""
    from concurrent.futures import ThreadPoolExecutor, as_completed, wait

    with ThreadPoolExecutor(max(1, count)) as pool:
        futures = [pool.submit(run_one, job) for job in jobs]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            # Asked again and again, because a job may be just about to start its child.
            while wait(futures, timeout=STOP_INTERVAL).not_done:
                stop_running()
            raise


def _expectations(overlay: Overlay) -> dict[str, object]:
    return {
        "python_tag": overlay.target.python_tag,
        "platform": overlay.target.platform,
        "torch": overlay.contract.torch,
        "cann": overlay.contract.cann,
        "soc": list(overlay.contract.soc),
    }


def _facts_of_overlay(plan: Plan, facts: Mapping[str, Mapping[str, object]]) -> Mapping[str, object]:
    """Return what a child on the overlay's side says of itself, most of all which torch_npu it has imported."""
    told = [facts[job.name] for job in plan.jobs if job.side == "overlay"]
    return max(told, key=len, default={})


def _environment(overlay: Overlay, interpreter: Interpreter, child: Mapping[str, object]) -> dict[str, object]:
    return {
        "toolkit": toolkit.__version__,
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "target": str(overlay.target),
        "interpreter": {"executable": str(interpreter.executable), "version": interpreter.version},
        "packages": {package.distribution: package.version for package in overlay.packages},
        "child": dict(child),
    }
