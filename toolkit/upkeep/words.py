"""How a base is asked for, on the command line and in a series.toml."""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolkit.errors import UsageError
from toolkit.mirrors import without_credentials

COMMIT = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})\Z")
RELEASE = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)==([A-Za-z0-9.+!]+)\Z")
PACKAGE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)==([A-Za-z0-9.+!]*)\Z")
EXPECTED = (
    "expected NAME==VERSION for a release, or git:URL@REF for a commit, "
    "where URL is an address or a folder with a clone"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """A release wheel."""

    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution}=={self.version}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Commit:
    """A commit by its id, in the upstream of a line."""

    id: str

    def __str__(self) -> str:
        return f"git:{self.id}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ref:
    """What a branch, a tag or a commit id names in the repository at an address or in a folder."""

    url: str
    ref: str

    def __str__(self) -> str:
        return f"git:{without_credentials(self.url)}@{self.ref}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Installed:
    """A package that this machine has already."""

    package: str
    version: str

    def __str__(self) -> str:
        return f"installed:{self.package}=={self.version}"


Word = Release | Commit | Ref | Installed
"""A base that is asked for; as text it is the word again, without credentials."""


def parse_against(word: str) -> Word:
    """Read a word for a base: `NAME==VERSION`, `git:URL@REF`, or as `covers` of a series.toml has it.

    Raises UsageError for anything else; whether there is such a base is not looked at.
    """
    kind, colon, rest = word.partition(":")
    if colon and kind == "git":
        return Commit(id=rest) if COMMIT.match(rest) else _parse_ref(word, rest)
    if colon and kind == "installed" and (found := PACKAGE.match(rest)):
        return Installed(package=found[1], version=found[2])
    if found := RELEASE.match(word):
        _require_version(word, found[2])
        return Release(distribution=found[1], version=found[2])
    raise UsageError(f"{without_credentials(word)!r} names no base", hint=EXPECTED)


def _parse_ref(word: str, rest: str) -> Ref:
    """Cut at the last `@`: one before it may stand between a user and a host."""
    url, _, ref = rest.rpartition("@")
    if not url or not ref or ":" in ref or ref.startswith("-"):
        raise UsageError(
            f"{without_credentials(word)!r} names no base: it has no @REF behind the address",
            hint=f"{EXPECTED}, and REF is a branch, a tag or a commit id",
        )
    return Ref(url=url, ref=ref)


def _require_version(word: str, version: str) -> None:
    from packaging.version import InvalidVersion, Version

    try:
        Version(version)
    except InvalidVersion as fault:
        raise UsageError(f"{word!r} names no base: {version!r} is no version", hint=EXPECTED) from fault
