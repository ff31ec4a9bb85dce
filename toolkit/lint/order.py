"""Checks of the order in which a program sets itself up: determinism, parallelisation, providers, compile."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from toolkit.lint.findings import Hit
from toolkit.lint.outline import CodeBase, Function, Module, dotted, last_name

_COMPILES = re.compile(r"^_?apply_compile|^_?compile_(model|module|layers|blocks|transformer)")
_CHECKPOINTS = re.compile(r"^_?apply_(selective_|full_)?ac($|_)|activation_checkpoint|checkpoint_wrapper$")
_PARALLELISES = re.compile(
    r"^parallelize_module$|^distribute_module$|^_?apply_\w*?(?<![a-z])(tp|cp|ep|etp|sp)($|_)"
    r"|^_?apply_\w*(tensor|context|expert|sequence)_parallel"
)
_PRELOADS = re.compile(
    r"(^|_)pre_?load(_\w+)?$|(^|_)(load|import|register|resolve|activate|bind|build|install|prepare|ensure|init)\w*_providers?"
    r"($|_)"
)
_OTHER_PRELOADS = re.compile(r"data|batch|weight|checkpoint|ckpt|state|param|image|token|cache|lib(s|rar)")
_MAY_MATTER = re.compile(r"determini|pre_?load|provider", re.IGNORECASE)
_RESTORES = re.compile(r"prev|old|saved|orig|before|was_|restore|are_deterministic")

Events = tuple[tuple[str, int], ...]
"""What happened on the way here, with its lines."""


@dataclass(eq=False, kw_only=True, slots=True)
class _Walk:
    """One body on the way through: its file, what calls mean, and what was found."""

    base: CodeBase
    module: Module
    function: Function | None
    place: str
    hits: list[Hit] = field(default_factory=list)


def check_order(base: CodeBase) -> Iterator[Hit]:
    """Go through the bodies of modules and functions in the order in which they run."""
    for module in base.modules:
        if not _MAY_MATTER.search(module.source.text):
            continue
        bodies: list[tuple[Function | None, Sequence[ast.stmt], str]] = [(None, module.source.tree.body, "the module")]
        bodies += [(one, one.node.body, one.name.partition("@")[0]) for one in module.functions.values()]
        for function, body, place in bodies:
            walk = _Walk(base=base, module=module, function=function, place=place)
            _block(walk, body, ())
            yield from dict.fromkeys(walk.hits)


def _block(walk: _Walk, body: Sequence[ast.stmt], events: Events) -> Events | None:
    """Go through a body; None where its end is never reached."""
    at: Events | None = events
    for statement in body:
        if at is None:
            return None
        at = _statement(walk, statement, at)
    return at


def _statement(walk: _Walk, node: ast.stmt, events: Events) -> Events | None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return events
    heads = [one for one in ast.iter_child_nodes(node) if isinstance(one, (ast.expr, ast.withitem))]
    for call in sorted(_calls(heads), key=lambda one: (one.end_lineno or 0, one.end_col_offset or 0)):
        events = _enter(walk, call, events)
    if isinstance(node, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
        return None
    if isinstance(node, ast.If):
        return _joined(_block(walk, node.body, events), _block(walk, node.orelse, events))
    if isinstance(node, ast.Try):
        tried = _block(walk, [*node.body, *node.orelse], events)
        for handler in node.handlers:
            tried = _joined(tried, _block(walk, handler.body, events))
        return tried if tried is None else _block(walk, _without_restores(node.finalbody), tried)
    for name in ("body", "orelse"):
        events = _joined(events, _block(walk, getattr(node, name, ()), events)) or events
    return events


def _joined(one: Events | None, other: Events | None) -> Events | None:
    if one is None or other is None:
        return other if one is None else one
    return tuple(dict.fromkeys((*one, *other)))


def _without_restores(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Leave out what a `finally` puts back."""
    return [one for one in body if "use_deterministic_algorithms" not in ast.unparse(one)]


