"""Measure the reference interpreter on the Sinkhorn graph, inside an overlay on the host sysroot.

    toolkit run --host -- python bench/reference.py RESULT.json

Compiles 20 rounds of Sinkhorn normalization at 4096x4 with the real backend, loads the generated code again from disk
and times its call, with and without the real runtime's launches, against eager on the CPU.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parent.parent
RUNS = 5


def main(result: Path) -> None:
    """Measure and write seconds by name."""
    sys.path.insert(0, str(CHECKOUT))
    from verify import generated_file, host, on_cpu
    from verify.catalogue.layers import sinkhorn

    host.prepare("host")
    host.load_backend("dvm")
    import torch

    from verify.generated import run_generated

    x = torch.rand(4096, 4)
    started = time.perf_counter()
    compiled = run_generated(sinkhorn, x, hazards="separate")
    told: dict[str, float] = {"compile": time.perf_counter() - started, "kernels": len(compiled.kernels)}
    told["eager"] = median_seconds(lambda: sinkhorn(x))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "output_code.py"
        path.write_text(compiled.sources[-1], encoding="utf-8")
        for hazards in ("separate", "recorded"):
            module = generated_file.load_generated(path, hazards=hazards)
            told[hazards] = median_seconds(lambda call=module.call: run_on_cpu(on_cpu, call, x))  # type: ignore[misc]
    result.write_text(json.dumps(told), encoding="utf-8")


def run_on_cpu(on_cpu: Any, call: Callable[[list[Any]], Any], x: Any) -> None:
    """Call generated code on a copy of a tensor in the stand-in's memory."""
    with on_cpu.operators():
        call([on_cpu.to_npu(x)])


def median_seconds(step: Callable[[], Any]) -> float:
    """Return the median of some runs."""
    seconds = []
    for _ in range(RUNS):
        started = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
