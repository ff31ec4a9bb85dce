"""Why a patch that git would take is not taken all the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.series.diff import FileDiff
from toolkit.series.gitlinks import is_gitlink
from toolkit.series.inventory import Inventory
from toolkit.series.place import find_misplacement, has_places, is_own_base

GITMODULES = ".gitmodules"

UNMISTAKABLE = "write the patch again for this base, with enough context to be unmistakable (git format-patch -U10)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Doubt:
    """What is wrong with a patch that fits, or that seems to be there; `says` goes on after the patch's name."""

    says: str
    hint: str = ""


def find_doubt(files: Sequence[FileDiff], tree: Path, inventory: Inventory) -> Doubt | None:
    """Return why a patch that fits a tree must not be applied there, or None."""
    return _no_room(files, inventory) or _misplaced(files, tree, reverse=False) or _both_ways(files, tree)


def find_doubt_of_presence(files: Sequence[FileDiff], tree: Path) -> Doubt | None:
    """Return why a patch whose new lines are in a tree may not be there all the same, or None."""
    return _misplaced(files, tree, reverse=True)


def edits(files: Sequence[FileDiff]) -> list[FileDiff]:
    """Return those files whose hunks have places in a file that is there."""
    return [file for file in files if file.is_edit and not is_gitlink(file)]


def _no_room(files: Sequence[FileDiff], inventory: Inventory) -> Doubt | None:
    for file in files:
        if file.kind in ("added", "renamed") and (obstacle := inventory.obstacle(file.path)):
            return Doubt(says=f"adds {file.path}, but the base has {obstacle}")
        if file.kind == "added" and is_gitlink(file) and GITMODULES not in inventory.after(files).files:
            return Doubt(
                says=f"adds submodule {file.path}, but no {GITMODULES} says where it comes from",
                hint=f"add its entry to {GITMODULES} in the same patch, as `git submodule add` does;"
                " a release wheel has no submodules",
            )
    return None


def _misplaced(files: Sequence[FileDiff], tree: Path, *, reverse: bool) -> Doubt | None:
    verb = "seems to be in the base already" if reverse else "fits"
    for file in edits(files):
        path = file.path if reverse else file.old_path
        if found := find_misplacement(file, (tree / path).read_bytes(), reverse=reverse):
            return Doubt(
                says=f"cannot be trusted: hunk #{found.hunk} of {path} {verb} at {path}:{found.line},"
                f" but {found.reason}",
                hint=UNMISTAKABLE,
            )
    return None


def _both_ways(files: Sequence[FileDiff], tree: Path) -> Doubt | None:
    """Doubt a patch that is in there already as a whole, in a base that has moved on: what it fits is a copy."""
    changed = [file for file in edits(files) if file.path == file.old_path]
    if len(changed) < sum(not is_gitlink(file) for file in files):
        return None  # What adds, deletes or renames a file fits one way only.
    bases = {file.path: (tree / file.path).read_bytes() for file in changed}
    moved_on = [file for file in changed if not is_own_base(file, bases[file.path])]
    if moved_on and all(has_places(file, bases[file.path], reverse=True) for file in changed):
        return Doubt(
            says=f"is ambiguous: its old lines and its new lines both stand in {moved_on[0].path}",
            hint="see whether upstream has taken the change; if not, give the patch more context (-U10)",
        )
    return None
