"""A module and its inputs as a function of a flat row of tensors, so that every run can have copies of its own.

The tensors are those among the inputs (each once, however often it is given), then the module's parameters and buffers.
What else the inputs hold stays a constant of the function.
"""

from __future__ import annotations

import copy
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verify.divergence.taps import Recorder


@dataclass(frozen=True, kw_only=True)
class Program:
    """The tensors by name, and how to make the function: with a recorder it returns `(result, taps)`."""

    names: tuple[str, ...]
    tensors: tuple[Any, ...]
    make: Callable[[Recorder | None], Callable[..., Any]]


def make_program(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Program:
    """Make the program of a module or a plain function, called with these arguments."""
    torch = importlib.import_module("torch")
    tree = importlib.import_module("torch.utils._pytree")
    module = getattr(module, "_orig_mod", module)
    paths, spec = tree.tree_flatten_with_path((tuple(args), dict(kwargs)))
    leaves = [leaf for _, leaf in paths]
    given, places = _unique_tensors(leaves)
    labels = _label_arguments(module, [path for path, _ in paths])
    names = [labels[places.index(number)] for number in range(len(given))]
    state = _state_of(module) if isinstance(module, torch.nn.Module) else {}

    def make(recorder: Recorder | None) -> Callable[..., Any]:
        called = _copy_structure(module, state)
        if recorder is not None and isinstance(called, torch.nn.Module):
            recorder.hook_into(called)

        def call(tensors: Sequence[Any], own_args: Any, own_kwargs: Any) -> Any:
            if not state:
                return called(*own_args, **own_kwargs)
            held = dict(zip(state, tensors[len(given) : len(given) + len(state)], strict=True))
            return torch.func.functional_call(called, held, own_args, own_kwargs)

        def flat(*tensors: Any) -> Any:
            if recorder is not None:
                recorder.begin(tensors[len(given) + len(state) :])
            values = [leaf if place is None else tensors[place] for leaf, place in zip(leaves, places, strict=True)]
            own_args, own_kwargs = tree.tree_unflatten(values, spec)
            # Dynamo names nodes by the variables that hold them: no name of ours may be among them.
            if recorder is None:
                return call(tensors, own_args, own_kwargs)
            return call(tensors, own_args, own_kwargs), tuple(recorder.values)

        return flat

    return Program(names=(*names, *state), tensors=(*given, *state.values()), make=make)


def split_arguments(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and keyword arguments: a tuple or list of those, a mapping of these, or one value."""
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, (tuple, list)):
        return tuple(inputs), {}
    return (inputs,), {}


def _unique_tensors(leaves: Sequence[Any]) -> tuple[list[Any], list[int | None]]:
    """Return the tensors among the leaves, and for each leaf its tensor's number, None where it is none."""
    torch = importlib.import_module("torch")
    tensors: list[Any] = []
    places: list[int | None] = []
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            places.append(None)
            continue
        known = [number for number, one in enumerate(tensors) if one is leaf]
        places.append(known[0] if known else len(tensors))
        if not known:
            tensors.append(leaf)
    return tensors, places


def _label_arguments(module: Any, paths: Sequence[Any]) -> list[str]:
    """Name each leaf by the parameter that it is given for, and its path within."""
    tree = importlib.import_module("torch.utils._pytree")
    torch = importlib.import_module("torch")
    parameters = _parameters_of(module.forward if isinstance(module, torch.nn.Module) else module)
    labels = []
    for path in paths:
        side, first, rest = path[0].idx, path[1], path[2:]
        if side == 1:
            name = str(first.key)
        elif first.idx < len(parameters):
            name = parameters[first.idx]
        else:
            name = f"argument {first.idx}"
        labels.append(name + tree.keystr(rest))
    return labels


def _parameters_of(function: Any) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in positional]


def _state_of(module: Any) -> dict[str, Any]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _copy_structure(module: Any, state: Mapping[str, Any]) -> Any:
    """Copy a module without its tensors, which each run replaces, so that nothing that it counts is kept."""
    torch = importlib.import_module("torch")
    if not isinstance(module, torch.nn.Module):
        return module
    return copy.deepcopy(module, {id(tensor): tensor for tensor in state.values()})
