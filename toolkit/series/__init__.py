"""The patches of one component on one line: read strictly, applied whole or not at all."""

from __future__ import annotations

from toolkit.series.apply import apply_series, require_known_acceptance
from toolkit.series.ground import ReadFile
from toolkit.series.judge import judge_series
from toolkit.series.line import LINE_FILE, Line, LineTable, read_line, require_covered
from toolkit.series.load import load_series, series_key_inputs
from toolkit.series.parts import is_native_input, wheel_path
from toolkit.series.split import native_changes, python_changes, split_series
from toolkit.series.verdict import HunkState, HunkVerdict, PatchState, PatchVerdict

__all__ = [
    "LINE_FILE",
    "HunkState",
    "HunkVerdict",
    "Line",
    "LineTable",
    "PatchState",
    "PatchVerdict",
    "ReadFile",
    "apply_series",
    "is_native_input",
    "judge_series",
    "load_series",
    "native_changes",
    "python_changes",
    "read_line",
    "require_covered",
    "require_known_acceptance",
    "series_key_inputs",
    "split_series",
    "wheel_path",
]
