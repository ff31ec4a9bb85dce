"""Run small training graphs in this fresh process on a host sysroot, in each mode of hazards, and say what came out.

`python -m tests.e2e.hazard_cases OUT`. OUT is a JSON file: {"graphs": {name: {mode: {"right": bool, "hazards": [...],
"parked": [...], "kernels": [type, ...], "values": [0-d values]}}}, "runs": what else was tried, by name}.
"""

from __future__ import annotations

import copy
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from verify import graphs, host

MODES = ("separate", "recorded", "worst case")


def kept_apart(old: Any, x: Any) -> Any:
    old.copy_(old + x.sum())
    return x * old


def softmax_in_place(x: Any) -> None:
    x.copy_(x.softmax(-1))


def adamw(p: Any, m: Any, v: Any, g: Any) -> None:
    g = g * (1 / ((g * g).sum().sqrt() + 1e-6)).clamp(max=1.0)
    m.copy_(m * 0.9 + g * 0.1)
    v.copy_(v * 0.999 + g * g * 0.001)
    p.copy_(p * (1 - 0.01) - 0.001 * m / (v.sqrt() + 1e-8))


def batch_norm(mean: Any, variance: Any, x: Any) -> Any:
    m = x.mean(0)
    v = ((x - m) * (x - m)).mean(0)
    mean.copy_(mean * 0.9 + m * 0.1)
    variance.copy_(variance * 0.9 + v * 0.1)
    return (x - m) / (v + 1e-5).sqrt()


def row_added(old: Any, x: Any) -> None:
    old.copy_(old[1:2] + x)


X = (128, 256)
GRAPHS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    **{one.name: (one.function, list(one.shapes.values())) for one in (*graphs.ACCUMULATING, graphs.PLAIN_SUM)},
    "kept_apart": (kept_apart, [(), X]),
    "softmax_in_place": (softmax_in_place, [X]),
    "adamw": (adamw, [(64, 256)] * 4),
    "batch_norm": (batch_norm, [(256,), (256,), X]),
    "row_added": (row_added, [(64, 256)] * 2),
}


def main(out: Path) -> None:
    """Run all of it and write what came of it."""
    warnings.simplefilter("ignore")
    host.prepare("host")
    host.load_backend("dvm")
    found = {
        "graphs": {name: run_modes(*graph) for name, graph in GRAPHS.items()},
        "runs": {case.__name__: case() for case in (many_sizes, module, nested, endless, broken, unmatched)},
    }
    out.write_text(json.dumps(found, indent=1), encoding="utf-8")


def run_modes(function: Callable[..., Any], shapes: list[tuple[int, ...]]) -> dict[str, Any]:
    """Compile one graph once, run it in each mode and compare it with eager."""
    import torch

    from verify.generated import compile_generated

    torch.manual_seed(0)
    given = [torch.rand(shape) + 0.5 for shape in shapes]
    expected = copy.deepcopy(given)
    result = function(*expected)
    wanted = expected if result is None else [*expected, result]
    compiled = compile_generated(function)
    found = {}
    for mode in MODES:
        run = compiled(*given, hazards=mode)
        values = [*run.inputs, *(one for one in run.results if one is not None)]
        found[mode] = {
            "right": all(torch.allclose(one, other, rtol=1e-4) for one, other in zip(values, wanted, strict=True)),
            "hazards": [hazard for kernel in run.kernels for hazard in kernel.hazards],
            "parked": [parked for kernel in run.kernels for parked in kernel.parked],
            "launches": [launch for kernel in run.kernels for launch in kernel.launches],
            "remarks": [remark for kernel in run.kernels for remark in kernel.remarks],
            "kernels": [kernel.type for kernel in run.kernels],
            "values": [float(one) for one in values if one.dim() == 0],
        }
    return found