def _calls(nodes: Sequence[ast.AST]) -> Iterator[ast.Call]:
    """Yield the calls that nodes make themselves, not those of functions that they define."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call):
            yield node
        if not isinstance(node, (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            pending += ast.iter_child_nodes(node)


def _enter(walk: _Walk, call: ast.Call, events: Events) -> Events:
    """Add what a call does to the events, and judge it by those before."""
    for kind in _kinds_of(walk.base, walk.module, walk.function, call, frozenset()):
        _judge(walk, call, kind, events)
        events = (*events, (kind, call.lineno))
    return events


def _judge(walk: _Walk, call: ast.Call, kind: str, events: Events) -> None:
    first = dict(reversed(events))
    file, name = walk.module.source.file, dotted(call.func) or last_name(call.func)
    if kind == "determinism" and "compile" in first and "determinism" not in first:
        what = f"`{name}` in {walk.place} runs after the compile in line {first['compile']}"
        walk.hits.append(Hit(check="determinism-after-compile", file=file, line=call.lineno, what=what))
    for later, words in (("checkpoint", "activation checkpointing"), ("compile", "compile")):
        if kind == "preload" and later in first:
            what = f"`{name}` in {walk.place} runs after {words} in line {first[later]}"
            walk.hits.append(Hit(check="provider-preload-order", file=file, line=call.lineno, what=what))
            break
    if kind == "parallelise" and "preload" in first and not {"checkpoint", "compile"} & set(first):
        what = f"the preload in {walk.place} runs before parallelisation by `{name}` in line {call.lineno}"
        walk.hits.append(Hit(check="provider-preload-order", file=file, line=first["preload"], what=what))


def _kinds_of(
    base: CodeBase, module: Module, function: Function | None, call: ast.Call, seen: frozenset[int]
) -> tuple[str, ...]:
    """Say what a call does: by its name, or else by what the function does that it means."""
    name, last = dotted(call.func), last_name(call.func)
    if last in ("use_deterministic_algorithms", "_set_deterministic_algorithms"):
        return () if _takes_back(call) else ("determinism",)
    if _is_compile(name, last):
        return ("compile",)
    if _CHECKPOINTS.search(last):
        return ("checkpoint",)
    if _PRELOADS.search(last) and not _OTHER_PRELOADS.search(last):
        return ("preload",) if "preload" in last.replace("_", "") or "provider" in last else ()
    if last in ("load", "load_all", "warm_up", "warmup") and "provider" in name.lower():
        return ("preload",)
    if _PARALLELISES.search(last):
        return ("parallelise",)
    called = base.called(function, name) if function is not None else base.find(module, name) if name else None
    if not isinstance(called, Function) or id(called) in seen or len(seen) > 3:
        return ("determinism",) if last == "set_determinism" else ()
    return _kinds_inside(base, called, seen | {id(called)})


def _kinds_inside(base: CodeBase, function: Function, seen: frozenset[int]) -> tuple[str, ...]:
    """Say what the body of a function does to determinism and compile; one that restores a setting does nothing."""
    text = "\n".join(function.module.source.lines[function.node.lineno - 1 : function.node.end_lineno])
    if "determini" not in text and "compile" not in text:
        return ()
    if "are_deterministic_algorithms_enabled" in text:
        return ()
    found: dict[str, None] = {}
    for call in _calls(list(function.node.body)):
        found.update(dict.fromkeys(_kinds_of(base, function.module, function, call, seen)))
    return tuple(kind for kind in ("determinism", "compile") if kind in found)


def _takes_back(call: ast.Call) -> bool:
    """Tell a call that switches determinism off, or back to what it was."""
    mode = next(iter(call.args), None) or next((one.value for one in call.keywords if one.arg == "mode"), None)
    if mode is None or (isinstance(mode, ast.Constant) and mode.value is False):
        return True
    return bool(_RESTORES.search(ast.unparse(mode)))


def _is_compile(name: str, last: str) -> bool:
    if last == "compile":
        return name.rpartition(".")[0] not in ("re", "regex", "builtins", "")
    return bool(_COMPILES.search(last))
