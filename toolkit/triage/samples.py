"""Samples of logs: of each rule some that it must find, and some near ones that it must not take for its own."""

from __future__ import annotations

from pathlib import Path

import msgspec

from toolkit.schema import parse_toml

FOLDER = "samples"


class Sample(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A log whose first finding has this cause, in a summary, fix or command that `says` these words."""

    cause: str
    log: str
    says: list[str] = []


class Counter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A log that looks like one of a cause and is none: its first finding is `found` instead."""

    cause: str
    found: str
    log: str


class SampleFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The samples of one file of rules, which has the same name."""

    sample: list[Sample] = []
    counter: list[Counter] = []


def shipped_samples() -> dict[str, SampleFile]:
    """Return the samples that come with the toolkit, by the name of their file."""
    folder = Path(__file__).with_name(FOLDER)
    files = sorted(folder.glob("*.toml"))
    return {one.name: msgspec.convert(parse_toml(one.read_bytes())[1], SampleFile) for one in files}
