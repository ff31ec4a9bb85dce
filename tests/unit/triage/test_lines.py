"""A line of a log, its prefixes peeled: every prefix before every kind of content, content that looks like a prefix."""

from __future__ import annotations

import re
import time
from datetime import datetime, timezone
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.triage.lines import LINE_KEPT, Line, peel
from toolkit.triage.stamps import read_stamp


def at(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0, micros: int = 0) -> float:
    return datetime(year, month, day, hour, minute, second, micros, tzinfo=timezone.utc).timestamp()


def said(line: Line) -> dict[str, Any]:
    """What a line's prefixes said, without what they left open."""
    silent = {"rank": None, "when": None, "has_year": False, "level": "", "origin": "", "frame": ""}
    return {name: getattr(line, name) for name, value in silent.items() if getattr(line, name) != value}


NOON = {"when": at(2026, 8, 20, 12, 0, 1), "has_year": True}
NOON_MS = {"when": at(2026, 8, 20, 12, 0, 1, micros=250_000), "has_year": True}
NO_YEAR = {"when": at(1970, 8, 20, 12, 0, 1)}
CANN_TIME = {"when": at(2026, 8, 20, 12, 0, 1, micros=250_003), "has_year": True}

CONTENT = [
    "Traceback (most recent call last):",
    '  File "/srv/model/net.py", line 12, in forward',
    "    raise ShapeError(got)",
    "    ~~~~^^^^^^^^",
    "RuntimeError: the kernel gave nothing",
    "torch._inductor.exc.InductorError: KeyError: 'q'",
    "EZ9999: Inner Error!",
    "step: 40  loss: 2.5000",
]

