"""An overlay: the wheels' files side by side in one folder that goes first on PYTHONPATH, hash-listed.

What pip would do besides is left out on purpose: no console scripts are generated and no `#!python` line is
rewritten, as both would put an absolute path into a folder that may be moved; RECORD and `.data` paths in it stay as
the wheel has them, and there is no INSTALLER.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import OverlayError
from toolkit.files import copy_hashed
from toolkit.manifest import read_overlay, rehash_manifest, seal_site, verify_site, write_manifest
from toolkit.model import Contract, Key, ManifestEntry, Overlay, OverlayPackage, Target, Wheel

if TYPE_CHECKING:
    from toolkit.wheels.archive import WheelArchive

__all__ = [
    "LOGIC_VERSION",
    "LaidSite",
    "build_overlay",
    "lay_site",
    "read_overlay",
    "rehash_manifest",
    "verify_site",
]

LOGIC_VERSION = "1"
"""Part of every overlay's key: raise it when the same inputs would give another overlay."""

FOLDERS = ("site", "torch_extensions", "cache/inductor", "cache/triton", "wheels")

DATA_PLACES = {"purelib": "", "platlib": "", "data": "", "scripts": "bin/", "headers": "include/python/{name}/"}
"""Where `pip install --target` puts what stands below `<name>-<version>.data/`; headers as it does outside a venv."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LaidSite:
    """What was laid out; `findings` tell where a wheel's own RECORD is wrong about it."""

    entries: tuple[ManifestEntry, ...]
    findings: tuple[str, ...]


def build_overlay(
    into: Path,
    *,
    recipe: str,
    key: Key,
    wheels: Sequence[Wheel],
    target: Target,
    contract: Contract,
    env: Mapping[str, str],
    diagnostic: str = "",
    absent: Sequence[str] = (),
) -> Overlay:
    """Fill an empty folder with an overlay, whole and sealed; it may be renamed or moved afterwards.

    Raises OverlayError where two wheels carry one file or a wheel's bytes are not those that it was made with.
    """
    from concurrent.futures import ThreadPoolExecutor

    for folder in FOLDERS:
        (into / folder).mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(1) as pool:
        keeping = [pool.submit(_keep_wheel, wheel, into / "wheels") for wheel in wheels]
        laid = lay_site(wheels, into / "site")
        for kept in keeping:
            kept.result()
    overlay = Overlay(
        recipe=recipe,
        key=key.digest,
        root=into,
        target=target,
        contract=contract,
        packages=tuple(_package(wheel) for wheel in wheels),
        env=dict(env),
        diagnostic=diagnostic,
        absent=tuple(absent),
    )
    write_manifest(overlay, key, laid.entries, laid.findings)
    seal_site(into)
    return overlay


def lay_site(wheels: Sequence[Wheel], site: Path) -> LaidSite:
    """Lay the wheels' files out below `site`, each hashed as it is written, and list them by path."""
    from contextlib import ExitStack

    from toolkit.wheels.archive import (
        open_wheel,  # Not needed, and not light enough, to check an overlay that is there.
    )
    from toolkit.wheels.record import record_problems

    entries: list[ManifestEntry] = []
    findings: list[str] = []
    with ExitStack() as opened:
        archives = [opened.enter_context(open_wheel(wheel.path)) for wheel in wheels]
        for archive, places in zip(archives, _plan_places(archives), strict=True):
            laid = archive.extract_as(places, site)
            entries += [ManifestEntry(path=path, sha256=sha256, size=size) for path, (sha256, size) in laid.items()]
            digests = {name: laid[place] for name, place in places.items()}
            problems = record_problems(archive.record, digests, archive.dist_info)
            findings += [f"{archive.path.name}: {problem}" for problem in problems]
    return LaidSite(entries=tuple(sorted(entries, key=lambda entry: entry.path)), findings=tuple(findings))


def _plan_places(archives: Sequence[WheelArchive]) -> list[dict[str, str]]:
    """Return for each wheel where its members go, after making sure that no two go to one place."""
    from toolkit.wheels.zipread import find_clash

    owners: dict[str, str] = {}
    plans = []
    for archive in archives:
        plan = {name: _place(archive, name) for name in archive.members}
        for place in plan.values():
            if place in owners:
                raise _conflict(place, owners[place], archive.path.name)
            owners[place] = archive.path.name
        plans.append(plan)
    if clash := find_clash(owners):
        within = next(owner for place, owner in owners.items() if place.startswith(f"{clash}/"))
        raise _conflict(clash, owners[clash], within)
    return plans


def _place(archive: WheelArchive, name: str) -> str:
    top, _, rest = name.partition("/")
    if not top.endswith(".data") or not rest:
        return name
    kind, _, path = rest.partition("/")
    if kind not in DATA_PLACES or not path:
        raise OverlayError(
            f"{archive.path.name}: {name!r} has no place in an overlay",
            hint=f"expected one of {', '.join(DATA_PLACES)} below {top!r}",
        )
    return DATA_PLACES[kind].format(name=archive.metadata.name) + path


def _conflict(place: str, one: str, other: str) -> OverlayError:
    who = f"{one} carries {place!r} twice" if one == other else f"{one} and {other} both carry {place!r}"
    return OverlayError(f"{who}; one overlay cannot have both", hint="put them into recipes of their own")


def _keep_wheel(wheel: Wheel, folder: Path) -> None:
    """Copy a wheel in; a link would let a change here reach the store."""
    with open(wheel.path, "rb") as stream:
        actual, _ = copy_hashed(stream, folder / wheel.path.name)
    if actual != wheel.sha256:
        raise OverlayError(
            f"{wheel.path} has sha256 {actual}, expected {wheel.sha256}",
            hint="the store's entry is damaged; remove its folder and build again",
        )


def _package(wheel: Wheel) -> OverlayPackage:
    from toolkit.wheels.versions import base_version_of

    return OverlayPackage(
        component=wheel.component,
        import_name=wheel.import_name,
        distribution=wheel.distribution,
        version=wheel.version,
        base_version=base_version_of(wheel.version),
        wheel=wheel.path.name,
        wheel_sha256=wheel.sha256,
        patches=wheel.patches,
        built=wheel.built,
    )
