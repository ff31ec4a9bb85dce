"""Hold the reference's builder against the real one, while a kernel is built with both.

    made, program = build_beside(dvm.kernel, build, "spec", dyn_shape=False)

`made` is the real kernel, `program` what the reference wrote down. Every call that `build` makes goes to the reference
first, which refuses what the real builder would die of, and then to the real builder; the element types of the two
results must be the same at once, and the shapes once the real kernel is compiled, where it knows them. A difference is
a DisagreementError: the reference is wrong about torch_npu then, and nothing that it computes is to be believed.

Whether BF16 is promoted, and cast back at once, is taken from the real package, and in which element type comparisons
answer from a builder of it.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from verify.reference.evaluate import value_shapes
from verify.reference.program import Builder, Program, Scalar, Value
from verify.reference.rules import TYPES


class DisagreementError(AssertionError):
    """The reference and the real builder give a value different element types or shapes."""


@dataclass(frozen=True)
class Pair:
    """One value, as the reference and as the real builder know it."""

    ours: Value
    real: Any


def build_beside(
    real: Callable[..., Any], build: Callable[[Any], Any], ktype: str, *, dyn_shape: bool
) -> tuple[Any, Program]:
    """Build a kernel with the real `dvm.kernel` and the reference's builder at once, and compare them."""
    dvm = importlib.import_module("torch_npu._inductor.dvm")
    builder = Builder(
        promotes=not dvm.is_ascend950,
        keep_promoted=dvm.config.bf16_vector_keep_promoted,
        answers_bool=_answers_bool(dvm),
    )
    types = [(getattr(dvm, "bool_" if name == "bool" else name), name) for name in TYPES]
    beside: list[Beside] = []

    @functools.wraps(build)
    def build_both(kernel: Any) -> None:
        beside.append(Beside(kernel, builder, types))
        build(beside[0])

    made = real(ktype, dyn_shape)(build_both)
    program = builder.program(ktype, getattr(build, "__name__", ""))
    _compare_shapes(program, beside[0].pairs)
    return made, program


def _answers_bool(dvm: Any) -> bool:
    """Tell whether comparisons give bool, by asking a builder that is thrown away."""
    kernel = dvm.KERNEL_FACTORY["vector", False]()
    return bool(kernel.less(kernel.load([1], dvm.float32), 0.0).dtype() == dvm.bool_)


@dataclass
class Beside:
    """Stands in for the kernel object `k`, and passes every call on to both builders."""

    kernel: Any
    builder: Builder
    types: Sequence[tuple[Any, str]]
    pairs: list[Pair] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        ours = getattr(self.builder, name)

        def call(*arguments: Any, **options: Any) -> Any:
            result = ours(*map(self._ours, arguments), **{key: self._ours(one) for key, one in options.items()})
            real = getattr(self.kernel, name)(*map(_real, arguments), **{k: _real(one) for k, one in options.items()})
            return self._pair(name, result, real) if isinstance(result, Value) else real

        return call

    def _pair(self, name: str, ours: Value, real: Any) -> Pair:
        pair = Pair(ours, real)
        if not isinstance(ours, Scalar) and name != "store":
            told = self._name_of(real.dtype())
            if told != ours.dtype():
                raise DisagreementError(f"{ours} = {name}: {ours.dtype()} here, {told} in the real builder")
            self.pairs.append(pair)
        return pair

    def _ours(self, one: Any) -> Any:
        if isinstance(one, Pair):
            return one.ours
        if isinstance(one, (list, tuple)):
            return [self._ours(part) for part in one]
        return self._name_of(one) if isinstance(one, type(self.types[0][0])) else one

    def _name_of(self, dtype: Any) -> str:
        return next((name for real, name in self.types if dtype == real), repr(dtype))


def _compare_shapes(program: Program, pairs: Sequence[Pair]) -> None:
    shapes = value_shapes(program)
    if shapes is None:
        return
    for pair in pairs:
        told = tuple(pair.real.shape())
        if told != shapes[pair.ours.number]:
            one = program.instructions[pair.ours.number]
            raise DisagreementError(f"{one}: shape {list(shapes[one.number])} here, {list(told)} in the real builder")


def _real(one: Any) -> Any:
    if isinstance(one, Pair):
        return one.real
    return [_real(part) for part in one] if isinstance(one, (list, tuple)) else one
