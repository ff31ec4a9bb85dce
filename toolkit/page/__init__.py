"""A report of one overlay, from values to text: a page of HTML that needs nothing else, or Markdown."""

from __future__ import annotations

from toolkit.page.brief import render_brief
from toolkit.page.document import render_html
from toolkit.page.markdown import render_markdown
from toolkit.page.values import (
    Account,
    CheckAccount,
    ComponentAccount,
    GraphEvidence,
    KeptFile,
    Kernel,
    NumberRow,
    PatchAccount,
    Program,
)

__all__ = [
    "Account",
    "CheckAccount",
    "ComponentAccount",
    "GraphEvidence",
    "KeptFile",
    "Kernel",
    "NumberRow",
    "PatchAccount",
    "Program",
    "render_brief",
    "render_html",
    "render_markdown",
]
