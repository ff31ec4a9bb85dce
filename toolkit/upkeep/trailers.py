"""The trailers that this project writes under a patch's message, and what a message is with and without them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolkit.series.mail import TRAILER, parse_trailers

OWN = ("Upstream-Status", "Witness", "Origin", "Left-out", "Adapted", "Retired", "Retired-Upstream")
"""The trailers that mean something here and nothing to upstream."""

PARAGRAPH = re.compile(r"\n[ \t]*\n")


def with_trailers(message: str, trailers: Sequence[tuple[str, str]]) -> str:
    """Return a message with these trailers at its end, in place of those of the same names that it has."""
    text = without_trailers(message, [name for name, _ in trailers])
    if not trailers:
        return text
    paragraphs = PARAGRAPH.split(text.rstrip("\n"))
    joint = "\n" if len(paragraphs) > 1 and parse_trailers(paragraphs[-1]) else "\n\n"
    return text.rstrip("\n") + joint + "".join(f"{name}: {value}\n" for name, value in trailers)


def without_trailers(message: str, names: Sequence[str] = OWN) -> str:
    """Return a message without the trailers of these names; everything else in it stays as it is."""
    head, paragraph = _last_paragraph(message)
    if not parse_trailers(paragraph):
        return message
    unwanted = {name.lower() for name in names}
    kept, is_kept = [], True
    for line in paragraph.split("\n"):
        if line[:1] not in (" ", "\t"):  # A folded line goes with the one that it belongs to.
            match = TRAILER.match(line)
            is_kept = match is None or match[1].lower() not in unwanted
        kept += [line] if is_kept else []
    text = "\n".join(kept).strip("\n")
    return (f"{head}{text}" if text else head.rstrip("\n")) + "\n"


def value_of(message: str, name: str) -> str:
    """Return the value of a message's trailer, empty where it has none."""
    found = [value for token, value in parse_trailers(_last_paragraph(message)[1]) if token.lower() == name.lower()]
    return "".join(found[:1])


def _last_paragraph(message: str) -> tuple[str, str]:
    """Cut a message before its last paragraph; the subject alone is none."""
    text = message.rstrip("\n")
    ends = [match.end() for match in PARAGRAPH.finditer(text)]
    return (text[: ends[-1]], text[ends[-1] :]) if ends else (f"{text}\n", "")
