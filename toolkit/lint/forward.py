"""Checks of traced functions: imports, log calls, flags that let a log through once, writes to shared containers."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence

from toolkit.lint.counters import counter_name, only_in_training
from toolkit.lint.findings import Hit
from toolkit.lint.outline import CodeBase, Function, dotted, last_name
from toolkit.lint.reaching import Reach
from toolkit.lint.shared import Shared, shared_name

_LEVELS = re.compile(
    r"(debug|info|warn|warning|error|exception|critical|fatal|log|trace|verbose)(_once|_rank_?0|_on_rank_?0)?$"
)
_LOGGER = re.compile(r"(^|_)(log|logger|logging)$", re.IGNORECASE)
_LOG_FUNCTION = re.compile(
    r"(log|warn|warning|info|print)_(once|rank_?0|on_rank_?0|rank_zero)$|rank_zero_(info|warn|print|debug|deprecation)$"
)
_WARNS = {"print", "pprint", "warnings.warn", "warnings.warn_explicit", "sys.stdout.write", "sys.stderr.write"}
_HARMLESS_IN_FAKES = {"torch", *sys.stdlib_module_names}
"""Loaded long before a fake function runs; there they are often imported for want of a better place."""

_ADDS = {"append", "appendleft", "add", "update", "setdefault", "extend", "insert", "pop", "popitem", "remove",
         "discard", "clear"}  # fmt: skip


def check_forward(base: CodeBase, reached: Sequence[Reach]) -> Iterator[Hit]:
    """Look at every traced function; the body of a custom operator is opaque to the compiler and may do all this."""
    for one in reached:
        file = one.function.module.source.file
        if one.kinds == {"body"}:
            continue
        for line, name in _imports(one):
            if one.kinds <= {"fake", "body"} and name.partition(".")[0] in _HARMLESS_IN_FAKES:
                continue
            yield Hit(check="import-in-forward", file=file, line=line, what=f"`{name}` is imported {one.place}")
        shared = Shared(base, one.function)
        once = list(_once(shared, one))
        taken = {id(node) for _, _, guard in once for node in guard}
        for line, flag, _ in once:
            what = f"{flag} lets a log line through once {one.place}"
            yield Hit(check="log-once-in-forward", file=file, line=line, what=what)
        yield from _logs(base, one, taken)
        yield from _writes(shared, one, taken)


def _imports(one: Reach) -> Iterator[tuple[int, str]]:
    for seen in one.nodes:
        node = seen.node
        if isinstance(node, ast.Import):
            yield node.lineno, ", ".join(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, f"{'.' * node.level}{node.module or ''}"
        elif isinstance(node, ast.Call) and last_name(node.func) in ("import_module", "__import__") and node.args:
            yield node.lineno, ast.unparse(node.args[0]).strip("'\"")


# --- log calls -------------------------------------------------------------------------------------------------


def _logs(base: CodeBase, one: Reach, taken: set[int]) -> Iterator[Hit]:
    for seen in one.nodes:
        node = seen.node
        if not isinstance(node, ast.Call) or seen.is_fatal or id(node) in taken:
            continue
        name = _log_name(base, one.function, node)
        if name:
            check = "log-once-in-forward" if "once" in name or _is_cached(one.function) else "log-in-forward"
            file = one.function.module.source.file
            yield Hit(check=check, file=file, line=node.lineno, what=f"`{name}` is called {one.place}")


def _is_cached(function: Function) -> bool:
    """Tell a function that runs once for its arguments."""
    decorators = (one.func if isinstance(one, ast.Call) else one for one in function.node.decorator_list)
    return any(last_name(one) in ("cache", "lru_cache") for one in decorators)


def _log_name(base: CodeBase, function: Function, node: ast.Call) -> str:
    """Return what is called if that logs: a logger's method, print, a warning, or somebody's `log_once`."""
    name = dotted(node.func)
    if isinstance(node.func, ast.Attribute) and _LEVELS.match(node.func.attr):
        holder = last_name(node.func.value)
        if _LOGGER.search(holder) or dotted(node.func.value) == "logging":
            return name or f"{holder}.{node.func.attr}"
        if isinstance(node.func.value, ast.Call) and last_name(node.func.value.func) in ("getLogger", "get_logger"):
            return f"{last_name(node.func.value.func)}(…).{node.func.attr}"
    full = f"{function.module.imports.get(name, '')}"
    if name in _WARNS or full in _WARNS:
        return name
    is_ours = name and base.called(function, name) is not None
    return name if _LOG_FUNCTION.search(name) and not is_ours else ""


def _once(shared: Shared, one: Reach) -> Iterator[tuple[int, str, list[ast.AST]]]:
    """Yield line, flag and nodes of each `if` that logs and then closes itself."""
    if not any(
        isinstance(seen.node, ast.Call) and _log_name(shared.base, one.function, seen.node) for seen in one.nodes
    ):
        return
    statements = {id(seen.node) for seen in one.nodes}
    for body in _bodies(one):
        for at, node in enumerate(body):
            if not isinstance(node, ast.If) or id(node) not in statements:
                continue
            for guarded in (node.body, body[at + 1 :] if _returns(node.body) else [], node.orelse):
                inside = [inner for statement in guarded for inner in ast.walk(statement)]
                if not _has_log(shared.base, one, inside):
                    continue
                for flag in sorted(_flags(shared, node.test) & _closed(shared, inside)):
                    yield node.lineno, f"`{flag}`", inside
                    break


def _bodies(one: Reach) -> Iterator[Sequence[ast.stmt]]:
    yield one.function.node.body
    for seen in one.nodes:
        if isinstance(seen.node, ast.stmt):
            for name in ("body", "orelse", "finalbody"):
                if found := getattr(seen.node, name, ()):
                    yield found


def _returns(body: Sequence[ast.stmt]) -> bool:
    return isinstance(body[-1], (ast.Return, ast.Continue))


def _has_log(base: CodeBase, one: Reach, nodes: Sequence[ast.AST]) -> bool:
    traced = {id(seen.node) for seen in one.nodes}
    return any(isinstance(node, ast.Call) and id(node) in traced and _log_name(base, one.function, node)
               for node in nodes)  # fmt: skip


def _flags(shared: Shared, test: ast.expr) -> set[str]:
    """Name what a condition asks of something that outlives the call."""
    found = set()
    for node in ast.walk(test):
        if isinstance(node, (ast.Name, ast.Attribute)):
            found.add(shared_name(shared, node, attributes=True))
        elif isinstance(node, ast.Call) and last_name(node.func) in ("hasattr", "getattr") and len(node.args) > 1:
            name = node.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and dotted(node.args[0]):
                found.add(f"{dotted(node.args[0])}.{name.value}")
    return found - {""}


def _closed(shared: Shared, nodes: Sequence[ast.AST]) -> set[str]:
    """Name what statements set to a constant, or enter something into."""
    found = set()
    for node in nodes:
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                whole = target.value if isinstance(target, ast.Subscript) else target
                found.add(shared_name(shared, whole, attributes=True))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDS:
            found.add(shared_name(shared, node.func.value, attributes=True))
        elif isinstance(node, ast.Call) and last_name(node.func) == "setattr" and len(node.args) == 3:
            name = node.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                found.add(f"{dotted(node.args[0])}.{name.value}")
    return found - {""}


# --- writes ----------------------------------------------------------------------------------------------------


def _writes(shared: Shared, one: Reach, taken: set[int]) -> Iterator[Hit]:
    """Tell each container and counter once in a function, at its first write."""
    lines: dict[str, list[int]] = {}
    for seen in one.nodes:
        if id(seen.node) not in taken and not seen.is_fatal:
            for name in (*_written(shared, seen.node), *_counted(shared.base, one, seen.node)):
                lines.setdefault(name, []).append(getattr(seen.node, "lineno", 1))
    for name, its in lines.items():
        rest = sorted(set(its) - {min(its)})
        more = f", and in line{'s' * (len(rest) > 1)} {', '.join(map(str, rest))}" if rest else ""
        what = f"`{name}` is written {one.place}{more}"
        yield Hit(check="state-in-forward", file=one.function.module.source.file, line=min(its), what=what)


def _counted(base: CodeBase, one: Reach, node: ast.AST) -> Iterator[str]:
    """Name the attribute that a node counts in; a fake function's graph is none, and so has no guards."""
    name = "" if one.kinds <= {"fake", "body"} else counter_name(base, one.function, node)
    if name and id(node) not in only_in_training(one.function.node):
        yield name


def _written(shared: Shared, node: ast.AST) -> Iterator[str]:
    """Name the containers and counters that a node changes."""
    targets: list[ast.expr] = []
    if isinstance(node, (ast.Assign, ast.Delete)):
        targets = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            shared.read()
            yield from filter(shared.globals.__contains__, [node.target.id])
    for target in targets:
        if isinstance(target, ast.Subscript):
            while isinstance(target, ast.Subscript):
                target = target.value
            yield from filter(None, [shared_name(shared, target)])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDS:
        yield from filter(None, [shared_name(shared, node.func.value)])
