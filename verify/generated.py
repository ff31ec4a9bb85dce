"""Run a compiled function on the CPU: its own generated code, with every kernel and operator computed by reference.

    run = run_generated(function, x, y, hazards="recorded")
    run.results, run.inputs, run.gradients      # CPU tensors
    run.kernels                                 # what was launched, and what that does to its inputs

The function is compiled for npu by the real backend on the host sysroot. Its generated code then runs as it is, forward
and backward, on npu tensors that lie in host memory; DVM kernels are evaluated from their builders' programs and all
other operators by torch's CPU kernels.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from verify import host, on_cpu
from verify.dvm_reference import compute_outputs
from verify.reference.against_real import build_beside
from verify.reference.modelled import ModelledKernel


@dataclass(frozen=True)
class Kernel:
    """One kernel that ran: its name and type, and the launches of the real runtime for it, in words."""

    name: str
    type: str
    launches: tuple[str, ...] = ()
    hazards: tuple[str, ...] = ()
    parked: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class GeneratedRun:
    """What a compiled function computed by reference.

    `results` are its outputs, flat; `inputs` the inputs afterwards; `gradients` those of the inputs, None where an
    input requires none. All tensors are on the CPU. `kernels` stand in the order in which they ran, `sources` are the
    generated files.
    """

    hazards: str
    results: tuple[Any, ...]
    inputs: tuple[Any, ...]
    gradients: tuple[Any, ...]
    kernels: tuple[Kernel, ...]
    sources: tuple[str, ...]


def run_generated(
    function: Callable[..., Any],
    *inputs: Any,
    hazards: str = "recorded",
    tangents: Sequence[Any] | None = None,
    dynamic: bool | None = None,
) -> GeneratedRun:
    """Compile `function` for npu and compute it, and its gradients where an input requires them.

    `inputs` are CPU tensors and are not changed. `tangents` are the outputs' gradients, ones where None.
    """
    torch = importlib.import_module("torch")
    torch._dynamo.reset()
    given = _give(inputs)
    kernels: list[Kernel] = []
    with host.generated_code() as sources, on_cpu.folded_constants(), by_reference(kernels, hazards):
        found = torch.compile(function, fullgraph=True, dynamic=dynamic)(*given)
        results = importlib.import_module("torch.utils._pytree").tree_leaves(found)
        gradients = _differentiate(results, given, tangents)
    return GeneratedRun(
        hazards=hazards,
        results=tuple(map(_take, results)),
        inputs=tuple(map(_take, given)),
        gradients=tuple(map(_take, gradients)),
        kernels=tuple(kernels),
        sources=tuple(sources),
    )


def _give(inputs: Sequence[Any]) -> list[Any]:
    tensors = [one for one in inputs if hasattr(one, "untyped_storage")]
    made = iter(on_cpu.to_npu_together(tensors))
    return [next(made).requires_grad_(one.requires_grad) if hasattr(one, "untyped_storage") else one for one in inputs]


def _take(one: Any) -> Any:
    return on_cpu.to_cpu(one) if hasattr(one, "untyped_storage") and one.device.type == "npu" else one


def _differentiate(results: Sequence[Any], given: Sequence[Any], tangents: Sequence[Any] | None) -> list[Any]:
    torch = importlib.import_module("torch")
    wanted = [one for one in given if getattr(one, "requires_grad", False)]
    sources = [one for one in results if getattr(one, "requires_grad", False)]
    if not wanted or not sources:
        return [None] * len(given)
    seeds = [torch.ones(one.shape, dtype=one.dtype) for one in sources] if tangents is None else tangents
    # Strides other than the output's would be changed on the way to the backward code, by operators on npu tensors.
    given_seeds = [on_cpu.to_npu(_lay_out_as(one, source)) for one, source in zip(seeds, sources, strict=True)]
    # Outputs that are views of one another are differentiated, and their gradients summed, outside the generated code.
    with on_cpu.operators():
        found = torch.autograd.grad(sources, wanted, given_seeds, allow_unused=True)
    by_input = dict(zip(map(id, wanted), found, strict=True))
    return [by_input.get(id(one)) for one in given]


def _lay_out_as(one: Any, other: Any) -> Any:
    torch = importlib.import_module("torch")
    return torch.empty_strided(other.size(), other.stride(), dtype=one.dtype).copy_(one)


@contextlib.contextmanager
def by_reference(kernels: list[Kernel], hazards: str) -> Iterator[None]:
    """Have generated code that is loaded while this is open compute by reference, and note what ran."""
    cache = importlib.import_module("torch._inductor.codecache").PyCodeCache
    dvm: Any = importlib.import_module("torch_npu._inductor.dvm")
    load, kernel = cache.load_by_key_path, dvm.kernel

    def load_wrapped(*args: Any, **options: Any) -> Any:
        module = load(*args, **options)
        if hasattr(module, "call"):
            module.call = _on_cpu(module.call)
        return module

    cache.load_by_key_path = load_wrapped
    dvm.kernel = _kernel_maker(kernel, kernels, hazards)
    try:
        yield
    finally:
        cache.load_by_key_path, dvm.kernel = load, kernel


def _on_cpu(call: Callable[..., Any]) -> Callable[..., Any]:
    def computed(*args: Any, **options: Any) -> Any:
        with on_cpu.operators():
            return call(*args, **options)

    return computed


def _kernel_maker(real: Callable[..., Any], kernels: list[Kernel], hazards: str) -> Callable[..., Any]:
    def kernel(ktype: str = "split", dyn_shape: bool = False) -> Callable[[Callable[[Any], Any]], Any]:
        def decorate(build: Callable[[Any], Any]) -> Any:
            made, program = build_beside(real, build, ktype, dyn_shape=dyn_shape)
            name = build.__name__.removesuffix("_build")

            @functools.wraps(made)
            def call(*inputs: Any, **options: Any) -> Any:
                kernels.append(Kernel(name, ktype))
                outputs = compute_outputs(program, list(map(_shared, inputs)))
                return importlib.import_module("torch.utils._pytree").tree_map(on_cpu.to_npu, outputs)

            modelled = ModelledKernel(program, made.kobj)

            def run(*arguments: Any, **options: Any) -> None:
                ran = modelled.run(arguments, hazards)
                kernels.append(Kernel(name, ktype, ran.launches, ran.hazards, ran.parked, ran.remarks))

            call.run = run  # type: ignore[attr-defined]
            return call

        return decorate

    return kernel


def _shared(one: Any) -> Any:
    return on_cpu.share(one) if hasattr(one, "untyped_storage") else one
