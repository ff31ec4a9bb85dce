"""Compare two tensors by their numbers: how far apart they are, in which units, and whether that is too far.

    difference = compare(actual, expected)                  # Difference; `within` by the gate of expected's dtype
    difference = compare(actual, expected, gate=EXACT)      # the bits must be equal
    difference.row(graph="softmax", mode="recorded", value="y", reference="eager")      # plain values, for JSON

Units. `maximum_absolute_error` is max |a - e|; `relative_l2` is ||a - e|| / ||e||; `cosine` is a.e / (||a|| ||e||): all
three are computed in float64 over the elements that are finite on both sides. A distance in ULPs is the number of
steps from one value to the other through the dtype's own numbers (`verify.ulps`).

Gates. Two right results of one computation are rarely the same bits: sums are taken in another order, functions are
approximated by other polynomials, and a fused kernel keeps in FP32 what eager rounds to BF16 in between. A gate is
what that may add up to, by dtype; `GATES` gives the reasons. Reductions are what it is made for: the order of a sum's
terms is free, so a kernel and eager may differ by the bound of the order (below) and both be right. Where a result is
much smaller than the terms that it was summed from, that bound is large against the result, and no gate by the
result's size can know it: the gate then says "beyond", and it takes FP64 to tell (`verify.first_difference`).
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verify.ulps import histogram, same_bits, tell_steps, ulp_distance


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """What two results may differ by and both be right.

    `relative_l2` bounds ||a - e|| / ||e||. `ulps` bounds every element: |a - e| may be that many times the dtype's
    epsilon of e, or, where e is smaller than the root mean square of its tensor, of that. Both must hold. Numbers
    below the smallest normal one count as that, for below it the unit in the last place gets no smaller.
    """

    relative_l2: float
    ulps: int


EXACT = Gate(relative_l2=0.0, ulps=0)
"""Equal numbers (signed zeros are equal numbers; `bit_equal` tells them apart)."""

GATES: Mapping[str, Gate] = {
    "float64": Gate(relative_l2=16 * 2.0**-52, ulps=64),
    "float32": Gate(relative_l2=16 * 2.0**-23, ulps=64),
    "float16": Gate(relative_l2=2.0**-10, ulps=4),
    "bfloat16": Gate(relative_l2=2.0**-7, ulps=4),
}
"""The gates by dtype, in multiples of its epsilon: 2**-52, 2**-23, 2**-10, 2**-7.

float64 and float32: a pairwise sum of n terms of one sign is off by at most log2(n) * epsilon / 2 of itself (Higham,
"Accuracy and Stability of Numerical Algorithms", 2nd edition, section 4.2), so two sums of 65536 terms in different
orders by at most 16 epsilon of each other. A single element may lie further out than the mean: four times as far.

float16 and bfloat16: sums are accumulated in FP32, so what counts is how often a value is rounded to the dtype. A
rounding that one side skips moves a following rounding by a step in about every fourth element, 0.36 epsilon in
relative L2; several of them add up by squares, so one epsilon is room for seven. Two results of which each is the same
value rounded once are at most one step apart, and each skipped rounding adds up to half a step: four steps.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """How `actual` differs from `expected`.

    `shape` and `dtype` are actual's; `mismatch` says how expected's differ from them, and then nothing is within, the
    histogram is empty, and without equal shapes there are no errors either. Where an error has no finite value (no
    number to divide by, overflow of float64) it is None. `ulps` counts elements by distance: "0", "1", "2", "3-4",
    "5-8" and so on by powers of two, and "nonfinite" for those that are not finite on either side; kinds without
    elements are left out. `nonfinite_equal`: NaN and infinities stand at the same places, with the same sign of
    infinity. `bit_equal`: the same bits, where any NaN equals any other. `beyond` counts the elements outside the gate,
    and `worst` is the index of the finite element with the largest absolute error, if one has any.
    """

    shape: tuple[int, ...]
    dtype: str
    maximum_absolute_error: float | None
    relative_l2: float | None
    cosine: float | None
    ulps: Mapping[str, int]
    nonfinite_equal: bool
    bit_equal: bool
    within: bool
    gate: Gate
    beyond: int
    worst: tuple[int, ...] | None
    mismatch: str | None

    def row(self, *, graph: str, mode: str, value: str, reference: str) -> dict[str, Any]:
        """Return the row of `evidence["numbers"]` that says this."""
        return {
            "graph": graph,
            "mode": mode,
            "value": value,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "reference": reference,
            "maximum_absolute_error": self.maximum_absolute_error,
            "relative_l2": self.relative_l2,
            "cosine": self.cosine,
            "ulps": dict(self.ulps),
            "within": self.within,
        }

    def __str__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        head = f"{self.dtype} ({shape}): "
        if self.mismatch is not None:
            return head + self.mismatch
        if self.bit_equal:
            return head + "bit-equal"
        errors = f"max abs {_show(self.maximum_absolute_error)}, relative L2 {_show(self.relative_l2)}"
        lost = "" if self.nonfinite_equal else ", NaN or infinity at other places"
        return f"{head}{errors}, {tell_steps(self.ulps)}{lost}, {'within' if self.within else 'beyond'} the gate"


