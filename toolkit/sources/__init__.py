"""The kinds of base, one module each: a new kind is a new file here and a new entry in a lock, nothing else.

A module's name is its kind. It defines what `Source` lists; `base` and `locked` are always values of its own types.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

from toolkit.model import Contract, FetchedBase, LockedBase, Progress, SourceTree, Target
from toolkit.store import Store


class Source(Protocol):
    """What each module in this package defines."""

    @property
    def KIND(self) -> str:  # noqa: N802 - a constant of a module
        """The module's name, as recipes and locks write it."""

    @property
    def Base(self) -> type[Any]:  # noqa: N802 - a class of a module
        """The struct that a recipe's `[component.base]` is decoded to; satisfies `model.Base`."""

    @property
    def Locked(self) -> type[Any]:  # noqa: N802 - a class of a module
        """The struct that a lock's entry is decoded to; satisfies `model.LockedBase`."""

    def resolve(
        self, base: Any, contract: Contract, *, component: str, env: Mapping[str, str], progress: Progress | None
    ) -> LockedBase:
        """Find the exact artifacts for every target of the contract; LockError lists all that cannot be found."""

    def artifact_digest(self, locked: Any, target: Target) -> str:
        """Return the sha256 or commit id of the target's artifact without fetching it; LockError if there is none."""

    def fetch(
        self, locked: Any, *, component: str, target: Target, store: Store, offline: bool, env: Mapping[str, str],
        progress: Progress | None,
    ) -> FetchedBase:  # fmt: skip
        """Bring the target's artifact into the store, its hash checked; on failure nothing is kept there."""

    def lay_out(self, base: FetchedBase, paths: Collection[str], into: Path) -> SourceTree:
        """Write those of `paths` that the base has below `into`, which is made if need be."""


def available_sources() -> Mapping[str, Source]:
    """Return the kinds of base by name; a kind's module is imported when it is asked for."""
    return _Sources(tuple(sorted(module.name for module in pkgutil.iter_modules(__path__))))


class _Sources(Mapping[str, Source]):
    def __init__(self, kinds: tuple[str, ...]) -> None:
        self._kinds = kinds

    def __getitem__(self, kind: str) -> Source:
        if kind not in self._kinds:
            raise KeyError(kind)
        return _import_source(kind)

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


@cache
def _import_source(kind: str) -> Source:
    return cast(Source, importlib.import_module(f"{__name__}.{kind}"))
