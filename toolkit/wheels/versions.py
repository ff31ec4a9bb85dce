"""Versions of patched wheels: `<base version>+<base local>.p<count>.k<key8>`, in PEP 440's normal form."""

from __future__ import annotations

import re

from packaging.version import InvalidVersion, Version

from toolkit.errors import RepackError

OURS = re.compile(r"^(?P<public>[^+]+)\+(?:(?P<local>.+)\.)?p[0-9]+\.k[0-9a-f]{8}$")


def patched_version(base_version: str, count: int, key8: str) -> str:
    """Return the version of a base with `count` patches in it; RepackError where the base's is none.

    Both segments of ours begin with a letter: one that is all digits would lose its leading zeros and compare as a
    number.
    """
    try:
        base = Version(base_version)
    except InvalidVersion as fault:
        raise RepackError(f"the base's version {base_version!r} is not in PEP 440's form") from fault
    if re.fullmatch("[0-9a-f]{8}", key8) is None or count < 0:
        raise ValueError(f"expected a count and eight hex digits, got {count!r} and {key8!r}")
    local = f"{base.local}." if base.local else ""
    return f"{base.public}+{local}p{count}.k{key8}"


def base_version_of(version: str) -> str:
    """Return the version of the base that a patched version was made from; any other version is its own base's."""
    match = OURS.match(version)
    if match is None:
        return version
    return f"{match['public']}+{match['local']}" if match["local"] else match["public"]
