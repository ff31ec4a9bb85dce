"""Bases that are sdists of a package registry: locked by sha256, unpacked strictly, built like a git tree."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from email.parser import BytesHeaderParser
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename
from packaging.version import InvalidVersion
from packaging.version import Version as ParsedVersion

from toolkit.errors import FetchError, HashMismatchError, LockError, SourceError, StoreError
from toolkit.files import copy_hashed, remove_tree, safe_relative_path, sha256_file
from toolkit.model import (
    BuildSpec,
    Contract,
    FetchedBase,
    Form,
    Interpreter,
    Progress,
    Target,
)
from toolkit.registry import require_pip
from toolkit.requirements import BuildTable, LockedRequirement, requirements_for, resolve_requirements
from toolkit.schema import Distribution, Sha256, Version
from toolkit.sdists import PublishedSdist, download_sdist, find_sdist
from toolkit.sources.sdist.tree import (
    below_subfolder,
    check_out,
    digest_tree,
    fetch_submodules,
    lay_out,
    lay_out_submodules,
)
from toolkit.store import Store
from toolkit.tarballs import SUFFIX, list_tarball, read_file

__all__ = ["check_out", "digest_tree", "fetch_submodules", "lay_out", "lay_out_submodules"]

log = logging.getLogger(__name__)

KIND = "sdist"
FORM: Form = "tree"
STORE_KIND = "base"
METADATA = "PKG-INFO"
MISNAMED = "the registry's file is misnamed: do not use it"
EARLIEST, LATEST = 315_532_800, 4_354_819_198
"""1980 and 2107: the times that a zip archive, and so a wheel, can hold."""


class Base(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[component.base]` with `kind = "sdist"`."""

    kind: Annotated[Literal["sdist"], Meta(description="a source archive of the package registry", examples=["sdist"])]
    distribution: Annotated[Distribution, Meta(description="its name at the registry")]
    version: Annotated[Version, Meta(description="the one release to start from")]
    subfolder: Annotated[str, Meta(description="where in the archive the project and its patches' paths begin")] = ""
    build: Annotated[BuildTable, Meta(description="how it is built")]

    def __post_init__(self) -> None:
        if self.subfolder:
            safe_relative_path(self.subfolder)

    @property
    def identity(self) -> str:
        """The release and what is built with it."""
        return _identity(self.distribution, self.version, self.subfolder, self.build.requires)


class Locked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A release resolved to its archive, and to the wheels of every target's build environment."""

    kind: Literal["sdist"] = "sdist"
    distribution: Distribution
    version: Version
    subfolder: str = ""
    file: str
    sha256: Sha256
    requires: tuple[str, ...]
    requirement: tuple[LockedRequirement, ...]

    def __post_init__(self) -> None:
        if not _is_named(self.file, self.distribution, self.version):
            raise ValueError(f"{self.file!r} is not an sdist of {self.distribution}=={self.version}")
        if self.subfolder:
            safe_relative_path(self.subfolder)

    @property
    def identity(self) -> str:
        """The identity of the base that it was resolved from."""
        return _identity(self.distribution, self.version, self.subfolder, self.requires)

    def covers(self, target: Target) -> bool:
        """Whether there is a build environment for that target."""
        return not self.requirement or any(
            (entry.python_tag, entry.platform) == (target.python_tag, target.platform) for entry in self.requirement
        )


def resolve(
    base: Base, contract: Contract, *, component: str, env: Mapping[str, str], progress: Progress | None = None
) -> Locked:
    """Ask the registry for the release's sdist, and for the wheels that its build needs on every target."""
    require_pip(env)
    sdist = find_sdist(base.distribution, base.version, env=env)
    if not _is_named(sdist.file, base.distribution, base.version):
        raise LockError(f"{component}: the registry has {sdist.file} for {base.identity}", hint=MISNAMED)
    return Locked(
        distribution=base.distribution,
        version=base.version,
        subfolder=base.subfolder,
        file=sdist.file,
        sha256=sdist.sha256,
        requires=base.build.requires,
        requirement=resolve_requirements(
            base.build.requires, contract, component=component, env=env, progress=progress
        ),
    )


def artifact_digest(locked: Locked, target: Target, *, interpreter: Interpreter, env: Mapping[str, str]) -> str:
    """Return the archive's sha256; it is the same for every target."""
    return locked.sha256


