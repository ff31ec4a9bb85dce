"""Bases that are release wheels: locked by file name and sha256 for each target, fetched through pip."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from toolkit.artifacts import obtain_wheel_file
from toolkit.errors import LockError
from toolkit.model import Contract, FetchedBase, Form, Interpreter, Progress, Requirement, SourceTree, Target
from toolkit.registry import NoWheel, PublishedFile, ask_side_by_side, find_wheel, require_pip
from toolkit.requirements import require_wheel_for, require_wheel_of
from toolkit.schema import Distribution, Platform, PythonTag, Sha256, Version
from toolkit.store import Store
from toolkit.wheels.layout import lay_out_wheel

KIND = "wheel"
FORM: Form = "wheel"


class Base(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[component.base]` with `kind = "wheel"`."""

    kind: Annotated[Literal["wheel"], Meta(description="a release wheel from the package registry", examples=["wheel"])]
    distribution: Annotated[Distribution, Meta(description="its name at the registry")]
    version: Annotated[Version, Meta(description="the one release to start from")]

    @property
    def identity(self) -> str:
        """The release."""
        return f"{self.distribution}=={self.version}"

    @property
    def coverage(self) -> str:
        """The release."""
        return f"{self.distribution}=={self.version}"


class Artifact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One target's wheel; two targets may share one."""

    file: str
    sha256: Sha256
    python_tag: PythonTag
    platform: Platform

    def __post_init__(self) -> None:
        require_wheel_for(_target_of(self), self.file)


class Locked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A release resolved to one wheel for each target."""

    kind: Literal["wheel"] = "wheel"
    distribution: Distribution
    version: Version
    artifact: tuple[Artifact, ...]

    def __post_init__(self) -> None:
        seen: set[Target] = set()
        for artifact in self.artifact:
            require_wheel_of(self.distribution, self.version, artifact.file)
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

    def look(target: Target) -> PublishedFile | NoWheel:
        return find_wheel(base.distribution, base.version, target, env=env)

    answers = ask_side_by_side(look, contract.targets, progress=progress)
    missing = [answer for answer in answers if isinstance(answer, NoWheel)]
    found = {
        target: answer
        for target, answer in zip(contract.targets, answers, strict=True)
        if not isinstance(answer, NoWheel)
    }
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


def artifact_digest(
    locked: Locked, target: Target, *, interpreter: Interpreter | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Return the sha256 of the target's wheel; LockError names the targets that the lock has."""
    return _find_artifact(locked, target).sha256


def fetch(
    locked: Locked, *, component: str, target: Target, store: Store, offline: bool, env: Mapping[str, str],
    interpreter: Interpreter | None = None, progress: Progress | None = None,
) -> FetchedBase:  # fmt: skip
    """Return the target's wheel in the store; see `toolkit.artifacts.obtain_wheel_file`."""
    artifact = _find_artifact(locked, target)
    pinned = Requirement(
        distribution=locked.distribution, version=locked.version, file=artifact.file, sha256=artifact.sha256
    )
    path = obtain_wheel_file(
        pinned, component=component, target=target, store=store, offline=offline, env=env, progress=progress
    )
    return FetchedBase(
        component=component,
        kind=KIND,
        digest=artifact.sha256,
        path=path,
        file=artifact.file,
        distribution=locked.distribution,
        version=locked.version,
        target=target,
    )


def lay_out(base: FetchedBase, paths: Collection[str], into: Path) -> SourceTree:
    """Write those of `paths` that the wheel has below `into`; raise SourceError for an unsafe or damaged wheel."""
    return lay_out_wheel(base, paths, into)


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


def _lock_artifact(target: Target, wheel: PublishedFile) -> Artifact:
    return Artifact(file=wheel.file, sha256=wheel.sha256, python_tag=target.python_tag, platform=target.platform)
