"""From how a patch stands to its verdict: every hunk's, the patch's, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from toolkit.series.diff import FileDiff, Hunk
from toolkit.series.explain import Refusal, explain_conflict, explain_refusal
from toolkit.series.gitlinks import is_gitlink
from toolkit.series.inventory import Inventory
from toolkit.series.moved import Trace
from toolkit.series.pieces import Piece
from toolkit.series.place import Place, locate_hunks
from toolkit.series.standing import OpenPatch, Standing
from toolkit.series.verdict import HunkState, HunkVerdict, PatchVerdict


def rule(
    one: OpenPatch, standing: Standing, tree: Path, inventory: Inventory, trace: Callable[[FileDiff], Trace]
) -> PatchVerdict:
    """Return the verdict on a patch; `tree` and `inventory` are as they were when it was asked about.

    What was applied meanwhile may only be the patch itself. `trace` finds out where a file went.
    """
    make = partial(PatchVerdict, name=one.name, witness=one.patch.witness)
    if standing.doubt:
        return make(verdict="conflict", hunks=tuple(_doubted(one, standing, tree)), reason=standing.doubt.says)
    if standing.state == "fits":
        hunks = tuple(_fitting(one, standing))
        moved = any(hunk.offset for hunk in hunks)
        return make(verdict="offset" if moved else "applies", hunks=hunks)
    if standing.state == "present":
        return make(
            verdict="upstream", hunks=tuple(_fitting(one, standing)), reason="the base has all of its change already"
        )
    return _rule_on_pieces(make, one, standing, tree, inventory, trace)


def refuse(one: OpenPatch, reason: str) -> PatchVerdict:
    """Return the verdict on a patch that nobody can be asked about."""
    hunks = tuple(
        HunkVerdict(path=file.old_path, hunk=number, verdict="conflict", detail=reason)
        for file, number, _ in _numbered(one.files)
    )
    return PatchVerdict(name=one.name, witness=one.patch.witness, verdict="conflict", hunks=hunks, reason=reason)


def _numbered(files: Sequence[FileDiff]) -> Iterator[tuple[FileDiff, int, Hunk | None]]:
    for file in files:
        hunks: Sequence[Hunk | None] = file.hunks if file.is_edit and not is_gitlink(file) else ()
        yield from ((file, number, hunk) for number, hunk in enumerate(hunks or (None,), 1))


# --- a patch that is in, or could go in --------------------------------------------------------------------------


def _fitting(one: OpenPatch, standing: Standing) -> Iterator[HunkVerdict]:
    """Read git's answer: what it does not mention is at its own line, and backwards it counts the other way."""
    is_there = standing.state == "present"
    sign = -1 if is_there else 1
    moved = {(one.texts[found.file].path, found.hunk): sign * found.offset for found in standing.attempt.offsets}
    for file, number, hunk in _numbered(one.files):
        offset = moved.get((file.path, number), 0) if hunk else 0
        own = (hunk.new_start if is_there else hunk.old_start) if hunk else 1
        yield HunkVerdict(
            path=file.path if is_there else file.old_path,
            hunk=number,
            verdict="upstream" if is_there else _in_words(offset),
            line=max(own, 1) + offset,
            offset=offset,
        )


def _doubted(one: OpenPatch, standing: Standing, tree: Path) -> Iterator[HunkVerdict]:
    """Judge each hunk by its place; where none is to blame, all of them are in doubt."""
    assert standing.doubt is not None
    is_there = standing.state == "present"
    placed = [
        (file, number, hunk, _place(file, number, hunk, tree, reverse=is_there))
        for file, number, hunk in _numbered(one.files)
    ]
    is_blamed = any(place.distrust for *_, place in placed)
    for file, number, hunk, place in placed:
        own = max(hunk.new_start if is_there else hunk.old_start, 1) if hunk else place.line
        detail = place.distrust if is_blamed else standing.doubt.says
        offset = place.line - own
        yield HunkVerdict(
            path=file.path if is_there else file.old_path,
            hunk=number,
            verdict="conflict" if detail else "upstream" if is_there else _in_words(offset),
            line=place.line,
            offset=offset,
            detail=detail,
        )


