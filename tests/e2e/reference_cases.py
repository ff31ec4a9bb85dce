"""Run inside the overlay on the host sysroot: compiled functions by reference against eager, and much else, as JSON.

    python reference_cases.py CHECKOUT SCRATCH

One process for everything, for each costs seconds before its first line. Matrix products in half precision are fused,
which is chosen before the backend is loaded.
"""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore")
os.environ["INDUCTOR_DVM_ENABLE_MATMUL_FUSION"] = "1"

from verify import host  # noqa: E402

host.prepare("host")
host.load_backend("dvm")

import torch  # noqa: E402
from torch.nn import functional as f  # noqa: E402
from torch_npu._inductor import dvm  # noqa: E402
from torch_npu._inductor.dvm.graph_fusion import DvmGraphFusionPatch  # noqa: E402

from verify import generated_file, on_cpu  # noqa: E402
from verify.generated import GeneratedRun, run_generated  # noqa: E402
from verify.numbers import compare  # noqa: E402
from verify.reference.against_real import build_beside  # noqa: E402
from verify.reference.program import BINARY, COMPARISONS, REDUCTIONS, TYPES, UNARY, ProgramError  # noqa: E402

SCRATCH = Path(sys.argv[2])
LOST_GRAPH = (
    "async_compile.import_fx('lost', kernel_meta={'device_str': 'npu', 'device_index': 0, 'num_outputs': 1, "
    "'traced_graph_cache': 'traced_graph_cache', 'traced_graph_hash': 'lost', 'num_call_functions': 2})\n"
)


def randn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape) + len(shape))).to(dtype)


def half(*shape: int) -> torch.Tensor:
    return randn(*shape, dtype=torch.float16)


def brain(*shape: int) -> torch.Tensor:
    return randn(*shape, dtype=torch.bfloat16)


def whole(*shape: int, dtype: torch.dtype = torch.int64, top: int = 5) -> torch.Tensor:
    return torch.randint(0, top, shape, generator=torch.Generator().manual_seed(len(shape)), dtype=dtype)


def wanting(*tensors: torch.Tensor) -> list[torch.Tensor]:
    return [one.requires_grad_() for one in tensors]


class Case:
    """A function with its inputs, and the kernel types that it is expected to become; None where they do not matter."""

    def __init__(self, function: Callable[..., Any], *inputs: Any, kinds: str | None = None, **options: Any) -> None:
        self.function, self.inputs, self.kinds, self.options = function, inputs, kinds, options

    def run(self) -> str:
        """Return "" where generated code and eager agree, else how they do not."""
        mine = [one.detach() if isinstance(one, torch.Tensor) else one for one in self.inputs]
        given = [
            new.requires_grad_(old.requires_grad) if isinstance(old, torch.Tensor) else old
            for new, old in zip(copy.deepcopy(mine), self.inputs, strict=True)  # aliases stay aliases
        ]
        expected = [one for one in torch.utils._pytree.tree_leaves(self.function(*given)) if one is not None]
        found = run_generated(self.function, *self.inputs, **self.options)
        faults = list(self._differences(found, expected, given))
        kinds = " ".join(kernel.type for kernel in found.kernels)
        if self.kinds is not None and kinds != self.kinds:
            faults.append(f"kernels {kinds!r}, expected {self.kinds!r}")
        return "; ".join(faults)

    def _differences(self, found: GeneratedRun, expected: list[Any], given: list[Any]) -> Iterator[str]:
        tensors = [one for one in found.results if one is not None]
        if len(tensors) != len(expected):
            yield f"{len(tensors)} results, expected {len(expected)}"
        pairs = [*zip(tensors, expected, strict=False), *zip(found.inputs, given, strict=True)]
        wanted = [one for one in given if isinstance(one, torch.Tensor) and one.requires_grad]
        if wanted:
            sources = [one for one in expected if one.requires_grad]
            gradients = torch.autograd.grad(sources, wanted, [torch.ones_like(one) for one in sources])
            pairs += zip([one for one in found.gradients if one is not None], gradients, strict=True)
        for number, (actual, value) in enumerate(pairs):
            if isinstance(value, torch.Tensor):
                difference = compare(actual.detach(), value.detach())
                if not difference.within:
                    yield f"value {number}: {difference}"
            elif actual != value:
                yield f"value {number}: {actual}, expected {value}"


def accumulate(x: Any, index: Any, value: Any) -> Any:
    return x.index_add_(0, index, value * 2)


def items(xs: Any) -> Any:
    count = 0
    for place in range(8):
        count = count + xs[place].item()
    return torch.full((count,), 1.0, device=xs.device) + torch.full((count,), 2.0, device=xs.device)


