"""Which bases the matrix looks at: those that are asked for, or what a person would ask for today."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from toolkit import registry
from toolkit.errors import UsageError
from toolkit.mirrors import addresses
from toolkit.schema import did_you_mean
from toolkit.series import Line
from toolkit.upkeep.words import Ref, Release, Word, parse_against
from toolkit.work import Means

Lines = Mapping[str, Sequence[Line]]
"""The lines of each component."""


def asked_columns(words: Iterable[str], lines: Lines, means: Means) -> dict[str, list[Word]]:
    """Return the bases that were asked for by component.

    A release belongs to the component of that name; a commit to the one whose upstream, or a mirror of it, is at that
    address, or to the only one that there is. Raises UsageError for a base that belongs to none.
    """
    found: dict[str, list[Word]] = {}
    for text in dict.fromkeys(words):
        word = parse_against(text)
        found.setdefault(_component_of(word, lines, means), []).append(word)
    return {component: found[component] for component in lines if component in found}


def usual_columns(lines: Sequence[Line], means: Means) -> list[Word]:
    """Return the newest release of every upstream line from the oldest that is carried patches for, oldest first.

    Offline nobody is asked which those are, and the newest that are covered stand in. A line that covers none of them
    adds its own bases.
    """
    covered = [word for line in lines for name in line.covers if isinstance(word := parse_against(name), Release)]
    releases = _newest_of_each(covered if means.offline or not covered else _later_releases(covered, means))
    columns: list[Word] = [*releases]
    for line in lines:
        own = [parse_against(name) for name in line.covers]
        columns += [] if any(word in releases for word in own) else own
    return list(dict.fromkeys(columns))


def distributions_of(component: str, lines: Iterable[Line]) -> set[str]:
    """Return the distributions that releases of a component are known by, in their canonical names."""
    words = (parse_against(name) for line in lines for name in line.covers)
    return {canonicalize_name(component)} | {
        canonicalize_name(word.distribution) for word in words if isinstance(word, Release)
    }


def _later_releases(covered: Sequence[Release], means: Means) -> list[Release]:
    """Ask the registry for the releases of what is covered, from the oldest upstream line that is."""
    found = []
    for distribution in dict.fromkeys(word.distribution for word in covered):
        oldest = min(_minor(word) for word in covered if word.distribution == distribution)
        versions = registry.list_releases(distribution, env=means.environ)
        known = [Release(distribution=distribution, version=version) for version in versions]
        found += [word for word in known if _minor(word) >= oldest]
    return found


def _newest_of_each(releases: Iterable[Release]) -> list[Release]:
    newest = {}
    for word in sorted(releases, key=lambda word: (word.distribution, Version(word.version))):
        newest[word.distribution, _minor(word)] = word
    return list(newest.values())


def _minor(word: Release) -> tuple[int, int]:
    version = Version(word.version)
    return version.major, version.minor


def _component_of(word: Word, lines: Lines, means: Means) -> str:
    if isinstance(word, Release):
        by_name = {name: one for one in lines for name in distributions_of(one, lines[one])}
        if (found := by_name.get(canonicalize_name(word.distribution))) is not None:
            return found
        raise UsageError(
            f"{str(word)!r} is no release of what the patches are for{did_you_mean(word.distribution, by_name)}",
            hint=f"the chosen series are for {', '.join(lines)}",
        )
    candidates = [component for component, own in lines.items() if _is_known_to(word, component, own, means)]
    if len(candidates) != 1 and len(lines) == 1:
        candidates = list(lines)
    if len(candidates) == 1:
        return candidates[0]
    raise UsageError(
        f"{str(word)!r} may be a base of {' or '.join(candidates or lines)}", hint="say of which: name a --series"
    )


def _is_known_to(word: Word, component: str, lines: Sequence[Line], means: Means) -> bool:
    """Whether a line covers the base by this very word, or its repository is that of the component's upstream."""
    if any(str(word) in line.covers for line in lines):
        return True
    known = {_plain(place) for line in lines for place in addresses(component, line.upstream, means.environ)}
    return isinstance(word, Ref) and _plain(word.url) in known


def _plain(address: str) -> str:
    """Return an address without what does not tell two places apart."""
    place = address.removeprefix("file://").rstrip("/").removesuffix(".git")
    return str(Path(place).absolute()) if "://" not in place and Path(place).is_dir() else place
