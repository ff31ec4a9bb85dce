"""Bases that are sdists of a package registry: locked by sha256, unpacked strictly, built like a git tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from email.parser import BytesHeaderParser
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename
from packaging.version import InvalidVersion
from packaging.version import Version as ParsedVersion

from toolkit.artifacts import MISNAMED, obtain_file
from toolkit.errors import LockError, SourceError
from toolkit.model import BuildSpec, Contract, FetchedBase, Form, Interpreter, Progress, Target
from toolkit.registry import PublishedFile, require_pip
from toolkit.requirements import (
    BuildTable,
    LockedRequirement,
    covers_target,
    make_build_spec,
    require_subfolder,
    require_unique,
    resolve_requirements,
)
from toolkit.schema import Distribution, Sha256, Version
from toolkit.sdists import download_sdist, find_sdist
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

KIND = "sdist"
FORM: Form = "tree"
METADATA = "PKG-INFO"
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
        require_subfolder(self.subfolder)

    @property
    def identity(self) -> str:
        """The release and what is built with it."""
        return _identity(self.distribution, self.version, self.subfolder, self.build.requires)

    @property
    def coverage(self) -> str:
        """The release."""
        return f"{self.distribution}=={self.version}"


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
        require_subfolder(self.subfolder)
        require_unique(self.requirement)

    @property
    def identity(self) -> str:
        """The identity of the base that it was resolved from."""
        return _identity(self.distribution, self.version, self.subfolder, self.requires)

    def covers(self, target: Target) -> bool:
        """Whether there are requirements for that target, or none are needed."""
        return covers_target(self.requires, self.requirement, target)


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
    """Return the archive in the store; see `toolkit.artifacts.obtain_file`.

    Raises FetchError where it cannot be had, SourceError for one that is unsafe or of another release.
    """
    path = obtain_file(
        locked.file, locked.sha256, component=component, store=store, offline=offline,
        download=lambda folder: _download(locked, folder, env, progress),
        check=lambda path: _require_locked_sdist(path, locked),
    )  # fmt: skip
    newest = list_tarball(path).newest
    return FetchedBase(
        component=component,
        kind=KIND,
        digest=locked.sha256,
        path=path,
        file=locked.file,
        distribution=locked.distribution,
        version=locked.version,
        target=target,
        subfolder=locked.subfolder,
        epoch=min(max(newest, EARLIEST), LATEST),
    )


def build_spec(base: Base, locked: Locked, target: Target) -> BuildSpec:
    """Return how the archive is built for a target; LockError where the lock has no requirements for it."""
    return make_build_spec(base.build, locked.requirement, target, subfolder=locked.subfolder)


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


def _download(locked: Locked, into: Path, env: Mapping[str, str], progress: Progress | None) -> Path:
    wanted = PublishedFile(file=locked.file, sha256=locked.sha256)
    return download_sdist(
        locked.distribution, locked.version, wanted, pip=require_pip(env), into=into, env=env, progress=progress
    )


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
