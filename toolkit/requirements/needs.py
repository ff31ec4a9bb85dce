"""What distributions need in turn, by the target's own markers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement
from packaging.requirements import Requirement as ParsedRequirement
from packaging.utils import canonicalize_name

from toolkit.model import Target
from toolkit.platforms import python_version, split_platform


@dataclass(frozen=True, kw_only=True, slots=True)
class Distribution:
    """One distribution that is to be had: its version, and its own requirements as its metadata writes them."""

    version: str
    needs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Lack:
    """A requirement that is not met; `by` is who has it (empty: the recipe), `found` the version that does not fit."""

    by: str
    requirement: str
    found: str = ""

    def __str__(self) -> str:
        there = f", and there is {self.found}" if self.found else ""
        return f"{self.by or 'the recipe'} needs {self.requirement}{there}"


def trace_needs(
    roots: Iterable[ParsedRequirement], known: Mapping[str, Distribution], markers: Mapping[str, str]
) -> tuple[frozenset[str], list[Lack]]:
    """Follow requirements through what is known, by canonical name; return the names needed and what is not met.

    The roots' own markers are not looked at. An extra's requirements count where a requirement names it in brackets.
    """
    pending = [("", root) for root in roots]
    seen: set[tuple[str, str]] = set()
    lacks: dict[Lack, None] = {}
    while pending:
        by, wanted = pending.pop()
        name = canonicalize_name(wanted.name)
        found = known.get(name)
        if found is None or not wanted.specifier.contains(found.version, prereleases=True):
            lacks[Lack(by=by, requirement=without_marker(wanted), found=found.version if found else "")] = None
            continue
        for extra in {"", *wanted.extras}:
            if (name, extra) not in seen:
                seen.add((name, extra))
                pending += [(f"{name} {found.version}", need) for need in _holding(found.needs, markers, extra)]
    return frozenset(name for name, _ in seen), sorted(lacks, key=str)


def marker_environment(target: Target, python_full_version: str = "") -> dict[str, str]:
    """Return what environment markers are evaluated in on a target; without a full version, in the tag's first one.

    The first release of a Python is also what pip compares a wheel's Requires-Python with.
    """
    short = "{}.{}".format(*python_version(target.python_tag))
    full = python_full_version or f"{short}.0"
    return {
        "python_version": short,
        "python_full_version": full,
        "implementation_name": "cpython",
        "implementation_version": full,
        "platform_python_implementation": "CPython",
        "platform_machine": split_platform(target.platform)[1],
        "platform_system": "Linux",
        "platform_release": "",
        "platform_version": "",
        "sys_platform": "linux",
        "os_name": "posix",
        "extra": "",
    }


def text_fault(text: str) -> str:
    """Say why a text cannot stand in `requires`; empty where it can."""
    try:
        parsed = ParsedRequirement(text)
    except InvalidRequirement as fault:
        return f"{text!r} is not a requirement: {str(fault).splitlines()[0]}"
    return f"{text!r} names an address, expected a release at the registry" if parsed.url else ""


def repeated(parsed: Iterable[ParsedRequirement], *, by_marker: bool = False) -> list[str]:
    """Name the distributions that are asked for twice; `by_marker`: under one and the same marker."""
    first: dict[tuple[str, str], ParsedRequirement] = {}
    faults = []
    for wanted in parsed:
        key = (canonicalize_name(wanted.name), str(wanted.marker) if by_marker else "")
        if key in first:
            faults.append(f"{key[0]!r} is asked for twice: {str(first[key])!r} and {str(wanted)!r}")
        first.setdefault(key, wanted)
    return faults


def _holding(needs: Iterable[str], markers: Mapping[str, str], extra: str) -> Iterator[ParsedRequirement]:
    environment = {**markers, "extra": extra}
    return (wanted for wanted in map(ParsedRequirement, needs) if holds(wanted, environment))


def holds(wanted: ParsedRequirement, markers: Mapping[str, str]) -> bool:
    return wanted.marker is None or wanted.marker.evaluate(dict(markers))


def without_marker(wanted: ParsedRequirement) -> str:
    extras = f"[{','.join(sorted(wanted.extras))}]" if wanted.extras else ""
    return f"{wanted.name}{extras}{wanted.specifier}"
