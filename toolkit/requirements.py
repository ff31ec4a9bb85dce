"""What a source build needs in its environment: asked for in a recipe, pinned file by file in a lock.

The values are used by every kind of base that is built; pip resolves, the target's own markers decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta
from packaging.requirements import InvalidRequirement
from packaging.requirements import Requirement as ParsedRequirement
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version as ParsedVersion

from toolkit.errors import LockError
from toolkit.model import Backend, Contract, Progress, Requirement, Target
from toolkit.platforms import accepts_wheel, python_version, split_platform
from toolkit.registry import NoWheel, ResolvedWheel, ask_side_by_side, require_pip, resolve_wheels
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
        Backend, Meta(description="its build backend (`pep517`), or upstream's own `setup.py build bdist_wheel`")
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
        faults = [what for text in self.requires if (what := _text_fault(text))]
        if not faults:
            faults = _repeated((ParsedRequirement(text) for text in self.requires), by_marker=True)
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
        if "/" in self.file or "\\" in self.file:
            raise ValueError(f"{self.file!r} is not a plain file name")
        if not accepts_wheel(self.file, python_tag=self.python_tag, platform=self.platform):
            raise ValueError(f"{self.file!r} is not a wheel for {self.python_tag}-{self.platform}")
        name, version, *_ = parse_wheel_filename(self.file)
        if name != canonicalize_name(self.distribution) or version != ParsedVersion(self.version):
            raise ValueError(f"{self.file!r} is not a wheel of {self.distribution}=={self.version}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Distribution:
    """One distribution that is to be had: its version, and its own requirements as its metadata writes them."""

    version: str
    needs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Lack:
    """A requirement that is not met; `by` is who has it (empty: the recipe), `found` the version that does not fit."""

    by: str
    requirement: str
    found: str = ""

    def __str__(self) -> str:
        there = f", and there is {self.found}" if self.found else ""
        return f"{self.by or 'the recipe'} needs {self.requirement}{there}"


def resolve_requirements(
    requires: Sequence[str], contract: Contract, *, component: str, env: Mapping[str, str], progress: Progress | None
) -> tuple[LockedRequirement, ...]:
    """Find the wheels of every target's build environment, those that they need in turn included.

    `progress` counts targets. Raises LockError with one detail for each text that cannot be read; or else for each
    target without an answer, and for each need of a target that nothing found answers.
    """
    asked = {target: _asked_for(requires, target, component) for target in contract.targets}
    if not any(asked.values()):
        return ()
    require_pip(env)

    def resolve(target: Target) -> tuple[list[LockedRequirement], list[str]]:
        return _resolve_target(asked[target], target, env)

    answers = ask_side_by_side(resolve, contract.targets, progress=progress)
    faults = [f"{target}: {why}" for target, (_, whys) in zip(contract.targets, answers, strict=True) for why in whys]
    if faults:
        raise LockError(
            f"{component}: what its build requires cannot be had for every target",
            hint="change `requires` of its [component.base.build], or [target], in the recipe",
            details=faults,
        )
    return tuple(sorted((entry for found, _ in answers for entry in found), key=_order))


def requirements_for(locked: Sequence[LockedRequirement], target: Target) -> tuple[Requirement, ...]:
    """Return one target's requirements, sorted by name; LockError where the lock has some, but none for it."""
    chosen = [entry for entry in locked if _target_of(entry) == target]
    if locked and not chosen:
        known = ", ".join(sorted({str(_target_of(entry)) for entry in locked}))
        raise LockError(
            f"the lock has no build requirements for {target}",
            hint=f"it has them for {known}; add the target to the recipe and run `toolkit lock`",
        )
    return tuple(
        Requirement(
            distribution=entry.distribution, version=entry.version, file=entry.file, sha256=entry.sha256
        )
        for entry in sorted(chosen, key=_order)
    )  # fmt: skip


def trace_needs(
    roots: Iterable[ParsedRequirement], known: Mapping[str, Distribution], markers: Mapping[str, str]
) -> tuple[frozenset[str], list[Lack]]:
    """Follow requirements through what is known, by canonical name; return the names needed and what is not met.

    The roots' own markers are not looked at. An extra's requirements count where a requirement names it in brackets.
    """
    pending = [("", root) for root in roots]
    seen: set[tuple[str, str]] = set()
    lacks: dict[Lack, None] = {}
    while pending:
        by, wanted = pending.pop()
        name = canonicalize_name(wanted.name)
        found = known.get(name)
        if found is None or not wanted.specifier.contains(found.version, prereleases=True):
            lacks[Lack(by=by, requirement=_without_marker(wanted), found=found.version if found else "")] = None
            continue
        for extra in {"", *wanted.extras}:
            if (name, extra) not in seen:
                seen.add((name, extra))
                pending += [(f"{name} {found.version}", need) for need in _holding(found.needs, markers, extra)]
    return frozenset(name for name, _ in seen), sorted(lacks, key=str)


