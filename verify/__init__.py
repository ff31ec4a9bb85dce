"""What a person or a training script calls: `verify.first_difference`, `verify.tap`, `verify.run_generated`.

Nothing is imported before it is asked for, and torch not before it is called.
"""

from __future__ import annotations

import importlib
from typing import Any

DOORS = {
    "first_difference": "verify.divergence.search",
    "run_generated": "verify.generated",
    "tap": "verify.divergence.taps",
}
"""The names that this package gives, and the modules that have them."""


def __getattr__(name: str) -> Any:
    if name not in DOORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(DOORS[name]), name)
