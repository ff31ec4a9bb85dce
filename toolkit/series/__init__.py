"""The patches of one component on one line: read strictly, applied whole or not at all."""

from __future__ import annotations

from toolkit.series.apply import apply_series
from toolkit.series.load import load_series, series_key_inputs

__all__ = ["apply_series", "load_series", "series_key_inputs"]
