"""How trainers tell that training goes on, or has ended as it should."""

from __future__ import annotations

import re

STEP = re.compile(
    r"\b(?:global[_ ]?)?(?:step|iter(?:ation)?)s?\b['\"]?\s{0,20}(?:[:=]\s{0,20})?\[?(\d{1,18})(?!\d)", re.IGNORECASE
)
"""Blanks and digits have bounds: a line of nothing but blanks would take seconds, and Python reads no long number."""

PROGRESS = re.compile(r"loss|grad[_ ]?norm|tps\b|tokens/s|elapsed time per", re.IGNORECASE)
ENDED_WELL = re.compile(
    r"\btraining (?:has |is )?(?:completed?|finished|done)\b|train_runtime|`Trainer\.fit` stopped: ", re.IGNORECASE
)
GOES_ON = re.compile(
    r"\bloss['\"]?\s{0,9}[:=]\s{0,9}-?\d.*\b(?:epoch|lr|learning_rate|eta)\b|\bepoch\b.*(?:\d(?:it/s|s/it)|\bloss\b.*\d)"
    r"|\b(?:RunningAvgSamplesPerSec|samples/sec(?:ond)?)\b|\bstep=\d+, skipped=",
    re.IGNORECASE,
)
"""How trainers tell of progress that count no steps in the line, or no loss."""


def step_of(text: str) -> int | None:
    """Return the step of a line that tells of training's progress."""
    found = STEP.search(text)
    return int(found[1]) if found and PROGRESS.search(text) else None


def is_step(text: str) -> bool:
    """Whether a line tells of training's progress."""
    return step_of(text) is not None


def is_progress(text: str) -> bool:
    """Whether a line says that training went on, or has ended as it should."""
    return is_step(text) or bool(ENDED_WELL.search(text) or GOES_ON.search(text))
