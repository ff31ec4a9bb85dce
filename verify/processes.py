"""Start a process that must not outlive its time, nor leave behind what it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path


def run_limited(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: Path, seconds: float) -> int:
    """Run a process to its end, its output into `log`, and return its code; raise TimeoutError where it takes longer.

    It stays in this process's group, so that what ends this one ends it too.
    """
    with log.open("wb") as stream:
        child = subprocess.Popen(
            argv, cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT
        )
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"did not end within {seconds:.0f} s") from None
    finally:
        if child.poll() is None:
            end_tree(child.pid)
            child.wait()


def end_tree(pid: int) -> None:
    """Kill a process with all that it started; each is stopped first, so that it starts nothing more meanwhile."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        for child in _children_of(pid):
            end_tree(child)
        os.kill(pid, signal.SIGKILL)


def _children_of(pid: int) -> Iterator[int]:
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # A thread that ends takes its listing with it.
            yield from map(int, listing.read_text().split())
