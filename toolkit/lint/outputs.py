"""Outputs of an autograd.Function whose gradient its backward refuses or ignores."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolkit.lint.findings import Hit
from toolkit.lint.outline import Class, Function, FunctionNode, dotted, last_name, own_nodes
from toolkit.lint.raises import condition_of_check

_NOT_DIFFERENTIABLE = {
    "argsort", "argmax", "argmin", "int", "long", "bool", "short", "item", "tolist", "size", "len", "searchsorted",
    "bucketize", "bincount", "histc", "arange", "eq", "ne", "ge", "gt", "le", "lt", "logical_and", "logical_or",
    "logical_not", "isin", "isnan", "nonzero", "one_hot", "str", "tuple", "dict", "uint8",
}  # fmt: skip
_NO_FLOATS = re.compile(
    r"(^|_)(idx|index|indices|indptr|inds?|ids?|handles?|splits?|offsets?|counts?|num|masks?|events?|shapes?|sizes?|lens?"
    r"|lengths?|order|perm|permutation|seed|rng|group|mesh)(_|\d|$)|tokens_per_|per_expert|seqlens"
)
"""Names of what hardly ever is a floating point tensor; autograd gives integers no gradient, marked or not."""

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "int", "long", "bool", "short")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Output:
    """One element of what forward returns, and whether it may need a gradient."""

    node: ast.expr
    place: int
    of: int


def find_unmarked(one: Class) -> Iterator[Hit]:
    forward, backward = one.methods["forward"], one.methods["backward"]
    outputs = _outputs(forward.node)
    marked = _marked(one)
    if len(outputs) < 2 or marked is None or any(isinstance(node, ast.Raise) for node in backward.node.body):
        return  # One output that nothing differentiates, or a function without any backward, is meant so.
    uses = _uses(backward, len(outputs))
    for output, use in zip(outputs, uses or (), strict=False):
        if use == "used" or ast.unparse(output.node) in marked or _needs_none(output.node, forward.node):
            continue
        if use == "ignored" and _NO_FLOATS.search(last_name(output.node)):
            continue
        name = ast.unparse(output.node)
        what = f"output {output.place + 1} of {output.of} of {one.name}.forward, `{name}`, is {use} by backward"
        yield Hit(
            check="output-without-gradient", file=one.module.source.file, line=output.node.lineno,
            what=f"{what} and not marked non-differentiable",
            right=f"`ctx.mark_non_differentiable({name})` in forward (or setup_context)",
        )  # fmt: skip


def _outputs(forward: FunctionNode) -> list[_Output]:
    """Return the elements of the tuple that forward returns, where all its tuples have one length."""
    found: list[ast.Tuple] = []
    for node in own_nodes(forward):
        if isinstance(node, ast.Return) and node.value is not None:
            value = _tuple_of(node.value, forward)
            if value is None:
                continue
            if any(isinstance(element, ast.Starred) for element in value.elts):
                return []
            found.append(value)
    if len({len(value.elts) for value in found}) != 1:
        return []
    last = found[-1].elts
    return [_Output(node=node, place=place, of=len(last)) for place, node in enumerate(last)]


def _tuple_of(value: ast.expr, forward: FunctionNode) -> ast.Tuple | None:
    if isinstance(value, ast.Name):
        values = _values_of(value.id, forward)
        value = values[0] if len(values) == 1 else value
    return value if isinstance(value, ast.Tuple) else None


def _marked(one: Class) -> set[str] | None:
    """Name what is marked non-differentiable; None where that cannot be told."""
    found: set[str] = set()
    for name in ("forward", "setup_context"):
        for node in ast.walk(one.methods[name].node) if name in one.methods else ():
            if isinstance(node, ast.Call) and last_name(node.func) == "mark_non_differentiable":
                if any(isinstance(value, ast.Starred) for value in node.args):
                    return None
                found.update(map(ast.unparse, node.args))
    return found if "setup_context" not in one.methods or not found else None


def _needs_none(node: ast.expr, forward: FunctionNode) -> bool:
    """Tell an output that is no tensor, or one of integers, or an input that is handed back."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Compare) or dotted(node).endswith(".shape"):
        return True
    if isinstance(node, ast.Call):
        kinds = [*node.args, *(keyword.value for keyword in node.keywords)]
        is_integer = any(last_name(one) in _INTEGERS and isinstance(one, ast.Attribute) for one in kinds)
        return last_name(node.func) in _NOT_DIFFERENTIABLE or is_integer
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call):
        is_index = isinstance(node.slice, ast.Constant) and node.slice.value == 1
        return is_index and last_name(node.value.func) in ("topk", "sort", "max", "min")
    if isinstance(node, ast.Name):
        values = _values_of(node.id, forward)
        return any(_needs_none(value, forward) for value in values if not isinstance(value, ast.Name))
    return False