def powers(x: Any) -> Any:
    return x**2 + x**3 * x**-2 + x.abs() ** 2.5 + x**5


def casts(x: Any) -> Any:
    return x.half(), x.bfloat16(), x.float(), x.int(), x.long(), x.bool()


def logic(a: Any, b: Any) -> Any:
    return a & b, a | b, ~a, a.float() + 1, a.int() + b.long()


def nonfinite(x: Any) -> Any:
    return x.exp(), x.relu(), x.amax(), x.sum(), x.maximum(x * 2), x > 0, x == x, x.sqrt(), torch.softmax(x, 0)


SPECIAL = torch.tensor([1.0, torch.inf, torch.nan, -torch.inf, -1.0, 0.0, -0.0])
BASE = randn(80)

CASES = {
    # element types and rounding
    "promoted bfloat16": Case(lambda x: (x * 0.1 + 0.3).exp(), brain(8, 16), kinds="vector"),
    "half of numbers": Case(lambda x: x * 0.1 + 0.3, half(8, 16), kinds="vector"),
    "softmax of bfloat16": Case(lambda x: torch.softmax(x, -1), brain(8, 80), kinds="spec"),
    "sums of half": Case(lambda x: (x.sum(-1), x.mean(0)), half(64, 80)),
    "mixed types": Case(lambda x, y, i, b: x * y + i + b, half(8, 8), randn(8, 8), whole(8, 8), whole(8, 8) > 2),
    "bfloat16 and half": Case(lambda x, y: (x * y).sum() + y.amax(), half(8, 8), brain(8, 8)),
    "casts of floats": Case(casts, randn(8, 8) * 3),
    "casts of integers": Case(casts, whole(8, 8) - 2),
    "integers": Case(lambda x: (x + 1, x - 7, x * 2, x < 2.5, x.amax(), x / 2), whole(8, 8, dtype=torch.int32)),
    "bools": Case(logic, whole(8, 8) > 2, whole(8, 8) > 1),
    "powers": Case(powers, randn(8, 8)),
    "not finite": Case(nonfinite, SPECIAL),
    "select": Case(lambda x, m: torch.where(m, x, 0.0).masked_fill(~m, -torch.inf).softmax(-1), randn(8, 16),
                   whole(8, 16) > 1),
    # shapes and memory
    "transposed": Case(lambda x, y: x * 2 + y, randn(64, 32).t(), randn(32, 64)),
    "slices": Case(lambda x: x[:, 4:20].exp().sum(0) + x[::4, ::4].sum(1), randn(64, 64)),
    "an expanded input": Case(lambda x: x.exp() * 2, randn(64, 1).expand(64, 32)),
    "an odd offset": Case(lambda x: x.exp() * 2, BASE[3:67]),
    "views of results": Case(lambda x: ((x * 2).t(), (x + 1)[1:], x.view(-1)), randn(8, 16)),
    "in place with gaps": Case(lambda x: x.mul_(3).add_(1), randn(8, 8).t()),
    "empty": Case(lambda x: (x.exp() * 2, x.sum(0)), randn(0, 32)),
    "without axes": Case(lambda x, y: x * y + 1, randn(), randn()),
    "one memory twice": Case(lambda x, y: x * 2 + y.sum(), BASE[3:35].view(8, 4), BASE),
    # operators outside the kernels
    "top-k, sort, gather": Case(lambda x, i: (torch.topk(x.softmax(-1), 4), torch.sort(x * 2), (x * 2).gather(1, i)),
                                randn(8, 32), whole(8, 3)),
    "in place by index": Case(accumulate, randn(8, 32), whole(5), randn(5, 32)),
    "embedding": Case(lambda w, i: f.embedding(i, w) * 2, *wanting(randn(16, 8)), whole(3, 5)),
    "concatenated": Case(lambda x, y: torch.cat([x * 2, y + 1], 1), randn(8, 8), randn(8, 4)),
    "folded constants": Case(lambda x: x * torch.ones(8, device=x.device).mul(3).exp() + torch.full((8,), 2.0,
                             device=x.device).sqrt(), randn(8, 8), kinds="vector"),
    "folded to zero": Case(lambda x: x * 0 + x.exp(), randn(8, 16), kinds="vector"),
    "a constant without axes": Case(lambda x: x + torch.tensor(2.5, device=x.device), randn(8, 16), kinds="vector"),
    "left to an FX graph": Case(lambda x: 2**x + 1, randn(8, 8), kinds="fallback"),
    "matrix product": Case(lambda a, b: (a @ b).relu() * 2, *wanting(randn(16, 32), randn(32, 8))),
    "normalized": Case(lambda x, w, b: f.layer_norm(x, (64,), w, b), *wanting(randn(16, 64), randn(64), randn(64))),
    # sizes of the launch
    "dynamic softmax": Case(lambda x, w: (torch.softmax(x * w, -1) ** 2).mean() * x.shape[0],
                            *wanting(randn(12, 33), randn(33)), dynamic=True),
    "dynamic views": Case(lambda x: ((x.view(-1) * 2).view(-1, 2).sum(1), x.t() * 2, x[:, 1:] + x[:, :-1]),
                          randn(12, 34), dynamic=True),
    "dynamic and bfloat16": Case(lambda x, y: x * y + 1, brain(12, 34), brain(34), dynamic=True),
    "a number of the launch": Case(lambda x, y: y * x.sum().item(), randn(4), randn(8, 8)),
    "a size that data gives": Case(lambda x: x.nonzero().float() * 2, (randn(8) > 0).float()),
    "a mask's size": Case(lambda x: x[x > 0] * 2, randn(8)),
    "eight items": Case(items, torch.arange(1, 9)),
    # mix kernels
    "mix with epilogue": Case(lambda a, b, c: torch.relu((a @ b) * 2 + c), brain(16, 32), brain(32, 64),
                              brain(16, 64), kinds="mix"),
    "mix of transposed": Case(lambda a, b: (a.t() @ b.t()) * 2, half(32, 16), half(64, 32), kinds="mix"),
    "mix with bias": Case(lambda x, w, b: f.linear(x, w, b), half(16, 32), half(64, 32), half(64), kinds="mix"),
    "mix in batches": Case(lambda a, b: torch.bmm(a, b.transpose(1, 2)) * 2, half(4, 16, 32), half(4, 64, 32),
                           kinds="mix"),
    "mix backward": Case(lambda a, b: (a @ b).relu(), *wanting(half(16, 32), half(32, 64)), kinds="mix vector"),
}  # fmt: skip

