"""The kinds of base, one module each: a new kind is a new file here and a new entry in a lock, nothing else.

A module's name is its kind. It defines what `Source` lists; `base` and `locked` are always values of its own types.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

from toolkit.model import (
    BuildSpec,
    BuildTree,
    Contract,
    FetchedBase,
    Form,
    Interpreter,
    LockedBase,
    PatchedTree,
    Progress,
    SourceTree,
    Submodule,
    Target,
)
from toolkit.store import Store

ABSENT = "absent"
"""The digest of an optional artifact that the machine does not have."""


class Source(Protocol):
    """What each module in this package defines."""

    @property
    def KIND(self) -> str:  # noqa: N802 - a constant of a module
        """The module's name, as recipes and locks write it."""

    @property
    def FORM(self) -> Form:  # noqa: N802 - a constant of a module
        """What a fetched base is; one of form `tree` defines what `TreeSource` lists as well."""

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

    def artifact_digest(self, locked: Any, target: Target, *, interpreter: Interpreter, env: Mapping[str, str]) -> str:
        """Return the sha256 or commit id of the target's artifact without fetching it; LockError if there is none.

        For an artifact that is the machine's own it is a digest over what is there now, or `ABSENT`: then there is
        nothing to fetch. Only such a source looks at the interpreter and the environment.
        """

    def fetch(
        self, locked: Any, *, component: str, target: Target, store: Store, offline: bool, interpreter: Interpreter,
        env: Mapping[str, str], progress: Progress | None,
    ) -> FetchedBase:  # fmt: skip
        """Bring the target's artifact into the store, its hash checked; on failure nothing is kept there."""

    def lay_out(self, base: FetchedBase, paths: Collection[str], into: Path) -> SourceTree:
        """Write those of `paths` that the base has below `into`, which is made if need be."""


class MachineSource(Source, Protocol):
    """What a module whose artifacts are the machine's own, which no lock can pin, defines besides."""

    def watched_paths(
        self, locked: Any, *, interpreter: Interpreter, env: Mapping[str, str]
    ) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Return the files whose content, and the folders whose names, decide the artifact's digest."""


class TreeSource(Source, Protocol):
    """What a module whose bases are source trees defines besides."""

    def build_spec(self, base: Any, locked: Any, target: Target) -> BuildSpec:
        """Return how the tree is built for a target; LockError where the lock has no requirements for it."""

    def fetch_submodules(
        self, base: FetchedBase, patched: PatchedTree, *, store: Store, offline: bool, env: Mapping[str, str],
        progress: Progress | None,
    ) -> tuple[Submodule, ...]:  # fmt: skip
        """Bring the submodules of a patched tree into the store, nested ones too, parents first."""

    def lay_out_submodules(
        self, base: FetchedBase, submodules: Sequence[Submodule], paths: Collection[str], into: Path
    ) -> SourceTree:
        """Write those of `paths` that lie in a submodule below `into`; `members` are all the submodules' files."""

    def check_out(
        self, base: FetchedBase, submodules: Sequence[Submodule], patched: Sequence[PatchedTree], into: Path,
        *, is_native: Callable[[str], bool],
    ) -> BuildTree:  # fmt: skip
        """Write the whole tree with its submodules below `into`, which is made, the patched files over it.

        The native digest is over the base's own digest and every file for which `is_native` holds (it gets paths from
        the base's subfolder) or that lies outside of the subfolder.
        """

    def digest_tree(
        self, base: FetchedBase, patched: Sequence[PatchedTree], *, is_native: Callable[[str], bool]
    ) -> tuple[str, str]:
        """Return a patched tree's digest and its native digest, as `check_out` gives them, without writing it."""


def is_absent(digest: str) -> bool:
    """Whether an artifact's digest says that the machine does not have it, and need not."""
    return digest == ABSENT


def is_machines(source: Source) -> bool:
    """Whether a kind's artifacts are the machine's own, so that another machine has to have them itself."""
    return hasattr(source, "watched_paths")


def watched_paths(
    source: Source, locked: LockedBase, *, interpreter: Interpreter, env: Mapping[str, str]
) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the files and folders of the machine that decide an artifact's digest; none where the lock pins it."""
    if not is_machines(source):
        return (), ()
    return cast(MachineSource, source).watched_paths(locked, interpreter=interpreter, env=env)


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
