"""Parsing that never executes, never warns, and has one error for all that is not Python."""

from __future__ import annotations

import ast
import warnings


def parse(text: str) -> ast.Module:
    """Parse a text; raise SyntaxError where it is not Python, or nested deeper than Python's own parser goes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Of odd escapes and comparisons: the file's matter, not the reader's.
        try:
            return ast.parse(text)
        except (ValueError, RecursionError, MemoryError) as fault:  # NUL bytes; too many brackets
            raise SyntaxError(str(fault) or f"too deeply nested ({type(fault).__name__})") from fault
