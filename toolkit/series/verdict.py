"""How a series stands to a tree, patch by patch and hunk by hunk: what is known before anybody decides anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

HunkState = Literal["applies", "offset", "upstream", "conflict"]
"""A hunk fits at its own line, fits at another that can be trusted, is in the tree already, or none of these."""

PatchState = Literal["applies", "offset", "upstream", "partly", "conflict"]
"""A patch goes in as it is, goes in with an offset, is in the tree whole, is in it in part, or does not go in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HunkVerdict:
    """How one hunk stands, counted from 1 in its file; 1 too for a file or submodule that has no hunks to split.

    `path` is the file in the tree that was asked. `line` is where the hunk stands or would, counted from 1, and 0 where
    that is nowhere; `offset` is how far that is from the line in its heading. `detail` says why it conflicts.
    """

    path: str
    hunk: int
    verdict: HunkState
    line: int = 0
    offset: int = 0
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchVerdict:
    """How one patch stands. `reason` is one line, empty where it applies, with an offset or without.

    `details` shows the first conflicting hunk: what it expected and what the tree has. `moved` names the files that
    are no more where the patch has them: the path in the patch to the path in the tree.
    """

    name: str
    witness: str
    verdict: PatchState
    hunks: tuple[HunkVerdict, ...]
    reason: str = ""
    details: tuple[str, ...] = ()
    moved: Mapping[str, str] = field(default_factory=dict)

    @property
    def goes_in(self) -> bool:
        """Whether the patch can be applied."""
        return self.verdict in ("applies", "offset")
