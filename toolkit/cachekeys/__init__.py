"""Run a command three times, with cold and warm compiler caches, and say what its cache keys do across processes.

`record_keys` is the door. The first run fills a new cache, the second finds it, the third begins with another new one:
a key that is the same in the first and the third does not depend on the process nor on where the cache is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from toolkit.cachekeys.compare import RUNS, CompileSeconds, GraphKeys, PartDifference, compare_keys, compare_seconds
from toolkit.cachekeys.graphs import read_run
from toolkit.cachekeys.values import DEBUGGING, Lookup, RunTrace
from toolkit.errors import UsageError
from toolkit.files import temporary_directory
from toolkit.runs import require_empty, run_command, with_caches

__all__ = [
    "DEBUGGING", "RUNS", "Asked", "CompileSeconds", "GraphKeys", "Lookup", "PartDifference", "Recording", "record_keys"
]  # fmt: skip

TRACE = "TORCH_TRACE"
"""The variable that has torch write its structured trace into the folder it names."""

FOLDERS = ("cold", "warm", "cold-again")
CACHE_OF = ("first", "first", "second")


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What is to be run; `keep` is where the traces and what the runs have printed stay."""

    argv: tuple[str, ...]
    cwd: Path
    environ: Mapping[str, str]
    timeout: float | None = None
    keep: Path | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    """What came of the runs, in the order of RUNS: seconds of each, every lookup, every compile."""

    argv: tuple[str, ...]
    seconds: tuple[float, ...]
    torch: str | None
    graphs: tuple[GraphKeys, ...]
    compiles: tuple[CompileSeconds, ...]
    doubts: tuple[str, ...]
    kept: str | None

    @property
    def findings(self) -> tuple[GraphKeys, ...]:
        """The graphs that are not cached across processes as they should be."""
        return tuple(graph for graph in self.graphs if graph.findings)


def record_keys(asked: Asked, stage: Callable[[str], None]) -> Recording:
    """Run the command and compare its cache keys; `stage` is told what is done next.

    Raises CommandError for a run that fails, and UsageError where it compiles nothing or writes no trace.
    """
    if asked.keep is not None:
        require_empty(asked.keep)
    with temporary_directory("toolkit-cachekey-") as scratch, nullcontext(asked.keep or scratch / "runs") as folder:
        seconds, runs = [], []
        for number, (name, place, cache) in enumerate(zip(RUNS, FOLDERS, CACHE_OF, strict=True), start=1):
            stage(f"run {number} of {len(RUNS)}, {name}")
            trace = folder / place / "trace"
            trace.mkdir(parents=True)
            ran = run_command(
                asked.argv,
                what=f"run {number} of {len(RUNS)}, {name}",
                cwd=asked.cwd,
                environ={**with_caches(asked.environ, scratch / cache), TRACE: str(trace.absolute())},
                timeout=asked.timeout,
                outputs=folder / place,
            )
            seconds.append(ran.seconds)
            runs.append(read_run(trace))
            _require_compiles(runs[-1])
    return Recording(
        argv=asked.argv,
        seconds=tuple(seconds),
        torch=runs[0].torch,
        graphs=tuple(compare_keys(runs)),
        compiles=tuple(compare_seconds(runs)),
        doubts=tuple(dict.fromkeys(doubt for run in runs for doubt in run.doubts)),
        kept=None if asked.keep is None else str(asked.keep),
    )


def _require_compiles(run: RunTrace) -> None:
    if not run.files:
        raise UsageError(
            f"the command wrote no trace into the folder that {TRACE} names",
            hint="expected a program that uses torch.compile, with torch 2.3 or later",
        )
    if not run.lookups:
        what = f"torch {run.torch}" if run.torch else "the torch that wrote it"
        raise UsageError(
            f"the command's trace has no graph that Inductor has compiled, as {what} tells it",
            details=list(run.doubts),
            hint="expected a program that uses torch.compile with the backend `inductor`, the default",
        )
