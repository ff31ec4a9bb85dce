"""Checks of autograd functions: outputs whose gradient backward has no use for, and backwards that raise on one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolkit.lint.findings import Hit
from toolkit.lint.outline import CodeBase
from toolkit.lint.outputs import find_unmarked
from toolkit.lint.raises import find_raises
from toolkit.lint.reaching import Root, is_autograd_function


def check_gradients(base: CodeBase, roots: Sequence[Root]) -> Iterator[Hit]:
    """Look at every autograd.Function, and at the backwards of custom operators."""
    for module in base.modules:
        if "autograd" not in module.source.text:
            continue
        for one in module.classes.values():
            if is_autograd_function(base, one) and {"forward", "backward"} <= set(one.methods):
                yield from find_unmarked(one)
    for function in dict.fromkeys(one for one, kind in roots if kind == "autograd"):
        if function.owner is None or function.node.name == "backward":
            yield from find_raises(function)
