"""The patches of one component on one line: read strictly, applied whole or not at all."""

from __future__ import annotations

from toolkit.series.apply import apply_series, require_known_acceptance
from toolkit.series.load import load_series, series_key_inputs
from toolkit.series.parts import is_native_input, wheel_path
from toolkit.series.split import native_changes, python_changes, split_series

__all__ = [
    "apply_series",
    "is_native_input",
    "load_series",
    "native_changes",
    "python_changes",
    "require_known_acceptance",
    "series_key_inputs",
    "split_series",
    "wheel_path",
]
