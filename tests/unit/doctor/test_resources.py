"""Memory, disk, the clock, and variables that torch_npu refuses or does not follow."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.doctor_machines import Machine, plant_machine, wanting
from toolkit.doctor.resources import examine_resources
from toolkit.files import available_cores

CORES = "1 core" if available_cores() == 1 else f"{available_cores()} cores"
NPU = "PYTORCH_NPU_ALLOC_CONF"
GARBAGE = "garbage_collection_threshold"


@pytest.fixture
def machine(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return plant_machine(tmp_path, tmp_path_factory)


def test_a_machine_that_has_all(machine: Machine) -> None:
    found = machine.look(examine_resources)

    assert [one[:2] for one in found] == [
        ("ok", "resources.jobs"),
        ("ok", "resources.disk"),
        ("ok", "resources.clock"),
        ("ok", "switch.backend"),
    ]
    assert found[0][2] == f"MAX_JOBS=1: {CORES}, 960 GiB of memory at 3 GiB a job"
    assert found[1][2].endswith(
        f" GiB free at {machine.place} for the store, temporary files, TORCH_EXTENSIONS_DIR, TORCHINDUCTOR_CACHE_DIR, "
        "TRITON_CACHE_DIR"
    )
    assert found[2][2].endswith(" UTC, as the file systems say")
    assert found[3][2] == "TORCHINDUCTOR_NPU_BACKEND=dvm"


# --- jobs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "grade", "seen"),
    [
        (
            "500",
            "warn",
            f"MAX_JOBS=500, and there are {CORES}, 6 GiB of memory at 3 GiB a job: compilers are killed or wait",
        ),
        ("0", "fail", "MAX_JOBS=0: ninja starts all compilers at once"),
        ("all", "warn", "MAX_JOBS='all' is no number, and torch ignores it"),
        ("²", "warn", "MAX_JOBS='²' is no number, and torch ignores it"),
        ("9" * 5000, "warn", f"MAX_JOBS='{'9' * 5000}' is no number, and torch ignores it"),
    ],
)
def test_a_number_of_jobs_that_does_not_fit(machine: Machine, value: str, grade: str, seen: str) -> None:
    machine.environ["MAX_JOBS"] = value
    (machine.root / "proc/meminfo").write_text("MemAvailable: 7000000 kB\n", encoding="utf-8")

    jobs = min(2, available_cores())
    assert machine.faults(examine_resources) == [(grade, "resources.jobs", seen, f"export MAX_JOBS={jobs}")]


def test_ninja_does_not_know_what_a_control_group_grants(machine: Machine) -> None:
    machine.unset("MAX_JOBS")
    group = machine.root / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("2147483648\n", encoding="ascii")
    (group / "memory.current").write_text("0\n", encoding="ascii")
    (group / "memory.stat").write_text("inactive_file 0\n", encoding="ascii")
    if available_cores() == 1:
        pytest.skip("one core is never too many")

    assert machine.faults(examine_resources) == [
        (
            "warn",
            "resources.jobs",
            f"MAX_JOBS is not set: ninja starts {available_cores()} compilers and more, and there are {CORES}, "
            "2 GiB of memory at 3 GiB a job",
            "export MAX_JOBS=1",
        )
    ]


# --- disk ------------------------------------------------------------------------------------------------------


def test_a_disk_that_is_full(machine: Machine, small_disk: Path) -> None:
    machine.environ["TOOLKIT_STORE"] = str(small_disk / "store")

    assert machine.faults(examine_resources) == [
        (
            "fail",
            "resources.disk",
            f"1 MiB free at {small_disk} for the store",
            "free some (`toolkit cache gc`), or choose other places: TOOLKIT_STORE, TOOLKIT_OVERLAYS, TMPDIR",
        )
    ]


# --- clock -----------------------------------------------------------------------------------------------------


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return what sets the clock that the doctor sees; the file system's stays."""

    def set_to(seconds: float) -> None:
        monkeypatch.setattr("toolkit.doctor.resources.time.time", lambda: seconds)

    return set_to


def test_a_clock_that_was_never_set(machine: Machine, set_clock: Callable[[float], None]) -> None:
    ahead = os.stat(machine.place / "cache").st_mtime
    set_clock(1000.0)

    found = machine.faults(examine_resources)

    assert found[0] == (
        "fail",
        "resources.clock",
        "the clock says 1970-01-01 00:16 UTC: certificates fail, and what is compiled seems older than it is",
        "set it: timedatectl set-ntp true",
    )
    assert [one[:2] for one in found[1:]] == [("warn", "resources.clock")] * 2
    assert ahead > 1000.0


def test_a_disk_with_another_time(machine: Machine, set_clock: Callable[[float], None]) -> None:
    set_clock(time.time() + 3600)

    found = machine.faults(examine_resources)

    assert [one[:2] + one[3:] for one in found] == [
        ("warn", "resources.clock", "let this machine and the disk's server follow one time source")
    ]
    assert found[0][2] in {
        f"a file written at {machine.environ['TORCH_EXTENSIONS_DIR']} is {gap} s behind the clock: ninja builds again, "
        "or does not"
        for gap in range(3590, 3602)
    }


