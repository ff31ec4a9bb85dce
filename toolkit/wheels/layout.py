"""A wheel's files laid out to be patched: the same for every kind of base that is one when it has been fetched."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from toolkit.model import FetchedBase, SourceTree
from toolkit.wheels.archive import open_wheel


def lay_out_wheel(base: FetchedBase, paths: Collection[str], into: Path) -> SourceTree:
    """Write those of `paths` that the wheel has below `into`; raise SourceError for an unsafe or damaged wheel."""
    into.mkdir(parents=True, exist_ok=True)
    with open_wheel(base.path) as wheel:
        members = frozenset(wheel.members)
        wheel.extract(sorted(members.intersection(paths)), into)
    return SourceTree(base=base, root=into, members=members)
