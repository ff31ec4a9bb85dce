"""Static checks of a training code base: what keeps custom operators from being compiled safely.

Files are parsed, never imported. `lint_model` is the door; `CHECKS` says what is looked for.
"""

from toolkit.lint.checks import CHECKS, Check
from toolkit.lint.findings import Allowed, Finding, Report, Skipped
from toolkit.lint.judging import lint_model

__all__ = ["CHECKS", "Allowed", "Check", "Finding", "Report", "Skipped", "lint_model"]
