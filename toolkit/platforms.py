"""What an interpreter tag and a platform tag accept: the wheels of a target, and the platforms of a machine."""

from __future__ import annotations

import re
from collections.abc import Iterable

MACHINES = ("x86_64", "aarch64")
OLDEST_GLIBC = {"x86_64": 5, "aarch64": 17}
"""The minor version of the oldest glibc 2 that wheels are tagged for (PEP 513 and PEP 599)."""

LEGACY_NAMES = {5: "manylinux1", 12: "manylinux2010", 17: "manylinux2014"}
"""Older spellings of the same platforms (PEP 600)."""


def split_platform(platform: str) -> tuple[int, str]:
    """Return a manylinux tag's glibc minor version and machine: `manylinux_2_28_x86_64` gives (28, "x86_64")."""
    match = re.fullmatch(r"manylinux_2_(\d+)_(\w+)", platform)
    if match is None or match[2] not in MACHINES:
        raise ValueError(f"{platform!r} is not a manylinux platform tag for {' or '.join(MACHINES)}")
    return int(match[1]), match[2]


def accepted_platforms(platform: str) -> list[str]:
    """List the platform tags of wheels that run on `platform`, newest first: each older glibc with its legacy name."""
    minor, machine = split_platform(platform)
    found = []
    for older in range(minor, OLDEST_GLIBC[machine] - 1, -1):
        found.append(f"manylinux_2_{older}_{machine}")
        if older in LEGACY_NAMES:
            found.append(f"{LEGACY_NAMES[older]}_{machine}")
    return found


def python_version(python_tag: str) -> tuple[int, int]:
    """Return the version that a tag names: `cp312` gives (3, 12)."""
    match = re.fullmatch(r"cp3(\d+)", python_tag)
    if match is None:
        raise ValueError(f"{python_tag!r} is not a CPython 3 tag")
    return 3, int(match[1])


def accepts_wheel(file: str, *, python_tag: str, platform: str) -> bool:
    """Whether a wheel of that file name installs on that target; ValueError for what is not a wheel's name."""
    from packaging.utils import parse_wheel_filename

    return accepts_any(map(str, parse_wheel_filename(file)[3]), python_tag=python_tag, platform=platform)


def accepts_any(tags: Iterable[str], *, python_tag: str, platform: str) -> bool:
    """Whether one of the tags, such as `cp311-cp311-manylinux_2_28_x86_64` or `py3-none-any`, fits that target."""
    from packaging.tags import compatible_tags, cpython_tags, parse_tag

    version = python_version(python_tag)
    platforms = accepted_platforms(platform)
    accepted = {
        *cpython_tags(version, abis=[python_tag], platforms=platforms),
        *compatible_tags(version, interpreter=python_tag, platforms=platforms),
    }
    return any(not accepted.isdisjoint(parse_tag(tag)) for tag in tags)
