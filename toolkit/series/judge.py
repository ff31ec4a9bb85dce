"""How each patch of a series stands to any tree; nothing is left there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePosixPath

from toolkit.git import Workspace
from toolkit.model import Patch, Series, SourceTree
from toolkit.series.diff import FileDiff
from toolkit.series.doubts import GITMODULES
from toolkit.series.gitlinks import is_gitlink
from toolkit.series.ground import ReadFile, lay_out
from toolkit.series.inventory import Inventory
from toolkit.series.lint import file_faults
from toolkit.series.moved import Trace, index_members, trace_file
from toolkit.series.ruling import refuse, rule
from toolkit.series.standing import OpenPatch, open_patch, take_in
from toolkit.series.verdict import PatchVerdict


def judge_series(
    series: Series, tree: SourceTree, *, scratch: Path, read_file: ReadFile | None = None
) -> tuple[PatchVerdict, ...]:
    """Say of each patch how it stands to a tree that the earlier ones which go in are in; raises for none of them.

    The others are left out. Works in `scratch/judge`, which is gone afterwards. git decides what fits and `place` what
    can be trusted, as when a series is applied. `read_file` reads one member of the base, so that a file which was
    renamed can be found; without it only what is laid out is looked at.
    """
    with Workspace(scratch / "judge") as workspace:
        refused = lay_out(series.paths, tree, workspace.tree, read_file=read_file)
        verdicts: dict[str, PatchVerdict] = {}
        good: list[OpenPatch] = []
        for one in map(open_patch, series.patches):
            if why := _unfit(one, refused):
                verdicts[one.name] = refuse(one, why)
            else:
                good.append(one)
        inventory = Inventory(files=tree.members, gitlinks=tree.gitlinks)
        trace = _tracer(tree, workspace.tree, read_file)
        for group in _independent(good):
            standings = list(zip(group, take_in(group, workspace, inventory), strict=True))
            verdicts |= {one.name: rule(one, standing, workspace.tree, inventory, trace) for one, standing in standings}
            inventory = inventory.after(
                file for one, standing in standings if standing.is_applied for file in one.files
            )
    return tuple(_with_left_out(series, verdicts))


def _unfit(one: OpenPatch, refused: Mapping[str, str]) -> str:
    """Return why nobody is asked about a patch: what could not be read of it, or where it would write."""
    faults = [fault for file in one.files for fault in file_faults(file)]
    if one.faults or faults or not one.files:
        return f"it cannot be read: {[*one.faults, *faults, 'it has no diff'][0]}"
    paths = [path for file in one.files for path in (file.path, file.old_path) if path in refused]
    return f"{paths[0]} cannot be patched: {refused[paths[0]]}" if paths else ""


def _tracer(tree: SourceTree, patched: Path, read_file: ReadFile | None) -> Callable[[FileDiff], Trace]:
    """Return what finds out where a file went, among the members as the patches so far have left them."""
    read_base = cache(read_file) if read_file else None
    index = cache(lambda: index_members(tree.members))

    def read(path: str) -> bytes | None:
        for root in (patched, tree.root):
            if (root / path).is_file():
                return (root / path).read_bytes()
        return read_base(path) if read_base else None

    return lambda file: trace_file(file, index(), read)


def _independent(patches: Iterable[OpenPatch]) -> Iterator[list[OpenPatch]]:
    """Yield the patches in groups, in the order in which they can be judged.

    No two of a group name one path, or the one a folder of what the other names; a patch is in a later group than all
    before it that do.
    """
    groups: list[list[OpenPatch]] = []
    at: dict[str, int] = {}
    below: dict[str, int] = {}
    for one in patches:
        paths = _claimed(one)
        folders = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
        number = max(
            (*(at.get(path, 0) for path in paths | folders), *(below.get(path, 0) for path in paths)), default=0
        )
        at |= dict.fromkeys(paths, number + 1)
        below |= {folder: max(below.get(folder, 0), number + 1) for folder in folders}
        if number == len(groups):
            groups.append([])
        groups[number].append(one)
    yield from groups


def _claimed(one: OpenPatch) -> set[str]:
    paths = {path for file in one.files for path in (file.path, file.old_path)}
    return paths | ({GITMODULES} if any(is_gitlink(file) for file in one.files) else set())


def _with_left_out(series: Series, verdicts: Mapping[str, PatchVerdict]) -> Iterator[PatchVerdict]:
    """Yield the verdicts in order; a conflict names what was left out before that changes the same files."""
    missing: list[Patch] = []
    for patch in series.patches:
        verdict = verdicts[patch.name]
        others = [one.name for one in missing if _paths(one) & _paths(patch)]
        if others and verdict.verdict in ("conflict", "partly"):
            verdict = replace(verdict, reason=f"{verdict.reason}; {_left_out(others)}")
        if verdict.verdict in ("conflict", "partly"):
            missing.append(patch)
        yield verdict


def _left_out(names: Sequence[str]) -> str:
    return f"{', '.join(names)} {'changes' if len(names) == 1 else 'change'} the same file and did not go in"


def _paths(patch: Patch) -> set[str]:
    return {path for change in patch.changes for path in (change.path, change.old_path)}
