"""Tap every node of the graph that Dynamo traces from a function: stages for functions without submodules.

The graph is torch's own, one node for each call in the source, with the names that generated code carries too.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from verify.divergence.runs import copy_tensors
from verify.divergence.taps import Tap, Tapped, make_watch, record


class UntraceableError(RuntimeError):
    """Dynamo does not trace the function into one graph, so that it has no nodes to tap."""


@dataclass(frozen=True, kw_only=True)
class Traced:
    """One graph, and what each placeholder takes: a tensor of the program by number, or a constant in a 1-tuple."""

    graph_module: Any
    arguments: tuple[int | tuple[Any], ...]

    def order(self, tensors: Sequence[Any]) -> list[Any]:
        """Return the graph's arguments among a program's tensors."""
        return [tensors[one] if isinstance(one, int) else one[0] for one in self.arguments]


def trace(function: Callable[..., Any], tensors: Sequence[Any]) -> Traced:
    """Trace a function of tensors into one graph; raise UntraceableError where that does not work."""
    torch = importlib.import_module("torch")
    dynamo = importlib.import_module("torch._dynamo")
    found: list[Traced] = []
    given = copy_tensors(tensors)

    def keep(graph_module: Any, examples: Any) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            numbers = {id(tensor): number for number, tensor in enumerate(given)}
            order = tuple(numbers.get(id(one), (one,)) for one in arguments)
            found.append(Traced(graph_module=graph_module, arguments=order))
            return graph_module.forward(*arguments)

        return run

    dynamo.reset()
    try:
        torch.compile(function, backend=keep, fullgraph=True, dynamic=False)(*given)
    except Exception as fault:  # whatever stops Dynamo, or the function itself under it, leaves no graph
        raise UntraceableError(first_line(fault)) from fault
    if len(found) != 1:
        raise UntraceableError(f"Dynamo traced {len(found)} graphs where one was wanted")
    return found[0]


def tap_nodes(traced: Traced, taps: Sequence[Tap]) -> Callable[..., Any]:
    """Return the function of a program's tensors and probes that returns `(result, values of the nodes)`."""
    fx = importlib.import_module("torch.fx")
    graph = fx.Graph()
    copies: dict[Any, Any] = {}
    graph_module = traced.graph_module
    plan = {one.name: one for one in taps}
    values, result = [], None
    probes = [one for one in plan.values() if one.probe is not None]
    for node in graph_module.graph.nodes:
        if node.op == "output":
            result = fx.map_arg(node.args[0], lambda one: copies[one])
            continue
        copies[node] = graph.node_copy(node, lambda one: copies[one])
        if node.op == "placeholder" and node.next.op != "placeholder":
            at = {one.name: graph.placeholder(f"probe_{one.name}") for one in probes}
        if node.name not in plan:
            continue
        values.append(graph.call_function(record, (copies[node],)))
        if plan[node.name].probe is not None:
            copies[node] = graph.call_function(make_watch(), (copies[node], at[node.name]))
    graph.output((result, tuple(values)))
    made = fx.GraphModule(graph_module, graph)

    def flat(*tensors: Any) -> Any:
        count = len(tensors) - len(probes)
        return made(*traced.order(tensors[:count]), *tensors[count:])

    return flat


def plan_nodes(traced: Traced, tensors: Sequence[Any]) -> Tapped:
    """Run the graph eagerly to learn which nodes compute something, and which of their values may have a probe."""
    torch = importlib.import_module("torch")
    given = copy_tensors(tensors)
    known = {_memory(one) for one in given}
    values = _run_nodes(traced, given)
    taps: list[Tap] = []
    probes: list[Any] = []
    for name, value, version in values:
        # A view has nothing new in it; what was changed in place has another version.
        if (_memory(value)[0], version) in known:
            continue
        known.add((_memory(value)[0], version))
        wanted = value.requires_grad and value._version == version
        taps.append(Tap(name=name, probe=len(probes) if wanted else None))
        if wanted:
            probes.append(torch.zeros_like(value, requires_grad=True))
    return Tapped(function=tap_nodes(traced, taps), taps=tuple(taps), probes=tuple(probes))


def _run_nodes(traced: Traced, given: Sequence[Any]) -> list[tuple[str, Any, int]]:
    """Return each node's name, value and the value's version then."""
    torch = importlib.import_module("torch")
    fx = importlib.import_module("torch.fx")
    seen: list[tuple[str, Any, int]] = []

    class Watcher(fx.Interpreter):  # type: ignore[misc, name-defined]  # torch is untyped here
        def run_node(self, node: Any) -> Any:
            value = super().run_node(node)
            if node.op.startswith("call_") and isinstance(value, torch.Tensor):
                seen.append((node.name, value, value._version))
            return value

    Watcher(traced.graph_module, garbage_collect_values=False).run(*traced.order(given))
    return seen


def _memory(value: Any) -> tuple[int, int]:
    return value.untyped_storage()._cdata, value._version


def first_line(fault: BaseException) -> str:
    """Return an exception's class and first line, with the second where the first ends in a colon."""
    lines = [*str(fault).strip().splitlines(), ""]
    said = " ".join(lines[: 2 if lines[0].endswith(":") else 1])
    return f"{type(fault).__name__}: {said}".rstrip(": ")