def test_files_from_the_future(machine: Machine) -> None:
    moment = 4_000_000_000
    os.utime(machine.npu / "__init__.py", (moment, moment))

    assert machine.faults(examine_resources) == [
        (
            "warn",
            "resources.clock",
            f"{machine.npu} has files from the future: __init__.py is from 2096-10-02 07:06 UTC",
            "set the clock, and build the overlay again: toolkit build",
        )
    ]


# --- the allocator: each was seen to be refused, or taken, by torch_npu 2.13.0 -----------------------------------


@pytest.mark.parametrize(
    "value",
    [
        "expandable_segments:True",
        "expandable_segments:True,",
        "expandable_segments:True,expandable_segments:False,max_split_size_mb:128",
        "max_split_size_mb:20,garbage_collection_threshold:0.8",
        "roundup_power2_divisions:[256:1,512:2]",
        "page_size:1g,expandable_segments:True",
        "pinned_max_cached_size_mb:0,pinned_max_round_threshold_mb:0,max_split_size_mb:20,base_addr_aligned_kb:0,"
        "large_segment_size_mb:11",
        "pinned_reserve_segment_size_mb:100,per_process_memory_fraction:0.5,throw_on_npumalloc_oom:True,"
        "release_lock_on_npumalloc:True",
    ],
)
def test_options_that_torch_npu_takes(machine: Machine, value: str) -> None:
    machine.environ[NPU] = value

    assert ("ok", "allocator.options", f"{NPU}={value}", "") in machine.look(examine_resources)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (
            "expandable_segment:True",
            "torch_npu knows no option 'expandable_segment'; did you mean 'expandable_segments'?",
        ),
        ("backend:native", "torch_npu knows no option 'backend'"),
        ("expandable_segments=True", "'expandable_segments=True' has '=' for ':'"),
        ("expandable_segments", "expandable_segments has no value"),
        ("expandable_segments:true", "expandable_segments must be True or False, not 'true'"),
        ("multi_stream_lazy_reclaim:1", "multi_stream_lazy_reclaim must be True or False, not '1'"),
        ("max_split_size_mb:10", "max_split_size_mb must be a whole number from 20, not '10'"),
        ("max_split_size_mb:x", "max_split_size_mb must be a whole number from 20, not 'x'"),
        ("max_split_size_mb:²", "max_split_size_mb must be a whole number from 20, not '²'"),
        ("large_segment_size_mb:10", "large_segment_size_mb must be a whole number from 11, not '10'"),
        ("base_addr_aligned_kb:32", "base_addr_aligned_kb must be a whole number from 0 to 16, not '32'"),
        (f"{GARBAGE}:1.5", f"{GARBAGE} must be a number between 0 and 1, not '1.5'"),
        (f"{GARBAGE}:1.0", f"{GARBAGE} must be a number between 0 and 1, not '1.0'"),
        ("per_process_memory_fraction:1.5", "per_process_memory_fraction must be a number from 0 to 1, not '1.5'"),
        ("page_size:2g", "page_size must be 1g, not '2g'"),
    ],
)  # fmt: skip
def test_an_option_that_torch_npu_refuses(machine: Machine, value: str, fault: str) -> None:
    machine.environ[NPU] = value

    assert machine.faults(examine_resources) == [
        ("fail", "allocator.options", f"{NPU}={value}: {fault}", f"take it out of {NPU}, or mend it")
    ]


@pytest.mark.parametrize("other", ["max_split_size_mb:128", "garbage_collection_threshold:0.8"])
def test_options_that_exclude_each_other(machine: Machine, other: str) -> None:
    value = machine.environ[NPU] = f"expandable_segments:True,{other}"

    assert machine.faults(examine_resources) == [
        (
            "fail",
            "allocator.options",
            f"{NPU}={value}: expandable_segments:True excludes {other.partition(':')[0]}: torch_npu refuses",
            "keep expandable_segments:True, which fragments least, and take the others out",
        )
    ]


@pytest.mark.parametrize(
    ("value", "seen", "do"),
    [
        ("segment_size_mb:128", "segment_size_mb is deprecated", "use large_segment_size_mb alone"),
        ("page_size:1g,large_segment_size_mb:64", "page_size:1g overrides large_segment_size_mb",
         "use page_size:1g alone"),
        ("pin_memory_expandable_segments:True,pinned_mem_register:True",
         "pinned_mem_register:True is without effect beside pin_memory_expandable_segments:True", "choose one"),
    ],
)  # fmt: skip
def test_options_that_torch_npu_takes_and_does_not_follow(machine: Machine, value: str, seen: str, do: str) -> None:
    machine.environ[NPU] = value

    assert machine.faults(examine_resources) == [("warn", "allocator.options", f"{NPU}={value}: {seen}", do)]


def test_two_variables_for_one_allocator(machine: Machine) -> None:
    machine.environ[NPU] = machine.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"

    assert machine.faults(examine_resources) == [
        (
            "fail",
            "allocator.variable",
            f"{NPU} and PYTORCH_ALLOC_CONF are both set, and torch_npu refuses that",
            "unset PYTORCH_ALLOC_CONF",
        )
    ]


