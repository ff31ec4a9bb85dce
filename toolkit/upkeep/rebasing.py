"""Moving a series to another base: three-way by git itself, patch by patch, in a kept work tree.

The old base is the tree's first commit, the new one its second, and the patches are put on that one after the other.
Nothing is dropped by itself, and the series is as it was until all is through.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec

from toolkit.errors import ApplyError, FetchError, LockError, SeriesError, SourceError, UsageError, WorkTreeError
from toolkit.files import exchange_directories, remove_tree
from toolkit.git import GITLINK, git_in
from toolkit.project import Project
from toolkit.repack import COMPILED_SUFFIXES
from toolkit.series import LINE_FILE, Line, load_series, read_line
from toolkit.series.write import file_name, slug_in
from toolkit.upkeep.bases import FoundBase, find_base, lay_out_base, this_interpreter
from toolkit.upkeep.covering import stands_on, with_covers
from toolkit.upkeep.equality import Difference, Kept
from toolkit.upkeep.hold import drop_work, hold_series, read_kept, require_kept, work_folder, write_kept
from toolkit.upkeep.picking import Bench, Command, Row, Step, begin, compare_step, resume, skip
from toolkit.upkeep.reshaping import keep_retired
from toolkit.upkeep.workshop import Workshop, folder_digest, open_series, take_up
from toolkit.work import Means

REBASE: Command = "rebase"
MOVED = "moved"
ONTO, AFTER, REPORT = "onto", "after", "report"
"""Facts of a row: the new base in words; before the last step the digest of what is put in place, and the answer."""

BASE_AUTHOR = "toolkit <toolkit@example.invalid>"
BASE_DATE = "946684800 +0000"


@dataclass(frozen=True, kw_only=True, slots=True)
class MovedPatch:
    """How one patch came through: `name` is what it is called now, `old` what it was called."""

    name: str
    old: str
    subject: str
    kept: Kept
    differences: tuple[Difference, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """A series on its new base. `skipped` are the patches that a person left out, each with the reason.

    `retired` are their files now, none where the series stays as it is beside a new line. `covers` are the bases that
    the series is for now, `dropped` those that it was for and is not any more, each with the reason.
    """

    series: str
    folder: Path
    home: str
    patches: tuple[MovedPatch, ...]
    skipped: tuple[tuple[str, str], ...]
    retired: tuple[Path, ...]
    covers: tuple[str, ...]
    dropped: tuple[tuple[str, str], ...]


def rebase_series(project: Project, means: Means, name: str, onto: str, *, into: str = "") -> Moved:
    """Move a series to another base, in its own place or as a new line `into`.

    Raises WorkTreeError, with the work tree kept, at a patch that conflicts or has nothing left to do, UsageError
    where there is nothing to move, or something in the way.
    """
    if into:
        _require_free(project, name, into)
    with hold_series(project, name):
        shop = open_series(project, name, means=means)
        try:
            row = _prepare(shop, onto, into, means)
        except BaseException:
            drop_work(shop.room)
            raise
        return _finish(shop, begin(Bench(folder=shop.room), row), means)


def continue_rebase(project: Project, means: Means, name: str) -> Moved:
    """Go on after a conflict that a person has resolved, or after a run that was killed."""
    with hold_series(project, name):
        if done := _written_already(project, name):
            return done
        shop, bench, row = _take_up(project, name)
        return _finish(shop, resume(bench, row), means)


def skip_patch(project: Project, means: Means, name: str, why: str) -> Moved:
    """Leave out the patch that waits, because a person says so, and go on."""
    with hold_series(project, name):
        shop, bench, row = _take_up(project, name)
        return _finish(shop, skip(bench, row, why), means)


def abort_rebase(project: Project, name: str) -> Path:
    """Give a rebase up: the work tree is gone, the series was never touched. Return the series' folder."""
    with hold_series(project, name):
        require_kept(work_folder(project, name), REBASE, name)
        drop_work(work_folder(project, name))
        return project.series_folder(name)


# --- the way there ---------------------------------------------------------------------------------------------


def _require_free(project: Project, name: str, into: str) -> None:
    if into.count("/") != 1 or into.partition("/")[0] != name.partition("/")[0] or into.endswith("/"):
        raise UsageError(
            f"--into {into!r} is no line of {name.partition('/')[0]}", hint=f"expected {name.partition('/')[0]}/LINE"
        )
    if into in project.series_names():
        raise UsageError(f"there is a series {into!r} already", hint="name another with --into")


