"""Bases that are git commits: locked by commit id, fetched by that id, patched and built as source trees."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from toolkit.errors import SourceError
from toolkit.git import commit_time, read_tree
from toolkit.mirrors import require_sound_addresses
from toolkit.model import BuildSpec, Contract, FetchedBase, Form, Interpreter, Progress, SourceTree, Target
from toolkit.requirements import (
    BuildTable,
    LockedRequirement,
    covers_target,
    make_build_spec,
    require_subfolder,
    require_unique,
    resolve_requirements,
)
from toolkit.sources.git.caches import PATIENCE, Patience, obtain_commit
from toolkit.sources.git.submodules import fetch_submodules, lay_out_submodules
from toolkit.sources.git.trees import check_out, digest_tree, write_members
from toolkit.store import Store

__all__ = [
    "FORM", "KIND", "Base", "Locked", "artifact_digest", "build_spec", "check_out", "digest_tree", "fetch",
    "fetch_submodules", "lay_out", "lay_out_submodules", "resolve",
]  # fmt: skip

KIND = "git"
FORM: Form = "tree"

Commit = Annotated[
    str,
    Meta(
        pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})\Z",
        title="a full commit id",
        examples=["f38033913dbefc3a74dbdc4d4838794790d834f8"],
    ),
]
Address = Annotated[
    str,
    Meta(
        pattern=r"^(https://|ssh://|file:///|[A-Za-z0-9_][A-Za-z0-9._-]*@[A-Za-z0-9.-]+:)[^\s]+\Z",
        title="an https, ssh or file address",
        examples=["https://gitcode.com/Ascend/pytorch.git"],
    ),
]


class Base(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[component.base]` with `kind = "git"`."""

    kind: Annotated[Literal["git"], Meta(description="a commit of a git repository", examples=["git"])]
    urls: Annotated[
        tuple[Address, ...],
        Meta(
            min_length=1,
            description="where its repository is, in the order in which they are tried; mirrors of the user go before",
            examples=[["https://gitcode.com/Ascend/pytorch.git", "https://github.com/Ascend/pytorch.git"]],
        ),
    ]
    commit: Annotated[Commit, Meta(description="the one commit to start from")]
    branch: Annotated[
        str | None, Meta(description="the branch that it was taken from, for people", examples=["v2.12.0"])
    ] = None
    subfolder: Annotated[
        str,
        Meta(description="the folder of the project in the repository, if not its top", examples=["torch_extension"]),
    ] = ""
    submodules: Annotated[bool, Meta(description="whether the build needs the repository's submodules")] = True
    build: Annotated[BuildTable, Meta(description="how it is built")]

    def __post_init__(self) -> None:
        _require_sound(self.urls, self.subfolder)

    @property
    def identity(self) -> str:
        """The commit, with all that decides what is fetched and what it is built with."""
        return _identity(self.urls, self.commit, self.subfolder, self.submodules, self.build.requires)

    @property
    def coverage(self) -> str:
        """The commit."""
        return f"git:{self.commit}"


class Locked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A commit with the wheels of every target's build environment; `requires` is what those were found for."""

    kind: Literal["git"] = "git"
    urls: Annotated[tuple[Address, ...], Meta(min_length=1)]
    commit: Commit
    subfolder: str = ""
    submodules: bool = True
    requires: tuple[str, ...] = ()
    requirement: tuple[LockedRequirement, ...] = ()

    def __post_init__(self) -> None:
        _require_sound(self.urls, self.subfolder)
        require_unique(self.requirement)

    @property
    def identity(self) -> str:
        """The identity of the base that it was resolved from."""
        return _identity(self.urls, self.commit, self.subfolder, self.submodules, self.requires)

    def covers(self, target: Target) -> bool:
        """Whether there are requirements for that target, or none are needed."""
        return covers_target(self.requires, self.requirement, target)


def resolve(
    base: Base, contract: Contract, *, component: str, env: Mapping[str, str], progress: Progress | None = None
) -> Locked:
    """Find the wheels of the build environments; the commit is the recipe's own, and no repository is asked."""
    return Locked(
        urls=base.urls,
        commit=base.commit,
        subfolder=base.subfolder,
        submodules=base.submodules,
        requires=base.build.requires,
        requirement=resolve_requirements(
            base.build.requires, contract, component=component, env=env, progress=progress
        ),
    )  # fmt: skip


def artifact_digest(
    locked: Locked, target: Target, *, interpreter: Interpreter | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Return the commit id, which is every target's."""
    return locked.commit


def build_spec(base: Base, locked: Locked, target: Target) -> BuildSpec:
    """Return how the commit is built for a target; LockError where the lock has no requirements for it."""
    return make_build_spec(
        base.build, locked.requirement, target, subfolder=locked.subfolder, submodules=locked.submodules
    )


def fetch(
    locked: Locked, *, component: str, target: Target, store: Store, offline: bool, env: Mapping[str, str],
    interpreter: Interpreter | None = None, progress: Progress | None = None, patience: Patience = PATIENCE,
) -> FetchedBase:  # fmt: skip
    """Bring the commit with its whole tree into a bare repository in the store.

    Raises FetchError with one detail for each address where it cannot be had, SourceError where its tree may not be
    written to a disk or has no such subfolder.
    """
    repository = obtain_commit(
        locked.commit, locked.urls, upstream=locked.urls[0], name=component, what=component, store=store,
        offline=offline, env=env, progress=progress, patience=patience,
    )  # fmt: skip
    base = FetchedBase(
        component=component,
        kind=KIND,
        digest=locked.commit,
        path=repository,
        file=f"{component}@{locked.commit[:12]}",
        distribution="",
        version=locked.commit[:12],
        target=target,
        subfolder=locked.subfolder,
        epoch=commit_time(repository, locked.commit),
        addresses=locked.urls,
        submodules=locked.submodules,
    )
    _require_members(base)
    return base


def lay_out(base: FetchedBase, paths: Collection[str], into: Path) -> SourceTree:
    """Write those of `paths` that the commit has below `into`; raise SourceError for a tree that may not be written."""
    entries = read_tree(base.path, base.digest, what=base.file).entries
    members, gitlinks = write_members(base.path, entries, prefix="", subfolder=base.subfolder, paths=paths, into=into)
    return SourceTree(base=base, root=into, members=members, gitlinks=gitlinks)


def _require_sound(urls: tuple[str, ...], subfolder: str) -> None:
    """Raise ValueError for what is written into no recipe and no lock."""
    require_sound_addresses(urls)
    require_subfolder(subfolder)


def _identity(
    urls: tuple[str, ...], commit: str, subfolder: str, submodules: bool, requires: tuple[str, ...]
) -> str:  # fmt: skip
    return " ".join((
        f"commit {commit} of {', '.join(urls)}",
        *([f"in {subfolder}"] if subfolder else []),
        *([] if submodules else ["without submodules"]),
        *([f"built with {', '.join(requires)}"] if requires else []),
    ))  # fmt: skip


def _require_members(base: FetchedBase) -> None:
    entries = read_tree(base.path, base.digest, what=base.file).entries
    if base.subfolder and not any(PurePosixPath(base.subfolder) in PurePosixPath(path).parents for path in entries):
        raise SourceError(
            f"{base.file} has no folder {base.subfolder!r}",
            hint="change `subfolder` or `commit` in the recipe's [component.base]",
        )