VIEWS = {
    "transposed": Case(lambda x, y: x.t().exp() + y, randn(64, 32), randn(32, 64)),
    "with steps": Case(lambda x: x[:, ::2].exp() * 2, half(64, 32)),
    "dynamic": Case(lambda x: x[:, 4:].exp() * 2, randn(64, 32), dynamic=True),
}

SPLIT = {
    "a chain": Case(lambda x, y: (x * 2 + y).exp(), randn(64, 32), randn(64, 32), kinds="split"),
    "a sum of half": Case(lambda x, y: (x * 2 + y).sum(0), half(64, 32), half(64, 32), kinds="split"),
    "slices": Case(lambda x, y: (x[:, ::2] * 2 + y).exp(), randn(64, 64), randn(64, 32), kinds="split"),
    "a product": Case(lambda a, b: (a @ b.t()) * 2, half(16, 32), half(64, 32)),
    "two results": Case(lambda x, y: ((x * 2 + y).exp(), x - y), randn(64, 32), randn(64, 32)),
    "dynamic": Case(lambda x, y: (x * 2 + y).sum(0), randn(64, 32), randn(64, 32), dynamic=True),
}

KEPT = {
    "kept bfloat16": Case(
        lambda x, y: ((x * y + 1) * 0.1, torch.where(x > y, x, y * 2)), brain(8, 8), brain(8, 16)[:, 8:]
    ),
}


def run_cases(group: str, cases: dict[str, Case]) -> dict[str, str]:
    """Run each case and return what was wrong with it, "" for nothing."""
    told = {}
    for name, case in cases.items():
        try:
            told[f"{group}{name}"] = case.run()
        except Exception as fault:  # one case's error is that case's, the others are wanted all the same
            told[f"{group}{name}"] = f"{type(fault).__name__}: {str(fault)[:400]}"
    return told


@contextlib.contextmanager
def configured(**values: Any) -> Iterator[None]:
    """Set the package's options while this is open."""
    before = {name: getattr(dvm.config, name) for name in values}
    vars(dvm.config).update(values)
    try:
        yield
    finally:
        vars(dvm.config).update(before)


def sweep_builders() -> dict[str, Any]:
    """Build each operation of each element type with both builders; return how many agree, and what does not."""
    agreed, faults = 0, {}
    for kind, dtype in itertools.product(("vector", "spec", "split"), TYPES):
        for operation in sorted({*UNARY, *BINARY, *COMPARISONS, *REDUCTIONS, "select", "concat", "cast", "shapes"}):
            with contextlib.suppress(ProgramError):
                try:
                    build_beside(dvm.kernel, sweep_one(operation, dtype), kind, dyn_shape=False)
                    agreed += 1
                except (AssertionError, RuntimeError) as fault:
                    faults[f"{kind} {operation} {dtype}"] = str(fault)
    return {"agreed": agreed, "faults": faults}


