"""Recipes and locks: what a person asks for, and what it was resolved to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from toolkit.model.evidence import NO_EVIDENCE, EvidenceWanted

Backend = Literal["pep517", "setup.py"]
"""How a source tree becomes a wheel: by its build backend, or by upstream's own `setup.py build bdist_wheel`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What a wheel is for: an interpreter tag such as `cp311` and a platform tag such as `manylinux_2_28_x86_64`."""

    python_tag: str
    platform: str

    def __str__(self) -> str:
        return f"{self.python_tag}-{self.platform}"


class Base(Protocol):
    """Where a component starts, as a recipe says it. Each kind is defined by its module in `toolkit.sources`."""

    @property
    def kind(self) -> str:
        """The name of the module in `toolkit.sources` that can take it."""

    @property
    def identity(self) -> str:
        """One line that changes when, and only when, another artifact is asked for."""

    @property
    def coverage(self) -> str:
        """The base as `covers` in a line's `series.toml` names it: what a series is for, not how it is built."""


class LockedBase(Protocol):
    """A base resolved to exact artifacts, as a lock says it. Defined beside its base."""

    @property
    def kind(self) -> str:
        """The name of the module in `toolkit.sources` that can take it."""

    @property
    def identity(self) -> str:
        """The identity of the base that it was resolved from."""

    def covers(self, target: Target) -> bool:
        """Whether there is an artifact for that target."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Component:
    """One upstream package of a recipe.

    `series` is the folder below `patches/`, or None for a component that is taken as it is. `accept_upstream`
    names the patches (file stem) that may be skipped where the base has their change already.
    """

    name: str
    import_name: str
    base: Base
    series: str | None = None
    accept_upstream: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Contract:
    """What an overlay demands of its target. `torch` is a full version, `cann` a prefix such as `9.1`."""

    python_tags: tuple[str, ...]
    platforms: tuple[str, ...]
    torch: str
    cann: str | None = None
    soc: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[Target, ...]:
        """Every interpreter tag on every platform."""
        return tuple(Target(python_tag=tag, platform=place) for tag in self.python_tags for place in self.platforms)


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """A recipe after `extends` is resolved. `files` are all the files that it was read from, itself first.

    `diagnostic` says what an overlay of it is for where that is diagnosis only, and is empty otherwise.
    """

    name: str
    description: str
    contract: Contract
    components: tuple[Component, ...]
    env: Mapping[str, str]
    checks: tuple[str, ...]
    files: tuple[Path, ...]
    diagnostic: str = ""
    evidence: EvidenceWanted = NO_EVIDENCE


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedComponent:
    """One component's base, resolved."""

    name: str
    base: LockedBase


@dataclass(frozen=True, kw_only=True, slots=True)
class Lock:
    """A recipe's bases resolved to exact artifacts; `path` is the file that it was read from."""

    recipe: str
    components: tuple[LockedComponent, ...]
    path: Path

    def component(self, name: str) -> LockedComponent | None:
        """Find one component's entry, or None."""
        return next((entry for entry in self.components if entry.name == name), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Requirement:
    """One distribution of a build's environment, pinned to a wheel."""

    distribution: str
    version: str
    file: str
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildSpec:
    """How a source tree is built for one target.

    `requirements` are all that the build's environment holds besides the interpreter. `env` is set for the build,
    `pass_env` names the caller's variables that may reach it. `subfolder` is where in the tree the project lies;
    `submodules` says whether the tree has those that it records.
    """

    backend: Backend
    requirements: tuple[Requirement, ...]
    env: Mapping[str, str]
    pass_env: tuple[str, ...] = ()
    subfolder: str = ""
    submodules: bool = False
