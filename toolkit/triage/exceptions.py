"""How Python writes what was raised: class and message, frames, and the sentences between chained tracebacks."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

HEADER = re.compile(r"^(.*?)(?:Exception Group )?Traceback \(most recent call last\):|_RemoteTraceback:\s*$")
CAUSE = "The above exception was the direct cause of the following exception"
CONTEXT = "During handling of the above exception, another exception occurred"
FRAME = re.compile(r'^[\s|]*File "([^"]+)", line (\d{1,9})(?:,? in (.*\S))?\s*$')
PYTEST = re.compile(r"^E\s{3,}(?=\S)")

NAME = r"((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)"
RAISED_IN_TRACEBACK = re.compile(rf"^{NAME}(?:: ?|$|(?=\())(.*)$")
"""Right below frames every name is a class: `KeyboardInterrupt`, `click.exceptions.Exit: 1`."""

CLASS = (
    r"((?:[a-z_]\w*\.)+(?:exc|errors?|exceptions?)\.[A-Z]\w*|(?:[A-Za-z_]\w*\.)*(?=[A-Z])\w*"
    r"(?:Error|Exception|Failure|Failed|Interrupt|Exit|Node|Timeout|Unsupported|Violation|Abort|NotImplemented))"
)
RAISED_ALONE = re.compile(rf"^{CLASS}(?:: ?|$|(?=\(['\"]))(.*)$")
"""Elsewhere the name has to look like one of an exception."""

INNER = re.compile(rf"^\s*{CLASS}(?:: ?|\s*\n|$)")
QUOTED = re.compile(rf"with fake tensors: [^\n]*?\bgot {CLASS}\((['\"])((?:\\.|(?!\2)[^\n])*)\2,?\)")
"""How Dynamo repeats what a fake function raised."""

RAISED_BY_BACKEND = re.compile(r"^\s*backend='?\w+'? raised:\s*")

Link = Literal["", "cause", "context"]


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One frame of a traceback."""

    path: str
    line: int
    function: str
    source: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} in {self.function}: {self.source}"


class Raised(msgspec.Struct, frozen=True, kw_only=True):
    """What was raised: class names without their modules, outermost wrapper first, and the innermost one's message."""

    names: tuple[str, ...]
    message: str

    @property
    def name(self) -> str:
        """The innermost class."""
        return self.names[-1]


def read_raised(text: str, *, in_traceback: bool) -> tuple[str, str] | None:
    """Split the line that ends a traceback, or stands alone, into class and message; None for any other line."""
    found = (RAISED_IN_TRACEBACK if in_traceback else RAISED_ALONE).match(PYTEST.sub("", text))
    if found is None or (in_traceback and not _may_be_class(found[1])):
        return None
    return found[1], found[2]


def unwrap(name: str, message: str) -> Raised:
    """Follow the classes that a message begins with: `InductorError: LoweringException: KeyError: 'r'`."""
    names, rest = [_short(name)], message
    while True:
        rest = RAISED_BY_BACKEND.sub("", rest)
        found = INNER.match(rest)
        if found is None:
            break
        names.append(_short(found[1]))
        rest = rest[found.end() :]
    if found := QUOTED.search(rest):
        names.append(_short(found[1]))
        rest = found[3].replace(f"\\{found[2]}", found[2]) + rest[found.end() :]
    return Raised(names=tuple(names), message=rest.strip("\n"))


def read_frame(text: str) -> tuple[str, int, str] | None:
    """Return path, line and function of a frame's first line, as tracebacks and faulthandler write it."""
    found = FRAME.match(PYTEST.sub("", text))
    return None if found is None else (found[1], int(found[2]), found[3] or "")


def link_of(text: str) -> Link:
    """Tell which sentence between two tracebacks a line is, if any."""
    if CAUSE in text:
        return "cause"
    return "context" if CONTEXT in text else ""


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _may_be_class(name: str) -> bool:
    """Whether a name is one of a class; words of a message that begins a line are not (`step`, `return`)."""
    return _short(name)[:1].isupper() or "." in name
