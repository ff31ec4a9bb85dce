"""Applying a series: git's work in a workspace of our own, checked before and after."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from toolkit.errors import ApplyError
from toolkit.files import sha256_bytes, sha256_files, staged_directory, tree_signatures
from toolkit.git import Attempt, Workspace
from toolkit.model import AppliedPatch, ChangedFile, ChangeKind, FetchedBase, Patch, PatchedTree, Series, SourceTree
from toolkit.series.diff import FileDiff, parse_diff
from toolkit.series.explain import already_upstream, explain_failure, misplaced, unknown_acceptance
from toolkit.series.gitlinks import is_gitlink, read_move
from toolkit.series.inventory import Inventory
from toolkit.series.mail import parse_mail
from toolkit.series.parts import classify
from toolkit.series.place import find_misplacement, is_own_base

GITMODULES = ".gitmodules"

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
            _copy_files([file.path for file in changed if file.sha256], workspace.tree, aside)
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
    for patch in series.patches:
        files = _read_again(patch)
        result = _apply_patch(patch, files, tree.base, workspace, inventory, accept_upstream)
        applied.append(result)
        if result.status != "upstream":
            named |= _named(files)
            inventory = inventory.after(files)
    return tuple(applied), named, inventory.gitlinks


def _apply_patch(
    patch: Patch,
    files: list[FileDiff],
    base: FetchedBase,
    workspace: Workspace,
    inventory: Inventory,
    accept_upstream: Collection[str],
) -> AppliedPatch:
    attempt = _check(files, workspace, inventory)
    if attempt.fits:
        _require_room(patch, files, inventory)
        _require_own_places(patch, files, workspace)
        return _apply_fitting(patch, files, workspace)
    if not _check(files, workspace, inventory, reverse=True).fits:
        raise explain_failure(patch, files, base, workspace, inventory, attempt)
    _require_trusted(patch, files, workspace.tree, reverse=True)
    if patch.name not in accept_upstream:
        raise already_upstream(patch, base)
    return AppliedPatch(name=patch.name, status="upstream")


def _check(files: list[FileDiff], workspace: Workspace, inventory: Inventory, *, reverse: bool = False) -> Attempt:
    """Ask git about the files and the inventory about the submodules: a patch fits where both do."""
    diff = _text_of(files)
    attempt = workspace.check(diff, reverse=reverse) if diff else Attempt(fits=True, offsets=(), messages=())
    states = {inventory.state_of(read_move(file)) for file in files if is_gitlink(file)}
    return replace(attempt, fits=attempt.fits and states <= {"present" if reverse else "missing"})


def _apply_fitting(patch: Patch, files: list[FileDiff], workspace: Workspace) -> AppliedPatch:
    texts = [file for file in files if not is_gitlink(file)]
    if not texts:
        return AppliedPatch(name=patch.name, status="clean")
    before = _hash_tree(workspace.tree)
    attempt = workspace.apply(_text_of(texts))
    if not attempt.fits:
        raise ApplyError(f"patch {patch.name} fitted, but git could not apply it", details=attempt.messages)
    _require_changed(_named(texts), before, _hash_tree(workspace.tree), what=f"patch {patch.name}")
    offsets = tuple(_offset_lines(attempt, texts))
    return AppliedPatch(name=patch.name, status="offset" if offsets else "clean", offsets=offsets)


def _text_of(files: list[FileDiff]) -> bytes:
    """Return the diff that git is to read: a submodule's commit is no file's line."""
    return b"".join(file.raw for file in files if not is_gitlink(file))


# --- before ----------------------------------------------------------------------------------------------------


def _require_absent(into: Path) -> None:
    if os.path.lexists(into):
        raise ApplyError(f"{into} is there already", hint="remove it, or choose another folder for the patched files")


def _lay_out(series: Series, tree: SourceTree, target: Path) -> None:
    """Copy the base's files that a series names; refuse whatever is not a regular file in real folders."""
    wanted = sorted(series.paths & tree.members)
    for path in sorted(series.paths):
        _refuse_symlinks(path, tree.root)
    for path in wanted:
        if not (tree.root / path).is_file():
            raise ApplyError(f"{path} is a file of {tree.base.file}, but was not laid out in {tree.root}")
    _copy_files(wanted, tree.root, target)


