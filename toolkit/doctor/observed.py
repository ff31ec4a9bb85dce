"""One line of the doctor's answer, by its grade."""

from __future__ import annotations

from toolkit.model import Observation


def good(name: str, seen: str) -> Observation:
    """Say that something is as it should be."""
    return Observation(name=name, grade="ok", seen=seen)


def doubtful(name: str, seen: str, do: str) -> Observation:
    """Say that something may go wrong, or keeps something from working that may not be wanted."""
    return Observation(name=name, grade="warn", seen=seen, do=do)


def bad(name: str, seen: str, do: str) -> Observation:
    """Say that something is wrong: training fails, or runs with other code than it seems."""
    return Observation(name=name, grade="fail", seen=seen, do=do)
