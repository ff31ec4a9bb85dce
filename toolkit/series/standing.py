"""How patches stand to a tree: git decides whether they fit, the place of each hunk whether that can be trusted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from toolkit.errors import ApplyError
from toolkit.files import sha256_bytes, tree_signatures
from toolkit.git import Attempt, Workspace
from toolkit.model import Patch
from toolkit.series.diff import FileDiff, parse_diff, split_lines
from toolkit.series.doubts import UNMISTAKABLE, Doubt, find_doubt, find_doubt_of_presence
from toolkit.series.gitlinks import is_gitlink, read_move
from toolkit.series.inventory import Inventory
from toolkit.series.mail import parse_mail
from toolkit.series.pieces import Piece, ask_about_pieces
from toolkit.series.place import has_places, is_own_base

Whole = Literal["fits", "present", "neither"]

UNFORESEEN = "cannot be trusted: git finds it where its old lines do not stand"

NOTHING_TO_ASK = Attempt(fits=True, offsets=(), messages=())


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenPatch:
    """A patch with what it does to each file; `faults` are about sections of its diff that cannot be read."""

    patch: Patch
    files: tuple[FileDiff, ...]
    faults: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The patch's name."""
        return self.patch.name

    @property
    def texts(self) -> tuple[FileDiff, ...]:
        """What git is to read: a submodule's commit is no file's line."""
        return tuple(file for file in self.files if not is_gitlink(file))

    @property
    def named(self) -> frozenset[str]:
        """The paths that must have changed once it is applied, submodules among them."""
        return _changing(self.files)

    @property
    def named_files(self) -> frozenset[str]:
        """Those of them that are files."""
        return _changing(self.texts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """How one patch stands: it fits as a whole, is there as a whole, or neither, and then each of its pieces.

    `attempt` is git's answer. With a `doubt` the patch must not be taken at that.
    """

    state: Whole
    attempt: Attempt = NOTHING_TO_ASK
    doubt: Doubt | None = None
    pieces: tuple[Piece, ...] = ()

    @property
    def is_applied(self) -> bool:
        """Whether `take_in` has applied it."""
        return self.state == "fits" and self.doubt is None


def open_patch(patch: Patch) -> OpenPatch:
    """Read a patch's file again; ApplyError where it is not the one that the series was made of."""
    raw = patch.path.read_bytes()
    if sha256_bytes(raw) != patch.sha256:
        raise ApplyError(f"{patch.path} has changed since the series was read", hint="run the command again")
    faults: list[str] = []
    files = tuple(parse_diff(parse_mail(raw, []).diff, faults))
    return OpenPatch(patch=patch, files=files, faults=tuple(faults))


def take_in(patches: Sequence[OpenPatch], workspace: Workspace, inventory: Inventory) -> list[Standing]:
    """Apply those patches that go in, and say of each how it stood to the tree before; no two may name one path.

    git is asked in one call about all that can be foreseen to fit, and by itself about each where they do not. Raises
    ApplyError where git says that it applied a patch and a file that it names is as it was.
    """
    tree = workspace.tree
    doubts = {
        one.name: find_doubt(one.files, tree, inventory) for one in patches if _seems_to_fit(one, tree, inventory)
    }
    sure = [one for one in patches if one.name in doubts and doubts[one.name] is None]
    doubtful = [one for one in patches if doubts.get(one.name)]
    found = {
        **_those_that_fit(doubtful, workspace.check, "fits"),
        **_apply_those_that_fit(sure, workspace),
    }
    found = {name: replace(standing, doubt=doubts[name]) for name, standing in found.items()}
    left = [one for one in patches if one.name not in found]
    found |= _find_present(left, workspace, inventory)
    left = [one for one in left if one.name not in found]
    pieces = ask_about_pieces([one.files for one in left], workspace, inventory)
    found |= {one.name: _judge_pieces(one, cut, workspace) for one, cut in zip(left, pieces, strict=True)}
    return [found[one.name] for one in patches]


def _apply_those_that_fit(patches: Sequence[OpenPatch], workspace: Workspace) -> dict[str, Standing]:
    """Apply patches, and compare the files: git ends with 0, for one, when it skips what it is told to change."""
    tree = workspace.tree
    before = {path: _read(tree / path) for one in patches for path in one.named_files}
    signatures = tree_signatures(str(tree))
    found = _those_that_fit(patches, workspace.apply, "fits")
    for one in patches:
        if one.name in found:
            untouched = {path for path in one.named_files if before[path] == _read(tree / path)}
            _refuse(f"patch {one.name} names {_listed(untouched)}, which did not change", untouched)
        elif (attempt := workspace.check(_text(one))).fits:
            raise ApplyError(f"patch {one.name} fitted, but git could not apply it", details=attempt.messages)
    after = tree_signatures(str(tree))
    changed = {path for path in signatures.keys() | after.keys() if signatures.get(path) != after.get(path)}
    surplus = changed.difference(*(one.named for one in patches))
    whose = f"patch {patches[0].name}" if len(patches) == 1 else f"{len(patches)} patches"
    _refuse(f"{whose} changed {_listed(surplus)}, which it does not name", surplus)
    return found


def _find_present(patches: Sequence[OpenPatch], workspace: Workspace, inventory: Inventory) -> dict[str, Standing]:
    likely = [one for one in patches if _seems_to_fit(one, workspace.tree, inventory, reverse=True)]
    found = _those_that_fit(likely, partial(workspace.check, reverse=True), "present")
    files = {one.name: one.files for one in likely}
    return {
        name: replace(standing, doubt=find_doubt_of_presence(files[name], workspace.tree))
        for name, standing in found.items()
    }


def _those_that_fit(patches: Sequence[OpenPatch], ask: Callable[[bytes], Attempt], state: Whole) -> dict[str, Standing]:
    attempts = zip(patches, _ask_together(patches, ask), strict=True)
    return {one.name: Standing(state=state, attempt=attempt) for one, attempt in attempts if attempt.fits}


def _ask_together(patches: Sequence[OpenPatch], ask: Callable[[bytes], Attempt]) -> list[Attempt]:
    texts = [_text(one) for one in patches]
    if len(patches) > 1 and (whole := b"".join(texts)):
        together = ask(whole)
        if together.fits:
            return list(_share_out(together, [len(one.texts) for one in patches]))
    return [ask(text) if text else NOTHING_TO_ASK for text in texts]


def _text(one: OpenPatch) -> bytes:
    return b"".join(file.raw for file in one.texts)


def _share_out(together: Attempt, counts: Sequence[int]) -> Iterator[Attempt]:
    """Give each patch the offsets of its own files, in one answer about several."""
    start = 0
    for count in counts:
        own = [moved for moved in together.offsets if start <= moved.file < start + count]
        yield replace(together, offsets=tuple(replace(moved, file=moved.file - start) for moved in own))
        start += count


def _judge_pieces(one: OpenPatch, pieces: tuple[Piece, ...], workspace: Workspace) -> Standing:
    """Ask git about the whole where no piece of it was refused: the pieces may get into each other's way."""
    attempt = Attempt(fits=False, offsets=(), messages=())
    states = {piece.state for piece in pieces}
    if len(states) == 1 and "conflict" not in states:
        attempt = workspace.check(_text(one), reverse="present" in states)
    if attempt.fits:
        state: Whole = "present" if "present" in states else "fits"
        return Standing(state=state, attempt=attempt, doubt=Doubt(says=UNFORESEEN, hint=UNMISTAKABLE))
    return Standing(state="neither", attempt=attempt, pieces=pieces)


def _changing(files: Sequence[FileDiff]) -> frozenset[str]:
    """Return what is to change: all but the source of a copy."""
    return frozenset({file.path for file in files} | {file.old_path for file in files if file.kind == "renamed"})


def _refuse(message: str, paths: Collection[str]) -> None:
    if paths:
        raise ApplyError(message)


def _listed(paths: Collection[str]) -> str:
    return ", ".join(sorted(paths))


# --- what can be foreseen ----------------------------------------------------------------------------------------


def _seems_to_fit(one: OpenPatch, tree: Path, inventory: Inventory, *, reverse: bool = False) -> bool:
    return all(_file_seems_to_fit(file, tree, inventory, reverse=reverse) for file in one.files)


def _file_seems_to_fit(file: FileDiff, tree: Path, inventory: Inventory, *, reverse: bool) -> bool:
    """Foresee git's answer about one file: what it starts from is there and is right, and where it ends is free."""
    if is_gitlink(file):
        return inventory.state_of(read_move(file)) == ("present" if reverse else "missing")
    source, result = (file.path, file.old_path) if reverse else (file.old_path, file.path)
    comes, goes = ("deleted", "added") if reverse else ("added", "deleted")
    is_copy = file.kind == "added" and file.path != file.old_path
    if (file.kind == comes or source != result) and (tree / result).is_file() and not (is_copy and reverse):
        return False
    if file.kind == comes and not is_copy:
        return True
    raw = _read(tree / source)
    if raw is None or file.binary is not None:
        return raw is not None and is_own_base(file, raw, reverse=reverse)
    if file.kind == goes and not is_copy:
        return split_lines(raw) == [line for hunk in file.hunks for line in (hunk.after if reverse else hunk.before)]
    return has_places(file, raw, reverse=reverse)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
