"""Bases that are release wheels: locked by file name and sha256 for each target, fetched through pip."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version as ParsedVersion

from toolkit.errors import FetchError, HashMismatchError, LockError, SourceError, StoreError
from toolkit.files import copy_hashed, remove_tree, sha256_file
from toolkit.model import Contract, FetchedBase, Progress, SourceTree, Target
from toolkit.platforms import accepts_any, accepts_wheel
from toolkit.registry import NoWheel, PublishedWheel, download_wheel, find_wheel, require_pip
from toolkit.schema import Platform, PythonTag, Sha256, Version
from toolkit.store import Store
from toolkit.wheels.archive import open_wheel

log = logging.getLogger(__name__)

KIND = "wheel"
STORE_KIND = "base"
PIPS_AT_ONCE = 4
MISNAMED = "the registry's file is misnamed: do not use it"

Distribution = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\Z", title="a distribution's name", examples=["torch_npu"]),
]


class Base(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[component.base]` with `kind = "wheel"`."""

    kind: Annotated[Literal["wheel"], Meta(description="a release wheel from the package registry", examples=["wheel"])]
    distribution: Annotated[Distribution, Meta(description="its name at the registry")]
    version: Annotated[Version, Meta(description="the one release to start from")]

    @property
    def identity(self) -> str:
        """The release."""
        return f"{self.distribution}=={self.version}"


class Artifact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One target's wheel; two targets may share one."""

    file: str
    sha256: Sha256
    python_tag: PythonTag
    platform: Platform

    def __post_init__(self) -> None:
        if "/" in self.file or "\\" in self.file:
            raise ValueError(f"{self.file!r} is not a plain file name")
        if not accepts_wheel(self.file, python_tag=self.python_tag, platform=self.platform):
            raise ValueError(f"{self.file!r} is not a wheel for {self.python_tag}-{self.platform}")


class Locked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A release resolved to one wheel for each target."""

    kind: Literal["wheel"] = "wheel"
    distribution: Distribution
    version: Version
    artifact: tuple[Artifact, ...]

    def __post_init__(self) -> None:
        seen: set[Target] = set()
        for artifact in self.artifact:
            name, version, *_ = parse_wheel_filename(artifact.file)
            if name != canonicalize_name(self.distribution) or version != ParsedVersion(self.version):
                raise ValueError(f"{artifact.file!r} is not a wheel of {self.identity}")
            if (target := _target_of(artifact)) in seen:
                raise ValueError(f"there are two wheels for {target}")
            seen.add(target)

    @property
    def identity(self) -> str:
        """The release that it was resolved from."""
        return f"{self.distribution}=={self.version}"

    def covers(self, target: Target) -> bool:
        """Whether there is a wheel for that target."""
        return any(_target_of(artifact) == target for artifact in self.artifact)


def resolve(
    base: Base, contract: Contract, *, component: str, env: Mapping[str, str], progress: Progress | None = None
) -> Locked:
    """Ask the registry for the release's wheel for every target of the contract, a few at a time.

    Downloads nothing. `progress` counts targets. Raises LockError with one detail for each target that has none.
    """
    require_pip(env)
    found: dict[Target, PublishedWheel] = {}
    missing: list[NoWheel] = []

    def look(target: Target) -> PublishedWheel | NoWheel:
        return find_wheel(base.distribution, base.version, target, env=env)

    with ThreadPoolExecutor(PIPS_AT_ONCE) as pool:
        for target, answer in zip(contract.targets, pool.map(look, contract.targets), strict=True):
            if isinstance(answer, NoWheel):
                missing.append(answer)
            else:
                found[target] = answer
            if progress is not None:
                progress(len(found) + len(missing), len(contract.targets))
    if missing:
        raise LockError(
            f"{component}: {base.identity} has no wheel for {len(missing)} of {len(contract.targets)} targets",
            hint=f"it has one for {_list_targets(found)}; change [target] or the version in the recipe",
            details=[f"{answer.target}: {answer.why}" for answer in missing],
        )
    artifacts = (_lock_artifact(target, wheel) for target, wheel in found.items())
    return Locked(
        distribution=base.distribution,
        version=base.version,
        artifact=tuple(sorted(artifacts, key=lambda artifact: (artifact.python_tag, artifact.platform))),
    )


def artifact_digest(locked: Locked, target: Target) -> str:
    """Return the sha256 of the target's wheel; LockError names the targets that the lock has."""
    return _find_artifact(locked, target).sha256


