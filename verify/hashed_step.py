"""Print the hashes of a compiled step's outputs and gradients: `python -m verify.hashed_step [runtime]`.

One line of JSON, names to sha256. The step is a small training step with reductions over blocks, deterministic
algorithms on. `runtime` is "device" (the default) or "host", where the values mean nothing but the program is the same.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from typing import Any

from verify import host


def main(runtime: str) -> None:
    """Compile and run the step, and print its hashes."""
    host.prepare(runtime)
    host.load_backend("dvm")
    torch = importlib.import_module("torch")
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(0)
    x, weight = torch.randn(512, 256), torch.randn(256)
    given = [tensor.npu().requires_grad_() for tensor in (x, weight)]
    loss = torch.compile(_step)(*given)
    gradients = torch.autograd.grad(loss, given)
    found = dict(zip(("loss", "x.grad", "weight.grad"), (loss, *gradients), strict=True))
    hashes = {name: _hash(tensor) for name, tensor in found.items()}
    sys.stdout.write(json.dumps(hashes, sort_keys=True) + "\n")


def _step(x: Any, weight: Any) -> Any:
    normal = x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * weight
    return (normal.exp().sum(0).log() * weight).sum()


def _hash(tensor: Any) -> str:
    return hashlib.sha256(tensor.detach().cpu().contiguous().numpy().tobytes()).hexdigest()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "device")
