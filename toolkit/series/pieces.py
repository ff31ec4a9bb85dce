"""A patch in its smallest parts, each asked about by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolkit.git import Workspace
from toolkit.series.diff import FileDiff, Hunk
from toolkit.series.gitlinks import is_gitlink, read_move
from toolkit.series.inventory import Inventory, State
from toolkit.series.place import Place, locate_hunks

NOWHERE = Place(line=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """The smallest part of a patch that can be asked about: one hunk, a file without hunks to split, or a submodule.

    `line` is where it stands, 0 where it does not. `detail` says why a hunk that does stand somewhere is in conflict
    all the same; `messages` is what git said of a whole file.
    """

    file: FileDiff
    hunk: Hunk | None
    number: int
    state: State = "conflict"
    line: int = 0
    detail: str = ""
    messages: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.hunk:
            return f"hunk #{self.number} of {self.file.path}"
        return f"submodule {self.file.path}" if is_gitlink(self.file) else self.file.path


def ask_about_pieces(
    patches: Sequence[Sequence[FileDiff]], workspace: Workspace, inventory: Inventory
) -> list[tuple[Piece, ...]]:
    """Say of every piece of every patch how it stands by itself; git is asked once each way about all the hunks."""
    cut = [list(_cut(files)) for files in patches]
    hunks = [piece for pieces in cut for piece in pieces if piece.hunk]
    forward = _fitting(hunks, workspace, reverse=False)
    back = _fitting(hunks, workspace, reverse=True)
    known = {id(piece): _judge_hunk(piece, forward.get(id(piece)), back.get(id(piece))) for piece in hunks}
    return [
        tuple(known.get(id(piece)) or _ask_about_file(piece, workspace, inventory) for piece in pieces)
        for pieces in cut
    ]


def _cut(files: Sequence[FileDiff]) -> Iterator[Piece]:
    for file in files:
        hunks: Sequence[Hunk | None] = file.hunks if file.is_edit and not is_gitlink(file) else ()
        for number, hunk in enumerate(hunks or (None,), 1):
            yield Piece(file=file, hunk=hunk, number=number)


def _fitting(pieces: Sequence[Piece], workspace: Workspace, *, reverse: bool) -> dict[int, Place]:
    """Return the places of those hunks that fit, by the identity of the piece."""
    asked = [piece for piece in pieces if (workspace.tree / _path(piece.file, reverse=reverse)).is_file()]
    fits = workspace.fitting_hunks(
        [(_path(piece.file, reverse=reverse), piece.hunk.raw) for piece in asked if piece.hunk], reverse=reverse
    )
    return {id(piece): _place(piece, workspace.tree, reverse=reverse) for n, piece in enumerate(asked) if n in fits}


def _place(piece: Piece, tree: Path, *, reverse: bool) -> Place:
    raw = (tree / _path(piece.file, reverse=reverse)).read_bytes()
    return locate_hunks(piece.file, raw, reverse=reverse)[piece.number - 1]


def _path(file: FileDiff, *, reverse: bool) -> str:
    return file.path if reverse else file.old_path


def _judge_hunk(piece: Piece, forward: Place | None, back: Place | None) -> Piece:
    if forward and back:
        return replace(
            piece, line=forward.line,
            detail=f"it is ambiguous: its old lines stand at line {forward.line}, its new lines at line {back.line}",
        )  # fmt: skip
    found = forward or back or NOWHERE
    if found.distrust or found is NOWHERE:
        return replace(piece, line=found.line, detail=_untrusted(found, is_present=bool(back)))
    return replace(piece, line=found.line, state="missing" if forward else "present")


def _untrusted(place: Place, *, is_present: bool) -> str:
    if not place.distrust:
        return ""
    return (
        f"it {'seems to be in the base already' if is_present else 'fits'} at line {place.line}, but {place.distrust}"
    )


def _ask_about_file(piece: Piece, workspace: Workspace, inventory: Inventory) -> Piece:
    if is_gitlink(piece.file):
        return replace(piece, state=inventory.state_of(read_move(piece.file)))
    attempt = workspace.check(piece.file.raw)
    if attempt.fits:
        return replace(piece, state="missing", line=1)
    if workspace.check(piece.file.raw, reverse=True).fits:
        return replace(piece, state="present", line=1)
    return replace(piece, messages=attempt.messages)
