"""What a diagnosis is made of: the layers, the lines that stand for a finding, and the findings themselves."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

import msgspec

Layer = Literal[
    "environment",
    "build",
    "dynamo",
    "meta",
    "lowering",
    "codegen",
    "fusion",
    "memory",
    "distributed",
    "runtime",
    "unknown",
    "none",
]
LAYERS: tuple[Layer, ...] = get_args(Layer)

Kind = Literal["cause", "victim", "warning", "note", "wrapper"]
"""What a rule makes of what it matches.

A `cause` explains a failure; a `victim` failed because something else did (a time-out, a peer that went away); a
`warning` is wrong although the run goes on; a `note` is no failure; a `wrapper` only says that there was one.
"""

Confidence = Literal["high", "medium", "low"]
CONFIDENCES: tuple[Confidence, ...] = get_args(Confidence)
"""From sure to unsure."""

NOTHING: Mapping[str, str] = MappingProxyType({})


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a log: where it stands (`line` from 1), what it says without its prefixes, whose it is."""

    file: str
    line: int
    text: str
    rank: int | None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One failure, or one thing that is wrong, told from logs.

    `ranks` are those that show it; `count` says how often it was seen in all. `fix` is what to do in words, `command`
    the same as one command where there is one. `patch` names a patch of ours (`torch_npu/2.13/0002-…`, without its
    line where it has several) and `recipe` a recipe with it. `experiment` is the narrowest next step where nothing
    fixes it yet. `goes_on` is true where training steps follow in the log. `source` says where the rule is from.
    """

    layer: Layer
    cause: str
    kind: Kind
    summary: str
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    ranks: tuple[int, ...] = ()
    count: int = 1
    fix: str = ""
    command: str = ""
    patch: str = ""
    recipe: str = ""
    experiment: str = ""
    source: str = ""
    goes_on: bool = False


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """All that was found, best first, and never empty: `none` or `unknown` is a finding too.

    `notes` are of what is no failure, `remarks` of what could not be read (file, what), `facts` are what the logs and
    the given files say of the launch.
    """

    findings: tuple[Finding, ...]
    notes: tuple[Evidence, ...]
    remarks: tuple[tuple[str, str], ...]
    facts: Mapping[str, str]
    sources: tuple[str, ...]
    lines: int
    bytes: int
