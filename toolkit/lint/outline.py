"""What a code base defines: functions, classes, module-level names and imports, and whom a call means."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from toolkit.lint.sources import Source

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(eq=False, kw_only=True, slots=True)
class Function:
    """A function, its name within the module (`Class.method`, `outer.inner`), and what it is defined in."""

    module: Module
    name: str
    node: FunctionNode
    owner: Class | None
    outer: Function | None

    @property
    def parameters(self) -> list[str]:
        """Name all positional parameters."""
        return [one.arg for one in (*self.node.args.posonlyargs, *self.node.args.args)]


@dataclass(eq=False, kw_only=True, slots=True)
class Class:
    """A class with its methods, the containers among its class attributes, and what methods set on the instance."""

    module: Module
    name: str
    node: ast.ClassDef
    methods: dict[str, Function] = field(default_factory=dict)
    containers: set[str] = field(default_factory=set)
    known: set[str] | None = None

    @property
    def set_on_self(self) -> set[str]:
        """Name the attributes that are set on `self`."""
        if self.known is None:
            self.known = {
                node.attr
                for node in ast.walk(self.node)
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and dotted(node.value) == "self"
            }
        return self.known

    @property
    def bases(self) -> list[str]:
        """Name the bases as written, without type arguments."""
        return [dotted(base.value if isinstance(base, ast.Subscript) else base) for base in self.node.bases]


@dataclass(eq=False, kw_only=True, slots=True)
class Module:
    """A file's definitions by name; `imports` gives the dotted target of a local name."""

    source: Source
    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, Class] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    containers: set[str] = field(default_factory=set)


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeBase:
    """All modules, these by their dotted names, and definitions by theirs."""

    modules: tuple[Module, ...]
    by_path: Mapping[str, Module]
    by_name: Mapping[str, Function | Class]

    def functions(self) -> Iterator[Function]:
        """Yield every function."""
        for module in self.modules:
            yield from module.functions.values()

    def find(self, module: Module, name: str) -> Function | Class | None:
        """Return what a dotted name means at the top of a module, in whichever file that is defined."""
        head, _, rest = name.partition(".")
        if name in module.functions:
            return module.functions[name]
        if name in module.classes:
            return module.classes[name]
        if head in module.imports:
            target = f"{module.imports[head]}.{rest}" if rest else module.imports[head]
            return self.by_name.get(target)
        return None

    def method(self, owner: Class | None, name: str, seen: frozenset[str] = frozenset()) -> Function | None:
        """Return a method of a class or of its bases."""
        if owner is None or owner.name in seen:
            return None
        if name in owner.methods:
            return owner.methods[name]
        for base in owner.bases:
            found = self.find(owner.module, base)
            if isinstance(found, Class) and (method := self.method(found, name, seen | {owner.name})) is not None:
                return method
        return None

    def called(self, function: Function, name: str) -> Function | None:
        """Return the function that a dotted name means in a function's body."""
        head, _, rest = name.partition(".")
        if head in ("self", "cls", "super()") and rest and "." not in rest:
            return self.method(_owner_of(function), rest)
        scope: Function | None = function
        while scope is not None and not rest:
            if (inner := function.module.functions.get(f"{scope.name}.{head}")) is not None:
                return inner
            scope = scope.outer
        found = self.find(function.module, name)
        if found is None and rest and isinstance(holder := self.find(function.module, name.rpartition(".")[0]), Class):
            return self.method(holder, name.rpartition(".")[2])
        return found if isinstance(found, Function) else None


def outline(sources: Sequence[Source]) -> CodeBase:
    """Index the definitions of all files."""
    modules = tuple(map(_outline_module, sources))
    by_name: dict[str, Function | Class] = {}
    for module in modules:
        named: list[tuple[str, Function | Class]] = [*module.functions.items(), *module.classes.items()]
        for name, one in named:
            by_name.setdefault(f"{module.source.module}.{name}", one)
            by_name.setdefault(f"{module.source.short}.{name}", one)
    for module in modules:  # What a package's __init__ hands on from its own modules.
        for local, target in module.imports.items():
            if target in by_name:
                by_name.setdefault(f"{module.source.module}.{local}", by_name[target])
    by_path = {name: module for module in reversed(modules) for name in (module.source.short, module.source.module)}
    return CodeBase(modules=modules, by_path=by_path, by_name=by_name)


