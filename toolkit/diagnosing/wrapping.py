"""Lines for a person, no longer than the screen."""

from __future__ import annotations

import re
import textwrap

WIDTH = 120
"""The columns where there is no terminal."""

NARROWEST = 60
COMMAND = re.compile(r"`[^`]*`")
WHOLE = "\xa0"
"""Stands for the blanks of a command while its line is broken: it is pasted whole."""


def screen_width(columns: int | None) -> int:
    """Return how long a line may be on a terminal of so many columns, or where there is none."""
    return max(columns, NARROWEST) if columns else WIDTH


def wrap(text: str, width: int, *, first: str = "", rest: str | None = None) -> list[str]:
    """Break a text into lines at its blanks, but for those of a command in backquotes; words are never cut.

    `first` stands before the first line, `rest` (as many blanks, unless given) before the others.
    """
    held = COMMAND.sub(lambda found: found[0].replace(" ", WHOLE), text)
    indent = " " * len(first) if rest is None else rest
    lines = textwrap.wrap(
        held, width, initial_indent=first, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return [line.replace(WHOLE, " ") for line in lines] or [first.rstrip()]
