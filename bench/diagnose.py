"""What `toolkit diagnose` is measured on: a healthy run of eight ranks in one log, with a failure at its end."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

RANKS = 8
FAILURE_LAYER = "memory"
FAILURE = """\
[rank5]: Traceback (most recent call last):
[rank5]:   File "/opt/train/torchtitan/train.py", line 812, in train_step
[rank5]:     self.optimizers.step()
[rank5]:   File "/opt/venv/lib/python3.11/site-packages/torch/optim/adamw.py", line 243, in step
[rank5]:     adamw(
[rank5]: RuntimeError: NPU out of memory. Tried to allocate 1.75 GiB (NPU 5; 61.27 GiB total capacity; 57.80 GiB \
already allocated; 57.80 GiB current active; 912.40 MiB free; 59.11 GiB reserved in total by PyTorch) If reserved \
memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.
"""

STEP = (
    "[rank{rank}]: [titan] {time},{ms:03d} - root - INFO - step: {step:>6}  loss: {loss:7.4f}  grad_norm: {norm:7.4f}  "
    "memory: {memory:5.2f}GiB({share:5.2f}%)  tps: {tps:,}  tflops: {tflops:,.2f}  mfu: {mfu:.2f}%\n"
)
NOTES = (
    "[rank{rank}]: [titan] {time},{ms:03d} - root - INFO - Saving a checkpoint: step-{step}\n",
    "[rank{rank}]: [titan] {time},{ms:03d} - root - INFO - [GC] Performing periodic garbage collection took 0.{ms:03d} "
    "seconds\n",
    "[rank{rank}]: [titan] {time},{ms:03d} - root - WARNING - Dataset c4 is being re-looped at step {step}\n",
    "[rank{rank}]: /opt/venv/lib/python3.11/site-packages/torch/distributed/fsdp/_state.py:{ms}: UserWarning: the "
    "gradient of parameter {step} is not contiguous; this may slow the reduction down\n",
    "[rank{rank}]: CAUTION: The operator 'aten::_linalg_check' is not currently supported on the NPU backend and will "
    "fall back to run on the CPU.\n",
)
DEBUGS = (
    "[rank{rank}]: V{day} 14:22:07.{ms:03d}000 {step} torch/_inductor/scheduler.py:3108] [0/0] [__fusion] "
    "fuse_nodes: buf{ms} and buf{step} have {norm:.0f} shared bytes\n",
    "[rank{rank}]: [titan] {time},{ms:03d} - torch.fx - DEBUG - eliminate_dead_code: removed node mul_{ms} of graph "
    "{step}\n",
)
EVERY_NOTE, EVERY_DEBUG = 23, 7


def make_training_log(path: Path, *, size: int) -> None:
    """Write a log of at least `size` bytes: a line per rank and step, in between warnings and lines of DEBUG."""
    chance = random.Random(1)
    written = 0
    with path.open("w", encoding="utf-8") as log:
        for step in count(1):
            text = "".join(_lines_of(step, chance))
            log.write(text)
            written += len(text)
            if written >= size:
                break
        log.write(FAILURE)


def _lines_of(step: int, chance: random.Random) -> Iterator[str]:
    at = step * 3
    time = f"2026-08-{1 + at // 86400 % 28:02d} {at // 3600 % 24:02d}:{at // 60 % 60:02d}:{at % 60:02d}"
    for rank in range(RANKS):
        values = {
            "rank": rank, "step": step, "time": time, "day": "0820", "ms": chance.randrange(1000),
            "loss": 2 + 10 / step + chance.random() / 10, "norm": chance.random() * 4, "memory": 41 + chance.random(),
            "share": 67.0, "tps": chance.randrange(3000, 4000), "tflops": chance.random() * 200, "mfu": 31.4,
        }  # fmt: skip
        yield STEP.format_map(values)
        if (step + rank) % EVERY_NOTE == 0:
            yield NOTES[chance.randrange(len(NOTES))].format_map(values)
        if (step + rank) % EVERY_DEBUG == 0:
            yield DEBUGS[chance.randrange(len(DEBUGS))].format_map(values)


def write_words(path: Path) -> int:
    """Write the words that the rules look for, one a line, for `grep -f`; return how many there are."""
    from toolkit.triage import shipped_rules

    words = shipped_rules().anchors
    path.write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    return len(words)


def require_found(words: list[str], env: Mapping[str, str]) -> None:
    """Raise ValueError where the failure at the log's end is not the first finding: a wrong answer has no speed."""
    done = subprocess.run([*words, "--json"], env=dict(env), stdout=subprocess.PIPE, check=False)
    layer = json.loads(done.stdout)["findings"][0]["layer"]
    if layer != FAILURE_LAYER:
        raise ValueError(f"diagnose says {layer!r} of the log, expected {FAILURE_LAYER!r}")
