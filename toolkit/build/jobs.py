"""How many compilers run at once: as many as there are cores, and memory for each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from toolkit.errors import UsageError
from toolkit.files import available_cores

GIB = 1 << 30
MEMORY_OF_A_JOB = 3 * GIB
"""What a compiler of torch_npu's larger sources takes at its peak, and a little more."""

NO_LIMIT = 1 << 60
"""A limit of a control group beyond this is none: version 1 writes the largest number there is."""


def choose_jobs(override: int | None, *, cpu_count: int | None = None, root: Path = Path("/")) -> tuple[int, str]:
    """Return how many jobs a build may run at once, and why, as a sentence's part: `2 jobs: 2 cores, …`.

    `root` is where `proc` and `sys` are read. What a control group grants counts as the machine does.
    """
    if override is not None:
        if override < 1:
            raise UsageError(f"a build needs at least one job, {override} was asked for", hint="see --jobs")
        return override, f"{_count(override, 'job')}: as asked for"
    cores = min([cpu_count or available_cores(), *_granted_cores(root)])
    memory = min(_free_memory(root), default=None)
    if memory is None:
        return cores, f"{_count(cores, 'job')}: {_count(cores, 'core')}"
    jobs = max(1, min(cores, memory // MEMORY_OF_A_JOB))
    why = f"{_count(cores, 'core')}, {memory // GIB} GiB of memory at {MEMORY_OF_A_JOB // GIB} GiB a job"
    return jobs, f"{_count(jobs, 'job')}: {why}"


def _granted_cores(root: Path) -> Iterator[int]:
    """Yield the whole cores that each control group grants; at least one, because nobody can run on less."""
    for folder in _groups(root, ""):
        quota, _, period = _read(folder / "cpu.max").partition(" ")
        if quota.isdigit() and period.strip().isdigit():
            yield max(1, int(quota) // int(period))
    for folder in _groups(root, "cpu"):
        quota, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit():
            yield max(1, int(quota) // int(period))


def _free_memory(root: Path) -> Iterator[int]:
    """Yield the bytes that the machine has free, and those that each control group still grants."""
    for line in _read(root / "proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024
    for folder in _groups(root, ""):
        for limit in ("memory.max", "memory.high"):
            yield from _left(folder, limit, "memory.current", "inactive_file")
    for folder in _groups(root, "memory"):
        yield from _left(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def _left(folder: Path, limit: str, used: str, reclaimable: str) -> Iterator[int]:
    """Yield what is left of a limit; file pages that nobody reads are given back before anything is killed."""
    granted, taken = _read(folder / limit), _read(folder / used)
    if granted.isdigit() and int(granted) < NO_LIMIT and taken.isdigit():
        kept = dict(line.split() for line in _read(folder / "memory.stat").splitlines())
        yield max(0, int(granted) - int(taken) + int(kept.get(reclaimable, 0)))


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Yield this process's control group and those above it: version 2 where `controller` is empty, else version 1.

    Inside a container the path may be the host's and not be there: then its mount point is the container's own group.
    """
    mount = root / "sys/fs/cgroup" / controller
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            own = Path(os.path.normpath(path)).relative_to("/")
            yield from (
                folder for folder in (mount / own, *(mount / above for above in own.parents)) if folder.is_dir()
            )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
