"""`torch.use_deterministic_algorithms(True)` reaches DVM kernels that are built after it, and no others.

DVM reads the flag when a kernel is constructed. So it must be set before `torch.compile` compiles; a kernel that was
built before keeps adding in whatever order its blocks arrive. Dynamo guards on the flag and compiles anew when it is
switched, which is all that saves a run that sets it late: whoever holds the old kernel (a captured graph, a loaded
artifact) keeps the old one.

Shown on the disassembly of the real DVM compiler: without the flag a reduction over blocks fills its output with zeros
in one kernel and adds to it atomically in the next (`AtomicCum`, `store_atomic`); with it one kernel joins the partial
sums in order (`SumJoin`, `store_cond`). On a device the outputs and gradients of runs in separate processes are hashed
and must be equal, too.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from verify import host, kernels
from verify.contract import Outcome, Request, broke, failed, failed_with, passed
from verify.processes import run_limited

OPERATION = re.compile(r"^\s+\d+: (\w+)", re.MULTILINE)
STAGE = re.compile(r"^vmain", re.MULTILINE)
IN_ANY_ORDER = ("AtomicCum", "store_atomic")
IN_ORDER = ("SumJoin", "store_cond")
SHAPE = (128, 256)
RUNS = 3
SECONDS_PER_RUN = 120.0


@dataclass(frozen=True)
class Listing:
    """What one build of a graph's kernel does: its stages' number, and its operations in order."""

    stages: int
    operations: tuple[str, ...]

    @property
    def in_any_order(self) -> bool:
        """Whether it fills with zeros and adds atomically."""
        return self.stages == 2 and all(map(self.operations.__contains__, IN_ANY_ORDER)) and not self._has(IN_ORDER)

    @property
    def in_order(self) -> bool:
        """Whether it joins partial sums in order, with nothing filled before."""
        return self.stages == 1 and all(map(self.operations.__contains__, IN_ORDER)) and not self._has(IN_ANY_ORDER)

    def _has(self, names: Sequence[str]) -> bool:
        return any(map(self.operations.__contains__, names))


@dataclass(frozen=True)
class Builds:
    """One graph's kernels: compiled with the flag off; that kernel after the flag was set; what the next call ran;
    and what is compiled with the flag on, strictly and as a warning only."""

    graph: str
    off: Listing
    kept: Listing
    recompiled: Listing
    on: Listing
    warning: Listing


def whole_sum(x: Any) -> Any:
    """One number of all blocks' partial sums."""
    return (x * 2).sum()


def column_sums(x: Any) -> Any:
    """A vector, summed over the axis that the blocks share."""
    return (x * 2).sum(0)


GRAPHS = (whole_sum, column_sums)


def check(request: Request) -> Outcome:
    """Compile sums with the flag off and on, and look at what the DVM compiler made of them."""
    host.prepare(request.runtime)
    host.load_backend("dvm")
    torch = importlib.import_module("torch")
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    try:
        builds = [_build(graph, request.scratch) for graph in GRAPHS]
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
    outcome = judge_builds(builds)
    if outcome.status != "pass" or request.runtime != "device":
        return outcome
    return judge_runs(_hash_runs(request.scratch), outcome)


def judge_builds(builds: Sequence[Builds]) -> Outcome:
    """Judge by the disassembly: what is built with the flag on adds in order, what was built before does not change."""
    evidence = {build.graph: asdict(build) for build in builds}
    blind = [build.graph for build in builds if not build.off.in_any_order]
    if blind:
        return broke(
            f"{', '.join(blind)}: with the flag off the kernel does not add atomically, so it shows nothing", **evidence
        )
    faults = [
        f"{build.graph}: {what}"
        for build in builds
        for what, holds in (
            ("a kernel built with the flag on does not add in order", build.on.in_order),
            ("a kernel built with warn_only=True does not add in order", build.warning.in_order),
            ("a kernel that was built before the flag was set has changed", build.kept == build.off),
            (
                "after the flag was switched the next call did not run a kernel that adds in order",
                build.recompiled.in_order,
            ),
        )
        if not holds
    ]
    if faults:
        return failed_with(faults, **evidence)
    return passed(
        f"{len(builds)} sums add in order ({', '.join(IN_ORDER)}) if the flag is set before torch.compile; "
        f"a kernel built before keeps {', '.join(IN_ANY_ORDER)}",
        **evidence,
    )


def judge_runs(hashes: Sequence[Mapping[str, str]], built: Outcome) -> Outcome:
    """Judge a device's outputs and gradients by their hashes in separate processes."""
    evidence = {**built.evidence, "runs": [dict(one) for one in hashes]}
    differing = sorted(name for name in hashes[0] if len({one.get(name) for one in hashes}) > 1)
    if differing:
        return failed(f"{len(hashes)} runs give different {', '.join(differing)}", **evidence)
    return passed(f"{built.detail}; {len(hashes)} runs on the device are equal, bit for bit", **evidence)


def _build(graph: Callable[[Any], Any], scratch: Path) -> Builds:
    torch = importlib.import_module("torch")
    x = torch.ones(SHAPE, device="npu")
    torch.use_deterministic_algorithms(False)
    compiled, first = _compile(graph, x)
    off = _list(first)
    torch.use_deterministic_algorithms(True)
    with kernels.built() as again:
        compiled(x)
    kept, recompiled = _list(first), _list(again[0]) if again else _list(first)
    _, strict = _compile(graph, x)
    torch.use_deterministic_algorithms(True, warn_only=True)
    _, warned = _compile(graph, x)
    for label, kernel in (("off", first), ("on", strict)):
        (scratch / f"determinism-{graph.__name__}-{label}.das").write_text(kernel.kobj.das(), encoding="utf-8")
    return Builds(graph.__name__, off, kept, recompiled, _list(strict), _list(warned))


def _compile(graph: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    torch = importlib.import_module("torch")
    torch._dynamo.reset()
    compiled = torch.compile(graph)
    with host.generated_code(), kernels.built() as found:
        compiled(x)
    if len(found) != 1:
        raise RuntimeError(f"{graph.__name__} became {len(found)} DVM kernels, expected one")
    return compiled, found[0]


def _list(kernel: Any) -> Listing:
    text = kernel.kobj.das()
    return Listing(len(STAGE.findall(text)), tuple(OPERATION.findall(text)))


def _hash_runs(scratch: Path) -> list[dict[str, str]]:
    found = []
    for number in range(RUNS):
        log = scratch / f"determinism-run-{number}.log"
        argv = [sys.executable, "-m", "verify.hashed_step"]
        code = run_limited(argv, cwd=scratch, env=os.environ, log=log, seconds=SECONDS_PER_RUN)
        lines = log.read_text(encoding="utf-8").strip().splitlines()
        if code != 0 or not lines:
            raise RuntimeError(f"{' '.join(argv)} ended with {code}: {lines[-1] if lines else 'no output'}")
        found.append(json.loads(lines[-1]))
    return found
