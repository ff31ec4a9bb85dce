"""How many processes, for which degrees, on which NPUs."""

from __future__ import annotations

import pytest

from tests.unit.preflight.builders import Room
from toolkit.preflight.processes import examine_processes

SHARD, EXPERT, TENSOR = (
    f"--parallelism.{name}_degree" for name in ("data_parallel_shard", "expert_parallel", "tensor_parallel")
)
ALL = (f"--parallelism.data_parallel_replicate_degree=1 --parallelism.context_parallel_degree=1 {TENSOR}=1 "
       "--parallelism.pipeline_parallel_degree=1")  # fmt: skip


@pytest.mark.parametrize(
    ("line", "grade", "seen"),
    [
        (f"NGPU=8 ./run.sh {SHARD}=8 {EXPERT}=8", "ok",
         "8 processes for data_parallel_shard_degree 8, expert_parallel_degree 8"),
        (f"torchrun --nproc-per-node 8 a.py {SHARD}=-1 {TENSOR}=2", "ok",
         "8 processes for data_parallel_shard_degree -1, tensor_parallel_degree 2"),
        (f"torchrun --nnodes 2 --nproc_per_node=8 a.py {SHARD} 16", "ok",
         "8 processes on each of 2 nodes for data_parallel_shard_degree 16"),
        ("NGPU=8 ./run.sh", "ok", "8 processes"),
        ("./run.sh", "warn", "how many processes there will be cannot be known from the command"),
        (f"NGPU={'9' * 5000} ./run.sh", "warn", "how many processes there will be cannot be known from the command"),
        (f"NGPU=8 ./run.sh {SHARD} --8 --training.global_batch_size={'9' * 5000}", "ok", "8 processes"),
        ("NGPU=auto ./run.sh", "warn", "how many processes there will be cannot be known from the command"),
        (f"NGPU=4 ./run.sh {SHARD}=8", "fail", "4 processes cannot be shared out over degrees of 8"),
        (f"NGPU=8 ./run.sh {SHARD}=4 {TENSOR}=4", "fail",
         "8 processes cannot be shared out over degrees of 4 x 4 = 16"),
        (f"NGPU=8 ./run.sh {SHARD}=4", "warn",
         "8 processes, and the given degrees are 4: the configuration must make up for the rest"),
        (f"NGPU=8 ./run.sh {SHARD}=4 {ALL}", "fail", "8 processes, and the degrees are 4"),
        (f"NGPU=8 ./run.sh {EXPERT}=3", "fail", "8 processes cannot be shared out over an expert degree of 3"),
        (f"NGPU=8 ./run.sh {SHARD}=8 --training.global_batch_size=20", "fail",
         "--training.global_batch_size=20 is no multiple of 8, what the data-parallel ranks take at a time"),
        (f"NGPU=8 ./run.sh {SHARD}=8 --training.global_batch_size=8 --training.local-batch-size 2", "fail",
         "--training.global_batch_size=8 is no multiple of 16, what the data-parallel ranks take at a time"),
    ],
)  # fmt: skip
def test_processes_and_degrees_must_agree(line: str, grade: str, seen: str, room: Room) -> None:
    found = [one for one in examine_processes(room.subject(line)) if one.name == "preflight.processes"]

    assert [(one.grade, one.seen) for one in found] == [(grade, seen)]
    assert grade == "ok" or all(one.do for one in found)


@pytest.mark.parametrize(
    ("value", "grade", "seen"),
    [
        ("0,1", "ok", "0,1: 2 NPUs"),
        ("0", "fail", "0 lets 1 NPUs be seen, and there are 2 processes"),
        ("1,0", "fail", "1,0: NPU 0 stands behind 1, and CANN wants them in ascending order"),
        ("0,0", "fail", "0,0: NPU 0 stands twice"),
        ("0, 1", "fail", "0, 1: id 2 has a blank (' 1'); CANN stops there and sees only 0"),
    ],
)
def test_the_npus_that_may_be_seen_must_do(value: str, grade: str, seen: str, room: Room) -> None:
    subject = room.subject("NGPU=2 ./run.sh", environ={"ASCEND_RT_VISIBLE_DEVICES": value})
    found = [one for one in examine_processes(subject) if one.name == "preflight.devices"]

    assert [(one.grade, one.seen) for one in found] == [(grade, f"ASCEND_RT_VISIBLE_DEVICES={seen}")]


def test_without_a_choice_nothing_is_said_of_npus(room: Room) -> None:
    assert [one.name for one in examine_processes(room.subject("NGPU=2 ./run.sh"))] == ["preflight.processes"]