def marker_environment(target: Target, python_full_version: str = "") -> dict[str, str]:
    """Return what environment markers are evaluated in on a target; without a full version, in the tag's first one.

    The first release of a Python is also what pip compares a wheel's Requires-Python with.
    """
    short = "{}.{}".format(*python_version(target.python_tag))
    full = python_full_version or f"{short}.0"
    return {
        "python_version": short,
        "python_full_version": full,
        "implementation_name": "cpython",
        "implementation_version": full,
        "platform_python_implementation": "CPython",
        "platform_machine": split_platform(target.platform)[1],
        "platform_system": "Linux",
        "platform_release": "",
        "platform_version": "",
        "sys_platform": "linux",
        "os_name": "posix",
        "extra": "",
    }


# --- what is asked for -----------------------------------------------------------------------------------------


def _asked_for(requires: Sequence[str], target: Target, component: str) -> list[ParsedRequirement]:
    """Return what a recipe asks for on a target; LockError with all that is wrong with it."""
    faults = [fault for text in requires if (fault := _text_fault(text))]
    if not faults:
        markers = marker_environment(target)
        parsed = [wanted for wanted in map(ParsedRequirement, requires) if _holds(wanted, markers)]
        faults = _repeated(parsed)
        if not faults:
            return parsed
    raise LockError(
        f"{component}: what its build requires is not clear",
        hint="name each distribution once, as in 'setuptools<82': no addresses, no files, no options",
        details=faults,
    )


def _text_fault(text: str) -> str:
    """Say why a text cannot stand in `requires`; empty where it can."""
    try:
        parsed = ParsedRequirement(text)
    except InvalidRequirement as fault:
        return f"{text!r} is not a requirement: {str(fault).splitlines()[0]}"
    return f"{text!r} names an address, expected a release at the registry" if parsed.url else ""


def _repeated(parsed: Iterable[ParsedRequirement], *, by_marker: bool = False) -> list[str]:
    """Name the distributions that are asked for twice; `by_marker`: under one and the same marker."""
    first: dict[tuple[str, str], ParsedRequirement] = {}
    faults = []
    for wanted in parsed:
        key = (canonicalize_name(wanted.name), str(wanted.marker) if by_marker else "")
        if key in first:
            faults.append(f"{key[0]!r} is asked for twice: {str(first[key])!r} and {str(wanted)!r}")
        first.setdefault(key, wanted)
    return faults


def _holding(needs: Iterable[str], markers: Mapping[str, str], extra: str) -> Iterator[ParsedRequirement]:
    environment = {**markers, "extra": extra}
    return (wanted for wanted in map(ParsedRequirement, needs) if _holds(wanted, environment))


def _holds(wanted: ParsedRequirement, markers: Mapping[str, str]) -> bool:
    return wanted.marker is None or wanted.marker.evaluate(dict(markers))


def _without_marker(wanted: ParsedRequirement) -> str:
    extras = f"[{','.join(sorted(wanted.extras))}]" if wanted.extras else ""
    return f"{wanted.name}{extras}{wanted.specifier}"


# --- what is found ---------------------------------------------------------------------------------------------


def _resolve_target(
    asked: Sequence[ParsedRequirement], target: Target, env: Mapping[str, str]
) -> tuple[list[LockedRequirement], list[str]]:
    """Return one target's wheels, without those that only this machine would need, and why some cannot be had.

    pip looks at markers with the machine's eyes, so what it leaves out for the target is asked for by name.
    """
    texts = [_without_marker(wanted) for wanted in asked]
    left_out: list[Lack] = []
    while texts:
        answer = resolve_wheels(texts, target, env=env)
        if isinstance(answer, NoWheel):
            return [], [" ".join([*(f"{lack}:" for lack in left_out), answer.why])]
        wheels: dict[str, ResolvedWheel] = {canonicalize_name(wheel.distribution): wheel for wheel in answer}
        known = {name: Distribution(version=wheel.version, needs=wheel.needs) for name, wheel in wheels.items()}
        needed, lacks = trace_needs(asked, known, marker_environment(target))
        left_out = [lack for lack in lacks if lack.requirement not in texts]
        if not left_out:
            return [_lock_wheel(name, wheels[name], target) for name in needed], [str(lack) for lack in lacks]
        texts += [lack.requirement for lack in left_out]
    return [], []


def _lock_wheel(name: str, wheel: ResolvedWheel, target: Target) -> LockedRequirement:
    return LockedRequirement(
        distribution=name,
        version=str(ParsedVersion(wheel.version)),
        file=wheel.file,
        sha256=wheel.sha256,
        python_tag=target.python_tag,
        platform=target.platform,
    )


def _target_of(entry: LockedRequirement) -> Target:
    return Target(python_tag=entry.python_tag, platform=entry.platform)


def _order(entry: LockedRequirement) -> tuple[str, str, str]:
    return entry.python_tag, entry.platform, canonicalize_name(entry.distribution)
