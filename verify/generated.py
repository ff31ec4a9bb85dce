"""Run a compiled function on the CPU: its own generated code, with every kernel and operator computed by reference.

    run = run_generated(function, x, y, hazards="recorded")
    run.results, run.inputs, run.gradients      # CPU tensors
    run.kernels                                 # what was launched, and what that does to its inputs
    compiled = compile_generated(module)        # to be called many times: compiling takes a second, a run far less
    compiled(x, hazards="separate").parameter_gradients

The function is compiled for npu by the real backend on the host sysroot. Its generated code then runs as it is, forward
and backward, on npu tensors that lie in host memory; DVM kernels are evaluated from their builders' programs and all
other operators by torch's CPU kernels.

`hazards` says what is supposed of the memory in which a kernel keeps values between its stages, see
`verify.reference.modelled`: "recorded" as the real runtime's launches for these kernels and shapes have it, "separate"
as if it were apart from all tensors, "worst case" as bad as it could be.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from verify import host, on_cpu
from verify.dvm_reference import compute_outputs
from verify.reference.against_real import build_beside
from verify.reference.modelled import ModelledKernel

FALLBACK = "fallback"
"""The type of a kernel that torch_npu could not build with DVM and runs as an FX graph of torch's operators."""


@dataclass(frozen=True)
class Kernel:
    """One kernel that ran, in words: the real runtime's launches for it, and what they do to its inputs.

    Without recorded launches there are none to tell. `hazards` are what may make its numbers wrong, `parked` the values
    that lay in an output or a workspace between stages, `remarks` what else should be known, `unjudged` why the numbers
    that were computed are not those of the recorded launches.
    """

    name: str
    type: str
    launches: tuple[str, ...] = ()
    hazards: tuple[str, ...] = ()
    parked: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()


@dataclass(frozen=True)
class GeneratedRun:
    """What a compiled function computed by reference.

    `results` are its outputs, flat; `inputs` the inputs afterwards; `gradients` those of the inputs, None where an
    input requires none; both have the structure of what was passed, keywords last, in the order of their names. All
    tensors are on the CPU. `kernels` stand in the order in which they ran, `sources` are the generated files. Of a
    module, `state` holds the parameters and buffers afterwards, `parameter_gradients` those that there are, by name.
    """

    hazards: str
    results: tuple[Any, ...]
    inputs: tuple[Any, ...]
    gradients: tuple[Any, ...]
    kernels: tuple[Kernel, ...]
    sources: tuple[str, ...]
    state: Mapping[str, Any] = field(default_factory=dict)
    parameter_gradients: Mapping[str, Any] = field(default_factory=dict)


def run_generated(
    function: Callable[..., Any],
    *inputs: Any,
    hazards: str = "recorded",
    tangents: Sequence[Any] | None = None,
    dynamic: bool | None = None,
    keywords: Mapping[str, Any] | None = None,
) -> GeneratedRun:
    """Compile a function or module for npu and compute it, and its gradients where an input or parameter requires them.

    `inputs` and `keywords` hold CPU tensors, nested as they like, and are not changed, nor is a module. `tangents` are
    the outputs' gradients, ones where None. A graph break is torch's own error.
    """
    compiled = compile_generated(function, dynamic=dynamic)
    return compiled(*inputs, hazards=hazards, tangents=tangents, keywords=keywords)


def compile_generated(function: Callable[..., Any], *, dynamic: bool | None = None) -> GeneratedFunction:
    """Return a function or module to be run as `run_generated` does, compiled at its first run and when it must be.

    Forgets what else torch has compiled. A module is copied; its copy's buffers change from run to run.
    """
    return GeneratedFunction(function, dynamic=dynamic)


class GeneratedFunction:
    """A compiled function. `sources` are the files generated for it so far."""

    def __init__(self, function: Callable[..., Any], *, dynamic: bool | None) -> None:
        torch = importlib.import_module("torch")
        torch._dynamo.reset()
        self.sources: list[str] = []
        self._module = _to_npu_module(function) if isinstance(function, torch.nn.Module) else None
        target = function if self._module is None else self._module
        self._compiled = torch.compile(target, backend=_compile, fullgraph=True, dynamic=dynamic)

    def __call__(
        self,
        *inputs: Any,
        hazards: str = "recorded",
        tangents: Sequence[Any] | None = None,
        keywords: Mapping[str, Any] | None = None,
    ) -> GeneratedRun:
        """Run once, on copies of the inputs; see `run_generated`."""
        tree = importlib.import_module("torch.utils._pytree")
        leaves, structure = tree.tree_flatten((inputs, dict(keywords or {})))
        given = _give(leaves)
        positional, named = tree.tree_unflatten(given, structure)
        parameters = dict(self._module.named_parameters()) if self._module is not None else {}
        kernels: list[Kernel] = []
        with host.generated_code() as sources, on_cpu.folded_constants(), by_reference(kernels, hazards):
            results = tree.tree_leaves(self._compiled(*positional, **named))
            gradients = _differentiate(results, [*given, *parameters.values()], tangents)
        self.sources += sources

        def structured(found: Sequence[Any]) -> tuple[Any, ...]:
            placed, by_name = tree.tree_unflatten(list(map(_take, found)), structure)
            return (*placed, *by_name.values())

        return GeneratedRun(
            hazards=hazards,
            results=tuple(map(_take, results)),
            inputs=structured(given),
            gradients=structured(gradients[: len(given)]),
            kernels=tuple(kernels),
            sources=tuple(self.sources),
            state={name: _take(one) for name, one in self._module.state_dict().items()}
            if self._module is not None
            else {},
            parameter_gradients={
                name: _take(one)
                for name, one in zip(parameters, gradients[len(given) :], strict=True)
                if one is not None
            },
        )