def sweep_one(operation: str, dtype: str) -> Callable[[Any], None]:
    """Return a builder function that uses one operation in every way that the emitter has."""

    def build(k: Any) -> None:
        real = dvm.bool_ if dtype == "bool" else getattr(dvm, dtype)
        x, y = k.load([4, 8], real), k.load([4, 1], real)
        if operation in UNARY:
            results = [getattr(k, operation)(x)]
        elif operation in REDUCTIONS:
            results = [getattr(k, operation)(x, dims, keep) for dims in ([], [0], [-1], [0, 1]) for keep in (0, 1)]
        elif operation == "select":
            results = [k.select(k.load([1, 8], dvm.bool_), x, y)]
        elif operation == "concat":
            results = [k.concat([x, x], 0)]  # one in a kernel
        elif operation == "cast":
            results = [k.cast(x, dvm.bool_ if to == "bool" else getattr(dvm, to)) for to in TYPES]
        elif operation == "shapes":
            results = [k.reshape(x, [-1]), k.broadcast(y, [2, 4, 8]), k.full(1, [3], real), k.copy(x)]
        else:
            apply = getattr(k, operation)
            results = [apply(x, y), apply(y, x), apply(x, x), apply(x, 2), apply(2, x), apply(x, 1.5)]
        for one in results:
            k.store(one)

    return build


def dies(build: Callable[[Any], None]) -> bool:
    """Tell whether the real builder ends its process."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(Exception):
            dvm.kernel(ktype="vector", dyn_shape=False)(build)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def sum_of_half(k: Any) -> None:
    k.store(k.sum(k.load([4, 8], dvm.float16), [0], False))


def weighted(x: Any, w: Any) -> Any:
    return (torch.softmax(x * w, -1) ** 2).mean(), x.sort()


def run_files() -> dict[str, Any]:
    """Write generated code down, run it from there, and run what is wrong with it in several ways."""
    (source,) = run_generated(weighted, randn(12, 34), randn(34)).sources
    told: dict[str, Any] = {"twice": [run_file("good", source), run_file("good", source)]}
    x, w = randn(12, 34), randn(34)
    module = generated_file.load_generated(SCRATCH / "good.py")
    with on_cpu.operators():
        results = module.call([on_cpu.to_npu(x), on_cpu.to_npu(w)])
    told["equal"] = all(compare(on_cpu.to_cpu(one), value).within for one, value in zip(
        results, torch.utils._pytree.tree_leaves(weighted(x, w)), strict=True))  # fmt: skip
    told["kernels"] = [kernel.type for kernel in module.kernels]
    try:
        with on_cpu.operators():
            module.call([on_cpu.to_npu(randn(12, 35)), on_cpu.to_npu(w)])
    except generated_file.GeneratedFileError as fault:
        told["shape"] = str(fault)
    told["version"] = run_file("version", source.replace("import copy_if_misaligned", "import copy_if_crooked"))
    told["operation"] = run_file("operation", source.replace("k.max(", "k.argmax("))
    told["cut"] = run_file("cut", source[: source.index("class Runner")])
    told["graph"] = run_file("graph", source.replace("async_compile.wait(", f"{LOST_GRAPH}async_compile.wait(", 1))
    return told


def run_file(name: str, source: str) -> str:
    """Run a file as the command does and return what it prints."""
    (SCRATCH / f"{name}.py").write_text(source, encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        status = generated_file.main([str(SCRATCH / f"{name}.py")])
    return f"{status} {out.getvalue()}{err.getvalue()}".replace(f"{SCRATCH}/", "")


def refuse_operators() -> dict[str, str]:
    """Return what is said of operators that have no meaning here."""
    told = {}
    x = on_cpu.to_npu(randn(4, 4))
    calls = {
        "unknown": lambda: torch.ops.npu.npu_rms_norm(x, on_cpu.to_npu(randn(4))),
        "mixed": lambda: x + torch.ones(4),
    }
    for name, call in calls.items():
        try:
            with on_cpu.operators():
                call()
        except RuntimeError as fault:  # NotImplementedError is one
            told[name] = f"{type(fault).__name__}: {fault}"
    return told


def main() -> None:
    """Run everything and print it."""
    torch._dynamo.config.capture_scalar_outputs = True
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    cases = run_cases("", CASES)
    for level in (0, 2):
        with configured(view_fusion_level=level):
            cases |= run_cases(f"view level {level}: ", VIEWS)
    with configured(bf16_vector_keep_promoted=True):
        cases |= run_cases("", KEPT)
    with DvmGraphFusionPatch():
        cases |= run_cases("split: ", SPLIT)
    told = {"cases": cases, "builders": sweep_builders(), "dies": dies(sum_of_half)}
    print("RESULT " + json.dumps({**told, "files": run_files(), "operators": refuse_operators()}))


main()
