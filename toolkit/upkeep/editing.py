"""Changing patches by hand: a person works in the work tree, and what is committed there is written back.

What is not finished is kept, and the error says how to go on: nothing that was typed is ever thrown away unasked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from toolkit.errors import UsageError, WorkTreeError
from toolkit.project import Project
from toolkit.upkeep.hold import Kept, drop_work, hold_series, require_kept, work_folder, write_kept
from toolkit.upkeep.picking import Bench, Row, Step, begin, resume, skip
from toolkit.upkeep.workshop import Workshop, open_series, require_number, take_up
from toolkit.upkeep.writeback import Written, write_back
from toolkit.work import Means

Work = Callable[[Path, str], None]
"""Lets a person work in a folder; the second is the author whom git shall take where it knows no name."""

Command = Literal["edit", "split"]


def edit_patch(
    project: Project, name: str, number: int, *, command: Command, means: Means, base: str | None, work: Work
) -> Written:
    """Let a person change a patch, and put the later ones on top of what he made of it; return what was written.

    For `edit` the patch is committed, for `split` its change lies in the files, to be committed in parts. Raises
    WorkTreeError, with the tree kept, where a person has to go on: changes that are in no commit, or a conflict.
    """
    with hold_series(project, name):
        shop = open_series(project, name, means=means, base=base)
        require_room(shop, number)
        shop.worktree.checkout(shop.commit_of(number))
        if command == "split":
            shop.worktree.uncommit()
        kept = shop.record(command, number=number, pending=shop.commits[number:])
        write_kept(shop.room, kept)
        _work(shop, kept, work)
        return _conclude(shop, kept)


def go_on(project: Project, name: str, *, command: Command, amend: bool = False) -> Written:
    """Take up what a person left and has finished meanwhile; with `amend` what is in no commit goes into the last."""
    with hold_series(project, name):
        shop, kept = take_up(project, name, command)
        if amend:
            _amend(shop)
        return _conclude(shop, kept)


def leave_out(project: Project, name: str, *, command: Command, why: str) -> Written:
    """Leave out the patch that conflicts or has nothing left to do, because a person says so, and go on."""
    with hold_series(project, name):
        shop, kept = take_up(project, name, command)
        bench = Bench(folder=shop.room)
        row = bench.read()
        if row is None:
            raise UsageError(f"no patch of {name} waits to be put on another")
        skip(bench, row, why)
        return _written(shop, kept)


def give_up(project: Project, name: str, *, command: str) -> Path:
    """Remove what a command left, and return its folder; the series was never touched."""
    with hold_series(project, name):
        room = work_folder(project, name)
        require_kept(room, command, name)
        drop_work(room)
        return room


def require_room(shop: Workshop, number: int) -> None:
    """Raise UsageError, with nothing left, for a number that no patch has."""
    try:
        require_number(shop.series, number)
    except UsageError:
        drop_work(shop.room)
        raise


def _work(shop: Workshop, kept: Kept, work: Work) -> None:
    author = shop.patches[kept.number - 1].mail.author
    try:
        work(shop.worktree.folder, author)
    except WorkTreeError as fault:
        raise WorkTreeError(
            f"{fault.message}; nothing was written, and the work tree is kept in {shop.worktree.folder}",
            hint=_ways_on(shop, kept),
        ) from fault


def _conclude(shop: Workshop, kept: Kept) -> Written:
    """Put the later patches on top, and write the series."""
    bench = Bench(folder=shop.room)
    row = bench.read()
    if row is None:
        require_committed(shop, kept)
        begin(bench, _row(shop, kept))
    else:
        resume(bench, row)
    return _written(shop, kept)


def _written(shop: Workshop, kept: Kept) -> Written:
    require_committed(shop, kept)
    written = write_back(shop)
    drop_work(shop.room)
    return written


def _row(shop: Workshop, kept: Kept) -> Row:
    names = [one for one, _ in kept.patches][len(kept.patches) - len(kept.pending) :]
    return Row(
        command="split" if kept.command == "split" else "edit", series=shop.name, series_digest=shop.digest,
        base=shop.worktree.base, top=shop.worktree.head, facts={"onto": f"patch {kept.number} as it is now"},
        steps=tuple(Step(name=one, commit=commit) for one, commit in zip(names, kept.pending, strict=True)),
    )  # fmt: skip


def _amend(shop: Workshop) -> None:
    """Put what is in no commit into the last one, whose message, author and date stay."""
    commits = shop.worktree.commits()
    if Bench(folder=shop.room).read() is not None or shop.worktree.unmerged() or shop.worktree.is_picking:
        raise UsageError("--amend is for changes to a patch, not for a conflict", hint="git add them, then --continue")
    if not commits:
        raise UsageError("there is no patch to put the changes into", hint="commit them, then --continue")
    last = commits[-1]
    shop.worktree.stage_all()
    shop.worktree.commit(last.message, author=last.author, date=last.date, amend=True)


def require_committed(shop: Workshop, kept: Kept) -> None:
    """Raise WorkTreeError, with the tree kept, for changes that are in no commit and git commands that are not done."""
    worktree = shop.worktree
    if worktree.unfinished:
        raise WorkTreeError(
            f"a `{worktree.unfinished}` is not finished in {worktree.folder}; nothing was written",
            hint=f"finish it there, then: {_again(shop, kept)} --continue, or give all up with --abort",
        )
    if paths := worktree.uncommitted():
        raise WorkTreeError(
            f"{worktree.folder} has changes that are in no commit: {shown(paths)}; nothing was written",
            hint=_ways_on(shop, kept),
        )


def shown(paths: Sequence[str], most: int = 5) -> str:
    """List paths for a message, not all where there are many."""
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return f"{', '.join(paths[:most])}{more}"


def _ways_on(shop: Workshop, kept: Kept) -> str:
    again = _again(shop, kept)
    fold = f", or put them into patch {kept.number} with --continue --amend" if kept.command == "edit" else ""
    return f"commit them there and run `{again} --continue`{fold}; `{again} --abort` gives them up"


def _again(shop: Workshop, kept: Kept) -> str:
    return f"toolkit patch {kept.command} --series {shop.name}"