def fetch(
    locked: Locked, *, component: str, target: Target, store: Store, offline: bool, env: Mapping[str, str],
    progress: Progress | None = None,
) -> FetchedBase:  # fmt: skip
    """Return the target's wheel in the store, downloaded if need be, its bytes hashed either way.

    A damaged entry is dropped and fetched again with a warning; offline it is a StoreError. Raises FetchError where
    the wheel cannot be had, HashMismatchError for other bytes, SourceError for a file that is not the locked wheel.
    """
    artifact = _find_artifact(locked, target)
    entry = store.find(STORE_KIND, artifact.sha256)
    if entry is not None and not _is_whole(entry, artifact):
        _drop_damaged(entry, artifact, component, store, offline)
        entry = None
    if entry is None and offline:
        raise FetchError(
            f"{component}: {artifact.file} is not in the store at {store.root}, and offline nothing is downloaded",
            hint="bring it with `toolkit cache import FILE`, or run once without --offline",
        )
    if entry is None:
        entry = store.obtain(
            STORE_KIND, artifact.sha256, lambda folder: _download(locked, artifact, folder, env, progress)
        )
    return FetchedBase(
        component=component,
        kind=KIND,
        digest=artifact.sha256,
        path=entry / artifact.file,
        file=artifact.file,
        distribution=locked.distribution,
        version=locked.version,
        target=target,
    )


def lay_out(base: FetchedBase, paths: Collection[str], into: Path) -> SourceTree:
    """Write those of `paths` that the wheel has below `into`; raise SourceError for an unsafe or damaged wheel."""
    into.mkdir(parents=True, exist_ok=True)
    with open_wheel(base.path) as wheel:
        members = frozenset(wheel.members)
        wheel.extract(sorted(members.intersection(paths)), into)
    return SourceTree(base=base, root=into, members=members)


def _find_artifact(locked: Locked, target: Target) -> Artifact:
    for artifact in locked.artifact:
        if _target_of(artifact) == target:
            return artifact
    raise LockError(
        f"the lock of {locked.identity} has no wheel for {target}",
        hint=f"it has {_list_targets(map(_target_of, locked.artifact))}; "
        "add the target to the recipe and run `toolkit lock`",
    )


def _target_of(artifact: Artifact) -> Target:
    return Target(python_tag=artifact.python_tag, platform=artifact.platform)


def _list_targets(targets: Iterable[Target]) -> str:
    return ", ".join(sorted(map(str, targets))) or "none"


def _lock_artifact(target: Target, wheel: PublishedWheel) -> Artifact:
    return Artifact(file=wheel.file, sha256=wheel.sha256, python_tag=target.python_tag, platform=target.platform)


def _is_whole(entry: Path, artifact: Artifact) -> bool:
    path = entry / artifact.file
    return path.is_file() and sha256_file(path) == artifact.sha256


def _drop_damaged(entry: Path, artifact: Artifact, component: str, store: Store, offline: bool) -> None:
    if offline:
        raise StoreError(
            f"{component}: store entry {entry} is damaged: {artifact.file} is missing or has other bytes",
            hint="remove that folder, then `toolkit cache import FILE`, or run once without --offline",
        )
    log.warning("%s: store entry %s is damaged; fetching it again", component, entry)
    store.discard(STORE_KIND, artifact.sha256, unless=lambda path: _is_whole(path, artifact))


def _download(
    locked: Locked, artifact: Artifact, folder: Path, env: Mapping[str, str], progress: Progress | None
) -> None:
    """Fill a store entry that is being made; what raises leaves no entry."""
    scratch = folder / "download"
    scratch.mkdir()
    wanted = PublishedWheel(file=artifact.file, sha256=artifact.sha256)
    arrived = download_wheel(
        locked.distribution, locked.version, wanted, _target_of(artifact),
        pip=require_pip(env), into=scratch, env=env, progress=progress,
    )  # fmt: skip
    with arrived.open("rb") as stream:
        actual, _ = copy_hashed(stream, folder / artifact.file)
    if actual != artifact.sha256:
        raise HashMismatchError(
            what=artifact.file, expected=artifact.sha256, actual=actual, origin="the registry, through pip"
        )
    remove_tree(scratch)
    _require_locked_wheel(folder / artifact.file, locked, _target_of(artifact))


def _require_locked_wheel(path: Path, locked: Locked, target: Target) -> None:
    """Raise SourceError where a wheel's own metadata says something else than its name."""
    with open_wheel(path) as wheel:
        inside = wheel.metadata
    if canonicalize_name(inside.name) != canonicalize_name(locked.distribution) or (
        ParsedVersion(inside.version) != ParsedVersion(locked.version)
    ):
        raise SourceError(f"{path.name} is {inside.name} {inside.version}, expected {locked.identity}", hint=MISNAMED)
    if not accepts_any(inside.tags, python_tag=target.python_tag, platform=target.platform):
        tags = ", ".join(inside.tags) or "nothing"
        raise SourceError(f"{path.name} is for {tags} by its WHEEL file, expected {target}", hint=MISNAMED)
