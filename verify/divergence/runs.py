"""Run a function of tensors, eagerly or compiled, each time from copies of its own.

A run has the form of `verify.generated.GeneratedRun`: `results` (the flat outputs), `inputs` (the tensors afterwards)
and `gradients` (by input, None where there is none). Whatever is called as `run(function, *tensors, tangents=...)` and
returns these three can stand for the compiled side.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a function computed. Tensors are detached; `results` may hold other values too."""

    results: tuple[Any, ...]
    inputs: tuple[Any, ...]
    gradients: tuple[Any, ...]


def run_eager(function: Callable[..., Any], *inputs: Any, tangents: Sequence[Any] | None = None) -> Run:
    """Run a function and its backward. `tangents` are the gradients of the results that need one; ones where None."""
    given = copy_tensors(inputs)
    wanted = [one for one in given if one.requires_grad]
    results = leaves_of(function(*given))
    gradients = differentiate(results, wanted, tangents)
    by_input = dict(zip(map(id, wanted), gradients, strict=True))
    return Run(
        results=tuple(map(_detach, results)),
        inputs=tuple(map(_detach, given)),
        gradients=tuple(by_input.get(id(one)) for one in given),
    )


def run_compiled(
    function: Callable[..., Any], *inputs: Any, tangents: Sequence[Any] | None = None, **options: Any
) -> Run:
    """Compile a function with `torch.compile` on the inputs' device and run it, with torch.compile's own options.

    What was compiled before in this process is forgotten: Dynamo would else give up after a few functions of the same
    code, and run the others eagerly.
    """
    torch = importlib.import_module("torch")
    importlib.import_module("torch._dynamo").reset()
    return run_eager(torch.compile(function, **options), *inputs, tangents=tangents)


def copy_tensors(tensors: Sequence[Any]) -> list[Any]:
    """Copy tensors with their strides, and what they share among each other; those that need a gradient are leaves."""
    torch = importlib.import_module("torch")
    storages: dict[int, Any] = {}
    copies = []
    for one in tensors:
        storage = one.untyped_storage()
        mine = storages.setdefault(storage._cdata, None) or storage.clone()
        storages[storage._cdata] = mine
        made = torch.empty(0, dtype=one.dtype, device=one.device)
        made.set_(mine, one.storage_offset(), one.size(), one.stride())
        copies.append(made.requires_grad_(one.requires_grad))
    return copies


def leaves_of(result: Any) -> list[Any]:
    """Return the flat values of a result."""
    return list(importlib.import_module("torch.utils._pytree").tree_leaves(result))


def differentiate(results: Sequence[Any], wanted: Sequence[Any], tangents: Sequence[Any] | None) -> list[Any]:
    """Return the gradients of what is wanted, None where no result depends on it."""
    torch = importlib.import_module("torch")
    sources = [one for one in results if needs_gradient(one)]
    if not wanted or not sources:
        return [None] * len(wanted)
    seeds = [torch.ones_like(one) for one in sources] if tangents is None else list(tangents)
    seeds = [seed.to(one.device) for seed, one in zip(seeds, sources, strict=True)]
    return list(torch.autograd.grad(sources, wanted, seeds, allow_unused=True))


def make_tangents(results: Sequence[Any], seed: int) -> list[Any]:
    """Return gradients for the results that need one: of a scalar 1, else normally distributed.

    Ones would not do: the gradient of what is normalized (softmax, layer norm) for them is nothing but rounding.
    """
    torch = importlib.import_module("torch")
    generator = torch.Generator().manual_seed(seed)
    tangents = []
    for one in results:
        if needs_gradient(one):
            drawn = torch.randn(one.shape, generator=generator) if one.dim() else torch.ones(())
            tangents.append(drawn.to(one.dtype))
    return tangents


def needs_gradient(one: Any) -> bool:
    """Tell whether a result is a tensor that depends on what needs a gradient."""
    return isinstance(one, importlib.import_module("torch").Tensor) and bool(one.requires_grad)


@contextlib.contextmanager
def same_randomness(seed: int) -> Iterator[None]:
    """Draw the same random numbers in every run, compiled ones too, and leave the caller's generators as they were."""
    torch = importlib.import_module("torch")
    config = importlib.import_module("torch._inductor.config")
    with torch.random.fork_rng(), config.patch(fallback_random=True):
        torch.manual_seed(seed)
        yield


@contextlib.contextmanager
def outside_inference_mode() -> Iterator[None]:
    """Leave inference mode, in which tensors have no versions to tell by what is changed; no gradients all the same."""
    torch = importlib.import_module("torch")
    if not torch.is_inference_mode_enabled():
        yield
        return
    with torch.inference_mode(mode=False), torch.no_grad():
        yield


def _detach(one: Any) -> Any:
    return one.detach() if hasattr(one, "detach") else one
