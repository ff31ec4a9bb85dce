"""Say what a difference is of: a skipped rounding, the order of a sum, the rounding of operations, or a fault.

Each question is a shadow of the eager run (`verify.divergence.shadows`): is the compiled value what eager would compute
with an intermediate kept in FP32, or is it within what other orders or other approximations change? Compiled code is
never asked, for a fault of its own would answer. A shadow that is chosen explains more elements than eager itself, so
that a difference of one step in the last place is no proof of anything by being small.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from verify.divergence.report import Cause, CauseKind, Kind
from verify.divergence.shadows import Boundary, Shadow, World
from verify.measured import WORSE, is_no_worse
from verify.numbers import compare, gate_of
from verify.ulps import ulp_distance

Key = tuple[Kind, str]

KEPT: Mapping[str, World] = {
    "no 16-bit intermediate is rounded": World(keep="all"),
    "16-bit intermediates are rounded only around matrix products, convolutions and attention": World(
        keep="all", round_calls=True
    ),
    "16-bit intermediates within a stage are not rounded": World(keep="all", round_taps=True),
    "16-bit intermediates within a stage are rounded only around matrix products, convolutions and attention": World(
        keep="all", round_calls=True, round_taps=True
    ),
}
DISTURBED: Mapping[CauseKind, tuple[str, tuple[World, ...]]] = {
    "order of reduction": (
        "within what another order of the sums' terms changes",
        tuple(World(disturb="sums", seed=seed) for seed in range(1, 7)),
    ),
    "operations": (
        "within two units in the last place of each operation",
        tuple(World(disturb="operations", seed=seed) for seed in range(1, 7)),
    ),
}
SINGLE_BOUNDARIES = 12
"""How many operators back from a stage are tried one by one."""

SPREADS = 3.0
"""How many times the largest of six random spreads a difference may have, and how many times as many elements."""


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """What is kept of a shadow."""

    boundaries: tuple[Boundary, ...]
    unknown: tuple[str, ...]
    values: Mapping[Key, Any]


@dataclass(kw_only=True)
class Explainer:
    """Find causes. `shadow` runs eager in a world, once in each; `values` picks what is asked for from a shadow.

    The taps with the numbers `settled` have eager's bits, and a type that no kernel keeps wider: what comes of them is
    explained from there on, and only where that does not do, as a contraction may go over a tap, from the inputs on.
    """

    shadow: Callable[[World], Shadow]
    values: Callable[[Shadow], Mapping[Key, Any]]
    taps: Sequence[str]
    settled: frozenset[int] = frozenset()
    _known: dict[World, _Seen] = field(default_factory=dict)

    def explain(self, key: Key, actual: Any, expected: Any, *, within: bool) -> Cause:
        """Return what the difference of one value, within its gate or not, is of."""
        try:
            kind, detail = self._find(key, actual, expected)
            if kind == "fault" and within:
                kind = "unexplained"
            elif kind == "fault" and self.is_as_near(key, actual, expected):
                kind, detail = "nearer to FP64", f"at most {WORSE:g} times as far from it as eager is"
            return Cause(kind=kind, detail=detail, **self._errors(key, actual, expected))
        except Exception as fault:  # the module's own code runs here, on the CPU: it may refuse
            return Cause(kind="unknown", detail=f"no shadow of the eager run: {type(fault).__name__}: {fault}")

    def is_as_near(self, key: Key, actual: Any, expected: Any) -> bool:
        """Tell whether a value is no further from eager in FP64 than eager's own value is, up to the usual factor."""
        if actual.shape != expected.shape or actual.dtype != expected.dtype:
            return False
        try:
            reference = self._value(World(double=True), key)
        except Exception:  # as in `explain`; without FP64 nothing is excused
            return False
        return is_no_worse(compare(actual, reference), compare(expected, reference))

    def unknown_operators(self) -> tuple[str, ...]:
        """Return the operators that had no shadow of their own in any world."""
        return tuple(dict.fromkeys(name for seen in self._known.values() for name in seen.unknown))

    def _find(self, key: Key, actual: Any, expected: Any) -> tuple[CauseKind, str]:
        if actual.shape != expected.shape or actual.dtype != expected.dtype:
            return "fault", "another shape or dtype"
        if not compare(actual, expected).nonfinite_equal:
            return self._find_lost(key, actual)
        boundary = self._find_boundary(key, actual, expected)
        if boundary is not None:
            return "rounding boundary", boundary
        for settled in dict.fromkeys((self.settled, frozenset[int]())):
            place = ", from the equal stages on" if settled else ""
            for kind, (detail, worlds) in DISTURBED.items():
                others = [self._value(replace(world, settled=settled), key) for world in worlds]
                if is_within_spread(actual, expected, others):
                    return kind, detail + place
        return "fault", "no skipped rounding, other order or approximation comes near it"

    def _find_lost(self, key: Key, actual: Any) -> tuple[CauseKind, str]:
        """Explain a NaN or an infinity at another place: 16 bits may overflow where FP32 does not."""
        for detail, world in KEPT.items():
            if compare(actual, self._value(world, key)).within:
                return "rounding boundary", detail
        return "fault", "NaN or infinity stands where eager has none, or the other way round"

    def _find_boundary(self, key: Key, actual: Any, expected: Any) -> str | None:
        """Return which roundings were skipped, the fewest that explain as much as any."""
        if compare(self._value(World(keep="all"), key), expected).bit_equal:
            return None
        several = [
            (count, detail)
            for detail, world in KEPT.items()
            if (count := count_unexplained(actual, self._value(world, key), expected)) is not None
        ]
        found = [*self._skip_one(key, actual, expected), *several]
        if not found:
            return None
        count, detail = min(found, key=lambda one: one[0])
        return f"{detail} (bit-equal)" if count == 0 else f"{detail} ({count} of {actual.numel()} elements differ yet)"

    def _skip_one(self, key: Key, actual: Any, expected: Any) -> list[tuple[int, str]]:
        """Skip one rounding at a time, the nearest before the stage first, up to one that explains all."""
        found = []
        for boundary in self._boundaries_before(key):
            count = count_unexplained(actual, self._value(World(keep=boundary.number), key), expected)
            if count is not None:
                found.append((count, self._describe(boundary)))
            if count == 0:
                break
        return found

    def _boundaries_before(self, key: Key) -> list[Boundary]:
        boundaries = list(self._run(World()).boundaries)
        if "gradient" not in key[0]:
            boundaries = [one for one in boundaries if not one.backward]
        if key[0] == "value":
            place = list(self.taps).index(key[1])
            boundaries = [one for one in boundaries if one.taps <= place]
        return boundaries[-SINGLE_BOUNDARIES:][::-1]

    def _describe(self, boundary: Boundary) -> str:
        where = f" in {self.taps[boundary.taps]!r}" if boundary.taps < len(self.taps) else ""
        where = " in backward" if boundary.backward else where
        return f"the {boundary.dtype} result of {boundary.operator}{where} is not rounded"

    def _errors(self, key: Key, actual: Any, expected: Any) -> dict[str, float | None]:
        reference = self._value(World(double=True), key)
        if reference.shape != actual.shape or actual.dtype != expected.dtype:
            return {}
        return {
            "eager_error": compare(expected, reference).relative_l2,
            "compiled_error": compare(actual, reference).relative_l2,
        }

    def _value(self, world: World, key: Key) -> Any:
        return self._run(world).values[key]

    def _run(self, world: World) -> _Seen:
        if world not in self._known:
            shadow = self.shadow(world)
            values = self.values(shadow)
            self._known[world] = _Seen(boundaries=shadow.boundaries, unknown=shadow.unknown, values=values)
        return self._known[world]


