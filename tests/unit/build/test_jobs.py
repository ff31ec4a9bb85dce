"""How many jobs a machine is good for: cores and memory, its own and what control groups leave of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from toolkit.build.jobs import choose_jobs
from toolkit.errors import UsageError

GIB = 1 << 30
NO_LIMIT = "9223372036854771712"


def machine(root: Path, *, free: int, cgroup: str = "", files: Mapping[str, object] | None = None) -> Path:
    """Write what a machine with `free` GiB says of itself below `root`."""
    texts = {
        "proc/meminfo": f"MemTotal: 999999999 kB\nMemAvailable: {free << 20} kB\n",
        "proc/self/cgroup": cgroup,
        **{f"sys/fs/cgroup/{name}": f"{text}\n" for name, text in (files or {}).items()},
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("cores", "free", "jobs", "why"),
    [
        pytest.param(2, 20, 2, "2 jobs: 2 cores, 20 GiB of memory at 3 GiB a job", id="cores"),
        pytest.param(64, 20, 6, "6 jobs: 64 cores, 20 GiB of memory at 3 GiB a job", id="memory"),
        pytest.param(8, 2, 1, "1 job: 8 cores, 2 GiB of memory at 3 GiB a job", id="at least one"),
        pytest.param(1, 64, 1, "1 job: 1 core, 64 GiB of memory at 3 GiB a job", id="one core"),
    ],
)
def test_cores_and_free_memory_decide(tmp_path: Path, cores: int, free: int, jobs: int, why: str) -> None:
    assert choose_jobs(None, cpu_count=cores, root=machine(tmp_path, free=free)) == (jobs, why)


@pytest.mark.parametrize(
    ("cgroup", "files", "jobs"),
    [
        pytest.param("0::/a/b\n", {"a/b/cpu.max": "350000 100000"}, 3, id="v2 quota"),
        pytest.param("0::/a/b\n", {"a/cpu.max": "200000 100000", "a/b/cpu.max": "max 100000"}, 2, id="v2 quota above"),
        pytest.param("0::/a\n", {"a/cpu.max": "50000 100000"}, 1, id="v2 half a core"),
        pytest.param("0::/a\n", {"a/memory.max": 8 * GIB, "a/memory.current": GIB}, 2, id="v2 limit minus use"),
        pytest.param("0::/a\n", {"a/memory.max": "max", "a/memory.high": 6 * GIB, "a/memory.current": 0}, 2,
                     id="v2 throttling limit"),
        pytest.param("0::/a\n", {"a/memory.max": 8 * GIB, "a/memory.current": 7 * GIB,
                                 "a/memory.stat": f"anon 1\ninactive_file {5 * GIB}"}, 2,
                     id="v2 file pages are given back"),
        pytest.param("0::/a\n", {"a/memory.max": GIB, "a/memory.current": 2 * GIB}, 1, id="v2 over its limit"),
        pytest.param("0::/a\n", {"memory.max": 6 * GIB, "memory.current": 0, "a/memory.max": "max"}, 2,
                     id="v2 limit at the top"),
        pytest.param("4:memory:/a\n2:cpuacct,cpu:/a\n0::/\n",
                     {"memory/a/memory.limit_in_bytes": 10 * GIB, "memory/a/memory.usage_in_bytes": GIB}, 3,
                     id="v1 limit minus use"),
        pytest.param("4:memory:/a\n", {"memory/a/memory.limit_in_bytes": 6 * GIB,
                                       "memory/a/memory.usage_in_bytes": 5 * GIB,
                                       "memory/a/memory.stat": f"total_inactive_file {5 * GIB}"}, 2,
                     id="v1 file pages are given back"),
        pytest.param("2:cpuacct,cpu:/a\n", {"cpu/a/cpu.cfs_quota_us": 300000, "cpu/a/cpu.cfs_period_us": 100000}, 3,
                     id="v1 quota"),
        pytest.param("4:memory:/docker/5a\n", {"memory/memory.limit_in_bytes": 7 * GIB,
                                               "memory/memory.usage_in_bytes": 0}, 2,
                     id="v1 in a container, where the path is the host's"),
        pytest.param("4:memory:/a\n2:cpu:/a\n", {"memory/a/memory.limit_in_bytes": NO_LIMIT,
                                                 "memory/a/memory.usage_in_bytes": 0,
                                                 "cpu/a/cpu.cfs_quota_us": -1, "cpu/a/cpu.cfs_period_us": 100000}, 8,
                     id="v1 without limits"),
        pytest.param("0::/../../a\n", {"a/memory.max": 6 * GIB, "a/memory.current": 0}, 2, id="a path from outside"),
    ],
)  # fmt: skip
def test_what_a_control_group_leaves_decides(
    tmp_path: Path, cgroup: str, files: Mapping[str, object], jobs: int
) -> None:
    assert choose_jobs(None, cpu_count=8, root=machine(tmp_path, free=64, cgroup=cgroup, files=files))[0] == jobs


def test_a_machine_that_says_nothing_of_memory_has_cores(tmp_path: Path) -> None:
    assert choose_jobs(None, cpu_count=3, root=tmp_path) == (3, "3 jobs: 3 cores")


def test_what_is_asked_for_is_taken(tmp_path: Path) -> None:
    assert choose_jobs(5, cpu_count=2, root=machine(tmp_path, free=1)) == (5, "5 jobs: as asked for")


def test_no_job_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^a build needs at least one job, 0 was asked for$"):
        choose_jobs(0)


def test_this_machine_is_good_for_at_least_one() -> None:
    jobs, why = choose_jobs(None)

    assert jobs >= 1
    assert why.startswith(f"{jobs} job")
