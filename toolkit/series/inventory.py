"""What a tree holds at one point of a series, laid out or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from toolkit.series.diff import FileDiff
from toolkit.series.gitlinks import GitlinkMove, is_gitlink, read_move

State = Literal["missing", "present", "conflict"]
"""How a piece of a patch stands to a tree: still to be done, done already, or neither."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Inventory:
    """The files of a tree, and its submodules with the commits that are recorded for them."""

    files: frozenset[str]
    gitlinks: Mapping[str, str]

    def after(self, changes: Iterable[FileDiff]) -> Inventory:
        """Return the inventory that a patch leaves."""
        moving = [change for change in changes if change.kind != "modified" or is_gitlink(change)]
        if not moving:
            return self
        files, gitlinks = set(self.files), dict(self.gitlinks)
        for change in moving:
            if is_gitlink(change):
                move = read_move(change)
                gitlinks.pop(move.path, None)
                gitlinks.update({move.path: move.new} if move.new else {})
            else:
                files -= {change.old_path} if change.kind in ("renamed", "deleted") else set()
                files |= {change.path} if change.kind != "deleted" else set()
        return Inventory(files=frozenset(files), gitlinks=gitlinks)

    def state_of(self, move: GitlinkMove) -> State:
        """Say how a submodule's move stands: there is no near enough, it is at the one commit or at the other."""
        recorded = self.gitlinks.get(move.path)
        if recorded == move.old:
            return "missing"
        return "present" if recorded == move.new else "conflict"

    def submodule_of(self, path: str) -> str:
        """Return the submodule that a path lies in, or nothing."""
        return next((str(parent) for parent in PurePosixPath(path).parents if str(parent) in self.gitlinks), "")

    def obstacle(self, path: str) -> str:
        """Return what is where a new file or submodule is to go, in words, or nothing."""
        for held, what in ((self.files, "a file"), (self.gitlinks, "a submodule")):
            if path in held:
                return f"{what} there already"
            if parent := next((str(parent) for parent in PurePosixPath(path).parents if str(parent) in held), ""):
                return f"{what} {parent}"
        below = f"{path}/"
        return "a folder of that name" if any(name.startswith(below) for name in (*self.files, *self.gitlinks)) else ""