def _place(file: FileDiff, number: int, hunk: Hunk | None, tree: Path, *, reverse: bool) -> Place:
    if hunk is None:
        return Place(line=1)
    raw = (tree / (file.path if reverse else file.old_path)).read_bytes()
    return locate_hunks(file, raw, reverse=reverse)[number - 1]


def _in_words(offset: int) -> HunkState:
    return "offset" if offset else "applies"


# --- a patch that is neither -------------------------------------------------------------------------------------


def _rule_on_pieces(
    make: Callable[..., PatchVerdict],
    one: OpenPatch,
    standing: Standing,
    tree: Path,
    inventory: Inventory,
    trace: Callable[[FileDiff], Trace],
) -> PatchVerdict:
    hunks = tuple(_judge_piece(piece, tree) for piece in standing.pieces)
    traces = [trace(file) for file in _gone(one, inventory)]
    moved = {found.path: found.new_path for found in traces if found.new_path}
    if any(piece.state == "present" for piece in standing.pieces):
        details = _shown(standing, tree)
        return make(verdict="partly", hunks=hunks, reason=_partly(standing.pieces), details=details, moved=moved)
    if traces:
        return make(verdict="conflict", hunks=hunks, reason=str(traces[0]), moved=moved)
    refusal = explain_refusal(one, standing, tree, inventory)
    return make(verdict="conflict", hunks=hunks, reason=refusal.why, details=refusal.details)


def _judge_piece(piece: Piece, tree: Path) -> HunkVerdict:
    own = max(piece.hunk.new_start if piece.state == "present" else piece.hunk.old_start, 1) if piece.hunk else 1
    path = piece.file.path if piece.state == "present" else piece.file.old_path
    if piece.state != "conflict":
        offset = piece.line - own if piece.line else 0
        state: HunkState = "upstream" if piece.state == "present" else _in_words(offset)
        return HunkVerdict(path=path, hunk=piece.number, verdict=state, line=piece.line, offset=offset)
    refusal = _explain(piece, tree)
    detail = piece.detail or (f"{refusal.details[0]}; {refusal.details[-1]}" if refusal else "")
    line = piece.line or (refusal.line if refusal else 0)
    return HunkVerdict(
        path=path, hunk=piece.number, verdict="conflict", line=line, offset=line - own if line else 0, detail=detail
    )


def _explain(piece: Piece, tree: Path) -> Refusal | None:
    """Explain one conflicting hunk; None where its file is not there, or where it is no hunk."""
    is_there = piece.hunk is not None and (tree / piece.file.old_path).is_file()
    return explain_conflict(piece, piece.hunk, tree) if is_there and piece.hunk else None


def _partly(pieces: Sequence[Piece]) -> str:
    there = [piece for piece in pieces if piece.state == "present"]
    other = [piece for piece in pieces if piece.state != "present"]
    first = f"{len(there)} of {len(pieces)} parts are in the base already: {there[0]} is"
    return f"{first}, {other[0]} is not" if other else f"{first}, but not in their order"


def _shown(standing: Standing, tree: Path) -> tuple[str, ...]:
    conflicts = (_explain(piece, tree) for piece in standing.pieces if piece.state == "conflict")
    first = next((refusal for refusal in conflicts if refusal), None)
    return (first.why, *first.details) if first else ()


def _gone(one: OpenPatch, inventory: Inventory) -> Iterator[FileDiff]:
    for file in one.texts:
        is_new = file.kind == "added" and file.path == file.old_path
        is_held = file.old_path in inventory.files or file.old_path in inventory.gitlinks
        if not is_new and not is_held and not inventory.submodule_of(file.old_path):
            yield file