def _refuse_symlinks(path: str, root: Path) -> None:
    for place in (PurePosixPath(path), *PurePosixPath(path).parents):
        if (root / place).is_symlink() and str(place) != ".":
            raise ApplyError(
                f"{path} cannot be patched: {place} is a symlink in the base",
                hint="patch the file that it leads to, under that file's own path",
            )


def _copy_files(paths: list[str], source: Path, target: Path) -> None:
    for path in paths:
        copy = target / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / path, copy)
        copy.chmod(0o755 if (source / path).stat().st_mode & stat.S_IXUSR else 0o644)


def _read_again(patch: Patch) -> list[FileDiff]:
    raw = patch.path.read_bytes()
    if sha256_bytes(raw) != patch.sha256:
        raise ApplyError(f"{patch.path} has changed since the series was read", hint="run the command again")
    return parse_diff(parse_mail(raw, []).diff, [])


def _require_room(patch: Patch, files: list[FileDiff], inventory: Inventory) -> None:
    for file in files:
        if file.kind in ("added", "renamed") and (obstacle := inventory.obstacle(file.path)):
            raise ApplyError(f"patch {patch.name} adds {file.path}, but the base has {obstacle}")
        if file.kind == "added" and is_gitlink(file) and GITMODULES not in inventory.after(files).files:
            raise ApplyError(
                f"patch {patch.name} adds submodule {file.path}, but no {GITMODULES} says where it comes from",
                hint=f"add its entry to {GITMODULES} in the same patch, as `git submodule add` does;"
                " a release wheel has no submodules",
            )


def _require_own_places(patch: Patch, files: list[FileDiff], workspace: Workspace) -> None:
    """Refuse a patch that fits at places which may not be its own.

    One that fits both ways in a base that has moved on is in there already, and what it fits is a copy.
    """
    _require_trusted(patch, files, workspace.tree, reverse=False)
    moved_on = [file for file in _edits(files) if not _stands_on_own_base(file, workspace.tree)]
    if moved_on and workspace.check(_text_of(files), reverse=True).fits:
        raise ApplyError(
            f"patch {patch.name} is ambiguous: its old lines and its new lines both stand in {moved_on[0].path}",
            hint="see whether upstream has taken the change; if not, give the patch more context (-U10)",
        )


def _require_trusted(patch: Patch, files: list[FileDiff], tree: Path, *, reverse: bool) -> None:
    for file in _edits(files):
        path = file.path if reverse else file.old_path
        found = find_misplacement(file, (tree / path).read_bytes(), reverse=reverse)
        if found:
            raise misplaced(patch, path, found, reverse=reverse)


def _edits(files: list[FileDiff]) -> list[FileDiff]:
    return [file for file in files if file.is_edit and not is_gitlink(file)]


def _stands_on_own_base(file: FileDiff, tree: Path) -> bool:
    return is_own_base(file, (tree / file.old_path).read_bytes())


# --- after -----------------------------------------------------------------------------------------------------


def _named(files: list[FileDiff]) -> set[str]:
    """Return the paths that must have changed: all but the source of a copy."""
    return {file.path for file in files} | {file.old_path for file in files if file.kind == "renamed"}


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


def _offset_lines(attempt: Attempt, files: list[FileDiff]) -> Iterator[str]:
    for moved in attempt.offsets:
        lines = "line" if abs(moved.offset) == 1 else "lines"
        path = files[moved.file].path
        yield f"{path}: hunk #{moved.hunk} succeeded at {moved.line} (offset {moved.offset} {lines})"
