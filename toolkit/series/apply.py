"""Applying a series: git's work in a workspace of our own, checked before and after."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from toolkit.errors import ApplyError
from toolkit.files import sha256_files, staged_directory, tree_signatures
from toolkit.git import Attempt, Workspace
from toolkit.model import AppliedPatch, ChangedFile, ChangeKind, FetchedBase, PatchedTree, Series, SourceTree
from toolkit.series.diff import FileDiff
from toolkit.series.explain import already_upstream, explain_refusal, unknown_acceptance
from toolkit.series.ground import copy_files, lay_out
from toolkit.series.inventory import Inventory
from toolkit.series.parts import classify
from toolkit.series.standing import OpenPatch, Standing, open_patch, take_in

Hashes = Mapping[str, str]
"""The sha256 of every file of a tree, and the commit of every submodule, by its path."""


def apply_series(
    series: Series, tree: SourceTree, *, into: Path, accept_upstream: Collection[str] = (), scratch: Path
) -> PatchedTree:
    """Apply a whole series strictly and leave the changed files below `into`, or raise and leave nothing there.

    Works on a copy of the files that the series names, in `scratch/apply`, which a killed run may have left behind
    and which is gone afterwards. No fuzz; an offset is accepted and reported where the hunk's place can be trusted
    (see `place.find_misplacement`), and a submodule is moved only from the commit that the patch expects. A patch
    whose change is there already is skipped if `accept_upstream` has its name. Afterwards every file and submodule
    that the applied patches name has changed, and nothing else has.
    """
    _require_absent(into)
    require_known_acceptance(series, accept_upstream)
    with Workspace(scratch / "apply") as workspace:
        _lay_out(series, tree, workspace.tree)
        before = _hash_tree(workspace.tree)
        applied, named, gitlinks = _apply_patches(series, tree, workspace, accept_upstream)
        after = _hash_tree(workspace.tree)
        _require_series_changed(series, named, {**before, **tree.gitlinks}, {**after, **gitlinks})
        changed = tuple(_changed_files(series, before, after))
        with staged_directory(into) as aside:
            copy_files([file.path for file in changed if file.sha256], workspace.tree, aside)
    moved = _moved_gitlinks(tree.gitlinks, gitlinks)
    return PatchedTree(source=tree, series=series, root=into, applied=applied, changed=changed, gitlinks=moved)


def require_known_acceptance(series: Series, accept_upstream: Collection[str]) -> None:
    """Raise ApplyError for an accepted name that no patch has, in this part of the series or in the other."""
    names = [*(patch.name for patch in series.patches), *series.elsewhere]
    for accepted in accept_upstream:
        if accepted not in names:
            raise unknown_acceptance(accepted, series.name, names)


def _apply_patches(
    series: Series, tree: SourceTree, workspace: Workspace, accept_upstream: Collection[str]
) -> tuple[tuple[AppliedPatch, ...], set[str], Mapping[str, str]]:
    """Apply the patches in turn; return how each went in, what those not skipped name, and where submodules are."""
    inventory = Inventory(files=tree.members, gitlinks=tree.gitlinks)
    named: set[str] = set()
    applied = []
    for one in map(open_patch, series.patches):
        (standing,) = take_in([one], workspace, inventory)
        result = _judge(one, standing, tree.base, workspace, inventory, accept_upstream)
        applied.append(result)
        if result.status != "upstream":
            named |= one.named
            inventory = inventory.after(one.files)
    return tuple(applied), named, inventory.gitlinks


def _judge(
    one: OpenPatch,
    standing: Standing,
    base: FetchedBase,
    workspace: Workspace,
    inventory: Inventory,
    accept_upstream: Collection[str],
) -> AppliedPatch:
    """Return how a patch went in, or raise ApplyError for one that did not and is not accepted for that."""
    if standing.doubt:
        raise ApplyError(f"patch {one.name} {standing.doubt.says}", hint=standing.doubt.hint)
    if standing.state == "neither":
        refusal = explain_refusal(one, standing, workspace.tree, inventory)
        raise ApplyError(
            f"patch {one.name} does not apply to {base.component} {base.version}: {refusal.why}",
            hint=refusal.hint,
            details=refusal.details,
        )
    if standing.state == "present":
        if one.name not in accept_upstream:
            raise already_upstream(one.patch, base)
        return AppliedPatch(name=one.name, status="upstream")
    offsets = tuple(_offset_lines(standing.attempt, one.texts))
    return AppliedPatch(name=one.name, status="offset" if offsets else "clean", offsets=offsets)


# --- before ----------------------------------------------------------------------------------------------------


def _require_absent(into: Path) -> None:
    if os.path.lexists(into):
        raise ApplyError(f"{into} is there already", hint="remove it, or choose another folder for the patched files")


def _lay_out(series: Series, tree: SourceTree, target: Path) -> None:
    """Copy the base's files that a series names; refuse whatever is not a regular file in real folders."""
    for path, why in lay_out(series.paths, tree, target).items():
        raise ApplyError(
            f"{path} cannot be patched: {why}",
            hint="patch the file that it leads to, under that file's own path",
        )


# --- after -----------------------------------------------------------------------------------------------------


def _hash_tree(root: Path) -> dict[str, str]:
    return sha256_files(root, tree_signatures(str(root)))


def _require_series_changed(series: Series, named: set[str], before: Hashes, after: Hashes) -> None:
    _require_changed(named, before, after, what=f"series {series.name!r}", why=_undone(series, named, before, after))


def _require_changed(named: set[str], before: Hashes, after: Hashes, *, what: str, why: str = "") -> None:
    """Compare trees by hashes: git ends with 0, for one, when it skips files that lie outside its repository."""
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    if untouched := sorted(named - changed):
        raise ApplyError(f"{what} names {', '.join(untouched)}, which did not change", hint=why)
    if surplus := sorted(changed - named):
        raise ApplyError(f"{what} changed {', '.join(surplus)}, which it does not name")


def _undone(series: Series, named: set[str], before: Hashes, after: Hashes) -> str:
    """Name the patches that cancel each other out in the first file that is as it was."""
    for path in sorted(named):
        if before.get(path) == after.get(path):
            names = [patch.name for patch in series.patches if any(path in (c.path, c.old_path) for c in patch.changes)]
            return f"{', '.join(names)} cancel each other out there; drop or fold them"
    return ""


def _moved_gitlinks(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    paths = sorted(before.keys() | after.keys())
    return {path: after.get(path) for path in paths if before.get(path) != after.get(path)}


def _changed_files(series: Series, before: Hashes, after: Hashes) -> Iterator[ChangedFile]:
    arrived = {change.path for patch in series.patches for change in patch.changes if change.kind == "renamed"}
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) != after.get(path):
            kind: ChangeKind = "modified"
            if path not in after:
                kind = "deleted"
            elif path not in before:
                kind = "renamed" if path in arrived else "added"
            yield ChangedFile(path=path, kind=kind, part=classify(path), sha256=after.get(path))


def _offset_lines(attempt: Attempt, files: Sequence[FileDiff]) -> Iterator[str]:
    for moved in attempt.offsets:
        lines = "line" if abs(moved.offset) == 1 else "lines"
        path = files[moved.file].path
        yield f"{path}: hunk #{moved.hunk} succeeded at {moved.line} (offset {moved.offset} {lines})"
