"""From commits back to patch files: named, checked as a whole, and put in the series' place in one step."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from toolkit.errors import ApplyError, SeriesError, ToolkitError, WorkTreeError
from toolkit.files import exchange_directories, remove_tree
from toolkit.git import Commit
from toolkit.series import load_series
from toolkit.series.load import COMPANIONS
from toolkit.series.write import CONTEXT, file_name, message_faults, slug_in, slug_of
from toolkit.upkeep.roundtrip import ReadPatch
from toolkit.upkeep.workshop import Workshop, apply_strictly, folder_digest

NEW = "series"
"""The folder beside the work tree in which the new series is made."""

Fate = Literal["kept", "renamed", "rewritten", "new"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenPatch:
    """One patch of a series that was written: `old` is the name that it had, empty for a new one."""

    name: str
    old: str
    fate: Fate
    subject: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """What became of a series: its patches now, and the names of those that it has no more."""

    name: str
    folder: Path
    patches: tuple[WrittenPatch, ...]
    gone: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether any file is another than it was."""
        return bool(self.gone) or any(patch.fate != "kept" for patch in self.patches)

    @property
    def moved(self) -> Mapping[str, str]:
        """The names that are no longer there, each with the one that took its place, empty where none did."""
        return {
            **{patch.old: patch.name for patch in self.patches if patch.old and patch.old != patch.name},
            **dict.fromkeys(self.gone, ""),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class _Planned:
    """One file of the new series."""

    written: WrittenPatch
    raw: bytes


def write_back(shop: Workshop, *, afresh: Collection[int] = ()) -> Written:
    """Let the series be the commits of the work tree; return what became of each patch.

    A commit that is what it was keeps its file byte for byte, and its name but for the number; one of a patch in
    `afresh` is written in normal form all the same. The new series is made aside, and must load and apply whole to
    the base before it takes the old one's place in one step: a process that is killed leaves the one or the other.

    Raises SeriesError or ApplyError where the new series is not sound, WorkTreeError where somebody changed the old
    one meanwhile; nothing was written then, and the work tree is as it was.
    """
    planned = _plan(shop, shop.worktree.commits(), afresh)
    old = {one.patch.name for one in shop.patches}
    gone = tuple(sorted(old - {one.written.old for one in planned}))
    written = Written(name=shop.name, folder=shop.folder, patches=tuple(p.written for p in planned), gone=gone)
    if not written.changed:
        return written
    aside = _make_aside(shop, planned)
    _require_sound(shop, aside)
    if folder_digest(shop.folder) != shop.digest:
        raise WorkTreeError(
            f"series {shop.name} was changed by somebody else meanwhile; the new one is in {aside}",
            hint="compare the two, and take over what you need",
        )
    exchange_directories(aside, shop.folder.resolve())  # A link to a series stays one.
    remove_tree(aside)
    return written


# --- what is written -------------------------------------------------------------------------------------------


def _plan(shop: Workshop, commits: Sequence[Commit], afresh: Collection[int]) -> list[_Planned]:
    _require_messages(shop, commits)
    origins = _match(shop, commits)
    taken = {slug_in(one.patch.name) for one in origins.values()}
    planned = []
    for number, commit in enumerate(commits, 1):
        origin = origins.get(commit.id)
        if origin is None:
            slug = slug_of(commit.subject, taken)
            taken.add(slug)
        else:
            slug = slug_in(origin.patch.name)
        planned.append(_plan_patch(shop, commit, origin, file_name(number, slug), afresh))
    return planned


def _plan_patch(
    shop: Workshop, commit: Commit, origin: ReadPatch | None, name: str, afresh: Collection[int]
) -> _Planned:
    raw = _text_of(shop, commit, origin, afresh)
    stem, old = name.removesuffix(".patch"), origin.patch.name if origin else ""
    fate: Fate = "new" if origin is None else "rewritten"
    if origin is not None and raw == origin.raw:
        fate = "kept" if stem == old else "renamed"
    return _Planned(written=WrittenPatch(name=stem, old=old, fate=fate, subject=commit.subject), raw=raw)


def _text_of(shop: Workshop, commit: Commit, origin: ReadPatch | None, afresh: Collection[int]) -> bytes:
    """Return the patch file of a commit: the one that there is where the commit is what it was."""
    if origin is None:
        return shop.worktree.export(commit.id, CONTEXT)
    was, stays = shop.commit_of(origin.patch.number), origin.patch.number not in afresh
    if stays and commit.id == was:
        return origin.raw
    raw = shop.worktree.export(commit.id, origin.context)
    return origin.raw if stays and raw == shop.worktree.export(was, origin.context) else raw


def _match(shop: Workshop, commits: Sequence[Commit]) -> dict[str, ReadPatch]:
    """Find which patch each commit was, by what it is, else by its subject, else as the only ones left over."""
    origins: dict[str, ReadPatch] = {}
    left = dict(zip(shop.commits, shop.patches, strict=True))
    for commit in commits:
        if commit.id in left:
            origins[commit.id] = left.pop(commit.id)
    for commit in commits:
        same = [one for one, patch in left.items() if patch.mail.subject == commit.subject]
        if commit.id not in origins and same:
            origins[commit.id] = left.pop(same[0])
    rest = [commit for commit in commits if commit.id not in origins]
    if len(rest) == len(left) == 1:
        origins[rest[0].id] = left.popitem()[1]
    return origins


# --- whether it may be -----------------------------------------------------------------------------------------


def _require_messages(shop: Workshop, commits: Sequence[Commit]) -> None:
    faults = [f"{one.subject!r}: {why}" for one in commits for why in message_faults(one.subject, one.body)]
    if faults:
        raise SeriesError(
            f"the message of a commit in {shop.worktree.folder} cannot be one of a patch",
            details=faults, hint="git commit --amend, or git rebase -i base",
        )  # fmt: skip


def _require_sound(shop: Workshop, aside: Path) -> None:
    """Read the new series as any command will, and apply it to the base."""
    try:
        apply_strictly(shop, load_series(aside, name=shop.name))
    except (SeriesError, ApplyError) as fault:
        raise _nothing_written(fault, shop) from fault


def _nothing_written(fault: ToolkitError, shop: Workshop) -> ToolkitError:
    message = f"series {shop.name} was not written: {fault.message}"
    return type(fault)(message, details=fault.details, hint=f"its work tree is {shop.worktree.folder}")


def _make_aside(shop: Workshop, planned: Sequence[_Planned]) -> Path:
    aside = shop.room / NEW
    remove_tree(aside)
    aside.mkdir(parents=True)
    for path in _companions(shop.folder):
        shutil.copy2(path, aside / path.name)
    for one in planned:
        (aside / f"{one.written.name}.patch").write_bytes(one.raw)
    aside.chmod(shop.folder.stat().st_mode & 0o7777)
    return aside


def _companions(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.iterdir()) if path.name in COMPANIONS)
