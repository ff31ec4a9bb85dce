"""What a source build needs in its environment: asked for in a recipe, pinned file by file in a lock.

The values are used by every kind of base that is built; pip resolves, the target's own markers decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from packaging.requirements import Requirement as ParsedRequirement
from packaging.utils import canonicalize_name
from packaging.version import Version as ParsedVersion

from toolkit.errors import LockError
from toolkit.model import Contract, Progress, Target
from toolkit.registry import NoWheel, ResolvedWheel, ask_side_by_side, require_pip, resolve_wheels
from toolkit.requirements.locked import (
    LOCK_ANEW,
    BuildTable,
    LockedRequirement,
    covers_target,
    lock_order,
    make_build_spec,
    require_subfolder,
    require_unique,
    require_wheel_for,
    require_wheel_of,
    requirements_for,
)
from toolkit.requirements.needs import (
    Distribution,
    Lack,
    holds,
    marker_environment,
    repeated,
    text_fault,
    trace_needs,
    without_marker,
)

__all__ = [
    "LOCK_ANEW",
    "BuildTable",
    "Distribution",
    "LockedRequirement",
    "covers_target",
    "make_build_spec",
    "marker_environment",
    "require_subfolder",
    "require_unique",
    "require_wheel_for",
    "require_wheel_of",
    "requirements_for",
    "resolve_requirements",
    "trace_needs",
]


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
    return tuple(sorted((entry for found, _ in answers for entry in found), key=lock_order))


def _asked_for(requires: Sequence[str], target: Target, component: str) -> list[ParsedRequirement]:
    """Return what a recipe asks for on a target; LockError with all that is wrong with it."""
    faults = [fault for text in requires if (fault := text_fault(text))]
    if not faults:
        markers = marker_environment(target)
        parsed = [wanted for wanted in map(ParsedRequirement, requires) if holds(wanted, markers)]
        faults = repeated(parsed)
        if not faults:
            return parsed
    raise LockError(
        f"{component}: what its build requires is not clear",
        hint="name each distribution once, as in 'setuptools<82': no addresses, no files, no options",
        details=faults,
    )


def _resolve_target(
    asked: Sequence[ParsedRequirement], target: Target, env: Mapping[str, str]
) -> tuple[list[LockedRequirement], list[str]]:
    """Return one target's wheels, without those that only this machine would need, and why some cannot be had.

    pip looks at markers with the machine's eyes, so what it leaves out for the target is asked for by name.
    """
    texts = [without_marker(wanted) for wanted in asked]
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