def gate_of(dtype: Any) -> Gate:
    """Return the gate of a torch dtype, or of its name: exact for integers and booleans.

    A complex dtype has its parts' gate, another floating dtype (float8) one epsilon and four steps as BF16 has.
    """
    name = _name(dtype)
    torch = importlib.import_module("torch")
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise TypeError(f"{dtype!r} is not a dtype of torch")
    if found.is_complex:
        return gate_of(found.to_real())
    if not found.is_floating_point:
        return EXACT
    return GATES[name] if name in GATES else Gate(relative_l2=float(torch.finfo(found).eps), ulps=4)


def compare(actual: Any, expected: Any, *, gate: Gate | None = None) -> Difference:
    """Compare two tensors of any device and stride, by expected's gate or the given one.

    For a comparison with an FP64 reference, round the reference first: `compare(actual, reference.to(actual.dtype))`;
    a difference in dtype is otherwise what is found. Complex numbers are compared by their parts, sparse tensors as
    dense ones. Raises TypeError for what is no tensor, ValueError for a tensor without values (meta, fake).
    """
    actual, expected = _plain(actual), _plain(expected)
    gate = gate_of(expected.dtype) if gate is None else gate
    if actual.shape != expected.shape:
        return _mismatched(actual, gate, f"shape {tuple(actual.shape)}, expected {tuple(expected.shape)}")
    a, e = _parts(actual), _parts(expected)
    finite = _is_finite(a) & _is_finite(e)
    lost = _count_lost(a[~finite].double(), e[~finite].double())
    errors = _Errors.of(a[finite].double(), e[finite].double())
    if actual.dtype != expected.dtype:
        mismatch = f"dtype {_name(actual.dtype)}, expected {_name(expected.dtype)}"
        return _mismatched(actual, gate, mismatch, errors, nonfinite_equal=lost == 0)
    beyond = lost + _count_beyond(a[finite], e[finite], gate)
    nonfinite = a.numel() - int(finite.sum())
    return Difference(
        shape=tuple(actual.shape),
        dtype=_name(actual.dtype),
        maximum_absolute_error=errors.maximum,
        relative_l2=errors.relative_l2,
        cosine=errors.cosine,
        ulps=histogram(ulp_distance(a[finite], e[finite])) | ({"nonfinite": nonfinite} if nonfinite else {}),
        nonfinite_equal=lost == 0,
        bit_equal=same_bits(a, e),
        within=beyond == 0 and errors.is_small(gate.relative_l2, _smallest_normal(expected.dtype)),
        gate=gate,
        beyond=beyond,
        worst=_find_worst(a, e, finite, tuple(actual.shape)),
        mismatch=None,
    )


