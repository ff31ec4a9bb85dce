"""Cutting in two: a series by the trees that its patches lie in, a patched tree by what has to be built again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from toolkit.errors import SeriesError
from toolkit.model import FileChange, Patch, PatchedTree, Series

Place = tuple[str, str]
"""A path that a patch names, and the outermost submodule that it lies in, or nothing."""

TWO_PATCHES = "write two patches: what lies in a submodule is applied after its commit is fetched"
NOT_THERE = "take that part out of the series, or write it for the tree that the other patches leave"


def split_series(series: Series, submodules: Collection[str]) -> tuple[Series, Series]:
    """Return the patches of the main tree and those of files in submodules, each in their order.

    `submodules` are the base's, as folders; those that a patch adds or removes count from then on. A patch that moves,
    adds or removes a submodule itself is one of the main tree. The whole main part is applied before the submodules
    are fetched, and so before the other: where a patch of a submodule has a lower number than one of the main tree, it
    goes in after it all the same. That is no matter to the result, as no file is in both trees, but a patch of a
    submodule has to be written for the commit that the whole main part leaves.

    Raises SeriesError for a patch that has something in both, for one that changes a submodule within a submodule, and
    for one of files in a submodule that a later patch takes away.
    """
    placed = list(_place_patches(series, submodules))
    inner = [(patch, places) for patch, places in placed if any(folder for _, folder in places)]
    _require_none(series, [fault for patch, places in inner for fault in _both(patch, places)], hint=TWO_PATCHES)
    _require_none(series, [fault for patch, places in inner for fault in _lost(patch, places, series)], hint=NOT_THERE)
    chosen = [patch for patch, _ in inner]
    return _part(series, [patch for patch in series.patches if patch not in chosen]), _part(series, chosen)


def native_changes(patched: PatchedTree, is_native: Callable[[str], bool]) -> PatchedTree:
    """Return the tree with the changes alone that can change a compiled file, every move of a submodule among them."""
    return replace(patched, changed=tuple(file for file in patched.changed if is_native(file.path)))


def python_changes(patched: PatchedTree, is_native: Callable[[str], bool]) -> PatchedTree:
    """Return the tree with the changes alone that no compiled file depends on; its paths stay those of the tree."""
    changed = tuple(file for file in patched.changed if not is_native(file.path))
    return replace(patched, changed=changed, gitlinks={})


def _place_patches(series: Series, submodules: Collection[str]) -> Iterator[tuple[Patch, list[Place]]]:
    folders = set(submodules)
    for patch in series.patches:
        folders |= {change.path for change in patch.changes if change.is_gitlink}
        paths = dict.fromkeys(path for change in patch.changes for path in (change.path, change.old_path))
        yield patch, [(path, _folder_of(path, folders)) for path in paths]
        folders -= {change.path for change in patch.changes if _is_removal(change)}


def _folder_of(path: str, folders: Collection[str]) -> str:
    parents = reversed(PurePosixPath(path).parents)
    return next((str(parent) for parent in parents if str(parent) in folders), "")


def _require_none(series: Series, faults: Sequence[str], *, hint: str) -> None:
    if faults:
        raise SeriesError(f"series {series.name!r} cannot be split: {faults[0]}", hint=hint, details=faults[1:])


def _both(patch: Patch, places: Sequence[Place]) -> Iterator[str]:
    """Say where a patch changes both trees."""
    if outside := [path for path, folder in places if not folder]:
        path, folder = next(place for place in places if place[1])
        yield f"patch {patch.name} changes {outside[0]} and, in submodule {folder}, {path}"


def _lost(patch: Patch, places: Sequence[Place], series: Series) -> Iterator[str]:
    """Say what of a patch no tree could take: the submodules are fetched when the main tree is done."""
    moved = {change.path for change in patch.changes if change.is_gitlink}
    gone = {change.path: one.name for one in series.patches for change in one.changes if _is_removal(change)}
    for path, folder in places:
        if path in moved:
            yield f"patch {patch.name} moves {path}, which submodule {folder} records; move that instead"
        elif folder in gone:
            yield f"patch {patch.name} changes {path}, but patch {gone[folder]} removes submodule {folder}"


def _is_removal(change: FileChange) -> bool:
    return change.is_gitlink and change.kind == "deleted"


def _part(series: Series, patches: Collection[Patch]) -> Series:
    chosen = {patch.name for patch in patches}
    elsewhere = tuple(patch.name for patch in series.patches if patch.name not in chosen)
    return replace(series, patches=tuple(patches), elsewhere=elsewhere)
