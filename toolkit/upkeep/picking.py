"""A row of commits that is put on another base in a kept work tree, one after the other, with stops for a person.

What was done is written down after every step, so that a killed run goes on where it was. The series itself is not
touched before all is through.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from toolkit.errors import WorkTreeError
from toolkit.files import write_atomic
from toolkit.git import WorkTree, git_in
from toolkit.git.fetching import clear_leftovers
from toolkit.series.diff import parse_diff
from toolkit.series.mail import parse_mail
from toolkit.series.write import CONTEXT
from toolkit.upkeep.conflicts import first_conflict, first_marker, markers_in
from toolkit.upkeep.equality import Difference, Kept, compare
from toolkit.upkeep.hold import TREE

ROW_FILE = "moving.json"
Command = Literal["import", "rebase", "edit", "split"]


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One commit of the row. `result` is what it became, `skipped` why a person left it out; one of them once done."""

    name: str
    commit: str
    result: str = ""
    skipped: str = ""

    @property
    def is_done(self) -> bool:
        """Whether there is nothing to do about it any more."""
        return bool(self.result or self.skipped)


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far a row is. `base` is the commit below the first, `top` the last that was made.

    `waits` says whether a person has been told to decide about the next step. `series_digest` is over the series as it
    was, `facts` are what else the command that began the row needs at its end.
    """

    schema: Literal[1] = 1
    command: Command
    series: str
    series_digest: str
    base: str
    top: str
    steps: tuple[Step, ...]
    waits: bool = False
    facts: dict[str, str] = {}

    @property
    def next_step(self) -> int | None:
        """Where in the row the first step that is not done is."""
        return next((at for at, step in enumerate(self.steps) if not step.is_done), None)

    def after(self, at: int, *, result: str = "", skipped: str = "") -> Row:
        """Return the row with one step done."""
        step = msgspec.structs.replace(self.steps[at], result=result, skipped=skipped)
        steps = (*self.steps[:at], step, *self.steps[at + 1 :])
        return msgspec.structs.replace(self, steps=steps, top=result or self.top, waits=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Bench:
    """The folder that a row is kept in."""

    folder: Path

    @property
    def worktree(self) -> WorkTree:
        """The work tree that a person looks at."""
        return WorkTree(self.folder / TREE)

    def read(self) -> Row | None:
        """Return the row that stands, if one does."""
        try:
            return msgspec.json.decode((self.folder / ROW_FILE).read_bytes(), type=Row)
        except FileNotFoundError:
            return None
        except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
            raise WorkTreeError(
                f"{self.folder / ROW_FILE} cannot be read: {fault}", hint="end it with --abort, and begin again"
            ) from fault

    def require(self) -> Row:
        """Return the row that stands; WorkTreeError where it is lost."""
        row = self.read()
        if row is None:
            raise WorkTreeError(f"there is no {ROW_FILE} in {self.folder}", hint="end it with --abort, and begin again")
        return row

    def write(self, row: Row) -> Row:
        """Keep a row as it is now."""
        write_atomic(self.folder / ROW_FILE, msgspec.json.format(msgspec.json.encode(row), indent=2))
        return row


def begin(bench: Bench, row: Row) -> Row:
    """Write a new row down and go through it; see `go_on`."""
    return go_on(bench, bench.write(row))


def resume(bench: Bench, row: Row) -> Row:
    """Take what a person, or a killed run, has made of the next step, and go on; see `go_on`.

    Raises WorkTreeError for what is not resolved: a conflict that stands, markers that were left in, changes that are
    in no commit, more than one commit for one patch.
    """
    worktree = bench.worktree
    at = row.next_step
    if at is None:
        return row
    if not row.waits:
        clear_leftovers(worktree.folder / ".git")  # Of a git that was killed: nobody was told to work there.
    if worktree.head != row.top:
        _require_one_commit(worktree, row, at)
        worktree.checkout(worktree.head)  # A killed pick may be noted as not finished.
        return go_on(bench, bench.write(row.after(at, result=_restore_message(worktree, row.steps[at].commit))))
    if worktree.is_picking:
        _require_resolved(worktree, row)
        bench.write(msgspec.structs.replace(row, waits=False))
        picked = worktree.finish_pick()
        if picked.status == "empty" or picked.commit is None:
            raise _nothing_left(bench, bench.write(msgspec.structs.replace(row, waits=True)), row.steps[at])
        return go_on(bench, bench.write(row.after(at, result=_restore_message(worktree, row.steps[at].commit))))
    if row.waits and (left := worktree.uncommitted()):
        raise WorkTreeError(
            f"{worktree.folder} has changes that are in no commit: {', '.join(left)}",
            hint=f"commit them there, as patch {row.steps[at].name}, or put them aside; then {_again(row)} --continue",
        )
    worktree.checkout(row.top)  # Of a killed step nothing but leftovers is there.
    return go_on(bench, row)


def skip(bench: Bench, row: Row, why: str) -> Row:
    """Leave the next step out, because a person says so, and go on; what was begun of it is lost."""
    at = row.next_step
    if at is None:
        raise WorkTreeError("there is no patch left to skip", hint=f"finish it: {_again(row)} --continue")
    bench.worktree.checkout(row.top)
    return go_on(bench, bench.write(row.after(at, skipped=why)))


def go_on(bench: Bench, row: Row) -> Row:
    """Put every commit that is left on top, and return the row with all done.

    Raises WorkTreeError, with the tree kept, at the first that conflicts, and at one of which nothing is left.
    """
    while (at := row.next_step) is not None:
        step = row.steps[at]
        row = bench.write(msgspec.structs.replace(row, waits=False))
        picked = bench.worktree.pick(step.commit)
        if picked.status == "done" and picked.commit is not None:
            row = bench.write(row.after(at, result=picked.commit))
            continue
        row = bench.write(msgspec.structs.replace(row, waits=True))
        raise _conflict(bench, row, step, picked.paths) if picked.paths else _nothing_left(bench, row, step)
    return row


def compare_step(worktree: WorkTree, step: Step, context: int = CONTEXT) -> tuple[Kept, list[Difference]]:
    """Compare what a step became with what it was, with that many lines of context."""
    old, new = (parse_mail(worktree.export(one, context), []).diff for one in (step.commit, step.result))
    return compare(parse_diff(old, []), parse_diff(new, []))


# --- what a person is told -------------------------------------------------------------------------------------


def _conflict(bench: Bench, row: Row, step: Step, paths: tuple[str, ...]) -> WorkTreeError:
    folder = bench.worktree.folder
    return WorkTreeError(
        f"patch {step.name} conflicts in {', '.join(paths)}; the work tree is kept in {folder}",
        details=first_conflict(folder, paths),
        hint=f"resolve it there and `git add` the files, then: {_again(row)} --continue; or leave the patch out with "
        "--skip, or end it all with --abort",
    )


def _nothing_left(bench: Bench, row: Row, step: Step) -> WorkTreeError:
    return WorkTreeError(
        f"patch {step.name} has nothing left to do: {row.facts.get('onto', 'the series')} has all of its change",
        hint=f"see that it has, then: {_again(row)} --skip; or commit what is missing in {bench.worktree.folder} and "
        "--continue, or end it all with --abort",
    )


def _again(row: Row) -> str:
    return f"toolkit patch {row.command} --series {row.series}"


# --- what a person has done ------------------------------------------------------------------------------------


def _require_resolved(worktree: WorkTree, row: Row) -> None:
    """Raise WorkTreeError where an index is not what a person can mean to commit."""
    if paths := worktree.unmerged():
        raise WorkTreeError(
            f"the conflict in {', '.join(paths)} is not resolved",
            hint=f"edit the files in {worktree.folder}, `git add` them there, then: {_again(row)} --continue",
        )
    git = git_in(worktree.folder / ".git", GIT_WORK_TREE=str(worktree.folder))
    if unstaged := _names(git.output("diff-files", "--name-only", "-z")):
        raise WorkTreeError(
            f"{', '.join(unstaged)} in {worktree.folder} changed after `git add`",
            hint=f"`git add` or undo the changes, then: {_again(row)} --continue",
        )
    staged = _names(git.output("diff-index", "--cached", "--name-only", "--no-renames", "-z", row.top))
    _refuse_markers(worktree, row, [path for path in staged if (worktree.folder / path).is_file()])


def _require_one_commit(worktree: WorkTree, row: Row, at: int) -> None:
    made = worktree.history.commits(row.top, worktree.head)
    if len(made) != 1:
        raise WorkTreeError(
            f"{len(made)} commits stand in {worktree.folder} for patch {row.steps[at].name}, expected one",
            hint=f"make them one: git -C {worktree.folder} reset --soft {row.top[:12]}, and commit",
        )
    if left := worktree.uncommitted():
        raise WorkTreeError(
            f"{worktree.folder} has changes that are in no commit: {', '.join(left)}",
            hint=f"add them to the commit with `git commit --amend`, or put them aside; then {_again(row)} --continue",
        )
    git = git_in(worktree.folder / ".git")
    words = ("diff-tree", "-r", "--name-only", "--no-renames", "--diff-filter=d", "-z", row.top, worktree.head)
    _refuse_markers(worktree, row, _names(git.output(*words)))


def _restore_message(worktree: WorkTree, origin: str) -> str:
    """Give the last commit the author, the date and, unless a person wrote another, the message that it came with.

    `git commit` takes lines that begin with # for comments.
    """
    was, made = (worktree.history.commits(f"{commit}^", commit)[0] for commit in (origin, worktree.head))
    message = was.message if _plain(was.message) == _plain(made.message) else made.message
    if (made.message, made.author, made.date) == (message, was.author, was.date):
        return made.id
    return worktree.commit(message, author=was.author, date=was.date, amend=True)


def _plain(message: str) -> list[str]:
    return [line.rstrip() for line in message.split("\n") if line.strip() and not line.startswith("#")]


def _refuse_markers(worktree: WorkTree, row: Row, paths: list[str]) -> None:
    """Raise WorkTreeError for a marker that neither the base nor the patch has as a line of its own."""
    at = row.next_step
    known = (row.top, row.steps[at].commit) if at is not None else (row.top,)
    for path in paths:
        lawful = {line for commit in known for line in markers_in(worktree.history.blob(commit, path) or b"")}
        if found := first_marker(worktree.folder / path, lawful):
            line, marker = found
            raise WorkTreeError(
                f"{path}:{line} in {worktree.folder} has a conflict's marker left in: {marker!r}",
                hint=f"resolve it and `git add` the file, then: {_again(row)} --continue",
            )


def _names(raw: bytes) -> list[str]:
    return [name.decode("utf-8", "surrogateescape") for name in raw.split(b"\0") if name]
