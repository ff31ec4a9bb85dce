"""Taps: where a running module hands out copies of its intermediate values, and lets their gradients be asked for.

A tap changes no number: the copy is an extra output, and the gradient is asked for by an extra input (a probe of zeros)
that only the backward of an identity knows. In a compiled graph both do change what is fused with what.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_listening: list[Recorder] = []
_observers: list[Callable[[Any], None]] = []


@dataclass(frozen=True, kw_only=True)
class Tap:
    """One intermediate value: its name, and the number of the probe that its gradient arrives in, if it has one."""

    name: str
    probe: int | None


@dataclass(frozen=True, kw_only=True)
class Tapped:
    """A function of a program's tensors and the probes, that returns `(result, values of the taps)`."""

    function: Callable[..., Any]
    taps: tuple[Tap, ...]
    probes: tuple[Any, ...]


def tap(name: str, value: Any) -> Any:
    """Name an intermediate value (a tensor, or a tuple, list or dict of some) within a function, and return it.

    Outside of `verify.first_difference` this does nothing.
    """
    return _listening[-1].take(name, value) if _listening else value


class Recorder:
    """Take the values at the taps of one run, in their order.

    Without a plan it learns one: the names, and which values may have a probe (those that need a gradient and are not
    changed in place afterwards).
    """

    def __init__(self, taps: Sequence[Tap] | None = None, *, modules: bool = True) -> None:
        self.values: list[Any] = []
        self.names: list[str] = []
        self.modules = modules
        self._plan = None if taps is None else [one.probe for one in taps]
        self._probes: Sequence[Any] = ()
        self._seen: list[tuple[Any, int]] = []
        self._watch = make_watch()

    def begin(self, probes: Sequence[Any]) -> None:
        """Forget the run before; a run has its own probes."""
        self.values = []
        self.names = []
        self._seen = []
        self._probes = probes

    def hook_into(self, module: Any) -> None:
        """Take the outputs of all submodules."""
        for name, submodule in module.named_modules():
            if name and self.modules:
                submodule.register_forward_hook(_hook(self, name))

    @contextlib.contextmanager
    def listen(self) -> Iterator[Recorder]:
        """Take what `tap` names while this is open."""
        _listening.append(self)
        try:
            yield self
        finally:
            _listening.remove(self)

    def take(self, label: str, output: Any) -> Any:
        """Take the tensors of an output and return it, with the probed ones in their places."""
        # Dynamo traces this: it knows an import statement, and not import_module.
        import torch
        from torch.utils import _pytree as tree

        if self._plan is None:
            self._name(label, output)
        leaves, spec = tree.tree_flatten(output)
        taken = [self._take_one(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        return tree.tree_unflatten(taken, spec)

    def plan(self) -> tuple[Tap, ...]:
        """Return what a run without a plan has learnt."""
        number, taps = 0, []
        for name, (value, version) in zip(number_repeated(self.names), self._seen, strict=True):
            wanted = value.requires_grad and value._version == version
            taps.append(Tap(name=name, probe=number if wanted else None))
            number += wanted
        return tuple(taps)

    def make_probes(self) -> tuple[Any, ...]:
        """Return the zeros in which the gradients of the planned taps arrive."""
        torch = importlib.import_module("torch")
        pairs = zip(self._seen, self.plan(), strict=True)
        return tuple(torch.zeros_like(value, requires_grad=True) for (value, _), one in pairs if one.probe is not None)

    def _take_one(self, value: Any) -> Any:
        number = len(self.values)
        self.values.append(record(value))
        if self._plan is None:
            self._seen.append((value, value._version))
            return value
        probe = self._plan[number]
        return value if probe is None else self._watch(value, self._probes[probe])

    def _name(self, label: str, output: Any) -> None:
        torch = importlib.import_module("torch")
        tree = importlib.import_module("torch.utils._pytree")
        found = tree.tree_flatten_with_path(output)[0]
        paths = [tree.keystr(path) for path, leaf in found if isinstance(leaf, torch.Tensor)]
        self.names.extend(label + path for path in paths)


def record(value: Any) -> Any:
    """Return a copy of a tapped value, and let an observer see the value itself."""
    if _observers:
        _observers[-1](value)
    return value.detach().clone()


@contextlib.contextmanager
def observe(observer: Callable[[Any], None]) -> Iterator[None]:
    """Have every value that is tapped while this is open shown to `observer`."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def number_repeated(names: Sequence[str]) -> list[str]:
    """Return the names, repeated ones with their number: `act`, `act`, `out` become `act#1`, `act#2`, `out`."""
    seen: dict[str, int] = {}
    numbered = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        numbered.append(f"{name}#{seen[name]}" if names.count(name) > 1 else name)
    return numbered


def _hook(recorder: Recorder, name: str) -> Callable[[Any, Any, Any], Any]:
    def hook(module: Any, args: Any, output: Any) -> Any:
        return recorder.take(name, output)

    return hook


@functools.cache
def make_watch() -> Callable[[Any, Any], Any]:
    """Return the function of a value and a probe that returns the value, whose gradient also becomes the probe's."""
    torch = importlib.import_module("torch")

    class Watching(torch.autograd.Function):  # type: ignore[misc, name-defined]  # torch is untyped here
        @staticmethod
        def forward(context: Any, value: Any, probe: Any) -> Any:
            return value.view_as(value)

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            return gradient, gradient

    def watch(value: Any, probe: Any) -> Any:
        return Watching.apply(value, probe)

    return watch