def dotted(node: ast.expr) -> str:
    """Write a chain of attributes as it stands, `super()` and `type(self)` at its head too; else ""."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "super":
            return "super()"
        if node.func.id == "type" and len(node.args) == 1 and isinstance(node.args[0], ast.Name):
            return f"{node.args[0].id}.__class__"
    return ""


def last_name(node: ast.expr) -> str:
    """Return the last part of what is called: `rsqrt` of `torch.rsqrt` and of `(a + b).rsqrt`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def own_nodes(function: FunctionNode) -> Iterator[ast.AST]:
    """Yield the nodes of a body in the order of the lines, without inner functions."""
    pending: list[ast.AST] = list(reversed(function.body))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending += reversed(list(ast.iter_child_nodes(node)))


def is_container(node: ast.expr | None) -> bool:
    """Tell whether an expression makes a dict, list, set or the like."""
    if isinstance(node, (ast.Dict, ast.List, ast.Set, ast.DictComp, ast.ListComp, ast.SetComp)):
        return True
    return isinstance(node, ast.Call) and last_name(node.func) in _CONTAINERS


_CONTAINERS = {
    "dict", "list", "set", "defaultdict", "OrderedDict", "deque", "Counter", "ChainMap", "WeakKeyDictionary",
    "WeakValueDictionary", "WeakSet", "WeakTensorKeyDictionary",
}  # fmt: skip


def _outline_module(source: Source) -> Module:
    module = Module(source=source)
    _outline_body(module, source.tree.body, "", None, None)
    return module


def _outline_body(
    module: Module, body: Sequence[ast.stmt], prefix: str, owner: Class | None, outer: Function | None
) -> None:
    """Enter the definitions of a body, whatever statements they stand below; the first of a name counts."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            name = _free_name(module, f"{prefix}{node.name}", node)
            function = Function(module=module, name=name, node=node, owner=owner, outer=outer)
            module.functions[name] = function
            if owner is not None:
                owner.methods.setdefault(node.name, function)
            _outline_body(module, node.body, f"{name}.", None, function)
        elif isinstance(node, ast.ClassDef):
            one = Class(module=module, name=f"{prefix}{node.name}", node=node)
            module.classes.setdefault(one.name, one)
            _outline_body(module, node.body, f"{one.name}.", one, outer)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            module.imports.update(_imported(module.source, node))
        else:
            if outer is None:
                _enter_names(module if owner is None else owner, node)
            for inner in _inner_bodies(node):
                _outline_body(module, inner, prefix, owner, outer)


def _free_name(module: Module, name: str, node: FunctionNode) -> str:
    """Give a second function of a name (`_` of `register_fake`, overloads) its line."""
    return name if name not in module.functions else f"{name}@{node.lineno}"


def _inner_bodies(node: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(node, name, ())
    for handler in getattr(node, "handlers", ()):
        yield handler.body
    for case in getattr(node, "cases", ()):
        yield case.body


def _enter_names(place: Module | Class, node: ast.stmt) -> None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    for target in targets:
        if isinstance(target, ast.Name) and isinstance(node, (ast.Assign, ast.AnnAssign)):
            if isinstance(place, Module):
                place.names.add(target.id)
            if is_container(node.value):
                place.containers.add(target.id)


def _imported(source: Source, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0], alias.name.split(".")[0])
        return
    base = node.module or ""
    if node.level:
        parts = source.module.split(".")
        above = parts[: len(parts) - node.level + source.is_package]
        base = ".".join([*above, base] if base else above)
    for alias in node.names:
        yield alias.asname or alias.name, f"{base}.{alias.name}" if base else alias.name


def _owner_of(function: Function) -> Class | None:
    """Return the class that `self` is of: a function inside a method shares it."""
    scope: Function | None = function
    while scope is not None and scope.owner is None:
        scope = scope.outer
    return scope.owner if scope is not None else None
