"""What `toolkit patch import`, `export` and `rebase` answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.answers import Answer

if TYPE_CHECKING:
    from toolkit.upkeep.equality import Difference
    from toolkit.upkeep.exporting import ExportedBranch, ExportedPatch
    from toolkit.upkeep.importing import Imported
    from toolkit.upkeep.rebasing import Moved

KEPT_WORDS = {"unchanged": "unchanged", "moved": "lines moved", "changed": "content changed"}


def describe_import(imported: Imported) -> Answer:
    """Say which patches came into a series, and whether each is what upstream has."""
    lines = []
    for patch in imported.patches:
        lines.append(f"{imported.series}: {patch.name}: {patch.subject}")
        if patch.differences:
            lines += ["  it is not what its origin has; noted in its trailer Adapted:", *_shown(patch.differences)]
        else:
            lines.append("  its hunks equal its origin's: the same lines removed and added, with the same context")
    lines += [f"  left out: {path}" for path in imported.left_out]
    document = {
        "series": imported.series,
        "patches": [
            {
                "name": patch.name,
                "subject": patch.subject,
                "file": str(imported.folder / f"{patch.name}.patch"),
                "equal": not patch.differences,
                "differences": _document(patch.differences),
            }
            for patch in imported.patches
        ],
        "left_out": list(imported.left_out),
    }
    return Answer(text="\n".join(lines or [f"{imported.series}: nothing was imported"]), document=document)


def describe_mbox(series: str, mails: Sequence[ExportedPatch], place: Path) -> Answer:
    """Say what an mbox holds."""
    lines = [f"{series}: {_count(len(mails), 'mail')} in {place}; upstream takes them with `git am`"]
    return Answer(
        text="\n".join([*lines, *(f"  {one.name}: {one.subject}" for one in mails)]),
        document={"series": series, "format": "mbox", "output": str(place), "patches": _patches(mails)},
    )


def describe_branch(series: str, mails: Sequence[ExportedPatch], made: ExportedBranch, repository: Path) -> Answer:
    """Say which branch was made, and of which commits."""
    lines = [f"{series}: branch {made.name} in {repository}, {_count(len(mails), 'commit')} on {made.onto[:12]}"]
    pairs = zip(mails, made.commits, strict=True)
    return Answer(
        text="\n".join([*lines, *(f"  {commit[:12]} {one.subject}" for one, commit in pairs)]),
        document={
            "series": series, "format": "branch", "repository": str(repository), "branch": made.name,
            "onto": made.onto, "commits": list(made.commits), "patches": _patches(mails),
        },
    )  # fmt: skip


def describe_rebase(moved: Moved) -> Answer:
    """Say how each patch came through, and for which bases the series is now."""
    lines = [f"{moved.series} is on {moved.home} now"]
    for patch in moved.patches:
        lines += [f"  {patch.name}: {KEPT_WORDS[patch.kept]}", *_shown(patch.differences)]
    lines += [f"  {name}: left out: {why}" for name, why in moved.skipped]
    lines += [f"  kept in {path}" for path in moved.retired]
    lines += [f"for {coverage}" for coverage in moved.covers]
    lines += [f"no longer for {coverage}: {why}" for coverage, why in moved.dropped]
    document = {
        "series": moved.series,
        "folder": str(moved.folder),
        "home": moved.home,
        "patches": [
            {
                "name": patch.name,
                "old": patch.old,
                "subject": patch.subject,
                "kept": patch.kept,
                "differences": _document(patch.differences),
            }
            for patch in moved.patches
        ],
        "skipped": [{"name": name, "why": why} for name, why in moved.skipped],
        "retired": [str(path) for path in moved.retired],
        "covers": list(moved.covers),
        "dropped": [{"base": coverage, "why": why} for coverage, why in moved.dropped],
    }
    return Answer(text="\n".join(lines), document=document)


def describe_abort(command: str, series: str) -> Answer:
    """Say that work was given up."""
    return Answer(
        text=f"{series}: the {command} is given up; the series is as it was",
        document={"series": series, "aborted": command},
    )


def _shown(differences: Sequence[Difference]) -> Iterator[str]:
    return (f"    {one}" for one in differences)


def _document(differences: Sequence[Difference]) -> list[dict[str, str]]:
    return [{"path": one.path, "why": one.why} for one in differences]


def _patches(mails: Sequence[ExportedPatch]) -> list[dict[str, str]]:
    return [{"name": one.name, "subject": one.subject} for one in mails]


def _count(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"
