"""What a look at generated code finds: values that are made in a worker process and joined in the main one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

State = Literal["wrapper", "kernels", "unreadable", "other"]
"""A whole compiled graph; a file of kernels alone, as caches have them; what could not be read; no generated code."""

Verdict = Literal["yes", "no", "unknown"]
"""Whether something is so, as far as the program of a kernel tells."""

Certainty = Literal["certain", "possible"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Hazard:
    """A value that crosses the stages of a kernel may be stored in memory that an input still needs.

    `output` and `input` are what the call passes at `line`; both are the same memory, the buffer `buffer`. The value
    is made in stage `made` and used up to stage `used`; the input is read in stage `read`, where that is the same one
    after the output was cleared for the value. Stages are counted as the backend does. `possible` means that it depends
    on what the program does not tell, as the tiling; `certain` that it does not.
    """

    kernel: str
    line: int
    value: str
    made: int
    used: int
    output: str
    input: str
    buffer: str
    read: int
    certainty: Certainty


@dataclass(frozen=True, kw_only=True, slots=True)
class FileReport:
    """What one file holds; counts are by name. `why` says what is wrong where the file could not be read.

    `kernels` counts definitions by backend, `types` DVM kernels by their type, `custom` the calls of operators that
    neither torch nor Inductor brings, `extern` those of operators and libraries that are called in a kernel's stead,
    `fallbacks` the kernels that run operator by operator. `doubts` are what the alias hazard cannot be told for.
    """

    path: str
    state: State
    why: str = ""
    kernels: Mapping[str, int] = field(default_factory=dict)
    types: Mapping[str, int] = field(default_factory=dict)
    decorators: Mapping[str, int] = field(default_factory=dict)
    custom: Mapping[str, int] = field(default_factory=dict)
    extern: Mapping[str, int] = field(default_factory=dict)
    fallbacks: Mapping[str, int] = field(default_factory=dict)
    hazards: tuple[Hazard, ...] = ()
    doubts: tuple[str, ...] = ()


class UnreadableError(Exception):
    """A file cannot be read as generated code; the message says why."""


class NoTextError(UnreadableError):
    """A file was read, and what it holds is no text."""