def count_unexplained(actual: Any, kept: Any, expected: Any) -> int | None:
    """Return how many elements differ from the value with intermediates kept, None where that explains nothing.

    It explains a 16-bit value that is nowhere further than one step from it, and an FP32 value that is within its
    gate; and it must be nearer than eager's own value, by fewer elements that differ.
    """
    if not actual.is_floating_point() or kept.shape != actual.shape:
        return None
    near = compare(actual, kept)
    if not near.nonfinite_equal or not (_is_one_step(near.ulps) if actual.dtype.itemsize <= 2 else near.within):
        return None
    count, before = _count_differing(actual, kept), _count_differing(actual, expected)
    if actual.dtype.itemsize > 2:
        # FP32 values of two ways to compute differ nearly everywhere: how far, says more than how many.
        return count if _distance(actual, kept) * 4 < _distance(actual, expected) else None
    return count if count * 2 < before or count == 0 < before else None


def is_within_spread(actual: Any, expected: Any, others: Sequence[Any]) -> bool:
    """Tell whether a value is as far from eager's as the disturbed ones are, and at about as many elements."""
    torch = importlib.import_module("torch")
    if any(other.shape != expected.shape for other in others):
        return False
    counts = [_count_differing(other, expected) for other in others]
    if _count_differing(actual, expected) > SPREADS * max(counts) + SPREADS or not any(counts):
        return False
    if not expected.is_floating_point():
        return True
    spread = torch.stack([(other.double() - expected.double()).abs().nan_to_num(0.0) for other in others]).amax(0)
    least = spread.square().mean().sqrt()
    epsilon = torch.finfo(expected.dtype).eps if expected.dtype.itemsize <= 2 else 0.0
    allowed = spread.clamp(min=least) * SPREADS + expected.double().abs() * epsilon
    off = (actual.double() - expected.double()).abs()
    return bool((off.nan_to_num(0.0, 0.0) <= allowed.nan_to_num(0.0, 0.0)).all())


def _is_one_step(ulps: Mapping[str, int]) -> bool:
    return set(ulps) <= {"0", "1", "nonfinite"}


def _count_differing(one: Any, other: Any) -> int:
    if not one.is_floating_point():
        return int((one != other).sum())
    finite = one.isfinite() & other.isfinite()
    return int((ulp_distance(one, other)[finite] > 0).sum())


def _distance(one: Any, other: Any) -> float:
    found = compare(one, other, gate=gate_of(one.dtype)).maximum_absolute_error
    return float("inf") if found is None else found
