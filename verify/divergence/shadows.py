"""Run a function eagerly, and beside it the same operators with other roundings: its shadow.

Every operator that eager executes, forward and backward, is computed a second time on shadow values, and stored in a
shadow of the memory that eager stores in; views and changes in place therefore need no care of their own. How the
shadow differs is its `World`: computed in FP64; with results in a 16-bit type kept in FP32 where eager rounds them; or
with sums that are off by what another order of their terms may change (`verify.divergence.orders`). What eager draws at
random, the shadow takes from it. The idea is that of shadow values in Herbgrind (Sanchez-Stern et al., "Finding Root
Causes of Floating Point Error", PLDI 2018).

Computed on the CPU. An operator that cannot be computed so is noted in `unknown`, and eager's result stands for it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from verify.divergence.operators import CALLS, MOVES
from verify.divergence.orders import disturbed, packet_name
from verify.divergence.runs import Run, copy_tensors, differentiate, leaves_of
from verify.divergence.taps import observe


@dataclass(frozen=True, kw_only=True)
class World:
    """How a shadow is computed.

    `double`: in FP64, without roundings. `keep`: which operators' 16-bit results stay in FP32, all, none or one by its
    number (`Boundary.number`). Where all are kept, `round_calls` still rounds what goes into and comes out of matrix
    products, convolutions and attention, which are kernels of their own, and `round_taps` rounds at each tap.
    `disturb`: whose results are off by a random amount (from `seed`): those of "sums", or of all "operations".
    `settled`: at which taps, by their numbers, eager's own value is taken, so that what it came of does not count.
    """

    double: bool = False
    keep: Literal["none", "all"] | int = "none"
    round_calls: bool = False
    round_taps: bool = False
    disturb: Literal["nothing", "sums", "operations"] = "nothing"
    seed: int = 0
    settled: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Boundary:
    """An operator that rounds its result to a 16-bit type: its place among them, and how many taps were before it."""

    number: int
    operator: str
    dtype: str
    taps: int
    backward: bool


@dataclass(frozen=True, kw_only=True)
class Shadow:
    """What the shadow came to, in eager's dtypes, and what was seen on the way."""

    run: Run
    boundaries: tuple[Boundary, ...]
    unknown: tuple[str, ...]


def run_shadow(function: Callable[..., Any], tensors: Sequence[Any], tangents: Sequence[Any], world: World) -> Shadow:
    """Run a function and its backward eagerly on copies of the tensors and return its shadow."""
    given = [one.requires_grad_(before.requires_grad) for one, before in _on_cpu(tensors)]
    wanted = [one for one in given if one.requires_grad]
    mode = _make_mode(world)
    with mode, observe(mode.tapped):
        results = leaves_of(function(*given))
        mode.backward = True
        gradients = differentiate(results, wanted, tangents)
    by_input = dict(zip(map(id, wanted), gradients, strict=True))
    run = Run(
        results=tuple(map(mode.read, results)),
        inputs=tuple(map(mode.read, given)),
        gradients=tuple(mode.read(by_input.get(id(one))) for one in given),
    )
    return Shadow(run=run, boundaries=tuple(mode.boundaries), unknown=tuple(dict.fromkeys(mode.unknown)))


def _on_cpu(tensors: Sequence[Any]) -> list[tuple[Any, Any]]:
    copies = [one if one.device.type == "cpu" else one.detach().cpu() for one in copy_tensors(tensors)]
    return list(zip(copies, tensors, strict=True))


def _make_mode(world: World) -> Any:
    """Make the dispatch mode; its base class is there only with torch."""
    dispatch = importlib.import_module("torch.utils._python_dispatch")

    class Shadowing(_Shadowing, dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]  # untyped here
        pass

    return Shadowing(world)


