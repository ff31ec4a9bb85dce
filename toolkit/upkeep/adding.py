"""A new patch at the end of a series: a person's changes, or a diff that is at hand, with a message of ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import ApplyError, UsageError, WorkTreeError
from toolkit.git import author_of
from toolkit.project import Project
from toolkit.upkeep.editing import Work, shown
from toolkit.upkeep.hold import Kept, drop_work, hold_series, write_kept
from toolkit.upkeep.shell import without_comments
from toolkit.upkeep.trailers import without_trailers
from toolkit.upkeep.workshop import Workshop, open_series, take_up
from toolkit.upkeep.writeback import Written, write_back
from toolkit.work import Means

Ask = Callable[[Path, str], str]
"""Lets a person fill in a template in a folder, and returns what he wrote, without the template's remarks."""

NOT_SENT = "Pending [not sent yet]"

TEMPLATE = """\
{subject}

# What fails without the change: the exact error, or the wrong number, and the program that shows it.
# Why it fails, what is changed, and how it was proven.
# Lines that begin with # are left out; without any text of yours nothing is written.

Upstream-Status: {status}
Witness: {witness}
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class NewPatch:
    """What is known of a patch before it is made; `diff` is its change, None where a person makes it."""

    subject: str
    witness: str
    status: str = NOT_SENT
    diff: bytes | None = None

    @property
    def template(self) -> str:
        """The message to be filled in."""
        return TEMPLATE.format(subject=self.subject, status=self.status, witness=self.witness)


def add_patch(
    project: Project, name: str, new: NewPatch, *, means: Means, base: str | None, work: Work, ask: Ask
) -> Written:
    """Let a person change the tree that the series leaves, and make a patch of it; return what was written.

    Commits that he made himself are taken as they are, and what is in no commit becomes one more, with the message
    that `ask` gets of him. Raises WorkTreeError, with the tree kept, where it cannot be finished yet.
    """
    with hold_series(project, name):
        shop = open_series(project, name, means=means, base=base)
        kept = shop.record("new", message=new.template)
        if new.diff is not None:
            return _take_diff(shop, kept, new.diff, ask, means)
        write_kept(shop.room, kept)
        try:
            work(shop.worktree.folder, shop.patches[-1].mail.author)
        except WorkTreeError as fault:
            raise _waits(shop, fault.message) from fault
        return _conclude(shop, kept, ask, means)


def go_on(project: Project, name: str, *, means: Means, ask: Ask) -> Written:
    """Take up what was left of a new patch."""
    with hold_series(project, name):
        shop, kept = take_up(project, name, "new")
        return _conclude(shop, kept, ask, means)


def _take_diff(shop: Workshop, kept: Kept, diff: bytes, ask: Ask, means: Means) -> Written:
    try:
        shop.worktree.apply(diff)
    except ApplyError as fault:
        drop_work(shop.room)
        raise ApplyError(
            f"the diff does not apply on top of series {shop.name}", details=fault.details,
            hint="it has to be a git diff (a/ and b/ before its paths) of files as the series leaves them",
        ) from fault  # fmt: skip
    write_kept(shop.room, kept)
    return _conclude(shop, kept, ask, means)


def _conclude(shop: Workshop, kept: Kept, ask: Ask, means: Means) -> Written:
    worktree = shop.worktree
    if worktree.unfinished or worktree.unmerged():
        raise _waits(shop, f"a `{worktree.unfinished or 'merge'}` is not finished in {worktree.folder}")
    _require_series_below(shop)
    if worktree.uncommitted():
        _commit_rest(shop, kept, ask, means)
    written = write_back(shop)
    drop_work(shop.room)
    return written


def _require_series_below(shop: Workshop) -> None:
    """Raise WorkTreeError, with the tree kept, where HEAD was moved off the series: its patches would be lost."""
    below = {commit.id for commit in shop.worktree.commits()}
    missing = [one.patch.name for one, commit in zip(shop.patches, shop.commits, strict=True) if commit not in below]
    if missing:
        raise _waits(
            shop, f"HEAD no longer has the commits of {shown(missing)}",
            f"put your change on top of {shop.commits[-1][:12]} (to change a patch: toolkit patch edit N)",
        )  # fmt: skip


def _commit_rest(shop: Workshop, kept: Kept, ask: Ask, means: Means) -> None:
    """Make a commit of what is in none."""
    author = author_of(shop.worktree.folder, means.environ)
    if author is None:
        raise _waits(shop, "git does not know who you are (user.name and user.email)")
    try:
        message = ask(shop.worktree.folder, kept.message)
        _require_body(message)
    except UsageError as fault:
        raise _waits(shop, f"{fault.message}: {shown(shop.worktree.uncommitted())} in no commit", fault.hint) from fault
    shop.worktree.stage_all()
    shop.worktree.commit(message, author=author[0], date=author[1])


def fill_template(template: str, body: str) -> str:
    """Return a template as a whole message, with a body in place of its remarks."""
    subject, _, trailers = without_comments(template).partition("\n\n")
    return f"{subject}\n\n{body.strip()}\n\n{trailers.strip()}\n" if body.strip() else f"{subject}\n\n{trailers}\n"


def _require_body(message: str) -> None:
    if not without_trailers(message).partition("\n\n")[2].strip():
        raise UsageError(
            "the patch's message does not say what fails without it",
            hint="write that into a file and give it with --message FILE",
        )


def _waits(shop: Workshop, why: str, how: str = "") -> WorkTreeError:
    again = f"toolkit patch new --series {shop.name}"
    return WorkTreeError(
        f"{why}; nothing was written, and the work tree is kept in {shop.worktree.folder}",
        hint=f"{how or 'put that right'}, then run `{again} --continue`; `{again} --abort` gives it up",
    )
