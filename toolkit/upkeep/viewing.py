"""One patch with everything that is known of it: what its file says, what it is for, and what shows that it works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from toolkit import prove
from toolkit.errors import ToolkitError, UsageError
from toolkit.model import ChangeKind, FileChange, Part, Patch
from toolkit.project import Project
from toolkit.schema import did_you_mean
from toolkit.series.diff import FileDiff, Hunk, parse_diff
from toolkit.series.mail import parse_mail
from toolkit.upkeep.hygiene import ReadSeries

HunkKind = Literal["addition", "removal", "change"]


@dataclass(frozen=True, kw_only=True, slots=True)
class HunkView:
    """One hunk: its number in its file, its line there, what git noted above it, and what it does."""

    number: int
    line: int
    heading: str
    kind: HunkKind
    added: int
    removed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class FileView:
    """What a patch does to one file; `old_path` differs only for a rename or copy."""

    path: str
    old_path: str
    kind: ChangeKind
    part: Part
    is_gitlink: bool
    is_binary: bool
    hunks: tuple[HunkView, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchView:
    """A patch, the bases that its line covers, and what `verify/` says of its witness, empty where it has none."""

    series: str
    patch: Patch
    author: str
    date: str
    trailers: tuple[tuple[str, str], ...]
    files: tuple[FileView, ...]
    covers: tuple[str, ...]
    diagnostic: bool
    witness_summary: str
    witness_module: str


def choose_patch(one: ReadSeries, word: str) -> Patch:
    """Return the patch that a number, a name or a slug means; UsageError where none is meant, or two are."""
    names = [patch.name for patch in one.patches]
    found = [
        patch
        for patch in one.patches
        if word in (patch.name, patch.name.partition("-")[2]) or (word.isdecimal() and int(word) == patch.number)
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"series {one.name!r} has {len(found)} patches {word!r}",
            hint=f"name one: {', '.join(patch.name for patch in found)}",
        )
    raise UsageError(
        f"series {one.name!r} has no patch {word!r}{did_you_mean(word, names)}",
        hint=f"it has {', '.join(names) or 'none'}",
    )


def view_patch(one: ReadSeries, patch: Patch, project: Project) -> PatchView:
    """Read a patch's file once more, for what a series does not need of it."""
    mail = parse_mail(patch.path.read_bytes(), [])
    files = {file.path: file for file in parse_diff(mail.diff, [])}
    summary, module = _witness(patch, project)
    return PatchView(
        series=one.name,
        patch=patch,
        author=mail.author,
        date=mail.date,
        trailers=mail.trailers,
        files=tuple(_view_file(files[change.path], change) for change in patch.changes),
        covers=one.line.covers if one.line else (),
        diagnostic=bool(one.line and one.line.diagnostic),
        witness_summary=summary,
        witness_module=module,
    )


def _witness(patch: Patch, project: Project) -> tuple[str, str]:
    try:
        found = prove.load_catalogue(project.verify).get(patch.witness)
    except ToolkitError:  # `toolkit patch status` says what is wrong with the catalogue.
        return "", ""
    return (found.summary, found.module) if found else ("", "")


def _view_file(file: FileDiff, change: FileChange) -> FileView:
    return FileView(
        path=file.path,
        old_path=file.old_path,
        kind=file.kind,
        part=change.part,
        is_gitlink=change.is_gitlink,
        is_binary=file.binary is not None,
        hunks=tuple(_view_hunks(file.hunks)),
    )


def _view_hunks(hunks: Sequence[Hunk]) -> Iterator[HunkView]:
    for number, hunk in enumerate(hunks, 1):
        marks = [line[:1] for line in hunk.raw.split(b"\n")[1:]]
        added, removed = marks.count(b"+"), marks.count(b"-")
        kind: HunkKind = "change" if added and removed else "addition" if added else "removal"
        yield HunkView(
            number=number,
            line=hunk.old_start,
            heading=hunk.heading.decode("utf-8", "replace"),
            kind=kind,
            added=added,
            removed=removed,
        )