@dataclass(frozen=True, slots=True)
class _Errors:
    """The errors in float64 (None where there is no finite value), and the root mean squares that they came from."""

    maximum: float | None = None
    relative_l2: float | None = None
    cosine: float | None = None
    typical_error: float = 0.0
    typical: float = 0.0

    @classmethod
    def of(cls, a: Any, e: Any) -> _Errors:
        if not e.numel():
            return cls(0.0, 0.0)
        # The squares of numbers near float64's limits leave its range: measure in a power of two near the largest.
        largest = max(float(a.abs().max()), float(e.abs().max()))
        scale = math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0
        maximum = float((a - e).abs().max())
        off, length, size = (float((row / scale).norm()) for row in (a - e, a, e))
        relative = off / size if size else (0.0 if off == 0.0 else None)
        cosine = float((a / scale) @ (e / scale)) / length / size if length and size else None
        unit = scale / e.numel() ** 0.5
        return cls(
            maximum if math.isfinite(maximum) else None,
            relative if relative is not None and math.isfinite(relative) else None,
            None if cosine is None else max(-1.0, min(1.0, cosine)),
            off * unit,
            size * unit,
        )

    def is_small(self, relative_l2: float, smallest_normal: float) -> bool:
        return self.typical_error == 0.0 or self.typical_error <= relative_l2 * max(self.typical, smallest_normal)


def _plain(tensor: Any) -> Any:
    """Return the tensor's values on the CPU, dense and as they are read."""
    torch = importlib.import_module("torch")
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"expected a tensor to compare, got {type(tensor).__name__}")
    if tensor.is_meta or type(tensor).__name__ == "FakeTensor":
        raise ValueError(f"a {type(tensor).__name__} on {tensor.device} has no values to compare")
    tensor = tensor.detach().cpu()
    return (tensor if tensor.layout == torch.strided else tensor.to_dense()).resolve_conj().resolve_neg()


def _parts(tensor: Any) -> Any:
    """Return the real numbers in a flat row."""
    torch = importlib.import_module("torch")
    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).contiguous().flatten()


def _mismatched(
    actual: Any, gate: Gate, mismatch: str, errors: _Errors | None = None, *, nonfinite_equal: bool = False
) -> Difference:
    return Difference(
        shape=tuple(actual.shape),
        dtype=_name(actual.dtype),
        maximum_absolute_error=errors.maximum if errors else None,
        relative_l2=errors.relative_l2 if errors else None,
        cosine=errors.cosine if errors else None,
        ulps={},
        nonfinite_equal=nonfinite_equal,
        bit_equal=False,
        within=False,
        gate=gate,
        beyond=actual.numel(),
        worst=None,
        mismatch=mismatch,
    )


def _is_finite(row: Any) -> Any:
    """Tell which elements are finite; float8 has no such question of its own, and integers always are."""
    return (row.float() if row.dtype.is_floating_point and row.dtype.itemsize == 1 else row).isfinite()


def _count_lost(a: Any, e: Any) -> int:
    """Count which of the elements that are not finite on either side are not the same."""
    return int((~((a == e) | (a.isnan() & e.isnan()))).sum())


def _count_beyond(a: Any, e: Any, gate: Gate) -> int:
    """Count the elements that are further from expected than the gate allows."""
    if gate.ulps == 0 or not e.dtype.is_floating_point:
        return int((ulp_distance(a, e) > gate.ulps).sum())
    smallest, epsilon = _smallest_normal(e.dtype), importlib.import_module("torch").finfo(e.dtype).eps
    a, e = a.double(), e.double()
    least = max(_Errors.of(a, e).typical, smallest)
    return int(((a - e).abs() > e.abs().clamp(min=least) * epsilon * gate.ulps).sum())


def _find_worst(a: Any, e: Any, finite: Any, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the index of the largest error; a complex element lies where its worse part does."""
    torch = importlib.import_module("torch")
    errors = torch.where(finite, (a.double() - e.double()).abs(), 0.0)
    if not errors.numel() or not bool(errors.max() > 0):
        return None
    place = int(errors.argmax()) // (errors.numel() // math.prod(shape))
    return tuple(int(at) for at in torch.unravel_index(torch.tensor(place), shape)) if shape else ()


def _smallest_normal(dtype: Any) -> float:
    torch = importlib.import_module("torch")
    return float(torch.finfo(dtype).tiny) if dtype.is_floating_point or dtype.is_complex else 0.0


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _show(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.3g}"
