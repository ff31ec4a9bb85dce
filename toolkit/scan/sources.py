"""Where a tensor comes from, by the expression that makes it: a new one, a view of one, or what cannot be followed.

What is not known to be new is never taken for it. By their contract custom operators return no input of theirs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from toolkit.scan.facts import Source

OPERATORS = {"aten": ("torch", "ops", "aten"), "inductor_ops": ("torch", "ops", "inductor")}
"""Names that every wrapper has for namespaces of operators."""

VIEWS = frozenset({
    "adjoint", "alias", "as_strided", "as_tensor", "broadcast_tensors",
    "broadcast_to", "chunk", "coalesce", "conj", "contiguous", "copy_if_misaligned", "cpu", "cuda", "detach",
    "diagonal", "dsplit", "expand", "expand_as", "flatten", "hsplit", "imag", "indices", "lift", "lift_fresh",
    "linalg_diagonal", "matrix_H", "meshgrid", "moveaxis", "movedim", "mH", "mT", "narrow", "npu", "numpy_T", "permute",
    "pin_memory", "positive", "ravel", "real", "reinterpret_tensor", "reshape", "reshape_as", "resolve_conj",
    "resolve_neg", "select", "slice", "slice_inverse", "split", "split_with_sizes", "squeeze", "swapaxes", "swapdims",
    "t", "tensor_split", "to", "transpose", "type_as", "unbind", "unflatten", "unfold", "unsafe_chunk", "unsafe_split",
    "unsafe_split_with_sizes", "unsqueeze", "values", "view", "view_as", "view_as_complex", "view_as_real", "vsplit",
    "_conj", "_indices", "_neg_view", "_nested_get_values", "_nested_view_from_buffer", "_nested_view_from_jagged",
    "_reshape_alias", "_to_copy", "_unsafe_view", "_values",
})  # fmt: skip
"""Operators, methods and functions whose result may be in the memory of their first argument."""

PLACED_VIEWS = {"reinterpret_tensor": "placed", "alloc_from_pool": "pooled"}
"""Functions of a wrapper that say by sizes, strides and offset which part of the memory they give."""

SAME = frozenset({"copy_if_misaligned"})
"""Functions that give their argument back, or a copy of it."""

ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "data", "real", "imag"})
"""What of a tensor is a view of it."""

NUMBERS = frozenset({"item", "size", "stride", "numel", "dim", "tolist", "storage_offset", "element_size", "data_ptr"})
"""Methods that give no tensor."""

NEW = frozenset({"clone", "get_raw_stream", "rand_strided", "generate_example_value", "range", "len", "int", "float"})
"""Functions and methods whose result is no memory of what they are given."""

NEW_PREFIXES = ("empty", "zeros", "ones", "full", "rand", "arange", "new_")

SPACES = frozenset({"torch", "torch_npu", "aten", "inductor_ops", "extern_kernels", "math", "self", "async_compile"})
"""What a called name may begin with that is no tensor."""

BUILDER = "k"
"""What a kernel's function calls the builder of its program."""

ARGUMENTS = "args"
"""The arguments of a graph, as its function names them all: no two are the same memory, as far as a file tells."""

Place = Callable[[ast.expr], int]
"""Gives the place of the word that an expression begins with."""


def find_binds(statement: ast.stmt, place: Place) -> Iterator[tuple[ast.expr, Source]]:
    """Yield the names that a statement binds, each with what it is bound to."""
    match statement:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _bound(target, value, place)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from _bound(target, value, place)
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            yield from _all_of(target, [value], place)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            for one in items:
                if one.optional_vars is not None:
                    yield from _all_of(one.optional_vars, [one.context_expr], place)
    for node in ast.walk(statement):
        if isinstance(node, ast.NamedExpr):
            yield node.target, source_of(node.value, place)


def source_of(value: ast.expr, place: Place) -> Source:
    """Follow views down to the name that they are of."""
    match value:
        case ast.Name():
            return Source(place(value))
        case ast.Attribute(value=inner, attr=attribute):
            return _within(inner, "part", place) if attribute in ATTRIBUTES else _unknown([value], place)
        case ast.Subscript(value=ast.Name() as inner, slice=ast.Constant(value=int())):
            return Source(place(inner), "item")
        case ast.Subscript(value=ast.Name() as inner, slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant())):
            return Source(place(inner), "item from the end")
        case ast.Subscript(value=inner):
            return _within(inner, "part", place)
        case ast.Call():
            return _called(value, place)
        case ast.NamedExpr(value=inner):
            return source_of(inner, place)
        case ast.Constant() | ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.JoinedStr() | ast.Lambda():
            return Source(-1)
    return _unknown([value], place)