def _prepare(shop: Workshop, onto: str, into: str, means: Means) -> Row:
    """Commit the new base beside the series' own, and write down which patches are to be put on it."""
    line = read_line(shop.folder, name=shop.name)
    found = _find(shop, line, onto, means)
    if found.coverage == line.home:
        raise UsageError(
            f"series {shop.name} is written on {found.coverage} already", hint="`toolkit patch refresh` writes it anew"
        )
    worktree = shop.worktree
    worktree.checkout(worktree.base)
    base = _commit_base(shop, found)
    named = {patch.name: commit for patch, commit in zip(shop.series.patches, shop.commits, strict=True)}
    worktree.keep({**named, "new-base": base})
    row = Row(
        command=REBASE, series=shop.name, series_digest=shop.digest, base=base, top=base,
        steps=tuple(Step(name=patch, commit=commit) for patch, commit in named.items()),
        facts={ONTO: found.label, "word": onto, "coverage": found.coverage, "into": into},
    )  # fmt: skip
    Bench(folder=shop.room).write(row)
    write_kept(shop.room, shop.record(REBASE))
    return row


def _find(shop: Workshop, line: Line, word: str, means: Means) -> FoundBase:
    scratch = shop.room / "onto"
    remove_tree(scratch)
    return find_base(
        word, line, component=shop.component, means=means, interpreter=this_interpreter(means), scratch=scratch
    )  # fmt: skip


def _commit_base(shop: Workshop, found: FoundBase) -> str:
    """Let the files be those of another base, and commit them on the first one: git sees what was renamed between."""
    folder = shop.worktree.folder
    for place in folder.iterdir():
        if place.name != ".git":
            remove_tree(place)
    members = lay_out_base(found, (), folder).tree.members
    tree = lay_out_base(found, [path for path in members if not _is_compiled(path)], folder).tree
    git = git_in(folder / ".git", GIT_WORK_TREE=str(folder))
    git.output("read-tree", "--empty")
    for path in tree.gitlinks:
        (folder / path).mkdir(parents=True, exist_ok=True)
    git.output("add", "--all", "--force")
    entries = "".join(f"{GITLINK} {commit}\t{path}\0" for path, commit in tree.gitlinks.items())
    git.output("update-index", "-z", "--index-info", stdin=entries.encode())
    return shop.worktree.commit(f"base {found.label}\n", author=BASE_AUTHOR, date=BASE_DATE)


def _is_compiled(path: str) -> bool:
    return path.endswith(COMPILED_SUFFIXES) or ".so." in path


def _take_up(project: Project, name: str) -> tuple[Workshop, Bench, Row]:
    shop, _ = take_up(project, name, REBASE)
    bench = Bench(folder=shop.room)
    return shop, bench, bench.require()


# --- the end of it ---------------------------------------------------------------------------------------------


def _finish(shop: Workshop, row: Row, means: Means) -> Moved:
    """Write what came through, check it as any build will, and put it in its place in one step."""
    bench = Bench(folder=shop.room)
    line = read_line(shop.folder, name=shop.name)
    aside = shop.room / MOVED
    patches = _write_patches(shop, row, aside)
    home, into = row.facts["coverage"], row.facts["into"]
    old = (shop.folder / LINE_FILE).read_text(encoding="utf-8")
    (aside / LINE_FILE).write_text(with_covers(old, (home,)), encoding="utf-8")
    _require_sound(shop, line, aside, row, means)
    stays, dropped = ({}, {}) if into else _judge_others(shop, line, aside, home, means)
    covers = (home, *stays)
    (aside / LINE_FILE).write_text(with_covers(old, covers), encoding="utf-8")
    if folder_digest(shop.folder) != shop.digest:
        raise WorkTreeError(
            f"series {shop.name} was changed by somebody else meanwhile; the moved one is in {aside}",
            hint="compare the two, and take over what you need",
        )
    moved = Moved(
        series=into or shop.name, folder=shop.folder.parents[1] / into if into else shop.folder, home=home,
        patches=patches, covers=covers, dropped=tuple(dropped.items()),
        skipped=tuple((step.name, step.skipped) for step in row.steps if step.skipped),
        retired=() if into else _retire(shop, row),
    )  # fmt: skip
    record = {AFTER: folder_digest(aside), REPORT: msgspec.json.encode(moved, enc_hook=str).decode()}
    bench.write(msgspec.structs.replace(row, facts=row.facts | record))
    return _put_in_place(shop.project, shop.name, aside, moved)


