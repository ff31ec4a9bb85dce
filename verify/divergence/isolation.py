"""The calls of a module's parts, each with the inputs that eager gave it, so that each can be compiled by itself."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from verify.divergence.graph_taps import Traced
from verify.divergence.program import Program, make_program
from verify.divergence.runs import copy_tensors
from verify.divergence.taps import Recorder, number_repeated


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a part: its name as a tap has it, and its program."""

    name: str
    program: Program


class CallRecorder(Recorder):
    """Keep what each submodule is called with, instead of what it returns."""

    def __init__(self) -> None:
        super().__init__(())
        self.calls: list[tuple[str, Sequence[Any], Mapping[str, Any], dict[str, Any]]] = []

    def hook_into(self, module: Any) -> None:
        """Keep the arguments and the state of all submodules when they are called."""
        for name, submodule in module.named_modules():
            if name:
                submodule.register_forward_pre_hook(self._make_hook(name), with_kwargs=True)

    def take(self, label: str, output: Any) -> Any:
        """Leave named taps alone."""
        return output

    def _make_hook(self, name: str) -> Callable[[Any, Any, Any], None]:
        def hook(module: Any, args: Any, kwargs: Any) -> None:
            own_args, own_kwargs = _copy((args, kwargs))
            state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
            copies = copy_tensors([*state.values()])
            self.calls.append((name, own_args, own_kwargs, dict(zip(state, copies, strict=True))))

        return hook


def find_module_calls(module: Any, program: Program) -> list[Call]:
    """Run a module eagerly and return its submodules' calls, in the order in which they begin."""
    module = getattr(module, "_orig_mod", module)
    recorder = CallRecorder()
    program.make(recorder)(*copy_tensors(program.tensors))
    calls = []
    for name, (path, args, kwargs, state) in zip(
        number_repeated([call[0] for call in recorder.calls]), recorder.calls, strict=True
    ):
        part = make_program(module.get_submodule(path), args, kwargs)
        given = part.tensors[: len(part.tensors) - len(state)]
        calls.append(Call(name=name, program=replace(part, tensors=(*given, *state.values()))))
    return calls


def find_node_calls(traced: Traced, tensors: Sequence[Any], names: Sequence[str]) -> list[Call]:
    """Run a graph eagerly and return the calls of the named nodes."""
    fx = importlib.import_module("torch.fx")
    calls: list[Call] = []

    class Keeping(fx.Interpreter):  # type: ignore[misc, name-defined]  # torch is untyped here
        def run_node(self, node: Any) -> Any:
            if node.name in names:
                args, kwargs = _copy(self.fetch_args_kwargs_from_env(node))
                calls.append(Call(name=node.name, program=make_program(_function_of(node), args, kwargs)))
            return super().run_node(node)

    Keeping(traced.graph_module).run(*traced.order(copy_tensors(tensors)))
    return calls


def _function_of(node: Any) -> Callable[..., Any]:
    target = node.target
    if node.op == "call_method":
        return lambda *args, **kwargs: getattr(args[0], target)(*args[1:], **kwargs)
    return lambda *args, **kwargs: target(*args, **kwargs)


def _copy(values: Any) -> Any:
    """Copy the tensors in nested values; those that need a gradient become leaves."""
    torch = importlib.import_module("torch")
    tree = importlib.import_module("torch.utils._pytree")
    leaves, spec = tree.tree_flatten(values)
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    copies = dict(zip(map(id, tensors), copy_tensors(tensors), strict=True))
    return tree.tree_unflatten([copies.get(id(leaf), leaf) for leaf in leaves], spec)