ALONE = [
    # who
    ("torch", "[rank3]: ", {"rank": 3}),
    ("torchrun-rank", "[rank12]:", {"rank": 12}),
    ("torchrun-default", "[default0]:", {"rank": 0}),
    ("torchrun-role", "[trainer5]:", {"rank": 5}),
    ("bracket-no-colon", "[rank3] ", {"rank": 3}),
    ("process-group", "[Rank 3] ", {"rank": 3}),
    ("lightning", "[rank: 6] ", {"rank": 6}),
    ("accelerate", "[RANK 0] ", {"rank": 0}),
    ("rank-equals", "rank=3 ", {"rank": 3}),
    ("rank-equals-colon", "rank=3: ", {"rank": 3}),
    ("rank-colon", "rank3: ", {"rank": 3}),
    ("rank-word", "Rank 3: ", {"rank": 3}),
    ("ray-worker", "(Worker pid=12) ", {}),
    ("ray-ip", "(RayTrainWorker pid=12, ip=10.0.0.3) ", {}),
    ("ray-rank", "(TrainWorker rank=3, pid=12, ip=10.0.0.3) ", {"rank": 3}),
    ("vllm-rank", "(VllmWorker rank=7 pid=2159) ", {"rank": 7}),
    ("vllm-engine", "(EngineCore_DP0 pid=12) ", {}),
    ("vllm-tensor-parallel", "(Worker_TP1 pid=12) ", {"rank": 1}),
    ("vllm-tensor-and-expert", "(Worker_TP2_EP2 pid=12) ", {"rank": 2}),
    ("vllm-many-parallel", "(Worker_DP1_TP2 pid=12) ", {}),
    ("ray-function", "(train_loop pid=12) ", {}),
    ("ray-nameless", "(pid=12) ", {}),
    ("ray-repr", "(Actor(index=3) pid=12) ", {}),
    ("raylet", "(raylet, ip=10.0.0.3) ", {}),
    ("srun", "3: ", {"rank": 3}),
    ("srun-many", "127: ", {"rank": 127}),
    ("mpirun-4", "[1,3]<stderr>:", {"rank": 3}),
    ("mpirun-5", "[prterun-n18-100629@1,2]<stdout>: ", {"rank": 2}),
    ("pdsh", "node-1: ", {}),
    ("pdsh-domain", "compute-0-1.cluster.local: ", {}),
    ("pdsh-worker", "worker3: ", {}),
    ("kubectl-bar", "pod/trainer-0 | ", {}),
    ("kubectl-bracket", "[pod/trainer-0/main] ", {}),
    ("compose", "trainer-1  | ", {}),
    ("compose-1", "stack_trainer_1    | ", {}),
    # when
    ("iso", "2026-08-20 12:00:01 ", NOON),
    ("iso-comma", "2026-08-20 12:00:01,250 ", NOON_MS),
    ("iso-point", "2026-08-20 12:00:01.250 ", NOON_MS),
    ("iso-t", "2026-08-20T12:00:01 ", NOON),
    ("iso-z", "2026-08-20T12:00:01.250Z ", NOON_MS),
    ("iso-zone", "2026-08-20T20:00:01+08:00 ", NOON),
    ("iso-zone-blank", "2026-08-20 07:00:01 -0500 ", NOON),
    ("iso-utc", "2026-08-20 12:00:01 UTC ", NOON),
    ("iso-slashes", "2026/08/20 12:00:01 ", NOON),
    ("elastic", "2026-08-20_12:00:01 ", NOON),
    ("iso-colon", "2026-08-20 12:00:01: ", NOON),
    ("iso-dash", "2026-08-20 12:00:01 - ", NOON),
    ("bracketed", "[2026-08-20 12:00:01] ", NOON),
    ("bracketed-comma", "[2026-08-20 12:00:01,250]: ", NOON_MS),
    ("cann-time", "2026-08-20-12:00:01.250.003 ", CANN_TIME),
    ("american", "08/20/2026 12:00:01 ", NOON),
    ("vllm-time", "08-20 12:00:01 ", NO_YEAR),
    ("mmengine", "08/20 12:00:01 ", NO_YEAR),
    ("ctime", "[Thu Aug 20 12:00:01 2026] ", NOON),
    ("clock", "12:00:01 ", {"when": 43201.0}),
    ("clock-bracketed", "[12:00:01.500] ", {"when": 43201.5}),
    ("syslog", "Aug 20 12:00:01 node1 python3[871]: ", NO_YEAR),
    ("syslog-day", "Aug  2 12:00:01 node1 slurmd: ", {"when": at(1970, 8, 2, 12, 0, 1)}),
    ("journald-iso", "2026-08-20T12:00:01+0000 node1 python3[871]: ", NOON),
    ("rfc5424", "<34>1 2026-08-20T12:00:01Z node1 train 871 - - ", NOON),
    ("cri", "2026-08-20T12:00:01.250000000Z stderr F ", NOON_MS),
    ("sglang", "[2026-08-20 12:00:01 TP1] ", {**NOON, "rank": 1}),
    ("sglang-both", "[2026-08-20 12:00:01 DP0 TP1] ", NOON),
    # how loudly
    ("level", "ERROR ", {"level": "error"}),
    ("level-bracket", "[ERROR] ", {"level": "error"}),
    ("level-filled", "[WARN ] ", {"level": "warning"}),
    ("level-small", "[info] ", {"level": "info"}),
    ("logging", "WARNING:train.loop:", {"level": "warning"}),
    ("critical", "CRITICAL:root:", {"level": "fatal"}),
    ("time-level", "2026-08-20 12:00:01 DEBUG ", {**NOON, "level": "debug"}),
    ("dashes", "2026-08-20 12:00:01,250 - root - ERROR - ", {**NOON_MS, "level": "error"}),
    ("dashes-nameless", "2026-08-20 12:00:01,250 - ERROR - ", {**NOON_MS, "level": "error"}),
    ("dashes-name-last", "08/20/2026 12:00:01 - INFO - __main__ - ", {**NOON, "level": "info"}),
    ("name-level", "2026-08-20 12:00:01 torch.distributed ERROR ", {**NOON, "level": "error"}),
    (
        "loguru",
        "2026-08-20 12:00:01.250 | ERROR    | train.loop:step:12 - ",
        {**NOON_MS, "level": "error", "origin": "train.loop:step:12"},
    ),
    ("bars", "2026-08-20 12:00:01.250 | INFO | ", {**NOON_MS, "level": "info"}),
    ("titan", "[titan] 2026-08-20 12:00:01,250 - root - INFO - ", {**NOON_MS, "level": "info"}),
    ("old-torch", "[2026-08-20 12:00:01,250] torch._dynamo.guards: [DEBUG] ", {**NOON_MS, "level": "debug"}),
    (
        "old-dynamo",
        "[2026-08-20 12:00:01,250] [1/0_1] torch._dynamo.guards: [DEBUG] ",
        {**NOON_MS, "level": "debug", "frame": "[1/0_1]"},
    ),
    ("torch-npu-logger", "torch_npu.memory: [ERROR] [871] ", {"level": "error"}),
    # where it was written
    (
        "glog",
        "E0820 12:00:01.250000 4211 torch/_dynamo/variables.py:70] ",
        {"when": NO_YEAR["when"] + 0.25, "level": "error", "origin": "torch/_dynamo/variables.py:70"},
    ),
    (
        "glog-year",
        "I20260820 12:00:01.250000 4211 torch/_dynamo/variables.py:70] ",
        {**NOON_MS, "level": "info", "origin": "torch/_dynamo/variables.py:70"},
    ),
    (
        "dynamo",
        "W0820 12:00:01 7 torch/_dynamo/guards.py:12] [17/8] ",
        {**NO_YEAR, "level": "warning", "origin": "torch/_dynamo/guards.py:12", "frame": "[17/8]"},
    ),
    (
        "dynamo-artifact",
        "V0820 12:00:01 7 torch/_dynamo/guards.py:12] [0/1_2] [__recompiles] ",
        {**NO_YEAR, "level": "debug", "origin": "torch/_dynamo/guards.py:12", "frame": "[0/1_2]"},
    ),
    (
        "dynamo-autograd",
        "V0820 12:00:01 7 torch/_dynamo/guards.py:12] [!0/1/2] ",
        {**NO_YEAR, "level": "debug", "origin": "torch/_dynamo/guards.py:12", "frame": "[!0/1/2]"},
    ),
    (
        "c10",
        "[W0820 12:00:01.250 NPUCachingAllocator.cpp:168] ",
        {"when": NO_YEAR["when"] + 0.25, "level": "warning", "origin": "NPUCachingAllocator.cpp:168"},
    ),
    (
        "c10-month-unfilled",
        "[E820 12:00:01.250000000 socket.cpp:12] ",
        {"when": NO_YEAR["when"] + 0.25, "level": "error", "origin": "socket.cpp:12"},
    ),
    (
        "absl-new",
        "E0000 00:00:1787227201.250000   871 dnn.cc:83] ",
        {**NOON_MS, "level": "error", "origin": "dnn.cc:83"},
    ),
    ("thread-level", "2026-08-20 12:00:01 [MainThread] ERROR ", {**NOON, "level": "error"}),
    ("level-parenthesis", "2026-08-20 12:00:01 (ERROR) ", {**NOON, "level": "error"}),
    (
        "plog-thread",
        "[ERROR] HCCL(871,python):2026-08-20-12:00:01.250.003 [socket.cc:12][872]",
        {**CANN_TIME, "level": "error", "origin": "socket.cc:12"},
    ),
    (
        "plog-tight",
        "[ERROR]HCCL(871,a_b):2026-08-20-12:00:01.250.003[socket.cc:12][872]",
        {**CANN_TIME, "level": "error", "origin": "socket.cc:12"},
    ),
    ("torchx", "trainer/0 [3]:", {"rank": 3}),
    ("torchx-glog", "net_1b/0 I0820 12:00:01 7 api.py:67] ", {**NO_YEAR, "level": "info", "origin": "api.py:67"}),
    ("c10-timeless", "[W OperatorEntry.cpp:153] ", {"level": "warning", "origin": "OperatorEntry.cpp:153"}),
    ("tensorflow", "2026-08-20 12:00:01: I core/port.cc:15] ", {**NOON, "level": "info", "origin": "core/port.cc:15"}),
    ("vllm", "ERROR 08-20 12:00:01 [core.py:70] ", {**NO_YEAR, "level": "error", "origin": "core.py:70"}),
    ("vllm-old", "ERROR 08-20 12:00:01 core.py:70] ", {**NO_YEAR, "level": "error", "origin": "core.py:70"}),
    ("ray", "2026-08-20 12:00:01,250\tERR scripts.py:67 -- ", {**NOON_MS, "level": "error", "origin": "scripts.py:67"}),
    (
        "ray-native",
        "[2026-08-20 12:00:01,250 C 871 872] (raylet) main.cc:9: ",
        {**NOON_MS, "level": "fatal", "origin": "main.cc:9"},
    ),
    (
        "deepspeed",
        "[2026-08-20 12:00:01,250] [INFO] [config.py:73:print] ",
        {**NOON_MS, "level": "info", "origin": "config.py:73:print"},
    ),
    ("transformers", "[INFO|run.py:5] 2026-08-20 12:00:01,250 >> ", {**NOON_MS, "level": "info", "origin": "run.py:5"}),
    (
        "mindie",
        "[2026-08-20 20:00:01.250+08:00] [871] [872] [llm] [ERROR] [run.cpp:5] : ",
        {**NOON_MS, "level": "error", "origin": "run.cpp:5"},
    ),
    (
        "plog",
        "[ERROR] RUNTIME(871,python):2026-08-20-12:00:01.250.003 [api.cc:88]871 ",
        {**CANN_TIME, "level": "error", "origin": "api.cc:88"},
    ),
    ("plog-event", "[EVENT] GE(871,python3):2026-08-20-12:00:01.250.003 ", {**CANN_TIME, "level": "info"}),
    ("pta", "[ERROR] 2026-08-20-12:00:01 (PID:871, Device:-1, RankID:-1) ", {**NOON, "level": "error"}),
    ("pta-rank", "[ERROR] 2026-08-20-12:00:01 (PID:871, Device:3, RankID:3) ", {**NOON, "level": "error", "rank": 3}),
    ("cann-process", "[PID: 871] 2026-08-20-12:00:01.250.003 ", CANN_TIME),
    # colours that lost their escape character
    ("orphan-colour", "[1;36m(EngineCore pid=12)[0;0m ", {}),
    ("syslog-colour", "#033[36m(Worker pid=12)#033[0m ", {}),
    ("caret-colour", "^[[31mERROR^[[0m ", {"level": "error"}),
    ("byte-order-mark", "\ufeff", {}),
]