class _Shadowing:
    """The shadow memory, and what is done at each operator."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.boundaries: list[Boundary] = []
        self.unknown: list[str] = []
        self.backward = False
        self._world = world
        self._taps = 0
        self._torch = importlib.import_module("torch")
        self._tree = importlib.import_module("torch.utils._pytree")
        self._weak = importlib.import_module("torch.multiprocessing.reductions").StorageWeakRef
        self._memory: dict[int, tuple[Any, Any, Any]] = {}
        self._generator = self._torch.Generator().manual_seed(world.seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.is_view:
            return func(*args, **kwargs)
        inputs = self._tensors((args, kwargs))
        for one in inputs:
            self._find(one)
        real = func(*args, **kwargs)
        storages = {one.untyped_storage()._cdata for one in inputs}
        fresh = [one.untyped_storage()._cdata not in storages for one in self._tensors(real)]
        written = _written(func, args, kwargs)
        if not inputs or not (any(fresh) or written):
            return real
        if self._torch.Tag.nondeterministic_seeded in func.tags:
            self._take_real([*self._tensors(real), *written])
            return real
        try:
            self._follow(func, args, kwargs, real, fresh, written)
        except Exception:  # a kernel that has no FP32 or FP64, or results of another shape: noted
            self.unknown.append(packet_name(func))
            self._take_real([*self._tensors(real), *written])
        return real

    def read(self, one: Any) -> Any:
        """Return the shadow of one of eager's tensors, rounded to its dtype."""
        if not isinstance(one, self._torch.Tensor):
            return one
        return self._view(one.detach()).to(one.dtype).clone()

    def tapped(self, value: Any) -> None:
        """Count a tap; take eager's value there where it is settled, and round it in a world that stores it."""
        is_settled = self._taps in self._world.settled
        self._taps += 1
        if is_settled or self._world.round_taps:
            dispatch = importlib.import_module("torch.utils._python_dispatch")
            with dispatch._disable_current_modes(), self._torch.no_grad():
                shadow = self._view(value.detach())
                shadow.copy_(value if is_settled else shadow.to(value.dtype))

    def _follow(self, func: Any, args: Any, kwargs: Any, real: Any, fresh: list[bool], written: list[Any]) -> None:
        """Compute one operator on shadow values and store what comes out."""
        copies: dict[int, Any] = {}

        def give(one: Any) -> Any:
            if isinstance(one, self._torch.Tensor):
                return copies.setdefault(id(one), self._operand(func, one))
            return self._wider(one) if isinstance(one, self._torch.dtype) else one

        own_args, own_kwargs = self._tree.tree_map(give, (args, kwargs))
        with disturbed(self._world.disturb, self._generator):
            shadow = func(*own_args, **own_kwargs)
        rounds = self._is_rounded(func, [*written, *self._tensors(real)], self._tensors((args, kwargs)))
        for one in written:
            self._store(one, copies[id(one)], rounds)
        for one, other, is_fresh in zip(self._tensors(real), self._tensors(shadow), fresh, strict=True):
            if is_fresh:
                self._store(one, other, rounds)

    def _operand(self, func: Any, one: Any) -> Any:
        value = self._view(one)
        if self._world.round_calls and packet_name(func) in CALLS:
            value = value.to(one.dtype)
        return value.to(self._wider(one.dtype), copy=True)

    def _is_rounded(self, func: Any, results: Sequence[Any], operands: Sequence[Any]) -> bool:
        """Tell whether this operator's results are rounded to their dtype, and note it where that is a 16-bit one."""
        name = packet_name(func)
        if self._world.double:
            return False
        narrow = [one for one in results if _is_narrow(one.dtype)]
        if not narrow:
            return True
        if name in MOVES and all(not one.is_floating_point() or _is_narrow(one.dtype) for one in operands):
            return False
        number = len(self.boundaries)
        dtype = str(narrow[0].dtype).removeprefix("torch.")
        self.boundaries.append(
            Boundary(number=number, operator=name, dtype=dtype, taps=self._taps, backward=self.backward)
        )
        if self._world.keep == "all":
            return self._world.round_calls and name in CALLS
        return number != self._world.keep

    def _store(self, one: Any, value: Any, rounds: bool) -> None:
        if tuple(value.shape) != tuple(one.shape):
            raise ValueError(f"the shadow has the shape {tuple(value.shape)}, eager {tuple(one.shape)}")
        shadow = self._find(one).as_strided(one.size(), one.stride(), one.storage_offset())
        shadow.copy_(value.to(one.dtype) if rounds and one.is_floating_point() else value)

    def _take_real(self, tensors: Sequence[Any]) -> None:
        for one in tensors:
            self._view(one).copy_(one)

    def _view(self, one: Any) -> Any:
        return self._find(one).as_strided(one.size(), one.stride(), one.storage_offset())

    def _find(self, one: Any) -> Any:
        """Return the shadow of the whole memory that a tensor lies in; of memory that is not known yet, its values."""
        storage = one.untyped_storage()
        known = self._memory.get(storage._cdata)
        if known is not None and not known[0].expired() and known[1] == one.dtype:
            return known[2]
        count = storage.nbytes() // one.dtype.itemsize
        row = self._torch.empty(0, dtype=one.dtype).set_(storage, 0, (count,), (1,))
        shadow = row.to(_carrier(one.dtype), copy=True)
        # The weak reference keeps the address from being given to other memory while it is a key here.
        self._memory[storage._cdata] = (self._weak(storage), one.dtype, shadow)
        return shadow

    def _tensors(self, tree: Any) -> list[Any]:
        return [leaf for leaf in self._tree.tree_leaves(tree) if isinstance(leaf, self._torch.Tensor)]

    def _wider(self, dtype: Any) -> Any:
        """Return the dtype to compute in."""
        if self._world.double and dtype.is_floating_point:
            return self._torch.float64
        return self._torch.float32 if _is_narrow(dtype) else dtype


def _written(func: Any, args: Sequence[Any], kwargs: Any) -> list[Any]:
    """Return the arguments that an operator changes, by its schema."""
    found: list[Any] = []
    for number, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = args[number] if number < len(args) else kwargs.get(argument.name)
            found.extend(given if isinstance(given, (list, tuple)) else [given])
    return [one for one in found if one is not None]


def _is_narrow(dtype: Any) -> bool:
    return bool(dtype.is_floating_point and dtype.itemsize <= 2)


def _carrier(dtype: Any) -> Any:
    """Return the dtype that holds shadows: FP64 has every number of the narrower types."""
    torch = importlib.import_module("torch")
    if dtype.is_complex:
        return torch.complex128
    return torch.float64 if dtype.is_floating_point else dtype
