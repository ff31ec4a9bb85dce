"""Timing that can be trusted on a shared machine: pairs of runs in turn, medians, and the ratio pair by pair."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One command's whole process: wall seconds, and the process's own peak memory in MB (its children's left out)."""

    seconds: float
    peak_mb: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """Two commands measured in turn; `ratio` is the median over pairs of ours divided by theirs."""

    ours: float
    theirs: float
    ratio: float
    peak_mb: float


Step = Callable[[], Sequence[str]]
"""Prepares one run (outside the clock) and returns its argv."""


def run_once(
    argv: Sequence[str], *, env: Mapping[str, str], cores: set[int] | None = None, codes: Collection[int] = (0,)
) -> Run:  # fmt: skip
    """Run a command to its end; raise CalledProcessError where it fails: where its exit code is none of `codes`."""
    with tempfile.TemporaryFile() as errors:
        started = time.perf_counter()
        child = subprocess.Popen(
            argv,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None,
        )
        peak: list[int] = [0]
        watcher = threading.Thread(target=_watch_peak, args=(child.pid, peak), daemon=True)
        watcher.start()
        child.wait()
        seconds = time.perf_counter() - started
        watcher.join()
        if child.returncode not in codes:
            errors.seek(0)
            raise subprocess.CalledProcessError(child.returncode, argv, stderr=errors.read()[-2000:])
    return Run(seconds=seconds, peak_mb=max(peak) / 1024)


def compare(
    ours: Step, theirs: Step, *, env: Mapping[str, str], runs: int = 5, cores: set[int] | None = None,
    codes: Collection[int] = (0,),
) -> Pair:  # fmt: skip
    """Measure two commands in turn, after a run of each that does not count; `codes` are what ours may end with."""
    pairs = []
    for number in range(runs + 1):
        pair = run_once(ours(), env=env, cores=cores, codes=codes), run_once(theirs(), env=env, cores=cores)
        if number:
            pairs.append(pair)
    return Pair(
        ours=statistics.median(a.seconds for a, _ in pairs),
        theirs=statistics.median(b.seconds for _, b in pairs),
        ratio=statistics.median(a.seconds / b.seconds for a, b in pairs),
        peak_mb=max(a.peak_mb for a, _ in pairs),
    )


def _watch_peak(pid: int, peak: list[int]) -> None:
    """Note the most memory in KiB that a process itself held (VmHWM never falls), until it is gone."""
    status = Path(f"/proc/{pid}/status")
    while True:
        try:
            lines = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        except OSError:
            return
        if not lines:
            return
        peak.append(int(lines[0].split()[1]))
        time.sleep(0.01)
