"""Ending what a check started."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from verify.processes import _children_of, end_tree

CHURN = """
import threading, time
limit = time.monotonic() + 20
while time.monotonic() < limit:
    threads = [threading.Thread(target=lambda: None) for _ in range(20)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""

pytestmark = pytest.mark.skipif(
    not os.path.exists(f"/proc/self/task/{os.getpid()}/children"), reason="this kernel lists no children"
)


def test_threads_that_end_meanwhile_are_passed_over() -> None:
    with subprocess.Popen([sys.executable, "-c", CHURN]) as process:
        try:
            limit = time.monotonic() + 1
            while time.monotonic() < limit:
                assert list(_children_of(process.pid)) == []
        finally:
            process.kill()


def test_a_process_ends_with_all_that_it_started() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 60 & sleep 61 & echo; wait"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        children = list(_children_of(process.pid))
        started = time.monotonic()

        end_tree(process.pid)

        assert process.wait() == -9
        assert process.stdout.read() == b""  # It ends when nobody holds the other end any more.
        assert time.monotonic() - started < 10
    assert len(children) == 2
