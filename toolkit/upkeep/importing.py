"""Patches that come from upstream: a commit, a pull request or a mail, put on top of a series, proven to be the same.

Strictly where they fit; by three-way merge, in a kept work tree and with the differences written down, if that is
asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolkit.errors import ApplyError, SeriesError, UsageError
from toolkit.files import temporary_directory
from toolkit.git import WorkTree, git_in
from toolkit.project import Project
from toolkit.series import read_line
from toolkit.series.diff import parse_diff
from toolkit.series.lint import read_patch
from toolkit.series.mail import parse_mail
from toolkit.series.write import context_of, file_name, slug_of
from toolkit.upkeep.arriving import Arrival, Wishes, prepare_arrival
from toolkit.upkeep.equality import Difference, differences
from toolkit.upkeep.hold import drop_work, hold_series, require_kept, work_folder, write_kept
from toolkit.upkeep.origins import FromRequest, parse_origin, read_origin
from toolkit.upkeep.picking import Bench, Command, Row, Step, begin, compare_step, resume, skip
from toolkit.upkeep.sent import Incoming
from toolkit.upkeep.trailers import with_trailers
from toolkit.upkeep.workshop import Workshop, apply_strictly, open_series, take_up
from toolkit.upkeep.writeback import Written, write_back
from toolkit.work import Means

IMPORT: Command = "import"


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedPatch:
    """One patch that was imported. `differences` are in what its hunks are not its origin's, empty where they equal."""

    name: str
    subject: str
    differences: tuple[Difference, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """What came into a series; `left_out` are the paths of the origin that a person left out."""

    series: str
    folder: Path
    patches: tuple[ImportedPatch, ...]
    left_out: tuple[str, ...] = ()


def import_patches(
    project: Project, means: Means, name: str, word: str, wishes: Wishes, *, target: str, three_way: bool = False
) -> Imported:
    """Put what a word names on top of a series, strictly or not at all, and return the new patches.

    With `three_way` what does not fit is merged in a kept work tree, where a person resolves a conflict. Raises
    UsageError for paths that the base does not have and nobody left out, ApplyError where it does not fit, FetchError
    where it cannot be had; the series is as it was then.
    """
    line = read_line(project.series_folder(name), name=name)
    origin = parse_origin(word)
    with hold_series(project, name), temporary_directory("toolkit-import-") as scratch:
        incoming = read_origin(
            origin, line, component=name.partition("/")[0], target=target, means=means, scratch=scratch / "origin"
        )
        shop = open_series(project, name, means=means)
        try:
            known = shop.worktree.members() | shop.series.paths
            status = f"Submitted [{origin.address}]" if isinstance(origin, FromRequest) else ""
            arrivals = [
                prepare_arrival(
                    one, wishes, subfolder=line.subfolder, known=known, is_whole=shop.kind == "git",
                    verify=project.verify, status=status or _backport(one),
                )
                for one in incoming
            ]  # fmt: skip
            imported = _import_strictly(shop, arrivals, scratch)
        except ApplyError:
            if three_way:
                return _merge(shop, arrivals)
            drop_work(shop.room)
            raise
        except BaseException:
            drop_work(shop.room)
            raise
        drop_work(shop.room)
        return imported


def continue_import(project: Project, name: str) -> Imported:
    """Go on with a merge whose conflict a person has resolved; WorkTreeError where it is not."""
    with hold_series(project, name):
        shop, bench, row = _take_up(project, name)
        return _finish(shop, bench, resume(bench, row))


def skip_import(project: Project, name: str, why: str) -> Imported:
    """Leave out the patch that waits, and go on."""
    with hold_series(project, name):
        shop, bench, row = _take_up(project, name)
        return _finish(shop, bench, skip(bench, row, why))


def abort_import(project: Project, name: str) -> None:
    """Give a merge up: the series is as it was, the work tree is gone."""
    with hold_series(project, name):
        require_kept(work_folder(project, name), IMPORT, name)
        drop_work(work_folder(project, name))


def _backport(incoming: Incoming) -> str:
    """Return the status of a commit of upstream's."""
    return f"Backport [{incoming.address.removesuffix('.git')}/commit/{incoming.commit}]" if incoming.commit else ""


# --- strictly --------------------------------------------------------------------------------------------------


def _import_strictly(shop: Workshop, arrivals: Sequence[Arrival], scratch: Path) -> Imported:
    """Apply, commit, compare and write; all or nothing."""
    _require_fit(shop, arrivals, scratch)
    worktree = shop.worktree
    commits = [
        worktree.add_patch(one.diff, one.message, author=one.author, date=one.date) for one in arrivals
    ]  # fmt: skip
    found = [_differences(shop, one, commit) for one, commit in zip(arrivals, commits, strict=True)]
    if any(found):
        worktree.checkout(_tip(shop))
        for one, own in zip(arrivals, found, strict=True):
            worktree.add_patch(one.diff, _noted(one.message, own), author=one.author, date=one.date)
    left_out = dict.fromkeys(path for one in arrivals for path in one.left_out)
    return _written(shop, found, write_back(shop), tuple(left_out))


def _require_fit(shop: Workshop, arrivals: Sequence[Arrival], scratch: Path) -> None:
    """Raise what is wrong with the patches, and where one does not fit, as a build would say it."""
    first = len(shop.series.patches) + 1
    (scratch / "arrived").mkdir()
    patches, faults = [], []
    for number, one in enumerate(arrivals, first):
        path = scratch / "arrived" / file_name(number, slug_of(one.subject))
        path.write_bytes(one.mail)
        patch, own = read_patch(path, number)
        patches.append(patch)
        faults += [f"{one.incoming.what}: {fault}" for fault in own]
    if faults:
        raise SeriesError(f"series {shop.name!r} cannot take this in", details=faults)
    apply_strictly(shop, replace(shop.series, patches=(*shop.series.patches, *patches)))


def _differences(shop: Workshop, arrival: Arrival, commit: str) -> tuple[Difference, ...]:
    """Compare a commit with its origin, with as much context as that shows."""
    diff = parse_mail(shop.worktree.export(commit, context_of(arrival.files)), []).diff
    return tuple(differences(arrival.files, parse_diff(diff, [])))


def _noted(message: str, found: Sequence[Difference]) -> str:
    """Note in a message that a patch is not what it was made from."""
    return with_trailers(message, [("Adapted", "; ".join(map(str, found)))]) if found else message


def _written(
    shop: Workshop, found: Sequence[tuple[Difference, ...]], written: Written, left_out: Sequence[str]
) -> Imported:
    """Say what came in: the patches that the series did not have before, with their differences."""
    new = written.patches[len(shop.series.patches) :]
    patches = tuple(
        ImportedPatch(name=patch.name, subject=patch.subject, differences=own)
        for patch, own in zip(new, found, strict=True)
    )
    return Imported(series=shop.name, folder=shop.folder, patches=patches, left_out=tuple(left_out))


# --- by three-way merge ----------------------------------------------------------------------------------------


def _merge(shop: Workshop, arrivals: Sequence[Arrival]) -> Imported:
    """Merge changes that do not fit: each from the files that it was made from, in the kept work tree."""
    top = _tip(shop)
    try:
        shop.worktree.checkout(top)
        steps = [
            Step(name=slug_of(one.subject), commit=_commit_origin(shop.worktree, one, top)) for one in arrivals
        ]  # fmt: skip
        shop.worktree.checkout(top)
        kept = {patch.name: commit for patch, commit in zip(shop.series.patches, shop.commits, strict=True)}
        shop.worktree.keep(kept | {f"arrived/{step.name}": step.commit for step in steps})
    except BaseException:
        drop_work(shop.room)
        raise
    bench = Bench(folder=shop.room)
    left_out = dict.fromkeys(path for one in arrivals for path in one.left_out)
    row = Row(
        command=IMPORT, series=shop.name, series_digest=shop.digest, base=top, top=top, steps=tuple(steps),
        facts={"left_out": "\n".join(left_out)},
    )  # fmt: skip
    bench.write(row)
    write_kept(shop.room, shop.record(IMPORT))
    return _finish(shop, bench, begin(bench, row))


def _tip(shop: Workshop) -> str:
    return shop.commits[-1] if shop.commits else shop.worktree.base


def _commit_origin(worktree: WorkTree, arrival: Arrival, top: str) -> str:
    """Commit the files that a change was made from, on the series, and the change on them; return its commit."""
    origin = arrival.incoming
    if origin.repository is None:
        raise UsageError(
            f"{origin.what} has not the files that it was made from, which a three-way merge goes by",
            hint="import the commit instead, by its id or its pull request",
        )
    worktree.checkout(top)
    for commit, is_new in ((origin.parent, False), (origin.commit, True)):
        for file in arrival.files:
            _write_file(worktree, origin, commit, file.path if is_new else file.old_path, arrival.subfolder)
            if is_new and file.kind == "renamed":
                (worktree.folder / file.old_path).unlink(missing_ok=True)
        git_in(worktree.folder / ".git", GIT_WORK_TREE=str(worktree.folder)).output("add", "--all", "--force")
        made = worktree.commit(arrival.message, author=arrival.author, date=arrival.date)
    return made


def _write_file(worktree: WorkTree, origin: Incoming, commit: str, path: str, subfolder: str) -> None:
    """Let a file be what it is in a commit of upstream's; one that is not there is taken away."""
    assert origin.repository is not None
    name = f"{subfolder}/{path}" if subfolder else path
    found = git_in(origin.repository).attempt("cat-file", "blob", f"{commit}:{name}") if commit else None
    place = worktree.folder / path
    if found is None or found.code != 0:
        place.unlink(missing_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(found.stdout)


def _take_up(project: Project, name: str) -> tuple[Workshop, Bench, Row]:
    shop, _ = take_up(project, name, IMPORT)
    bench = Bench(folder=shop.room)
    return shop, bench, bench.require()


def _finish(shop: Workshop, bench: Bench, row: Row) -> Imported:
    """Commit what came of the merge again, with what is different noted, and write the series."""
    worktree = shop.worktree
    found = []
    worktree.checkout(row.base)
    for step in row.steps:
        if not step.result:
            continue
        own = tuple(compare_step(worktree, step)[1])
        made = worktree.history.commits(f"{step.result}^", step.result)[0]
        diff = parse_mail(worktree.export(step.result), []).diff
        worktree.add_patch(diff, _noted(made.message, own), author=made.author, date=made.date)
        found.append(own)
    left_out = [path for path in row.facts["left_out"].split("\n") if path]
    imported = _written(shop, found, write_back(shop), left_out)
    drop_work(bench.folder)
    return imported