@pytest.mark.parametrize(("prefix", "expected"), [case[1:] for case in ALONE], ids=[case[0] for case in ALONE])
def test_a_prefix_says_what_it_says_and_leaves_the_content(prefix: str, expected: dict[str, Any]) -> None:
    lines = [peel(prefix + content + "\n", 7) for content in CONTENT]
    assert [line.text for line in lines] == CONTENT
    assert [said(line) for line in lines] == [expected] * len(CONTENT)
    assert [line.raw for line in lines] == [(prefix + content) for content in CONTENT]
    assert {line.number for line in lines} == {7}


NEEDS_TEXT = ("rank-equals", "level", "caret-colour")


@pytest.mark.parametrize("prefix", [case[1] for case in ALONE if case[0] not in NEEDS_TEXT])
def test_a_prefix_before_nothing_leaves_nothing(prefix: str) -> None:
    assert peel(prefix + "\n", 1).text == ""


NESTED = [
    ("torchrun-torch", "[default0]:[rank8]: ", {"rank": 8}),
    ("srun-torch", "1: [rank9]: ", {"rank": 9}),
    ("torch-process-group", "[rank9]:[E0820 12:00:01.250 PG.cpp:1] [Rank 1] ", {"rank": 9}),
    ("ray-torch", "(RayTrainWorker pid=12, ip=10.0.0.3) [rank2]: ", {"rank": 2}),
    ("ray-ray", "(Server pid=12) (Worker_TP3 pid=13) ERROR 08-20 12:00:01 [x.py:6] ", {"rank": 3, "level": "error"}),
    ("pdsh-srun", "node-1: 12: ", {"rank": 12}),
    ("compose-titan", "trainer-1  | [rank0]:[titan] 2026-08-20 12:00:01,250 - root - INFO - ", {"rank": 0}),
    ("cri-torch", "2026-08-20T12:00:01.250Z stderr F [rank4]: ", {"rank": 4}),
    ("mpirun-syslog", "[1,3]<stderr>:Aug 20 12:00:01 node1 python3[871]: ", {"rank": 3}),
    ("torch-glog", "[rank0]: E0820 12:00:01 4211 torch/a/b.py:2] [3/1] ", {"rank": 0, "frame": "[3/1]"}),
    ("vllm-pta", "ERROR 08-20 12:00:01 [x.py:6] [ERROR] 2026-08-20-12:00:01 (PID:1, Device:1, RankID:5) ", {"rank": 5}),
    ("quote-torch", "> [rank0]: ", {"rank": 0}),
    ("twice-quoted", "> > [rank0]: ", {"rank": 0}),
    ("indented-torch", "      [rank0]: ", {"rank": 0}),
    ("bar-quoted", "| [rank0]: ", {"rank": 0}),
    ("megatron", " [2026-08-20 12:00:01] ", {"level": ""}),
]


