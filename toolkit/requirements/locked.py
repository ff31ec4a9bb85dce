"""What a build needs, as a recipe asks for it and as a lock pins it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta
from packaging.requirements import Requirement as ParsedRequirement
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version as ParsedVersion

from toolkit.errors import LockError
from toolkit.files import safe_relative_path
from toolkit.model import Backend, BuildSpec, Requirement, Target
from toolkit.platforms import accepts_wheel
from toolkit.requirements.needs import holds, marker_environment, repeated, text_fault
from toolkit.schema import Platform, PythonTag, Sha256

EnvName = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\Z", title="a variable's name", examples=["MAX_JOBS"])]

RequirementText = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z0-9][^@/:#\x00-\x1f]*\Z", title="a pip requirement without an address or an option",
         examples=["setuptools<82"]),
]  # fmt: skip

LockedVersion = Annotated[
    str,
    Meta(
        pattern=r"^(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?\Z",
        title="a version in PEP 440 normal form",
        examples=["81.0.0"],
    ),
]
"""As in `schema.Version`, but whatever a foreign distribution may have: an epoch, one number alone."""

LOCK_ANEW = "run `toolkit lock --upgrade` and review the change"


class BuildTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[component.base.build]`: how a source tree becomes a wheel."""

    backend: Annotated[
        Backend,
        Meta(
            description="its build backend (`pep517`, which needs `build` in `requires`), or upstream's own `setup.py"
            " build bdist_wheel`"
        ),
    ] = "pep517"
    requires: Annotated[
        tuple[RequirementText, ...],
        Meta(description="what the build imports, as pip requirements; `toolkit lock` finds what they need in turn",
             examples=[["torch==2.12.0", "setuptools<82", "ninja"]]),
    ]  # fmt: skip
    env: Annotated[dict[str, str], Meta(description="variables that are set for the build")] = msgspec.field(
        default_factory=dict
    )
    pass_env: Annotated[
        tuple[EnvName, ...], Meta(description="the caller's variables that reach the build; no others do")
    ] = ()

    def __post_init__(self) -> None:
        faults = [what for text in self.requires if (what := text_fault(text))]
        if not faults:
            faults = repeated((ParsedRequirement(text) for text in self.requires), by_marker=True)
        if faults:
            raise ValueError("; ".join(faults))


class LockedRequirement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One wheel of one target's build environment."""

    distribution: str
    version: LockedVersion
    file: str
    sha256: Sha256
    python_tag: PythonTag
    platform: Platform

    def __post_init__(self) -> None:
        require_wheel_for(target_of(self), self.file)
        require_wheel_of(self.distribution, self.version, self.file)


def requirements_for(locked: Sequence[LockedRequirement], target: Target) -> tuple[Requirement, ...]:
    """Return one target's requirements, sorted by name."""
    chosen = [entry for entry in locked if target_of(entry) == target]
    return tuple(
        Requirement(
            distribution=entry.distribution, version=entry.version, file=entry.file, sha256=entry.sha256
        )
        for entry in sorted(chosen, key=lock_order)
    )  # fmt: skip


def covers_target(requires: Sequence[str], locked: Sequence[LockedRequirement], target: Target) -> bool:
    """Whether a lock that was made for `requires` has a target's build environment, or it needs none."""
    if any(target_of(entry) == target for entry in locked):
        return True
    markers = marker_environment(target)
    return not any(text_fault(text) or holds(ParsedRequirement(text), markers) for text in requires)


def make_build_spec(
    build: BuildTable, locked: Sequence[LockedRequirement], target: Target, *, subfolder: str, submodules: bool = False
) -> BuildSpec:  # fmt: skip
    """Return how a source tree is built for a target; LockError where the lock does not cover the target."""
    if not covers_target(build.requires, locked, target):
        known = ", ".join(sorted({str(target_of(entry)) for entry in locked})) or "no target"
        raise LockError(
            f"the lock has no build requirements for {target}",
            hint=f"it has them for {known}; add the target to the recipe and run `toolkit lock`",
        )
    if lacking := list(_lacking(build.requires, locked, target)):
        raise LockError(
            f"the lock has no {', '.join(lacking)} for {target}, which the recipe requires for the build",
            hint="make it anew: toolkit lock --upgrade",
        )
    return BuildSpec(
        backend=build.backend,
        requirements=requirements_for(locked, target),
        env=build.env,
        pass_env=build.pass_env,
        subfolder=subfolder,
        submodules=submodules,
    )


def _lacking(requires: Sequence[str], locked: Sequence[LockedRequirement], target: Target) -> Iterator[str]:
    """Name what a recipe asks for on a target and a lock does not have."""
    there = {canonicalize_name(entry.distribution) for entry in locked if target_of(entry) == target}
    markers = marker_environment(target)
    for wanted in map(ParsedRequirement, requires):
        if holds(wanted, markers) and canonicalize_name(wanted.name) not in there:
            yield wanted.name


def require_unique(locked: Sequence[LockedRequirement]) -> None:
    """Raise ValueError for a lock that has two wheels of a distribution for one target."""
    seen = set()
    for entry in locked:
        if (key := (target_of(entry), canonicalize_name(entry.distribution))) in seen:
            raise ValueError(f"there are two wheels of {entry.distribution} for {target_of(entry)}")
        seen.add(key)


def require_subfolder(subfolder: str) -> None:
    """Raise ValueError for a folder of a source tree that leaves it, or can be written otherwise; empty is its top."""
    if subfolder and str(safe_relative_path(subfolder)) != subfolder:
        raise ValueError(f"{subfolder!r} is not a folder in normal form")


def require_wheel_for(target: Target, file: str) -> None:
    """Raise ValueError for a file name that is no wheel's, or one of a wheel that a target does not accept."""
    if "/" in file or "\\" in file:
        raise ValueError(f"{file!r} is not a plain file name")
    if not accepts_wheel(file, python_tag=target.python_tag, platform=target.platform):
        raise ValueError(f"{file!r} is not a wheel for {target}")


def require_wheel_of(distribution: str, version: str, file: str) -> None:
    """Raise ValueError for a wheel's file name that is of another release."""
    name, found, *_ = parse_wheel_filename(file)
    if name != canonicalize_name(distribution) or found != ParsedVersion(version):
        raise ValueError(f"{file!r} is not a wheel of {distribution}=={version}")


def target_of(entry: LockedRequirement) -> Target:
    return Target(python_tag=entry.python_tag, platform=entry.platform)


def lock_order(entry: LockedRequirement) -> tuple[str, str, str]:
    return entry.python_tag, entry.platform, canonicalize_name(entry.distribution)
