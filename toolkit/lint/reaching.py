"""Which functions are traced when a model is compiled: the roots, and what they call."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from toolkit.lint.outline import Class, CodeBase, Function, Module, dotted, last_name
from toolkit.lint.traced import Seen, seen_nodes

Kind = Literal["forward", "autograd", "fake", "body"]
"""How a function comes to run: traced by Dynamo (the first two), on fake tensors, or as an operator's opaque body."""

Root = tuple[Function, Kind]
"""A function where tracing begins."""

_FUNCTION_METHODS = ("forward", "backward", "setup_context", "jvp")
_FAKES = {"register_fake", "impl_abstract", "register_meta"}
_BODIES = {"custom_op", "register_kernel"}
_NO_MODULES = {
    "object", "ABC", "Protocol", "Generic", "NamedTuple", "TypedDict", "Enum", "Exception", "Dataset",
    "IterableDataset", "Optimizer", "TestCase", "Function", "Config", "Configurable",
}  # fmt: skip
_LEFT_ALONE = {"disable", "_disable_dynamo", "allow_in_graph", "nonstrict_trace", "leaf_function", "jit", "kernel"}
"""Decorators of functions that Dynamo does not look into."""

_MAY_NAME_ROOTS = re.compile(
    r"\.forward\s*=|[\"']forward[\"']|torch\.compile\(|register_fake\(|\.impl\(|register_autograd\("
)
_REPLACES = re.compile(r"replace|patch|set|register|override|wrap|swap|bind|inject|add")
"""What a call is named that makes a function somebody's "forward"."""