def fetch(
    locked: Locked, *, component: str, target: Target, store: Store, offline: bool, interpreter: Interpreter,
    env: Mapping[str, str], progress: Progress | None = None,
) -> FetchedBase:  # fmt: skip
    """Return the archive in the store, downloaded if need be, its bytes hashed either way.

    A damaged entry is dropped and fetched again with a warning; offline it is a StoreError. Raises FetchError where
    the archive cannot be had, HashMismatchError for other bytes, SourceError for one that is unsafe or of another
    release.
    """
    entry = store.find(STORE_KIND, locked.sha256)
    if entry is not None and not _is_whole(entry, locked):
        _drop_damaged(entry, locked, component, store, offline)
        entry = None
    if entry is None and offline:
        raise FetchError(
            f"{component}: {locked.file} is not in the store at {store.root}, and offline nothing is downloaded",
            hint="bring it with `toolkit cache import FILE`, or run once without --offline",
        )
    if entry is None:
        entry = store.obtain(STORE_KIND, locked.sha256, lambda folder: _download(locked, folder, env))
    newest = list_tarball(entry / locked.file).newest
    return FetchedBase(
        component=component,
        kind=KIND,
        digest=locked.sha256,
        path=entry / locked.file,
        file=locked.file,
        distribution=locked.distribution,
        version=locked.version,
        target=target,
        subfolder=locked.subfolder,
        epoch=min(max(newest, EARLIEST), LATEST),
    )


def build_spec(base: Base, locked: Locked, target: Target) -> BuildSpec:
    """Return how the archive is built for a target; LockError where the lock has no requirements for it."""
    return BuildSpec(
        backend=base.build.backend,
        requirements=requirements_for(locked.requirement, target),
        env=base.build.env,
        pass_env=base.build.pass_env,
        subfolder=base.subfolder,
    )


def _identity(distribution: str, version: str, subfolder: str, requires: Sequence[str]) -> str:
    place = f" in {subfolder}" if subfolder else ""
    return f"sdist {distribution}=={version}{place}, built with {', '.join(requires) or 'nothing'}"


def _is_named(file: str, distribution: str, version: str) -> bool:
    """Whether a file name is that of a release's sdist; a path is none."""
    if "/" in file or not file.endswith(SUFFIX):
        return False
    try:
        name, found = parse_sdist_filename(file)
    except (InvalidSdistFilename, InvalidVersion):
        return False
    return name == canonicalize_name(distribution) and found == ParsedVersion(version)


def _is_whole(entry: Path, locked: Locked) -> bool:
    path = entry / locked.file
    return path.is_file() and sha256_file(path) == locked.sha256


def _drop_damaged(entry: Path, locked: Locked, component: str, store: Store, offline: bool) -> None:
    if offline:
        raise StoreError(
            f"{component}: store entry {entry} is damaged: {locked.file} is missing or has other bytes",
            hint="remove that folder, then `toolkit cache import FILE`, or run once without --offline",
        )
    log.warning("%s: store entry %s is damaged; fetching it again", component, entry)
    store.discard(STORE_KIND, locked.sha256, unless=lambda path: _is_whole(path, locked))


def _download(locked: Locked, folder: Path, env: Mapping[str, str]) -> None:
    """Fill a store entry that is being made; what raises leaves no entry."""
    scratch = folder / "download"
    scratch.mkdir()
    wanted = PublishedSdist(file=locked.file, sha256=locked.sha256)
    arrived = download_sdist(locked.distribution, locked.version, wanted, into=scratch, env=env)
    with arrived.open("rb") as stream:
        actual, _ = copy_hashed(stream, folder / locked.file)
    if actual != locked.sha256:
        raise HashMismatchError(
            what=locked.file, expected=locked.sha256, actual=actual, origin="the registry, through pip"
        )
    remove_tree(scratch)
    _require_locked_sdist(folder / locked.file, locked)


def _require_locked_sdist(path: Path, locked: Locked) -> None:
    """Raise SourceError where an archive is unsafe, of another release by its own word, or lacks the subfolder."""
    tarball = list_tarball(path)
    if METADATA not in tarball.entries:
        raise SourceError(f"{path.name} lacks {METADATA}", hint="it is no sdist: pin another artifact")
    headers = BytesHeaderParser().parsebytes(read_file(tarball, METADATA))
    name, version = str(headers.get("Name", "")), str(headers.get("Version", ""))
    if not all(
        _is_named(f"{stem}{SUFFIX}", locked.distribution, locked.version)
        for stem in (tarball.top, f"{name.replace('-', '_')}-{version}")
    ):
        raise SourceError(
            f"{path.name} is {name} {version} in {tarball.top!r}, expected {locked.distribution}=={locked.version}",
            hint=MISNAMED,
        )
    if not below_subfolder(tarball, locked.subfolder).entries:
        raise SourceError(f"{path.name} has no folder {locked.subfolder!r}", hint="change `subfolder` in the recipe")