def _bound(target: ast.expr, value: ast.expr, place: Place) -> Iterator[tuple[ast.expr, Source]]:
    if isinstance(target, ast.Name):
        yield target, source_of(value, place)
    elif isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) and not _starred(target):
            for one, part in zip(target.elts, value.elts, strict=True):
                yield from _bound(one, part, place)
        elif not (isinstance(value, ast.Name) and value.id == ARGUMENTS):
            yield from _all_of(target, [value], place)
        else:
            yield from ((one, Source(-1)) for one in target.elts if isinstance(one, ast.Name))
    elif isinstance(target, (ast.Subscript, ast.Starred)):
        yield from _all_of(target, [target, value], place)


def _starred(target: ast.Tuple | ast.List) -> bool:
    return any(isinstance(one, ast.Starred) for one in target.elts)


def _all_of(target: ast.expr, values: Sequence[ast.expr], place: Place) -> Iterator[tuple[ast.expr, Source]]:
    """Bind each name of a target to whatever the values may hold."""
    source = _unknown(values, place)
    if len(values) == 1 and isinstance(values[0], ast.Call):
        made = source_of(values[0], place)
        source = Source(made.word, "part", made.others) if made.word >= 0 else made
    if isinstance(target, ast.Subscript):
        target = target.value
    yield from ((one, source) for one in ast.walk(target) if isinstance(one, ast.Name))


def _unknown(values: Sequence[ast.AST], place: Place) -> Source:
    """Say that something may be made of any name in some expressions, other than those of what is called."""
    called = {first for value in values for node in ast.walk(value) if (first := _space(node)) is not None}
    names = [node for value in values for node in ast.walk(value) if isinstance(node, ast.Name) and node not in called]
    return Source(-1, "unknown", tuple(sorted({at for one in names if (at := place(one)) >= 0})))


def _space(node: ast.AST) -> ast.Name | None:
    """Return the name that a called function begins with, if it is no tensor."""
    names = dotted(node.func) if isinstance(node, ast.Call) else dotted(node) if isinstance(node, ast.Attribute) else []
    if names and (names[0][0] in SPACES or (len(names) == 1 and isinstance(node, ast.Call))):
        return names[0][1]
    return None


def _called(call: ast.Call, place: Place) -> Source:
    names = [name for name, _ in dotted(call.func)]
    operator = _operator(names)
    last = operator or (names[-1] if names else call.func.attr if isinstance(call.func, ast.Attribute) else "")
    is_function = operator is not None or len(names) == 1 or (names[:1] and names[0] in SPACES)
    if any(one.arg == "out" for one in call.keywords):
        return _unknown([call], place)
    if last in VIEWS or last in PLACED_VIEWS or _works_in_place(last):
        inner = call.args[0] if is_function and call.args else None if is_function else _owner(call)
        if inner is None or isinstance(inner, ast.Starred):
            return _unknown([call], place)
        return _within(inner, _view_of(last, is_wrapper=len(names) == 1), place)
    if operator is not None or last in NEW or last in NUMBERS or last.startswith(NEW_PREFIXES):
        return Source(-1)
    return Source(-1) if names[:1] in ([BUILDER], ["extern_kernels"]) else _unknown([call], place)


def _owner(call: ast.Call) -> ast.expr | None:
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _view_of(name: str, *, is_wrapper: bool) -> str:
    if _works_in_place(name) or name in SAME:
        return "same"
    return PLACED_VIEWS.get(name, "part") if is_wrapper else "part"


def _within(inner: ast.expr, view: str, place: Place) -> Source:
    source = source_of(inner, place)
    if source.others or source.word < 0:
        return source
    if source.view == "same":
        return Source(source.word, view)
    return source if view == "same" else Source(source.word, "part")


def dotted(node: ast.expr) -> list[tuple[str, ast.Name]]:
    """Split `a.b.c` into its names, each with the node of the first; nothing for what is no such name."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return []
    first = node
    return [(name, first) for name in (first.id, *reversed(names))]


def called_name(names: list[str], *, plain: bool = False) -> str:
    """Return the whole name of what is called; with `plain`, nothing for a name whose numbers were made equal."""
    if plain and any(letter.isdigit() for name in names for letter in name):
        return ""
    return ".".join(operator_of(names) or names)


def operator_of(names: list[str]) -> list[str]:
    """Return an operator's whole name by the words of its call: `torch.ops.NAMESPACE.NAME[.OVERLOAD]`; [] if none."""
    whole = [*OPERATORS.get(names[0], names[:1]), *names[1:]]
    return whole if whole[:2] == ["torch", "ops"] and len(whole) >= 4 else []


def _operator(names: list[str]) -> str | None:
    """Return the bare name of the operator that is called, or None."""
    whole = operator_of(names) if names else []
    return whole[3] if whole else None


def _works_in_place(name: str) -> bool:
    return name.endswith("_") and not name.startswith("__")