def many_sizes() -> dict[str, Any]:
    """Compile once for all sizes, and run a size again that was recorded before."""
    import torch

    from verify.generated import compile_generated

    compiled = compile_generated(lambda total, x: total.copy_(total + x.sum(0)), dynamic=True)
    rights, seconds = [], []
    for rows in (5, 9, 100, 9):
        x, total = torch.rand(rows, 256), torch.rand(256)
        began = time.monotonic()
        run = compiled(total, x)
        seconds.append(time.monotonic() - began)
        rights.append(torch.allclose(run.inputs[0], total + x.sum(0), rtol=1e-4))
    return {"right": rights, "sources": len(compiled.sources), "again": seconds[-1], "parked": run.kernels[0].parked}


def module() -> dict[str, Any]:
    """Run a module: its gradients by name, its buffers, and the module itself as it was."""
    import torch

    from verify.generated import run_generated

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.BatchNorm1d(32), torch.nn.Linear(32, 4))
    before, eager = copy.deepcopy(net.state_dict()), copy.deepcopy(net)
    x = torch.randn(8, 16)
    result = eager(x)
    result.sum().backward()
    run = run_generated(net, x)
    gradients = {name: one.grad for name, one in eager.named_parameters()}
    return {
        "result": torch.allclose(run.results[0], result, atol=1e-5),
        "gradients": {name: torch.allclose(run.parameter_gradients[name], one, atol=1e-5)
                      for name, one in gradients.items()},
        "state": all(torch.allclose(run.state[name], one, atol=1e-5) for name, one in eager.state_dict().items()),
        "unchanged": all(torch.equal(before[name], one) for name, one in net.state_dict().items()),
    }  # fmt: skip


def nested() -> dict[str, Any]:
    """Pass a dictionary and a number by name, and return None and a number among tensors."""
    import torch

    from verify.generated import run_generated

    def function(x: Any, *, weights: Any, count: int) -> Any:
        return {"y": x * weights["w"] + count, "none": None, "count": count}

    w = torch.full((4, 8), 2.0, requires_grad=True)
    run = run_generated(function, torch.ones(4, 8), keywords={"weights": {"w": w}, "count": 3})
    y, none, count = run.results
    return {"y": bool((y == 5).all()), "others": [none, count], "gradient": bool((run.gradients[1]["w"] == 1).all())}


def endless() -> list[str]:
    """Run a kernel that the real runtime never comes back from, which must not be tried."""
    import torch

    from verify.generated import run_generated

    def function(load: Any, x: Any) -> Any:
        share = x.softmax(-1).mean(0)
        load.copy_(load * 0.9 + share.detach() * 0.1)
        return (share * load).sum() * 16

    run = run_generated(function, torch.rand(16), torch.rand(64, 16, requires_grad=True))
    return [hazard for kernel in run.kernels for hazard in kernel.hazards]


def broken() -> dict[str, Any]:
    """Fail in a graph break and in a kernel's builder, and leave torch_npu as it was."""
    import torch
    from torch_npu._inductor import dvm

    from verify.generated import run_generated
    from verify.reference.program import Builder

    def breaks(x: Any) -> Any:
        torch._dynamo.graph_break()
        return x + 1

    kernel, told = dvm.kernel, []
    broadcast = Builder.__dict__["load"]
    for function, fault in ((breaks, None), (lambda x: x * 3 + 1, ValueError("no loads today"))):
        if fault is not None:
            Builder.load = lambda *_, fault=fault: (_ for _ in ()).throw(fault)  # type: ignore[method-assign]
        try:
            run_generated(function, torch.ones(3))
        except Exception as raised:
            told.append(f"{type(raised).__name__}: {str(raised).splitlines()[0]}")
        finally:
            Builder.load = broadcast  # type: ignore[method-assign]
    run = run_generated(lambda x: x * 3 + 1, torch.ones(3))
    return {"told": told, "restored": dvm.kernel is kernel, "after": run.results[0].tolist()}


def unmatched() -> str:
    """Give a mode that there is not."""
    import torch

    from verify.generated import run_generated

    try:
        run_generated(lambda x: x * 3 + 1, torch.ones(3), hazards="guessed")
    except Exception as raised:
        return str(raised).splitlines()[0]
    return ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