@pytest.mark.parametrize(("prefix", "expected"), [case[1:] for case in NESTED], ids=[case[0] for case in NESTED])
def test_prefixes_nest(prefix: str, expected: dict[str, Any]) -> None:
    lines = [peel(prefix + content, 1) for content in CONTENT]
    assert [line.text for line in lines] == CONTENT
    assert [{name: getattr(line, name) for name in expected} for line in lines] == [expected] * len(CONTENT)


CHAINABLE = [case for case in ALONE if not case[0].startswith(("level", "caret", "byte", "rfc", "syslog"))]


@pytest.mark.parametrize("outer", ["[rank5]: ", "(Worker pid=12) ", "2026-08-20T12:00:01Z stdout F ", "node-7: "])
@pytest.mark.parametrize("inner", [case[1] for case in CHAINABLE], ids=[case[0] for case in CHAINABLE])
def test_any_prefix_stands_behind_another(outer: str, inner: str) -> None:
    assert peel(outer + inner + "ValueError: no such axis", 1).text == "ValueError: no such axis"


DOUBTFUL = ["gpu17: ", "gpu-b-17: ", "10.0.0.3: ", " 3: ", "master: ", "trainer | ", "a100-04.lab: ", "> ", "| "]


@pytest.mark.parametrize("prefix", DOUBTFUL)
def test_a_doubtful_prefix_goes_before_what_is_part_of_an_error(prefix: str) -> None:
    parts = [content for content in CONTENT if not content.startswith(("step", "    "))]
    assert [peel(prefix + content, 1).text for content in parts] == parts