def _retire(shop: Workshop, row: Row) -> tuple[Path, ...]:
    """Keep the files of the patches that a person left out, each with his reason."""
    reasons = {step.name: f"{step.skipped} (moving to {row.facts['coverage']})" for step in row.steps if step.skipped}
    return tuple(
        keep_retired(shop, one, [("Retired", reasons[one.patch.name])])
        for one in shop.patches
        if one.patch.name in reasons
    )


def _put_in_place(project: Project, name: str, aside: Path, moved: Moved) -> Moved:
    """Give the moved series its final name, and remove the work tree."""
    if moved.series != name:
        moved.folder.parent.mkdir(parents=True, exist_ok=True)
        os.rename(aside, moved.folder)
    else:
        exchange_directories(aside, moved.folder.resolve())
    drop_work(work_folder(project, name))
    return moved


def _written_already(project: Project, name: str) -> Moved | None:
    """Return what a run that was killed in its very last step had written, and tidy up after it."""
    room = work_folder(project, name)
    kept = read_kept(room)
    row = Bench(folder=room).read() if kept is not None and kept.command == REBASE else None
    if row is None or REPORT not in row.facts:
        return None
    moved = msgspec.json.decode(row.facts[REPORT], type=Moved, dec_hook=lambda kind, text: kind(text))
    if not moved.folder.is_dir() or folder_digest(moved.folder) != row.facts[AFTER]:
        return None
    drop_work(room)
    return moved


def _write_patches(shop: Workshop, row: Row, aside: Path) -> tuple[MovedPatch, ...]:
    """Write the patches in normal form, each with its own context, beside what else lies in the series' folder."""
    remove_tree(aside)
    aside.mkdir(parents=True)
    for path in sorted(shop.folder.iterdir()):
        if path.is_file() and path.suffix != ".patch":
            shutil.copy2(path, aside / path.name)
    aside.chmod(shop.folder.stat().st_mode & 0o7777)
    contexts = {one.patch.name: one.context for one in shop.patches}
    moved = []
    for number, step in enumerate((step for step in row.steps if step.result), 1):
        path = aside / file_name(number, slug_in(step.name))
        path.write_bytes(shop.worktree.export(step.result, contexts[step.name]))
        kept, found = compare_step(shop.worktree, step, contexts[step.name])
        subject = shop.worktree.history.commits(f"{step.result}^", step.result)[0].subject
        moved.append(
            MovedPatch(name=path.stem, old=step.name, subject=subject, kept=kept, differences=tuple(found))
        )  # fmt: skip
    return tuple(moved)


def _require_sound(shop: Workshop, line: Line, aside: Path, row: Row, means: Means) -> None:
    """Read the moved series as any command will, and apply it to its new base."""
    try:
        why = stands_on(load_series(aside, name=shop.name), _find(shop, line, row.facts["word"], means))
    except SeriesError as fault:
        raise SeriesError(
            f"series {shop.name} was not moved: {fault.message}", details=fault.details,
            hint=f"mend the commits in {shop.worktree.folder}, or give it up with --abort",
        ) from fault  # fmt: skip
    if why:
        raise ApplyError(f"series {shop.name} was not moved: {why}", hint=f"its work tree is {shop.worktree.folder}")


def _judge_others(
    shop: Workshop, line: Line, aside: Path, home: str, means: Means
) -> tuple[dict[str, str], dict[str, str]]:
    """Ask whether the moved patches apply to the line's other bases; return those that stay, and why others do not."""
    series = load_series(aside, name=shop.name)
    reasons = {}
    for coverage in line.covers:
        if coverage != home:
            try:
                reasons[coverage] = stands_on(series, _find(shop, line, coverage, means))
            except (FetchError, LockError, SourceError) as fault:
                reasons[coverage] = f"it cannot be looked at: {fault.message}"
    return {one: "" for one, why in reasons.items() if not why}, {one: why for one, why in reasons.items() if why}
