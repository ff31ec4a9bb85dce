"""Changing a series without a person at work: written afresh, in another order, one patch as several, one retired.

None of it changes what the whole series leaves, but for a patch that is retired: the trees are compared.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Literal

from toolkit.errors import ApplyError, UsageError
from toolkit.files import write_atomic
from toolkit.project import RETIRED, Project
from toolkit.series.diff import FileDiff
from toolkit.upkeep.hold import drop_work, hold_series
from toolkit.upkeep.roundtrip import ReadPatch, commit_patches
from toolkit.upkeep.trailers import with_trailers
from toolkit.upkeep.workshop import Workshop, apply_strictly, open_series, require_number
from toolkit.upkeep.writeback import Written, write_back
from toolkit.work import Means

By = Literal["file", "hunk"]
MESSAGE_END = b"\n---\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Retired:
    """What became of a series without one of its patches, and where that patch is now."""

    written: Written
    patch: str
    path: Path


def refresh_series(project: Project, name: str, numbers: Sequence[int], *, means: Means, base: str | None) -> Written:
    """Write patches in normal form for a base, all of them if no number is given: each line is then where it fits.

    Raises ApplyError where one does not apply.
    """
    with _opened(project, name, means=means, base=base) as shop:
        chosen = [require_number(shop.series, number) for number in numbers]
        return write_back(shop, afresh=chosen or range(1, len(shop.patches) + 1))


def reorder_series(project: Project, name: str, order: Sequence[int], *, means: Means) -> Written:
    """Put a series into another order; ApplyError, with nothing changed, where a patch does not apply in it."""
    with _opened(project, name, means=means) as shop:
        _require_permutation(order, shop)
        apply_strictly(shop, replace(shop.series, patches=tuple(shop.series.patches[number - 1] for number in order)))
        shop.worktree.checkout(shop.worktree.base)
        commit_patches([shop.patches[number - 1] for number in order], shop.worktree)
        _require_same_tree(shop, "in that order")
        return write_back(shop)


def split_patch(project: Project, name: str, number: int, *, by: By, means: Means) -> Written:
    """Make several patches of one, each with its message; UsageError where it has one part only."""
    with _opened(project, name, means=means) as shop:
        one = shop.patches[require_number(shop.series, number) - 1]
        parts = list(_parts(one, by))
        if len(parts) < 2:
            raise UsageError(f"patch {one.patch.name} changes one {by} only", hint=_finer(by))
        shop.worktree.checkout(shop.commits[number - 2] if number > 1 else shop.worktree.base)
        for suffix, diff in parts:
            message = one.message.replace(one.mail.subject, f"{one.mail.subject} ({suffix})", 1)
            shop.worktree.add_patch(diff, message, author=one.mail.author, date=one.mail.date)
        commit_patches(shop.patches[number:], shop.worktree)
        _require_same_tree(shop, "in these parts")
        return write_back(shop)


def retire_patch(project: Project, name: str, number: int, *, why: str, upstream: str, means: Means) -> Retired:
    """Take a patch out of a series and keep its file, with the reason, below `patches/retired/`.

    Raises ApplyError, with nothing changed, where a later patch does not apply without it, UsageError where it is the
    series' last.
    """
    trailers = [("Retired", why), *([("Retired-Upstream", upstream)] if upstream else [])]
    with _opened(project, name, means=means) as shop:
        one = shop.patches[require_number(shop.series, number) - 1]
        rest = [patch for patch in shop.patches if patch is not one]
        if not rest:
            raise UsageError(
                f"patch {one.patch.name} is the only one of series {name}, and a series without patches is none",
                hint="take the series out of the recipes, then remove its folder",
            )
        apply_strictly(shop, replace(shop.series, patches=tuple(patch.patch for patch in rest)))
        shop.worktree.checkout(shop.commits[number - 2] if number > 1 else shop.worktree.base)
        commit_patches(rest[number - 1 :], shop.worktree)
        path = keep_retired(shop, one, trailers)  # First, as a process that is killed must not lose the patch.
        try:
            return Retired(written=write_back(shop), patch=one.patch.name, path=path)
        except BaseException:
            path.unlink()
            raise


@contextlib.contextmanager
def _opened(project: Project, name: str, *, means: Means, base: str | None = None) -> Iterator[Workshop]:
    """Yield a held series in a work tree with the files that it names; nothing is kept afterwards."""
    with hold_series(project, name):
        shop = open_series(project, name, means=means, base=base, whole=False)
        try:
            yield shop
        finally:
            drop_work(shop.room)


def _require_permutation(order: Sequence[int], shop: Workshop) -> None:
    numbers = range(1, len(shop.patches) + 1)
    if sorted(order) != list(numbers):
        raise UsageError(
            f"{' '.join(map(str, order))} is no order of the {len(numbers)} patches of {shop.name}",
            hint="give every number once, in the new order",
        )


def _require_same_tree(shop: Workshop, how: str) -> None:
    if shop.worktree.tree(shop.worktree.head) != shop.worktree.tree(shop.commits[-1]):
        raise ApplyError(
            f"{how} series {shop.name} would leave other files than it does now",
            hint="a hunk goes in at another place; do it by hand with `toolkit patch edit`",
        )


def _parts(one: ReadPatch, by: By) -> Iterator[tuple[str, bytes]]:
    """Yield the parts of a patch, each with what is added to its subject; a file that comes or goes is one part."""
    for file, name in zip(one.files, _short_names(one.files), strict=True):
        if by == "file" or not file.is_edit or file.path != file.old_path or len(file.hunks) < 2:
            yield name, file.raw
        else:
            for number, hunk in enumerate(file.hunks, 1):
                yield f"{name}, {number} of {len(file.hunks)}", file.with_hunk(hunk)


def _short_names(files: Sequence[FileDiff]) -> list[str]:
    """Return the last part of each path, and as much more of it as tells it from the others."""
    paths = [PurePosixPath(file.path).parts for file in files]
    for count in range(1, max(map(len, paths)) + 1):
        names = ["/".join(parts[-count:]) for parts in paths]
        if len(set(names)) == len(names):
            return names
    return [file.path for file in files]


def _finer(by: By) -> str:
    return "split it --by hunk, or by hand with --shell" if by == "file" else "split it by hand with --shell"


def keep_retired(shop: Workshop, one: ReadPatch, trailers: Sequence[tuple[str, str]]) -> Path:
    """Write a patch's file below `patches/retired/`; all of it but the new trailers is as it was."""
    head, end, rest = one.raw.partition(MESSAGE_END)
    raw = with_trailers(head.decode("utf-8"), trailers).rstrip("\n").encode("utf-8") + end + rest
    folder = shop.folder.parent.parent / RETIRED / shop.name
    for name in _free_names(one.patch.name):
        path = folder / f"{name}.patch"
        if not path.exists() or path.read_bytes() == raw:  # A killed run may have come this far.
            write_atomic(path, raw)
            return path
    raise AssertionError("there is always another name")


def _free_names(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1