@pytest.mark.parametrize("prefix", [prefix for prefix in DOUBTFUL if prefix != "trainer | "])
def test_a_doubtful_prefix_goes_before_indented_code(prefix: str) -> None:
    assert peel(prefix + "    raise ShapeError(got)", 1).text == "    raise ShapeError(got)"


@pytest.mark.parametrize("prefix", DOUBTFUL)
def test_a_doubtful_prefix_stays_before_anything_else(prefix: str) -> None:
    assert peel(prefix + "loss went up", 1).text == prefix + "loss went up"


STAYS = [
    "    tmp2 = tl.broadcast_to(tmp1, [1, 1])",
    "           ^",
    "    ^^^^^^^^^^",
    "KeyError: 'r'",
    "KeyError: 12",
    "E19999: Inner Error!",
    "EI0006: the peer said nothing",
    "[1, 2]: a list",
    "[1,2]: a list",
    "[3]: a reference",
    "[3] a footnote",
    "[311/902] Building CXX object csrc/x.o",
    "[0.693147, 0.5]",
    "[0.693147]",
    "[5m] of history",
    "{1: 2, 3: 4}",
    "{'rank': 3}",
    "(1, 2) is a shape",
    "(pid 12) said so",
    "('x', 3)",
    "$ python train.py --rank=3",
    "+ torchrun --nproc_per_node=8 train.py",
    ">>> import torch",
    ">>> x = [1, 2]",
    "> loss went up",
    "| step | loss |",
    "| ERROR | 12 |",
    "|   0  910B4 | OK | 93.1 |",
    "      |     int x = 3;",
    "      |         ^",
    "   12 |     int x = 3;",
    "         12:     int x = 3;",
    "c++: fatal error: Killed signal terminated program cc1plus",
    "x86_64-linux-gnu-g++-12: fatal error: no input files",
    "ninja: build stopped: subcommand failed.",
    "ninja: error: loading 'build.ninja'",
    "python3: can't open file 'train.py'",
    "srun: error: node1: task 3: Killed",
    "slurmstepd: error: step 4.0 was killed",
    "kernel.cpp:12:3: error: no member named 'x'",
    "/opt/x.py:12: UserWarning: slow",
    "error: ub overflow, requires 8 bits while 4 bits avaliable!",
    'loc("/tmp/k.mlir":2:1): error: ub overflow',
    "Fatal Python error: Aborted",
    "Thread 0x00007f1 (most recent call first):",
    "ERRORS were found",
    "ERROR_CODE = 3",
    "DEBUG = False",
    "ERROR  = 3",
    "ERROR",
    "return '\\x1b[31m' + text + '\\x1b[0m'",
    "[5m] of history [10m]",
    "<9>of ten",
    "INFO_LEVEL",
    "WARNINGS: 3",
    "ERR00001 something was not found",
    "Error: no such option",
    "Warning: slow",
    "rank 3 in a world of 8",
    "rank=3, world_size=8",
    "rank mismatch: [1], [1, 1]",
    "rankdir=LR",
    "step: 1 loss: 2",
    "step1: loss",
    "layer0: Linear(4, 4)",
    "loss-1 | 3.5",
    "host2device: 3 ms",
    "server: started",
    "u0 > 4",
    "2026-13-20 11:02:11 is no time",
    "2026-08-20 25:02:11 is no time",
    "2026-08-20 is a day",
    "2026-08-20-12:00:01.log was written",
    "12:00 is noon",
    "12.5 GiB free",
    "3 errors",
    "1:2",
    "May be slow",
    "March 3 was the day",
    "Sun 3",
    "W0820 is a part number",
    "E0820 12:00 x",
    "[W] warned",
    "[rank] of a matrix",
    "[rank0, rank1]",
    "[titan] says hello",
    "[__init__] called",
    "[core.py:396] called",
    "[0/0] is a fraction",
    "[c10d] no peer answered",
    "[pid 12] exited",
    "[PID: 871] exited",
    "<stderr>:",
    "<34 apples",
    "- item of a list",
    "-- signature",
    "---",
    ": colon",
    "#0 main () at x.c:3",
    "#include <torch.h>",
    "^[0-9]+$",
    "%3 = add %1, %2",
    "100% done",
    "100%|##########| 3/3 [00:01<00:00, 3.00it/s]",
    "Loading:  45%|####5     | 45/100 [00:01<00:02, 31.11it/s]",
    "  + 3 more",
    "bar = '45%|####5     | 45/100 [00:01<00:02, 31.11it/s]',",
    "  |  ",
    "E   ",
    "E       assert 3 == 4",
    "at 22:11:",
    "triton.compiler.errors.CompilationError: at 22:11:",
    "concurrent.futures.process._RemoteTraceback:",
    "   File \"/opt/model.py\", line 88, in route",
    "        TraceBack: no port was free, port[1]",
    "Caused by: if rows > 3:  # net.py:7 in pick (_dynamo/x.py:2 in look)",
    "Exception raised from make at /src/x.cpp:7 (most recent call first):",
    "frame #0: c10::make(int) + 0x42 (0x15 in libc10.so)",
    "  what():  NPU error",
    "[rank0 of 8",
    "[2026] was a year",
    "(raylet crashed",
    "pod/x is gone",
    "\u2502 /srv/net.py:12 in forward \u2502",
]  # fmt: skip


