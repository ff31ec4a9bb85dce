"""Why a patch does not go in: what is missing, what is there already, and where the first conflict is."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import ApplyError
from toolkit.model import FetchedBase, Patch
from toolkit.series.diff import FileDiff, Hunk, split_lines
from toolkit.series.doubts import UNMISTAKABLE
from toolkit.series.gitlinks import is_gitlink, read_move
from toolkit.series.inventory import Inventory
from toolkit.series.pieces import Piece
from toolkit.series.place import find_nearest
from toolkit.series.standing import OpenPatch, Standing

SHOWN_LINES = 4

REGENERATE = "write the patch again for this base, or drop it if upstream has solved the same in its own way"


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """Why a patch does not go in: a line, what shows it, and what to do. `line` is where, 0 where that is nowhere."""

    why: str
    details: tuple[str, ...] = ()
    hint: str = REGENERATE
    line: int = 0


def explain_refusal(one: OpenPatch, standing: Standing, tree: Path, inventory: Inventory) -> Refusal:
    """Find out why a patch fits neither forwards nor backwards, and say it."""
    pieces = standing.pieces
    if any(piece.state == "present" for piece in pieces):
        return _partly_present(pieces)
    if absent := list(_absences(one.files, inventory)):
        return Refusal(why=absent[0], details=tuple(absent[1:]))
    first = next((piece for piece in pieces if piece.state == "conflict"), None)
    if first is None:
        return Refusal(why="its parts go in, but not together", details=standing.attempt.messages)
    if is_gitlink(first.file):
        return Refusal(why=_submodule_conflict(first.file, inventory))
    if first.hunk is None:
        return Refusal(why=_whole_file_conflict(first.file), details=first.messages)
    return explain_conflict(first, first.hunk, tree)


def already_upstream(patch: Patch, base: FetchedBase) -> ApplyError:
    """Say that a patch's change is in the base, and how a recipe accepts that."""
    return ApplyError(
        f"patch {patch.name} has nothing to do: {base.component} {base.version}, or an earlier patch, "
        "has all of its change",
        hint=f"drop the patch, or add {patch.name!r} to accept_upstream of {base.component} in the recipe:"
        f" it is skipped then, and its witness ({patch.witness}) must pass on the base",
    )


def unknown_acceptance(accepted: str, series: str, names: Collection[str]) -> ApplyError:
    """Say that accept_upstream has a name that is no patch of the series."""
    return ApplyError(
        f"accept_upstream names {accepted!r}, which is no patch of series {series!r}",
        hint=_did_you_mean(accepted, names),
    )


def explain_conflict(piece: Piece, hunk: Hunk, tree: Path) -> Refusal:
    """Say where a hunk conflicts, what it expected there and what the base has."""
    path = piece.file.old_path
    if piece.detail:
        return Refusal(why=f"{piece} cannot be trusted: {piece.detail}", hint=UNMISTAKABLE)
    lines = split_lines((tree / path).read_bytes())
    start = find_nearest(hunk, lines)
    if start is None:
        line, details = hunk.old_start, [*_shown("expected", hunk.before), "the base has nothing like it"]
    else:
        line, details = _first_difference(hunk, lines, start)
    return Refusal(
        why=f"{piece} conflicts at {path}:{line}",
        details=tuple(details),
        line=0 if start is None else line,
        hint=_line_end_hint(hunk, lines) or REGENERATE,
    )


def _partly_present(pieces: Sequence[Piece]) -> Refusal:
    words = {"present": "in the base already", "missing": "not in the base", "conflict": "in conflict with the base"}
    return Refusal(
        why="it is partly there",
        details=tuple(f"{piece}: {words[piece.state]}" for piece in pieces),
        hint="write the patch again with only what this base lacks; accept_upstream is for those that are there whole",
    )


def _absences(files: Sequence[FileDiff], inventory: Inventory) -> Iterator[str]:
    for file in files:
        is_new = file.kind == "added" and file.old_path == file.path
        if not is_new and not is_gitlink(file) and file.old_path not in inventory.files:
            yield _absence(file.old_path, inventory)
        elif file.kind in ("added", "renamed") and (obstacle := inventory.obstacle(file.path)):
            yield f"it adds {file.path}, but the base has {obstacle}"


def _absence(path: str, inventory: Inventory) -> str:
    if path in inventory.gitlinks:
        return f"{path} is a submodule of the base, not a file; export with `git format-patch --no-renames`"
    if submodule := inventory.submodule_of(path):
        return f"{path} lies in submodule {submodule}, whose files are not among the base's own"
    hint = _did_you_mean(path, inventory.files)
    return f"the base has no file {path}{f'; {hint}' if hint else ''}"


def _did_you_mean(name: str, known: Collection[str]) -> str:
    from difflib import get_close_matches

    same_name = [path for path in known if path.rsplit("/", 1)[-1] == name.rsplit("/", 1)[-1]]
    near = get_close_matches(name, same_name, n=1, cutoff=0.0) or get_close_matches(name, known, n=1, cutoff=0.7)
    return f"did you mean {near[0]}?" if near else ""


def _whole_file_conflict(file: FileDiff) -> str:
    if file.binary is not None:
        return f"binary {file.path} is not the file {file.old_blob[:12]} that the patch was made for"
    return f"{file.path} is not the file that the patch {'adds' if file.kind == 'added' else 'deletes'}"


def _submodule_conflict(file: FileDiff, inventory: Inventory) -> str:
    move = read_move(file)
    recorded = inventory.gitlinks.get(move.path)
    if recorded is None:
        hint = _did_you_mean(move.path, inventory.gitlinks)
        return f"the base has no submodule {move.path}{f'; {hint}' if hint else ''}"
    return f"the base records submodule {move.path} at {recorded}, expected {move.old or 'none there'}"


def _first_difference(hunk: Hunk, lines: Sequence[bytes], start: int) -> tuple[int, list[str]]:
    """Return the line of the first difference with what was expected and what is there."""
    from difflib import SequenceMatcher

    there = lines[start : start + len(hunk.before)]
    for kind, old_from, old_to, new_from, new_to in SequenceMatcher(None, hunk.before, there, False).get_opcodes():
        if kind != "equal":
            expected = _shown("expected", hunk.before[old_from:old_to])
            return start + new_from + 1, [*expected, *_shown("base has", there[new_from:new_to])]
    return start + 1, [
        *_shown("expected", hunk.before),
        "the base has it, but not at the end of the file it is bound to",
    ]


def _shown(label: str, lines: Sequence[bytes]) -> list[str]:
    texts = [f"{label}: {line.decode('utf-8', 'backslashreplace')!r}" for line in lines[:SHOWN_LINES]]
    if len(lines) > SHOWN_LINES:
        texts.append(f"{label}: … {len(lines) - SHOWN_LINES} more")
    return texts or [f"{label}: nothing"]


def _line_end_hint(hunk: Hunk, lines: Sequence[bytes]) -> str:
    patch_has, base_has = (any(line.endswith(b"\r\n") for line in side) for side in (hunk.before, lines))
    if patch_has and not base_has:
        return "the patch's lines end in CRLF, the base's in LF: take the patch as `git format-patch` wrote it"
    if base_has and not patch_has:
        return "the base's lines end in CRLF, the patch's in LF: write the patch from a tree with the base's line ends"
    return ""