def _compile(graph: Any, inputs: Any) -> Callable[..., Any]:
    """Compile as Inductor does, and compute what AOTAutograd does around the generated code by reference too."""
    inductor = importlib.import_module("torch._inductor.compile_fx")
    compiled = inductor.compile_fx(graph, inputs)
    return _on_cpu(compiled)


def _to_npu_module(module: Any) -> Any:
    """Return a copy of a module with its parameters and buffers on the npu; what is shared stays shared."""
    torch = importlib.import_module("torch")
    copied = copy.deepcopy(module)
    made: dict[int, Any] = {}
    for part in copied.modules():
        for name, one in part._parameters.items():
            if one is not None:
                made.setdefault(id(one), (torch.nn.Parameter(on_cpu.to_npu(one), one.requires_grad), one))
                part._parameters[name] = made[id(one)][0]
        for name, one in part._buffers.items():
            if one is not None:
                made.setdefault(id(one), (on_cpu.to_npu(one), one))
                part._buffers[name] = made[id(one)][0]
    return copied


def _give(inputs: Sequence[Any]) -> list[Any]:
    """Return npu tensors for the CPU tensors; one that is passed twice is one there too, as its gradient is."""
    tensors = {id(one): one for one in inputs if hasattr(one, "untyped_storage")}
    made = dict(zip(tensors, on_cpu.to_npu_together(list(tensors.values())), strict=True))
    return [made[id(one)].requires_grad_(one.requires_grad) if id(one) in made else one for one in inputs]


def _take(one: Any) -> Any:
    return on_cpu.to_cpu(one) if hasattr(one, "untyped_storage") and one.device.type == "npu" else one


def _differentiate(results: Sequence[Any], given: Sequence[Any], tangents: Sequence[Any] | None) -> list[Any]:
    torch = importlib.import_module("torch")
    wanted = list({id(one): one for one in given if getattr(one, "requires_grad", False)}.values())
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


_RUNNING: list[tuple[list[Kernel], str]] = []
"""The runs that are open, innermost last: where kernels are noted, and the mode of their hazards."""


@contextlib.contextmanager
def by_reference(kernels: list[Kernel], hazards: str) -> Iterator[None]:
    """Have generated code that is loaded while this is open compute by reference, and note what ran.

    Code that runs while another of these is open is noted there: torch compiles one function once for all callers.
    """
    cache = importlib.import_module("torch._inductor.codecache").PyCodeCache
    dvm: Any = importlib.import_module("torch_npu._inductor.dvm")
    load, kernel = cache.load_by_key_path, dvm.kernel

    def load_wrapped(*args: Any, **options: Any) -> Any:
        module = load(*args, **options)
        if hasattr(module, "call"):
            module.call = _on_cpu(module.call)
            _note_fallbacks(module, (kernels, hazards))
        return module

    cache.load_by_key_path = load_wrapped
    dvm.kernel = _kernel_maker(kernel, (kernels, hazards))
    _RUNNING.append((kernels, hazards))
    try:
        yield
    finally:
        _RUNNING.pop()
        cache.load_by_key_path, dvm.kernel = load, kernel


def _note_fallbacks(module: Any, own: tuple[list[Kernel], str]) -> None:
    """Have the kernels that torch_npu runs as FX graphs, for want of a DVM kernel, be noted when they run."""
    for name, value in list(vars(module).items()):
        if not isinstance(value, type) and hasattr(value, "run") and type(value).__module__.startswith("torch_npu."):
            value.run = functools.partial(_run_fallback, value.run, name, own)


def _run_fallback(run: Callable[..., Any], name: str, own: tuple[list[Kernel], str], *args: Any, **options: Any) -> Any:
    kernels, _ = (_RUNNING or [own])[-1]
    kernels.append(Kernel(name, FALLBACK, remarks=("an FX graph of torch's own operators, no DVM kernel",)))
    return run(*args, **options)


def _on_cpu(call: Callable[..., Any]) -> Callable[..., Any]:
    def computed(*args: Any, **options: Any) -> Any:
        with on_cpu.operators():
            return call(*args, **options)

    return computed


def _kernel_maker(real: Callable[..., Any], own: tuple[list[Kernel], str]) -> Callable[..., Any]:
    def kernel(ktype: str = "split", dyn_shape: bool = False) -> Callable[[Callable[[Any], Any]], Any]:
        def decorate(build: Callable[[Any], Any]) -> Any:
            made, program = build_beside(real, build, ktype, dyn_shape=dyn_shape)
            name = build.__name__.removesuffix("_build")
            modelled = ModelledKernel(program, made.kobj)

            @functools.wraps(made)
            def call(*inputs: Any, **options: Any) -> Any:
                kernels, _ = (_RUNNING or [own])[-1]
                kernels.append(Kernel(name, ktype, remarks=("not recorded: its outputs are memory of its own",)))
                outputs = compute_outputs(program, list(map(_shared, inputs)))
                return importlib.import_module("torch.utils._pytree").tree_map(on_cpu.to_npu, outputs)

            def run(*arguments: Any, **options: Any) -> None:
                kernels, hazards = (_RUNNING or [own])[-1]
                ran = modelled.run(arguments, hazards)
                kernels.append(Kernel(name, ktype, ran.launches, ran.hazards, ran.parked, ran.remarks, ran.unjudged))

            call.run = run  # type: ignore[attr-defined]
            return call

        return decorate

    return kernel


def _shared(one: Any) -> Any:
    return on_cpu.share(one) if hasattr(one, "untyped_storage") else one