@pytest.mark.parametrize("text", STAYS)
def test_content_that_looks_like_a_prefix_stays(text: str) -> None:
    line = peel(text, 1)
    assert line.text == text.rstrip()
    assert (line.rank, line.when, line.origin, line.frame) == (None, None, "", "")


@pytest.mark.parametrize("text", [text for text in STAYS if not text.startswith(("- ", ": ", "[titan", "[core"))])
def test_it_stays_behind_a_prefix_too(text: str) -> None:
    assert peel("(Worker pid=12) " + text, 1).text == text.rstrip()


CODED = "EI0006: 2026-08-20-12:00:01.250.003 Waiting for the peer took too long."
CODED_PROCESS = "EJ0003: [PID: 871] 2026-08-20-12:00:01.250.003 The port is taken."


@pytest.mark.parametrize("text", [CODED, CODED_PROCESS], ids=["code-time", "code-process-time"])
@pytest.mark.parametrize("prefix", ["", "[rank0]: ", "(Worker pid=12) "])
def test_the_time_behind_a_code_of_cann_is_read_and_stays(prefix: str, text: str) -> None:
    line = peel(prefix + text, 1)
    assert line.text == text
    assert {"when": line.when, "has_year": line.has_year} == CANN_TIME


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("error: no", "error"),
        ("Error: no", "error"),
        ("warning: slow", "warning"),
        ("Warning: slow", "warning"),
        ("fatal: no repository", "fatal"),
        ("2026-08-20 12:00:01 error: ub overflow", "error"),
        ("[W0820 12:00:01 x.cpp:1] Error: slow", "warning"),
        ("ERROR WARNING is what was set", "error"),
        ("INFO:launcher:[ERROR] the child died", "error"),
        ("step: 1", ""),
        ("Errors: 3", ""),
    ],
)
def test_a_level_is_the_closest_or_else_how_the_text_begins(text: str, level: str) -> None:
    assert peel(text, 1).level == level


def test_nccl_says_its_level_behind_its_process() -> None:
    line = peel("a100-03:2351:2678 [2] NCCL WARN no device", 1)
    assert (line.text, line.level, line.rank) == ("NCCL WARN no device", "warning", None)


def test_cann_names_stages_behind_its_thread() -> None:
    head = "[ERROR] HCCL(871,python):2026-08-20-12:00:01.250.003 [task.cc:27]"
    for thread in (" [872]", "[872]", "[tid:872]", "[tid:872] ", ""):
        assert peel(f"{head}{thread}[Exec][Timeout]failed", 1).text == "[Exec][Timeout]failed"


def test_a_second_bare_level_is_content() -> None:
    assert peel("INFO ERROR rate is low", 1).text == "ERROR rate is low"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("INFO     filled to eight", "filled to eight"),
        ("INFO:     as uvicorn has it", "as uvicorn has it"),
        ("WARNING  filled to eight", "filled to eight"),
        ('ERROR   File "x.py", line 3', '  File "x.py", line 3'),
        ("ERROR     raise X", "    raise X"),
        ("CRITICAL     raise X", "    raise X"),
        ("[08/20/26 12:00:01] INFO     as rich has it", "as rich has it"),
        ("           WARNING  as rich has it", "as rich has it"),
        ('[rank0]:   File "x.py"', '  File "x.py"'),
        ('[rank0]:  File "x.py"', '  File "x.py"'),
        ("[rank0]:     raise X", "    raise X"),
        ("[rank0]:    raise X", "    raise X"),
        ("[rank0]:Traceback (most recent call last):", "Traceback (most recent call last):"),
        ('  |   File "x.py", line 3', '  File "x.py", line 3'),
        ("  |     raise X", "    raise X"),
        ("    | ValueError: 3", "ValueError: 3"),
        (
            "  + Exception Group Traceback (most recent call last):",
            "Exception Group Traceback (most recent call last):",
        ),
        ('>   File "x.py", line 3', '  File "x.py", line 3'),
        ("E       ImportError: no such library", "ImportError: no such library"),
        ("node-1:     raise X", "    raise X"),
        ("gpu17:     raise X", "    raise X"),
        ("\t[rank0]: x", "x"),
    ],
)
def test_the_indentation_that_a_program_wrote_is_kept(raw: str, text: str) -> None:
    assert peel(raw, 1).text == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("\x1b[31mKeyError: 'x'\x1b[0m", "KeyError: 'x'"),
        ("a \x1b[1;4mbold\x1b[22m word", "a bold word"),
        ("\x1b[36m(Worker pid=12)\x1b[0m \x1b[31mERROR\x1b[0m broke", "broke"),
        ("\x1b[2K\x1b[1G\x1b[?25lTraceback (most recent call last):", "Traceback (most recent call last):"),
        ("\x1b]0;a title\x07said", "said"),
        ("\x1b]8;;file:///x\x1b\\said\x1b]8;;\x1b\\", "said"),
        ("\x1b(Bsaid\x1b[m", "said"),
        ("\x1b[Asaid", "said"),
        ("\x1b[38;5;208m[rank3]:\x1b[0m said", "said"),
        ("cut \x1b[3", "cut"),
        ("cut \x1b", "cut"),
    ],
)
def test_colours_and_cursor_moves_go(raw: str, text: str) -> None:
    assert peel(raw, 1).text == text


