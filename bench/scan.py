"""What the scan of generated code is measured on: many large files, each another, in the form that Inductor writes."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.generated_code import HEAD, RUNNER, TAIL, dvm_kernel

SIZE = 200_000
PER_FOLDER = 100
BLOCKS = 400
"""How many pieces of a call are written once; each file takes another choice of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScanRun:
    """One scan: wall seconds, and the sum of what each of its processes held at the most, in MB."""

    seconds: float
    peak_mb: float


PARSE_ALL = (
    "import ast, pathlib, sys\n"
    "for path in sorted(pathlib.Path(sys.argv[1]).rglob('output_code.py')): ast.parse(path.read_text())"
)
"""What one would do otherwise, before anything is counted."""


def run_scan(words: Sequence[str], env: Mapping[str, str]) -> ScanRun:
    """Run a scan and watch the memory of its processes, the workers too; raise CalledProcessError where it fails."""
    started = time.perf_counter()
    child = subprocess.Popen(words, env=dict(env), stdout=subprocess.DEVNULL)
    peaks: dict[int, int] = {}
    while child.poll() is None:
        for pid in (child.pid, *_children(child.pid)):
            peaks[pid] = max(peaks.get(pid, 0), _peak_kilobytes(pid))
        time.sleep(0.05)
    seconds = time.perf_counter() - started
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, words)
    return ScanRun(seconds=seconds, peak_mb=sum(peaks.values()) / 1024)


def parse_seconds(tree: Path, env: Mapping[str, str]) -> float:
    """Return how long it takes one process to parse every file of a tree with `ast`."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", PARSE_ALL, str(tree)], env=dict(env), check=True)
    return time.perf_counter() - started


def _children(pid: int) -> list[int]:
    found = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in thread.read_text().split()]
        except OSError:  # The thread has ended.
            continue
    return found


def _peak_kilobytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # The process has ended.
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def make_generated_files(root: Path, *, files: int) -> None:
    """Write files of 200 kB: graphs in strings, kernels with names and sizes of their own, and calls of all kinds.

    One in ten has a kernel of several stages that is run in place, so that its buffers must be followed.
    """
    blocks = [_call_block(random.Random(number)) for number in range(BLOCKS)]
    for number in range(files):
        folder = root / f"run_{number // PER_FOLDER}" / "torchinductor" / f"model__{number}_forward_{number}.0"
        folder.mkdir(parents=True)
        (folder / "output_code.py").write_text(_file(number, blocks), encoding="utf-8")


def _file(number: int, blocks: list[str]) -> str:
    chance = random.Random(number)
    names = [
        f"dvm_fused_{chance.choice(OPERATIONS)}_{chance.choice(OPERATIONS)}_{at}"
        for at in range(chance.randrange(8, 40))
    ]
    kernels = [_kernel(name, chance, number) for name in names]
    runs = [
        f"            buf{900 + at} = empty_strided(({chance.randrange(2, 999)}, 256), (256, 1), device='npu', "
        f"dtype=torch.float32)\n            {name}.run(arg0_1, arg1_1, buf{900 + at}, stream=stream0)\n"
        for at, name in enumerate(names)
    ]
    if number % 10 == 0:
        runs.append(f"            {names[0]}.run(arg0_1, arg1_1, arg1_1, stream=stream0)\n")
    head = "\n\n".join([HEAD, *kernels])
    calls, size = [], len(head) + len(TAIL)
    while size < SIZE:
        calls.append(blocks[chance.randrange(BLOCKS)])
        size += len(calls[-1])
    runner = RUNNER.format(arguments="arg0_1, arg1_1, primals_7", body="".join(calls + runs).rstrip("\n"))
    return f"{head}\n\n{runner}{TAIL}"


OPERATIONS = ("add", "mul", "softmax", "mean", "rsqrt", "sum", "silu", "div", "copy_", "to_copy", "expand", "pow")


def _kernel(name: str, chance: random.Random, number: int) -> str:
    """Write a kernel, one in three with a reduction whose result later stages use."""
    rows, columns = chance.randrange(2, 4096), 256
    has_stages = chance.random() < 0.34
    middle = [f"mul_{at} = k.mul(arg0_1, {number + at}.5)" for at in range(chance.randrange(2, 20))]
    program = [
        f"arg0_1 = k.load([{rows}, {columns}], dvm.float32)",
        f"arg1_1 = k.load([{columns}], dvm.float32)",
        *middle,
        "sum_1 = k.sum(arg0_1, [0], False)",
        *(["k.spec_next()"] if has_stages else []),
        "add = k.add(arg1_1, sum_1)",
        "k.store(add, dvm.float32)",
    ]
    return dvm_kernel(name, program, "spec" if has_stages else "vector")


def _call_block(chance: random.Random) -> str:
    """Write some statements of a call: allocations, operators, views, other names, and names that are given up."""
    lines = []
    for _ in range(8):
        at = chance.randrange(2, 900)
        rows = chance.randrange(2, 9999)
        operator = chance.choice(("mm", "addmm", "permute", "sum", "div"))
        lines += [
            f"# Topologically Sorted Source Nodes: [{operator}_{at}, linear_{rows}], Original ATen: [aten.{operator}]",
            f"buf{at} = torch.ops.aten.{operator}.default(buf{at - 1}, primals_{rows})",
            f"buf{at + 1} = buf{at}",
            f"assert_alignment(buf{at + 1}, 16, 'torch.ops.aten.{operator}.default')",
            f"del buf{at}",
            f"buf{at + 2} = empty_strided(({rows}, 64), (64, 1), device='npu', dtype=torch.float32)",
            f"del primals_{rows}",
        ]
    lines.append(f"buf{chance.randrange(900)} = torch.ops.cann_ops_transformer.sparse_flash_mla.default(buf1, buf2)")
    return "".join(f"            {line}\n" for line in lines)