def _values_of(name: str, function: FunctionNode) -> list[ast.expr]:
    return [
        node.value
        for node in own_nodes(function)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    ]


# --- what backward does with each gradient -----------------------------------------------------------------------


def _uses(backward: Function, outputs: int) -> list[str] | None:
    """Say of each output's gradient whether it is used, refused or ignored; None where that cannot be told."""
    names = backward.parameters[1:]
    rest = backward.node.args.vararg
    asked = _asked(backward.node)
    if rest is None and len(names) != outputs:
        return None
    unpacked = _unpacked(backward.node, rest.arg) if rest is not None else None
    if unpacked is not None:
        names, rest = names + unpacked, None
        if len(names) != outputs:
            return None
    uses = [_use(backward.node, name, asked) for name in names]
    if rest is not None:
        taken = _taken_of(backward.node, rest.arg)
        if taken is None:
            return None
        uses += ["used" if place in taken else "ignored" for place in range(outputs - len(names))]
    return uses


def _use(backward: FunctionNode, name: str, asked: set[int]) -> str:
    loads = [node for node in own_nodes(backward) if isinstance(node, ast.Name) and node.id == name
             and isinstance(node.ctx, ast.Load)]  # fmt: skip
    if not loads:
        return "ignored"
    return "refused" if all(id(node) in asked for node in loads) else "used"


def _asked(backward: FunctionNode) -> set[int]:
    """Return the nodes in conditions whose only consequence is a raise."""
    found: set[int] = set()
    for node in own_nodes(backward):
        if isinstance(node, ast.Assert):
            found.update(map(id, ast.walk(node.test)))
        elif isinstance(node, ast.Expr) and condition_of_check(node) is not None:
            found.update(map(id, ast.walk(node)))
        elif isinstance(node, ast.If):
            ends = [branch for branch in (node.body, node.orelse) if branch and isinstance(branch[-1], ast.Raise)]
            if ends and all(branch in ends or _is_nothing(branch) for branch in (node.body, node.orelse)):
                found.update(map(id, ast.walk(node.test)))
            found.update(id(inner) for branch in ends for statement in branch for inner in ast.walk(statement))
    return found


def _is_nothing(body: Sequence[ast.stmt]) -> bool:
    return all(isinstance(statement, ast.Pass) for statement in body)


def _unpacked(backward: FunctionNode, name: str) -> list[str] | None:
    """Return the names of `a, b = gradients`, where that is all that is done with it."""
    loads = [node for node in own_nodes(backward) if isinstance(node, ast.Name) and node.id == name]
    for node in own_nodes(backward):
        if isinstance(node, ast.Assign) and node.value in loads and isinstance(node.targets[0], ast.Tuple):
            targets = [one.id for one in node.targets[0].elts if isinstance(one, ast.Name)]
            return targets if len(loads) == 1 and len(targets) == len(node.targets[0].elts) else None
    return None


def _taken_of(backward: FunctionNode, name: str) -> set[int] | None:
    """Return which elements of `*gradients` are used by number; None where the whole is."""
    taken: set[int] = set()
    indexed: set[int] = set()
    for node in own_nodes(backward):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name:
            if (
                not isinstance(node.slice, ast.Constant)
                or not isinstance(node.slice.value, int)
                or node.slice.value < 0
            ):
                return None
            taken.add(node.slice.value)
            indexed.add(id(node.value))
        elif isinstance(node, ast.Name) and node.id == name and id(node) not in indexed:
            return None
    return taken