BAR = " 45%|####5     | 45/100 [00:01<00:02, 31.11it/s]"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (f"\r{BAR}\rTraceback (most recent call last):", "Traceback (most recent call last):"),
        (f"\r{BAR}\r{BAR}\r", BAR),
        (f"{BAR}\r\x1b[K\r\r\n", BAR),
        ("said\r\n", "said"),
        ("said\r\r\n", "said"),
        ("\rsaid", "said"),
        ("\r\r\r", ""),
        (f"{BAR}Traceback (most recent call last):", "Traceback (most recent call last):"),
        (f"Loading{BAR}[W OperatorEntry.cpp:153] slow", "slow"),
        (f"shards:  50% Completed | 1/2 [00:01<00:01,  1.00s/it]{BAR}", BAR),
        (f"\r{BAR}\r{BAR}RuntimeError: broke", "RuntimeError: broke"),
    ],
)
def test_a_progress_bar_leaves_what_was_written_last(raw: str, text: str) -> None:
    expected = text if "Completed" not in raw else raw
    assert peel(raw, 1).text == expected.rstrip()


def test_the_rank_before_a_progress_bar_is_kept() -> None:
    line = peel(f"[rank3]:{BAR}\r{BAR}\rTraceback (most recent call last):", 1)
    assert (line.rank, line.text) == (3, "Traceback (most recent call last):")


def test_what_ray_puts_behind_a_line_goes() -> None:
    line = peel("(Worker pid=12) KeyError: 'r' [repeated 7x across cluster]", 1)
    assert line.text == "KeyError: 'r'"
    assert peel(f"{BAR} [repeated 7x across cluster]", 1).text == BAR


TIMES = [
    ("2026-08-20T12:00:01.123456789Z", 0.123456789, 0, True),
    ("2026-08-20 12:00:01,9", 0.9, 0, True),
    ("2026-08-20 12:00:01+05:30", 0.0, -19800, True),
    ("2026-08-20 12:00:01 -0330", 0.0, 12600, True),
    ("2026-08-20T12:00:01GMT", 0.0, 0, True),
    ("2026-08-20-12:00:01.123.456", 0.123456, 0, True),
    ("08/20/26 12:00:01", 0.0, 0, True),
    ("Aug 20 12:00:01 2026", 0.0, 0, True),
    ("Thu Aug 20 12:00:01 UTC 2026", 0.0, 0, True),
    ("20260820 12:00:01.5", 0.5, 0, True),
    ("0820 12:00:01.5", 0.5, 0, False),
    ("820 12:00:01.5", 0.5, 0, False),
    ("08-20 12:00:01", 0.0, 0, False),
    ("Aug 20 12:00:01.25", 0.25, 0, False),
]


@pytest.mark.parametrize(("text", "fraction", "shift", "has_year"), TIMES, ids=[case[0] for case in TIMES])
def test_a_time_is_read_in_any_spelling(text: str, fraction: float, shift: int, has_year: bool) -> None:
    when, year = read_stamp(text)
    assert when == pytest.approx(at(2026 if has_year else 1970, 8, 20, 12, 0, 1) + fraction + shift, abs=1e-6)
    assert year is has_year


def test_a_day_that_a_month_has_not_is_no_error() -> None:
    assert read_stamp("2026-02-30 00:00:00") == (at(2026, 3, 2), True)
    assert read_stamp("0229 00:00:00") == (at(1970, 3, 1), False)