def test_the_variable_of_cuda(machine: Machine) -> None:
    machine.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

    assert machine.faults(examine_resources) == [
        (
            "warn",
            "allocator.variable",
            "PYTORCH_CUDA_ALLOC_CONF is set, which torch_npu does not read: its allocator has the defaults",
            f"put what is meant for the NPU into {NPU}, and unset PYTORCH_CUDA_ALLOC_CONF",
        )
    ]


# --- switches --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "grade", "line", "seen", "do"),
    [
        ({"TASK_QUEUE_ENABLE": "3"}, "fail", "switch.queue",
         "TASK_QUEUE_ENABLE='3': torch_npu takes 0, 1 or 2 and ends", "unset TASK_QUEUE_ENABLE"),
        ({"TASK_QUEUE_ENABLE": "0"}, "warn", "switch.queue",
         "TASK_QUEUE_ENABLE=0: launches wait for each other, which is slow", "unset TASK_QUEUE_ENABLE after debugging"),
        ({"ASCEND_LAUNCH_BLOCKING": "1"}, "warn", "switch.blocking",
         "ASCEND_LAUNCH_BLOCKING=1: each operator is waited for, which is slow",
         "unset ASCEND_LAUNCH_BLOCKING after debugging"),
        ({"ASCEND_LAUNCH_BLOCKING": "1", "TASK_QUEUE_ENABLE": "2"}, "warn", "switch.blocking",
         "ASCEND_LAUNCH_BLOCKING=1: each operator is waited for, which is slow, and TASK_QUEUE_ENABLE is without "
         "effect",
         "unset ASCEND_LAUNCH_BLOCKING after debugging"),
        ({"ASCEND_LAUNCH_BLOCKING": "true"}, "warn", "switch.blocking",
         "ASCEND_LAUNCH_BLOCKING='true': torch_npu takes 0 or 1", "unset ASCEND_LAUNCH_BLOCKING"),
        ({"TORCHINDUCTOR_NPU_BACKEND": "dvn"}, "fail", "switch.backend",
         "TORCHINDUCTOR_NPU_BACKEND=dvn is none of torch_npu's; did you mean 'dvm'?: unless patched, it silently takes "
         "Triton", "export TORCHINDUCTOR_NPU_BACKEND=dvm"),
        ({"TORCHINDUCTOR_NPU_BACKEND": "ascendc"}, "fail", "switch.backend",
         "TORCHINDUCTOR_NPU_BACKEND=ascendc is none of torch_npu's: unless patched, it silently takes Triton",
         "export TORCHINDUCTOR_NPU_BACKEND=dvm"),
        ({"TORCHINDUCTOR_NPU_BACKEND": "mlir"}, "fail", "switch.backend",
         "TORCHINDUCTOR_NPU_BACKEND is mlir; the recipe sample asks for dvm",
         "activate the overlay, or: export TORCHINDUCTOR_NPU_BACKEND=dvm"),
        ({"TORCHINDUCTOR_NPU_BACKEND": ""}, "warn", "switch.backend",
         "TORCHINDUCTOR_NPU_BACKEND is not set, and the default backend is taken; the recipe sample asks for dvm",
         "activate the overlay, or: export TORCHINDUCTOR_NPU_BACKEND=dvm"),
        ({"HCCL_DETERMINISTIC": "1"}, "warn", "switch.determinism",
         "HCCL_DETERMINISTIC='1', which is not known: expected true, strict, false", "export HCCL_DETERMINISTIC=true"),
        ({"LCCL_DETERMINISTIC": "1"}, "warn", "switch.determinism",
         "LCCL_DETERMINISTIC is on and HCCL_DETERMINISTIC is not: reductions across NPUs differ from run to run",
         "export HCCL_DETERMINISTIC=true"),
    ],
)  # fmt: skip
def test_a_switch_that_is_not_as_it_should_be(
    machine: Machine, environ: dict[str, str], grade: str, line: str, seen: str, do: str
) -> None:
    machine.environ.update(environ)
    wanted = wanting({"TORCHINDUCTOR_NPU_BACKEND": "dvm"})

    assert machine.faults(examine_resources, wanted=wanted) == [(grade, line, seen, do)]


def test_switches_that_are_as_they_should_be(machine: Machine) -> None:
    machine.environ.update(
        {
            "TASK_QUEUE_ENABLE": "2",
            "ASCEND_LAUNCH_BLOCKING": "0",
            "HCCL_DETERMINISTIC": "true",
            "LCCL_DETERMINISTIC": "1",
        }
    )

    assert machine.look(examine_resources, wanted=wanting({"TORCHINDUCTOR_NPU_BACKEND": "dvm"}))[3:] == [
        ("ok", "switch.backend", "TORCHINDUCTOR_NPU_BACKEND=dvm", ""),
        ("ok", "switch.queue", "TASK_QUEUE_ENABLE=2", ""),
        (
            "ok",
            "switch.determinism",
            "HCCL_DETERMINISTIC=true and LCCL_DETERMINISTIC=1: collectives are deterministic, and slower",
            "",
        ),
    ]
