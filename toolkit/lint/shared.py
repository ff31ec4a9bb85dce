"""Names in a function that mean something of its module or class, and so outlive the call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from toolkit.lint.outline import Class, CodeBase, Function, Module, dotted


class Shared:
    """What the names of a function mean: its own, aliases of containers, and what it declares global."""

    def __init__(self, base: CodeBase, function: Function) -> None:
        self.base = base
        self.function = function
        self.globals: set[str] = set()
        self.local: set[str] = set()
        self.aliases: dict[str, str] = {}
        self._is_read = False

    def read(self) -> None:
        """Look at the function, when something is asked of its names for the first time."""
        if not self._is_read:
            self._is_read = True
            for scope in _scopes(self.function):
                self._enter(scope)

    def _enter(self, function: Function) -> None:
        arguments = function.node.args
        self.local.update(one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))
        self.local.update(one.arg for one in (arguments.vararg, arguments.kwarg) if one is not None)
        named: dict[str, list[ast.expr]] = {}
        for node in ast.walk(function.node):
            if isinstance(node, ast.Global):
                self.globals.update(node.names)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.local.add(node.id)
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                named.setdefault(node.targets[0].id, []).append(node.value)
        self.local -= self.globals
        for name, values in named.items():
            if len(values) == 1 and name in self.local and (target := shared_name(self, values[0])):
                self.aliases[name] = target


def shared_name(shared: Shared, node: ast.expr, *, attributes: bool = False) -> str:
    """Return the name of a container of a module or class, or ""; with `attributes` of any such variable."""
    name = dotted(node)
    head, _, rest = name.partition(".")
    if not name:
        return ""
    shared.read()
    if not rest:
        if name in shared.aliases:
            return shared.aliases[name]
        return "" if name in shared.local else _module_name(shared, name, attributes)
    if head in ("self", "cls") and shared.function.parameters[:1] != [head]:
        head = "self" if _is_method(shared.function) else head
    if head in ("self", "cls"):
        return _attribute_name(shared, head, rest, attributes)
    if head in shared.local:
        return ""
    holder = shared.base.find(shared.function.module, name.rpartition(".")[0])
    last = name.rpartition(".")[2]
    if isinstance(holder, Class):
        return name if attributes or last in holder.containers else ""
    if isinstance(holder, Function):
        return name if attributes else ""
    module = _imported_module(shared, name.rpartition(".")[0])
    return name if module is not None and last in module.containers else ""


def _module_name(shared: Shared, name: str, attributes: bool) -> str:
    module = shared.function.module
    if name in (module.names if attributes else module.containers) or (attributes and name in shared.globals):
        return name
    target = module.imports.get(name, "")
    holder = _imported_module(shared, "", target.rpartition(".")[0])
    return name if holder is not None and target.rpartition(".")[2] in holder.containers else ""


def _attribute_name(shared: Shared, head: str, rest: str, attributes: bool) -> str:
    """Name an attribute of the instance: any with `attributes`, else a class's container that no method replaces."""
    rest = rest.removeprefix("__class__.")
    if attributes and "." not in rest:
        return f"{head}.{rest}"
    owner = _owner(shared.function)
    if owner is not None and rest in owner.containers and rest not in owner.set_on_self:
        return f"{owner.name}.{rest}"
    return ""


def _imported_module(shared: Shared, name: str, target: str = "") -> Module | None:
    return shared.base.by_path.get(target or shared.function.module.imports.get(name, ""))


def _scopes(function: Function) -> Iterator[Function]:
    scope: Function | None = function
    while scope is not None:
        yield scope
        scope = scope.outer


def _owner(function: Function) -> Class | None:
    return next((scope.owner for scope in _scopes(function) if scope.owner is not None), None)


def _is_method(function: Function) -> bool:
    return _owner(function) is not None