def test_a_text_without_a_time_of_day_is_refused() -> None:
    with pytest.raises(ValueError, match="could not convert string to float: '2026-08-20'"):
        read_stamp("2026-08-20")


def test_of_two_times_the_first_with_a_year_counts() -> None:
    inner = "E0820 11:59:59 4211 torch/x.py:1] broke"
    assert peel(f"2026-08-20T12:00:01Z stderr F {inner}", 1).when == NOON["when"]
    assert peel(f"Aug 20 12:00:01 [2026-08-20 12:00:01] {inner}", 1).when == NOON["when"]
    assert peel("2026-08-20 12:00:01 2026-08-21 12:00:01 x", 1).when == NOON["when"]


@settings(deadline=None)
@given(raw=st.text())
def test_any_text_is_peeled(raw: str) -> None:
    line = peel(raw, 1)
    assert "\x1b" in raw or line.text in raw
    assert "\x1b" not in line.text
    assert line.text == line.text.rstrip()
    assert line.raw == raw.rstrip()


PIECES = [case[1] for case in ALONE] + [*DOUBTFUL, *CONTENT, BAR, "\r", "\x1b[31m", "\x1b", "[", "]", " ", "3"]


@settings(deadline=None)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=16))
def test_prefixes_in_any_order_leave_an_end_of_the_line(pieces: list[str]) -> None:
    raw = re.sub(r"(?:#033|\^\[)?\[[\d;]*m", "", "".join(pieces).replace("\x1b", ""))
    line = peel(raw, 1)
    assert raw.split("\r")[-1].rstrip().endswith(line.text) or "\r" in raw
    assert line.text in raw


@settings(deadline=None)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=16))
def test_escape_characters_go_wherever_they_stand(pieces: list[str]) -> None:
    assert not set("\x1b\r") & set(peel("".join(pieces), 1).text)


FIVE_MEGABYTES = 5 << 20
LONG = [
    ("letters", "", "x", ""),
    ("blanks-inside", "x", " ", "x"),
    ("blanks-before", "", " ", "x"),
    ("blanks-behind", "x", " ", ""),
    ("returns", "", "\r", "x"),
    ("returns-and-blanks", "x", "\r ", "\r\x1b[K"),
    ("escapes", "", "\x1b[31m", ""),
    ("half-escapes", "", "\x1b[", ""),
    ("lost-escapes", "", "[31m", "[0m"),
    ("ranks", "", "[rank0]:", ""),
    ("brackets", "", "[", ""),
    ("parentheses", "", "(", ""),
    ("words", "", "a.b-1 ", ""),
    ("dots", "", "a.", ""),
    ("digits", "", "1", ""),
    ("times", "", "2026-08-20 12:00:01 ", ""),
    ("quotes", "", "> ", ""),
    ("bars", "", "| ", ""),
    ("percents", "", "1%|", ""),
    ("dashes", "2026-08-20 12:00:01 ", "- ", ""),
    ("host", "", "a1", ": x"),
    ("blanks-behind-rank", "[rank0]:", " ", "x"),
    ("error-word", "gpu17: ", "Error", ""),
    ("progress", "", f"\r{BAR}", "\rRuntimeError: broke"),
]


@pytest.mark.parametrize(("head", "unit", "tail"), [case[1:] for case in LONG], ids=[case[0] for case in LONG])
def test_a_line_of_megabytes_costs_milliseconds(head: str, unit: str, tail: str) -> None:
    raw = head + unit * (FIVE_MEGABYTES // len(unit)) + tail
    seconds = []
    for _ in range(3):
        start = time.process_time()
        line = peel(raw, 1)
        seconds.append(time.process_time() - start)
    assert len(line.text) <= LINE_KEPT
    assert len(line.raw) <= LINE_KEPT
    assert min(seconds) < 0.1


def test_of_a_long_line_head_and_tail_are_kept() -> None:
    line = peel("[rank3]: RuntimeError: " + "x" * 100_000 + " at the end", 1)
    assert line.rank == 3
    assert line.text.startswith("RuntimeError: xxx")
    assert line.text.endswith("xxx at the end")
    assert line.text.count(" [...] ") == 1
    assert len(line.raw) == LINE_KEPT


def test_the_last_piece_of_a_long_line_is_found() -> None:
    assert peel(f"\r{BAR}" * 100_000 + "\rRuntimeError: broke", 1).text == "RuntimeError: broke"


@pytest.mark.parametrize(("outer", "inner"), list(product(["3: ", "[1,3]<stderr>:"], ["[rank7]: ", "[default7]:"])))
def test_of_two_ranks_the_closest_counts(outer: str, inner: str) -> None:
    assert peel(f"{outer}{inner}x", 1).rank == 7
