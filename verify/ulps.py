"""Count the steps between two numbers of one dtype: distances in units in the last place.

The bits of an IEEE number, read as a sign and a magnitude, put all numbers of its dtype in a row, so that neighbours
differ by one (Bruce Dawson, "Comparing Floating Point Numbers", 2012). -0 and +0 are the same place. The step below the
smallest normal number is the subnormal one. Integers and booleans count in ones.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

LARGEST = 2**63 - 1
BITS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
BOUNDARIES = (0, *(2**power for power in range(63)))
SPELLED_OUT = 1024
"""From which distance on its power of two is said."""


def ulp_distance(actual: Any, expected: Any) -> Any:
    """Return an int64 tensor of the steps between the elements of two tensors of one real dtype.

    Steps beyond int64 (between float64 values of opposite sign) stand as its largest number. Between a NaN and
    anything the number means nothing.
    """
    torch = importlib.import_module("torch")
    a, e = _places(actual), _places(expected)
    steps = torch.maximum(a, e) - torch.minimum(a, e)
    return torch.where(steps < 0, LARGEST, steps)


def histogram(steps: Any) -> dict[str, int]:
    """Count distances by "0", "1", "2", "3-4", "5-8" and so on by powers of two; kinds without any are left out."""
    torch = importlib.import_module("torch")
    kinds = torch.bucketize(steps, torch.tensor(BOUNDARIES))
    counts = torch.bincount(kinds.flatten(), minlength=1).tolist()
    return {_kind(number): count for number, count in enumerate(counts) if count}


def tell_steps(ulps: Mapping[str, int]) -> str:
    """Say the largest distance and how many elements have it, such as ">2^25 ULP in all 256"."""
    finite = {kind: number for kind, number in ulps.items() if kind != "nonfinite"}
    lost = f"{ulps['nonfinite']} not finite" if "nonfinite" in ulps else ""
    if not finite:
        return lost or "no elements"
    total = sum(ulps.values())
    kind, number = list(finite.items())[-1]
    least, _, most = kind.partition("-")
    below = int(least) - 1
    steps = f"{kind} ULP" if not most else f">{below if below < SPELLED_OUT else f'2^{below.bit_length() - 1}'} ULP"
    share = f"in {number} of {total}" if number < total else f"in all {total}" if total > 1 else ""
    return ", ".join(one for one in (f"{steps} {share}".rstrip(), lost) if one)


def same_bits(actual: Any, expected: Any) -> bool:
    """Tell whether two tensors of one real dtype hold the same bits, where any NaN is the same as any other."""
    if not actual.dtype.is_floating_point:
        return bool((actual == expected).all())
    both_nan = actual.double().isnan() & expected.double().isnan()
    return bool(((_bits(actual) == _bits(expected)) | both_nan).all())


def _places(numbers: Any) -> Any:
    """Map numbers to int64 so that neighbours differ by one."""
    torch = importlib.import_module("torch")
    if numbers.dtype == torch.uint64:
        return numbers.view(torch.int64) ^ (-LARGEST - 1)
    if not numbers.dtype.is_floating_point:
        return numbers.to(torch.int64)
    signed = _bits(numbers).to(torch.int64)
    magnitude = signed & (2 ** (8 * numbers.dtype.itemsize - 1) - 1)
    return torch.where(signed < 0, -magnitude, signed)


def _bits(numbers: Any) -> Any:
    return numbers.contiguous().view(getattr(importlib.import_module("torch"), BITS[numbers.dtype.itemsize]))


def _kind(number: int) -> str:
    """Return the name of the distances up to BOUNDARIES[number] that are beyond the boundary before it."""
    if number == len(BOUNDARIES):
        return f"{BOUNDARIES[-1] + 1}-{LARGEST}"
    nearest = BOUNDARIES[number - 1] + 1 if number else 0
    return str(nearest) if nearest == BOUNDARIES[number] else f"{nearest}-{BOUNDARIES[number]}"
