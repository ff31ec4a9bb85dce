"""What the scan of generated code is measured on: many large files, each another, in the form that Inductor writes."""

from __future__ import annotations

import random
from pathlib import Path

from tests.generated_code import HEAD, RUNNER, TAIL, dvm_kernel

SIZE = 200_000
PER_FOLDER = 100
BLOCKS = 400
"""How many pieces of a call are written once; each file takes another choice of them."""


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
