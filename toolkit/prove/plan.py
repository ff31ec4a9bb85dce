"""Decide what to run before anything is run: which checks, on which side, in which processes."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from toolkit.errors import ProofError, UsageError
from toolkit.model import Side, Status

CATALOGUE = "checks.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckSpec:
    """One check as the catalogue lists it.

    Checks of one `group` may share a process. A `static` check needs no import of the packages, so that it can be
    run for another platform too. `env` is set for its process and wins over the recipe's. A witness that shows the
    same fault as another, which the patch names, says so by `beside`, and stands and falls with it.
    """

    name: str
    module: str
    summary: str
    group: str
    sides: tuple[Side, ...]
    env: Mapping[str, str]
    static: bool
    witness: bool
    beside: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedCheck:
    """One check on one side, and the status that is wanted of it there."""

    name: str
    side: Side
    wanted: Status


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """The checks that one fresh process runs, in order. `name` is unique in its plan and fit for a file name."""

    name: str
    side: Side
    env: Mapping[str, str]
    checks: tuple[PlannedCheck, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """All that a verify run is about, in the order of the report; `unloadable` are those that are for no process."""

    checks: tuple[PlannedCheck, ...]
    jobs: tuple[Job, ...]
    unloadable: tuple[PlannedCheck, ...]


_Name = Annotated[str, msgspec.Meta(pattern="^[a-z0-9]+(-[a-z0-9]+)*$")]
"""Names of checks name their log files too."""


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    module: str
    summary: str
    sides: tuple[Literal["base", "overlay"], ...]
    env: dict[str, str]
    static: bool
    witness: bool = False
    beside: str | None = None
    group: str | None = None


def load_catalogue(verify_folder: Path) -> dict[str, CheckSpec]:
    """Read the checks that `verify/` offers, in its order; raise ProofError for a catalogue that is not in its form."""
    path = verify_folder / CATALOGUE
    try:
        entries = msgspec.json.decode(path.read_bytes(), type=dict[_Name, _Entry])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise ProofError(
            f"cannot read the catalogue of checks {path}: {fault}",
            hint='each entry needs module, summary, sides, env and static; a witness also "witness": true',
        ) from fault
    catalogue = {name: _make_spec(name, entry) for name, entry in entries.items()}
    one_sided = [spec.name for spec in catalogue.values() if spec.witness and set(spec.sides) != {"base", "overlay"}]
    if one_sided:
        raise ProofError(
            f"witnesses that do not run on both sides in {path}: {', '.join(one_sided)}",
            hint='a witness must fail on the base and pass on the overlay: "sides": ["base", "overlay"]',
        )
    alone = [spec.name for spec in catalogue.values() if spec.beside and not _is_witness(catalogue, spec.beside)]
    if alone:
        raise ProofError(
            f"checks in {path} that stand beside no witness: {', '.join(alone)}",
            hint='"beside" names the witness that the patch names for the same fault',
        )
    return catalogue


def plan_checks(
    catalogue: Mapping[str, CheckSpec],
    *,
    wanted: Sequence[str],
    witnesses: Sequence[str],
    upstream: Collection[str] = (),
    can_load: bool = True,
) -> Plan:
    """Plan the wanted checks on the overlay and the witnesses on both sides.

    A witness must fail on the base and pass on the overlay, each in a process of its own; one named in `upstream`,
    whose change the base has already, must pass on both, and so must those beside it. Checks of one group, side and
    environment share a process. Where the packages cannot be loaded here, only static checks are for a process.
    Raises UsageError for names that the catalogue lacks, and for a witness that is none.
    """
    _refuse_unknown(catalogue, wanted, witnesses)
    asked = sorted(dict.fromkeys((*wanted, *witnesses)), key=lambda name: catalogue[name].witness)
    checks = tuple(planned for name in asked for planned in _sides_of(catalogue[name], upstream))
    runnable = [check for check in checks if can_load or catalogue[check.name].static]
    return Plan(
        checks=checks,
        jobs=tuple(_make_jobs(catalogue, runnable)),
        unloadable=tuple(check for check in checks if check not in runnable),
    )


def _is_witness(catalogue: Mapping[str, CheckSpec], name: str) -> bool:
    return name in catalogue and catalogue[name].witness


def _make_spec(name: str, entry: _Entry) -> CheckSpec:
    return CheckSpec(
        name=name,
        module=entry.module,
        summary=entry.summary,
        group=name if entry.witness or entry.group is None else entry.group,
        sides=entry.sides,
        env=entry.env,
        static=entry.static,
        witness=entry.witness,
        beside=entry.beside,
    )


def _refuse_unknown(catalogue: Mapping[str, CheckSpec], wanted: Sequence[str], witnesses: Sequence[str]) -> None:
    faults = [_near_miss(name, catalogue) for name in dict.fromkeys((*wanted, *witnesses)) if name not in catalogue]
    faults += [
        f"{name!r} is a check, not a witness" for name in witnesses if name in catalogue and not catalogue[name].witness
    ]
    if faults:
        raise UsageError("; ".join(faults), hint=f"known checks and witnesses: {', '.join(catalogue)}")


def _near_miss(name: str, catalogue: Mapping[str, CheckSpec]) -> str:
    near = difflib.get_close_matches(name, catalogue, n=1)
    return f"there is no check {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def _sides_of(spec: CheckSpec, upstream: Collection[str]) -> Iterator[PlannedCheck]:
    for side in spec.sides:
        red = spec.witness and side == "base" and not {spec.name, spec.beside} & set(upstream)
        yield PlannedCheck(name=spec.name, side=side, wanted="fail" if red else "pass")


def _make_jobs(catalogue: Mapping[str, CheckSpec], checks: Sequence[PlannedCheck]) -> Iterator[Job]:
    shared: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[PlannedCheck]] = {}
    for check in checks:
        spec = catalogue[check.name]
        shared.setdefault((check.side, spec.group, tuple(sorted(spec.env.items()))), []).append(check)
    for (_, _, env), members in shared.items():
        first = members[0]
        yield Job(name=f"{first.side}-{first.name}", side=first.side, env=dict(env), checks=tuple(members))
