"""From patch files to commits and back: whether the same bytes come out."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from toolkit.errors import ApplyError
from toolkit.files import temporary_directory
from toolkit.git import Draft, WorkTree, render_mails
from toolkit.model import FetchedBase, Patch, Series, SourceTree
from toolkit.series.diff import FileDiff, Hunk, parse_diff
from toolkit.series.mail import Mail, parse_mail
from toolkit.series.write import context_of, form_faults, message_faults

DIFF = b"\ndiff --git "
MESSAGE_END = b"\n---\n"
NEWLINE = b"\n"
PLAIN_MODE = "100644"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadPatch:
    """A patch file with what a commit of it needs. `context` is the lines of context that its diff was made with."""

    patch: Patch
    raw: bytes
    mail: Mail
    files: tuple[FileDiff, ...]
    context: int

    @property
    def message(self) -> str:
        """The message of its commit."""
        return f"{self.mail.subject}\n\n{self.mail.body}\n" if self.mail.body else f"{self.mail.subject}\n"


def round_trip_faults(series: Series, base: SourceTree | None) -> list[str]:
    """Say which patches do not come out of git byte for byte as they went in; nothing where all do.

    With a base that holds the files that they name, each becomes a commit on it, and each commit a patch file again.
    Without one, the part before the diff is written anew on files made up from the hunks, and of the diff only the
    form is looked at.
    """
    patches = [read_again(patch) for patch in series.patches]
    faults = [f"{one.patch.path.name}: {fault}" for one in patches for fault in _message_faults(one)]
    if faults:
        return faults
    with temporary_directory("toolkit-round-trip-") as scratch:
        return list(_faults_without_base(patches, scratch) if base is None else _faults_on(base, patches, scratch))


def read_again(patch: Patch) -> ReadPatch:
    """Read a patch of a series for what a commit of it needs."""
    raw = patch.path.read_bytes()
    mail = parse_mail(raw, [])
    files = tuple(parse_diff(mail.diff, []))
    return ReadPatch(patch=patch, raw=raw, mail=mail, files=files, context=context_of(files))


def commit_patches(patches: Sequence[ReadPatch], worktree: WorkTree) -> list[str]:
    """Apply patches in their order, each with exact context, and commit each; return the commits.

    Raises ApplyError, naming the patch, for the first that git cannot apply; those before it stay.
    """
    return [_commit_patch(one, worktree) for one in patches]


def has_modes(base: FetchedBase) -> bool:
    """Whether the modes of a base's files are upstream's own: a wheel's are what packed it."""
    return base.kind == "git"


def _commit_patch(one: ReadPatch, worktree: WorkTree) -> str:
    diff = b"".join(file.raw for file in one.files)
    try:
        return worktree.add_patch(diff, one.message, author=one.mail.author, date=one.mail.date)
    except ApplyError as fault:
        raise ApplyError(f"patch {one.patch.name} does not apply", details=fault.details, hint=fault.hint) from fault


def _message_faults(one: ReadPatch) -> Iterator[str]:
    if not one.mail.author:
        yield "its `From:` header is not `Name <address>`"
    yield from message_faults(one.mail.subject, one.mail.body)


def _faults_on(base: SourceTree, patches: Sequence[ReadPatch], scratch: Path) -> Iterator[str]:
    worktree = WorkTree(scratch / "tree")
    named = {path for one in patches for change in one.patch.changes for path in (change.path, change.old_path)}
    for path in sorted(named & base.members):
        (worktree.folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(base.root / path, worktree.folder / path)
    worktree.start(gitlinks=base.gitlinks, has_modes=has_modes(base.base))
    for one in patches:
        try:
            commit = _commit_patch(one, worktree)
        except ApplyError as fault:
            yield f"{one.patch.path.name}: {fault.details[0] if fault.details else fault.message}"
            return
        yield from _difference(one, one.raw, worktree.export(commit, one.context))


def _faults_without_base(patches: Sequence[ReadPatch], scratch: Path) -> Iterator[str]:
    for one, made in zip(patches, render_mails([_draft(one) for one in patches], scratch / "mails"), strict=True):
        end = DIFF if _can_be_made_up(one.files) else MESSAGE_END
        yield from _difference(one, one.raw.partition(end)[0], made.partition(end)[0])
        yield from (f"{one.patch.path.name}: {fault}" for fault in form_faults(one.files))
        if rest := one.mail.diff.removeprefix(b"".join(file.raw for file in one.files)):
            yield f"{one.patch.path.name}: has {_shown(rest.partition(NEWLINE)[0])} after its diff"


def _difference(one: ReadPatch, there: bytes, wanted: bytes) -> Iterator[str]:
    """Say in which line a patch file first differs from what git writes."""
    if there == wanted:
        return
    for number, (line, other) in enumerate(zip_longest(there.split(b"\n"), wanted.split(b"\n")), 1):
        if line != other:
            yield f"{one.patch.path.name}:{number}: it is {_shown(line)}, in normal form {_shown(other)}"
            return


def _shown(line: bytes | None) -> str:
    return "at its end" if line is None else repr(line.decode("utf-8", "backslashreplace"))


def _can_be_made_up(files: Sequence[FileDiff]) -> bool:
    """Whether files with a patch's hunks alone give its diffstat: not what is binary, a submodule, moved or copied."""
    return all(
        file.binary is None and file.path == file.old_path and {file.old_mode, file.new_mode} <= {"", PLAIN_MODE}
        for file in files
    )


def _draft(one: ReadPatch) -> Draft:
    """Make up the files before and after a patch: its hunks' lines in their places, nothing in between."""
    before = {file.old_path: _joined(file.hunks) for file in one.files if file.kind != "added"}
    after = {
        file.path: _joined([hunk.reversed() for hunk in file.hunks]) for file in one.files if file.kind != "deleted"
    }
    return Draft(message=one.message, author=one.mail.author, date=one.mail.date, before=before, after=after)


def _joined(hunks: Sequence[Hunk]) -> bytes:
    lines: list[bytes] = []
    for hunk in hunks:
        lines += [b"\n"] * (hunk.old_start - 1 - len(lines))
        lines += hunk.before
    return b"".join(lines)