_NO_WRAPPER = re.compile(r"(^|_)(test|main|bench|benchmark|check|verify|demo|profile)(_|$)")
_PASSES_ON = {"checkpoint", "partial", "checkpoint_wrapper", "vmap"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """A traced function, the kinds of its roots, one of these by name, and the nodes that are seen of it."""

    function: Function
    kinds: frozenset[Kind]
    root: str
    nodes: tuple[Seen, ...]

    @property
    def place(self) -> str:
        """Say where we are, and from where one comes here."""
        name = self.function.name.partition("@")[0]
        return f"in {name}" if self.root == self.function.name else f"in {name}, called from {self.root}"


def reach(base: CodeBase, roots: Sequence[Root]) -> list[Reach]:
    """Find every function that is traced, in the order of files and lines."""
    bodies = {one for one, kind in roots if kind == "body"}
    kinds: dict[Function, set[Kind]] = {}
    origin: dict[Function, str] = {}
    nodes: dict[Function, tuple[Seen, ...]] = {}
    pending = [(function, kind, function.name) for function, kind in roots]
    while pending:
        function, kind, root = pending.pop()
        if kind in kinds.setdefault(function, set()) or _is_left_alone(function):
            continue
        kinds[function].add(kind)
        origin.setdefault(function, root)
        nodes.setdefault(function, tuple(seen_nodes(function.node)))
        pending += [(one, kind, root) for one in _called_by(base, function, nodes[function]) if one not in bodies]
    found = [
        Reach(function=one, kinds=frozenset(kinds[one]), root=origin[one], nodes=nodes[one])
        for one in kinds
        if kinds[one]
    ]
    return sorted(found, key=lambda one: (one.function.module.source.file, one.function.node.lineno))


def find_roots(base: CodeBase) -> list[Root]:
    """Find where tracing begins."""
    found: list[Root] = []
    for module in base.modules:
        if "torch" not in module.source.text and "forward" not in module.source.text:
            continue
        for one in module.classes.values():
            if is_autograd_function(base, one):
                found += [(one.methods[name], "autograd") for name in _FUNCTION_METHODS if name in one.methods]
            elif "forward" in one.methods and is_network(base, one):
                found.append((one.methods["forward"], "forward"))
        for function in module.functions.values():
            kinds = list(_decorated_as(function))
            if not kinds and _is_wrapper(base, function):
                kinds = ["forward"]
            found += [(function, kind) for kind in kinds]
        if _MAY_NAME_ROOTS.search(module.source.text):
            found += _named_roots(base, module)
    return found


def is_autograd_function(base: CodeBase, one: Class, seen: frozenset[str] = frozenset()) -> bool:
    """Tell a subclass of torch.autograd.Function."""
    for name in one.bases:
        if re.search(r"autograd\.(.*\.)?Function$", f"{one.module.imports.get(name.partition('.')[0], '')}.{name}"):
            return True
        known = base.find(one.module, name)
        is_new = isinstance(known, Class) and known.name not in seen
        if is_new and isinstance(known, Class) and is_autograd_function(base, known, seen | {one.name}):
            return True
    return False


def is_network(base: CodeBase, one: Class, seen: frozenset[str] = frozenset()) -> bool:
    """Tell a class that is an nn.Module, or has a base that is not among the files and may be one."""
    for name in one.bases:
        last = name.rpartition(".")[2]
        known = base.find(one.module, name)
        if last.endswith("Module"):
            return True
        if isinstance(known, Class):
            if known.name not in seen and is_network(base, known, seen | {one.name}):
                return True
        elif last and last not in _NO_MODULES:
            return True
    return False


def _is_wrapper(base: CodeBase, function: Function) -> bool:
    """Tell a function that gives back what an autograd.Function or an operator of torch.ops makes of its arguments."""
    text = function.module.source.text
    if (".apply(" not in text and "torch.ops." not in text) or not function.parameters or function.owner is not None:
        return False
    if _NO_WRAPPER.search(function.node.name) or function.outer is not None:
        return False
    nodes = list(ast.walk(function.node))
    if not any(isinstance(node, ast.Return) and node.value is not None for node in nodes):
        return False
    return any(_applies(base, function, node) for node in nodes if isinstance(node, ast.Call))


def _applies(base: CodeBase, function: Function, node: ast.Call) -> bool:
    name = dotted(node.func)
    if name.startswith("torch.ops.") and name.count(".") >= 3:
        return True
    holder = base.find(function.module, name.removesuffix(".apply")) if name.endswith(".apply") else None
    return isinstance(holder, Class) and is_autograd_function(base, holder)


def _decorated_as(function: Function) -> Iterator[Kind]:
    for decorator in function.node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = last_name(call.func if call else decorator)
        if name in _FAKES:
            yield "fake"
        elif name == "impl":
            yield "fake" if call and _has_constant(call, "Meta") else "body"
        elif name in _BODIES:
            yield "body"
        elif name == "triton_op" or dotted(call.func if call else decorator) == "torch.compile":
            yield "forward"


def _named_roots(base: CodeBase, module: Module) -> Iterator[Root]:
    """Find functions that are made a forward, compiled, or registered by a call or an assignment."""
    for scope, node in _scoped(module):
        if isinstance(node, ast.Assign):
            targets = [target for target in node.targets if isinstance(target, ast.Attribute)]
            if any(target.attr == "forward" for target in targets):
                yield from _found(base, module, scope, [node.value], "forward")
        elif isinstance(node, ast.Call):
            values = [*node.args, *(one.value for one in node.keywords if one.arg not in ("backend", "options"))]
            kind = _kind_of_call(node)
            if kind is not None:
                yield from _found(base, module, scope, values, kind)


def _kind_of_call(node: ast.Call) -> Kind | None:
    name = last_name(node.func)
    if name in _FAKES or (name == "impl" and _has_constant(node, "Meta")):
        return "fake"
    if name == "impl":
        return "body"
    if name == "register_autograd":
        return "autograd"
    if dotted(node.func) == "torch.compile" or (_REPLACES.search(name) and _has_constant(node, "forward")):
        return "forward"
    return None


def _has_constant(node: ast.Call, value: str) -> bool:
    values = (*node.args, *(keyword.value for keyword in node.keywords))
    return any(isinstance(one, ast.Constant) and one.value == value for one in values)


def _scoped(module: Module) -> Iterator[tuple[Function | None, ast.AST]]:
    """Yield every node with the function that it is in."""
    inner = {function.node: function for function in module.functions.values()}
    pending: list[tuple[Function | None, ast.AST]] = [(None, module.source.tree)]
    while pending:
        scope, node = pending.pop()
        yield scope, node
        scope = inner.get(node, scope) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else scope
        pending += [(scope, child) for child in ast.iter_child_nodes(node)]


def _found(
    base: CodeBase, module: Module, scope: Function | None, values: list[ast.expr], kind: Kind
) -> Iterator[Root]:
    for value in values:
        name = dotted(value)
        one = base.called(scope, name) if scope else base.find(module, name) if name else None
        if isinstance(one, Function):
            yield one, kind


def _is_left_alone(function: Function) -> bool:
    decorators = (one.func if isinstance(one, ast.Call) else one for one in function.node.decorator_list)
    return any(last_name(one) in _LEFT_ALONE for one in decorators)


def _called_by(base: CodeBase, function: Function, nodes: tuple[Seen, ...]) -> Iterator[Function]:
    """Yield the functions that a function calls, and those that it hands to checkpoint, partial and the like."""
    for seen in nodes:
        node = seen.node
        if not isinstance(node, ast.Call):
            continue
        names = [dotted(node.func)]
        if last_name(node.func) in _PASSES_ON:
            names += [dotted(value) for value in node.args]
        for name in names:
            if name and (found := base.called(function, name)) is not None:
                yield found
