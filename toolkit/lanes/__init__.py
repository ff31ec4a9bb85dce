"""From a locked base to a wheel, by the lane that its form takes: patched as it is, or built from source.

A release wheel is fetched, patched and repacked. A source tree is fetched, patched and built once for everything that
can change a compiled file; the Python files of the patches are then put into that native wheel, so that who edits only
those never compiles. The wheel without patches, the negative control's, comes the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from toolkit import repack
from toolkit.files import sha256_file, temporary_directory
from toolkit.lanes.entries import obtain_stored
from toolkit.lanes.fetch import fetch_base, fetch_submodules, obtain_environment, prefix_of
from toolkit.lanes.native import NATIVE, build_source, kept_build
from toolkit.lanes.patch import PatchedSource, patch_base
from toolkit.model import AppliedPatch, FetchedBase, Wheel
from toolkit.plan import Plan, PlannedComponent
from toolkit.wheels.stored import StoredWheel, write_wheel_record
from toolkit.work import Means, Watcher

__all__ = [
    "NATIVE",
    "PatchedSource",
    "fetch_all",
    "fetch_base",
    "kept_build",
    "obtain_base_wheel",
    "obtain_wheel",
    "patch_base",
    "prefix_of",
    "remarks_on",
    "remarks_on_patches",
]


def obtain_wheel(part: PlannedComponent, plan: Plan, means: Means, watcher: Watcher) -> StoredWheel:
    """Return the component's patched wheel from the store, made there if need be."""

    def make(folder: Path) -> None:
        made = _make_wheel(part, plan, means, watcher, folder)
        write_wheel_record(made, folder)
        for line in remarks_on(made):
            watcher.stage(prefix_of(part, plan), line)

    return obtain_stored("wheel", part.key.digest, make, means)


def obtain_base_wheel(part: PlannedComponent, plan: Plan, means: Means, watcher: Watcher) -> Wheel:
    """Return the component's wheel without a patch: the base itself, or what its source tree builds to."""
    if part.spec is not None:
        return obtain_wheel(part.without_patches(), plan, means, watcher).wheel
    base = fetch_base(part, plan, means, watcher)
    return Wheel(
        component=base.component,
        distribution=base.distribution,
        import_name=part.component.import_name,
        version=base.version,
        path=base.path,
        sha256=sha256_file(base.path),
        key=base.digest,
        patches=(),
    )


def fetch_all(part: PlannedComponent, plan: Plan, means: Means, watcher: Watcher) -> FetchedBase:
    """Bring all that the component's wheels take from elsewhere into the store, so that they can be made offline.

    That is, for a source tree, the build's environment, and the submodules with and without the patches.
    """
    base = fetch_base(part, plan, means, watcher)
    if part.spec is None:
        return base
    obtain_environment(part, plan, means, watcher)
    for one in (part.without_patches(), part):
        with temporary_directory("toolkit-") as scratch:
            patched = patch_base(one, base, plan, means, watcher, scratch)
            fetch_submodules(one, base, patched.parts[0], plan, means, watcher)
    return base


def remarks_on(stored: StoredWheel) -> list[str]:
    """Say what a person should know of how a wheel was made: patches that moved or were skipped, a wrong RECORD."""
    return [*remarks_on_patches(stored.applied), *stored.findings]


def remarks_on_patches(applied: Sequence[AppliedPatch]) -> list[str]:
    """Say which patches moved or were skipped."""
    moved = [f"{one.name} went in at another line: {'; '.join(one.offsets)}" for one in applied if one.offsets]
    return [*moved, *(f"{one.name} is skipped, the base has it already" for one in applied if one.status == "upstream")]


def _make_wheel(part: PlannedComponent, plan: Plan, means: Means, watcher: Watcher, folder: Path) -> StoredWheel:
    """Fetch the base, apply the series to it, and write the patched wheel into `folder`."""
    base = fetch_base(part, plan, means, watcher)
    with temporary_directory("toolkit-") as scratch:
        patched = patch_base(part, base, plan, means, watcher, scratch)
        if part.spec is not None:
            return build_source(part, patched, plan, means, watcher, folder)
        (tree,) = patched.parts
        watcher.stage(prefix_of(part, plan), "write the patched wheel")
        return repack.repack_wheel(tree, key=part.key, import_name=part.component.import_name, into=folder)
