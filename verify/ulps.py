"""Count the steps between two numbers of one dtype: distances in units in the last place.

The bits of an IEEE number, read as a sign and a magnitude, put all numbers of its dtype in a row, so that neighbours
differ by one (Bruce Dawson, "Comparing Floating Point Numbers", 2012). -0 and +0 are the same place. The step below the
smallest normal number is the subnormal one. Integers and booleans count in ones.
"""

from __future__ import annotations

import importlib
from typing import Any

LARGEST = 2**63 - 1
BITS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
BOUNDARIES = (0, *(2**power for power in range(63)))


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
