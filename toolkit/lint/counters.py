"""Counters in attributes: whole numbers that a traced function adds to, each value a guard of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from toolkit.lint.outline import Class, CodeBase, Function, FunctionNode, dotted
from toolkit.lint.reaching import is_network

_OWN = ("self", "cls", "self.__class__", "cls.__class__")


def counter_name(base: CodeBase, function: Function, node: ast.AST) -> str:
    """Return the attribute that a statement counts in, as written (`self.calls`, `Net.calls`), or "".

    That is one of a network's instance or of a class, to which a whole number is added that stands in the text, and to
    which nothing but such numbers are given anywhere in its class: no tensor, and nothing that a caller passes in.
    """
    target = _counted(node)
    if target is None:
        return ""
    holder, name = dotted(target.value), target.attr
    owner = _owner(base, function, holder)
    if owner is None or (holder == "self" and not is_network(base, owner)):
        return ""
    classes = list(_lineage(base, owner))
    given = [is_number for one in classes for is_number in _given(one, name)]
    return f"{holder}.{name}" if given and all(given) else ""


def only_in_training(function: FunctionNode) -> set[int]:
    """Return the nodes below `if self.training:`, by identity; whether these are compiled at all is not told."""
    return {
        id(inner)
        for node in ast.walk(function)
        if isinstance(node, ast.If) and any(_is_training(part) for part in ast.walk(node.test))
        for statement in (*node.body, *node.orelse)
        for inner in ast.walk(statement)
    }


def _is_training(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "training"


def _counted(node: ast.AST) -> ast.Attribute | None:
    """Return the target of `a.b += 1` or `a.b = a.b + 1`."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute):
        counts = isinstance(node.op, (ast.Add, ast.Sub)) and _is_number(node.value)
        return node.target if counts else None
    if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Attribute):
        return None
    target = node.targets[0]
    return target if _is_step(node.value, target) else None


def _is_step(value: ast.expr, target: ast.Attribute) -> bool:
    """Tell `a.b + 1`, where `a.b` is the target."""
    return (
        isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)) and _is_number(value.right)
        and bool(dotted(target)) and dotted(value.left) == dotted(target)
    )  # fmt: skip


def _is_number(node: ast.expr | None) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int


def _owner(base: CodeBase, function: Function, holder: str) -> Class | None:
    """Return the class whose attribute it is, or of whose instance."""
    if holder in _OWN:
        scope: Function | None = function
        while scope is not None and scope.owner is None:
            scope = scope.outer
        return scope.owner if scope is not None else None
    found = base.find(function.module, holder) if holder else None
    return found if isinstance(found, Class) else None


def _lineage(base: CodeBase, owner: Class, seen: frozenset[str] = frozenset()) -> Iterator[Class]:
    """Yield a class, and those of its bases that are among the files."""
    yield owner
    for name in owner.bases:
        found = base.find(owner.module, name)
        if isinstance(found, Class) and found.name not in seen | {owner.name}:
            yield from _lineage(base, found, seen | {owner.name})


def _given(owner: Class, name: str) -> Iterator[bool]:
    """Yield, for each time that a class gives something to an attribute, whether that is a whole number.

    Counting itself gives nothing, unless what is added is anything else.
    """
    for statement in owner.node.body:
        if isinstance(statement, ast.AnnAssign) and _is_name(statement.target, name):
            yield _is_number(statement.value) if statement.value else dotted(statement.annotation) == "int"
        elif isinstance(statement, ast.Assign) and any(_is_name(one, name) for one in statement.targets):
            yield _is_number(statement.value)
    known: set[int] = set()
    for node in ast.walk(owner.node):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Attribute) and target.attr == name:
                    known.add(id(target))
                    if _counted(node) is None:
                        yield not isinstance(node, ast.AugAssign) and _is_number(node.value)
        elif _is_stored(node, name) and id(node) not in known:
            yield False  # A loop's variable, a part of a tuple: anything.


def _is_stored(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
