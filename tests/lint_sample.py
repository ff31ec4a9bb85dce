"""Code for `toolkit lint` to judge: a file is written and only the places and checks are kept."""

from __future__ import annotations

import textwrap
from pathlib import Path

from toolkit.lint import Report, lint_model

HEAD = """\
import logging
import torch
import torch.nn.functional as F
from torch import nn
logger = logging.getLogger(__name__)
"""
"""Five lines before every sample, so that its first is line 6."""


def write_sample(folder: Path, source: str, name: str = "sample.py") -> Path:
    """Write a sample below the usual imports."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + textwrap.dedent(source).lstrip("\n"), encoding="utf-8")
    return path


def lint_sample(folder: Path, source: str) -> Report:
    """Judge a sample."""
    return lint_model([write_sample(folder, source)])


def found_in(folder: Path, source: str) -> list[tuple[int, str]]:
    """Return line (the sample's own, from 1) and check of each finding."""
    return [(one.line - HEAD.count("\n"), one.check) for one in lint_sample(folder, source).findings]
