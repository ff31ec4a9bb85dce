"""Disturb the results of operators by what their freedom allows: another order of a sum, another approximation.

Monte Carlo arithmetic (D. S. Parker, "Monte Carlo Arithmetic", 1997): a few runs in which each result is off by a
random sign times its bound show how far the end may be off by the same causes, without an analysis of what lies
between.

The bound of a sum of n terms t in another order is sqrt(n) * epsilon * sum |t|, the probabilistic one (Higham and Mary,
"A New Approach to Probabilistic Rounding Error Analysis", SIAM J. Sci. Comput. 41, 2019; the bound that always holds
has n in place of sqrt(n), and would excuse much that is wrong). Sums in 16-bit types are accumulated in FP32, so
epsilon is 2**-23 there. Every other operation that rounds is off by two units in the last place: multiplication and
addition may be contracted, and functions are approximated by other polynomials.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

from verify.divergence.operators import DECOMPOSED, LINEAR, MOVES, POSITIVE

UNITS_OF_OPERATIONS = 2


@contextlib.contextmanager
def disturbed(what: str, generator: Any) -> Iterator[None]:
    """Disturb the results of "sums", all "operations" or "nothing" while this is open."""
    if what == "nothing":
        yield
        return
    mode = _mode_class()(what == "operations", generator)
    with mode:
        yield


def packet_name(func: Any) -> str:
    """Return an operator's name without its namespace and overload."""
    return str(func._schema.name).rpartition("::")[2]


@functools.cache
def _mode_class() -> Any:
    dispatch = importlib.import_module("torch.utils._python_dispatch")
    table = importlib.import_module("torch._decomp").decomposition_table

    class Disturbing(dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]  # torch is untyped here
        def __init__(self, operations: bool, generator: Any) -> None:
            super().__init__()
            self.operations, self.generator = operations, generator

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            torch = importlib.import_module("torch")
            kwargs = kwargs or {}
            name = packet_name(func)
            if name in DECOMPOSED and func in table:
                with self:
                    return table[func](*args, **kwargs)
            share, size = self._bound(func, name, args, kwargs)
            exact = _compute_double(func, args, kwargs) if share and torch.Tag.pointwise in func.tags else None
            result = func(*args, **kwargs)
            if share:
                for number, one in enumerate(_float_tensors(result)):
                    _shift(one, share, size, self.generator, None if exact is None else exact[number])
            return result

        def _bound(self, func: Any, name: str, args: Any, kwargs: Any) -> tuple[float, Any]:
            """Return the bound as a multiple of epsilon, and of what size: of the result's own where None."""
            torch = importlib.import_module("torch")
            if name in MOVES or func.is_view or not _float_tensors((args, kwargs)):
                return 0.0, None
            if name in LINEAR:
                tree = importlib.import_module("torch.utils._pytree")
                positive = tree.tree_map(lambda one: one.abs() if _is_float(one) else one, (args, kwargs))
                return math.sqrt(_count_terms(name, args)), func(*positive[0], **positive[1])
            if torch.Tag.pointwise in func.tags:
                return (float(UNITS_OF_OPERATIONS) if self.operations else 0.0), None
            inputs = max(one.numel() for one in _float_tensors((args, kwargs)))
            return math.sqrt(max(2, inputs)), "own" if name in POSITIVE else "typical"

    return Disturbing


def _compute_double(func: Any, args: Any, kwargs: Any) -> list[Any]:
    """Compute an operator without roundings: where that is its result, there is no freedom in it."""
    tree = importlib.import_module("torch.utils._pytree")
    wide = tree.tree_map(lambda one: one.double() if _is_float(one) else one, (args, kwargs))
    return _float_tensors(func(*wide[0], **wide[1]))


def _shift(one: Any, share: float, size: Any, generator: Any, exact: Any) -> None:
    """Move each element that is not the exact result by a random sign times its bound, in place."""
    torch = importlib.import_module("torch")
    if not one.numel():
        return
    signs = torch.randint(0, 2, one.shape, generator=generator) * 2 - 1
    magnitude = size.detach() if hasattr(size, "detach") else one.detach().abs()
    if isinstance(size, str) and size == "typical":
        magnitude = magnitude + one.detach().square().mean().sqrt()
    with torch.no_grad():
        moved = one + signs * magnitude * (share * torch.finfo(one.dtype).eps)
        free = moved.isfinite() if exact is None else moved.isfinite() & (one.double() != exact)
        one.copy_(torch.where(free, moved, one))


def _count_terms(name: str, args: Sequence[Any]) -> int:
    """Return of how many terms each element of the result is the sum, at least 2."""
    first = _float_tensors(args)
    if name in ("mm", "bmm", "mv", "dot", "linear"):
        return max(2, int(first[0].shape[-1]))
    if name in ("addmm", "baddbmm", "addmv"):
        return max(2, int(first[1].shape[-1]))
    if name in ("convolution", "mkldnn_convolution"):
        return max(2, int(first[1].numel()) // max(1, int(first[1].shape[0])))
    return max(2, max(int(one.numel()) for one in first))


def _float_tensors(tree: Any) -> list[Any]:
    leaves = importlib.import_module("torch.utils._pytree").tree_leaves(tree)
    return [leaf for leaf in leaves if _is_float(leaf)]


def _is_float(one: Any) -> bool:
    return hasattr(one, "untyped_storage") and bool(one.is_floating_point())
