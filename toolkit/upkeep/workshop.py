"""A series as commits in a work tree: opened on a base, taken up again after a pause."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from toolkit.errors import UsageError, WorkTreeError
from toolkit.files import remove_tree, temporary_directory
from toolkit.git import WorkTree
from toolkit.model import FetchedBase, Series, SourceTree, Target, framed_digest
from toolkit.project import Project
from toolkit.repack import COMPILED_SUFFIXES
from toolkit.series import Line, apply_series, load_series, read_line
from toolkit.upkeep.bases import FoundBase, find_base, lay_out_base, this_interpreter
from toolkit.upkeep.hold import TREE, Kept, clear_folder, drop_work, require_kept, work_folder
from toolkit.upkeep.roundtrip import ReadPatch, commit_patches, has_modes, read_again
from toolkit.work import Means

CLONE = "clone"
NO_TARGET = Target(python_tag="any", platform="any")


@dataclass(frozen=True, kw_only=True, slots=True)
class Workshop:
    """A series whose patches are commits. `folder` is the series' own, `room` the one that the work is done in.

    `commits` are those of `patches`, in their order. `base` is the version of the base that the work tree begins with,
    `kind` its kind, and `gitlinks` are the submodules that it records. `digest` is over the series' folder
    as it was when it was opened.
    """

    project: Project
    name: str
    folder: Path
    room: Path
    series: Series
    patches: tuple[ReadPatch, ...]
    commits: tuple[str, ...]
    worktree: WorkTree
    base: str
    kind: str
    gitlinks: Mapping[str, str]
    digest: str

    @property
    def component(self) -> str:
        """The component that the series is for."""
        return self.name.partition("/")[0]

    def commit_of(self, number: int) -> str:
        """Return the commit of a patch by its number; UsageError where the series has none of that number."""
        return self.commits[require_number(self.series, number) - 1]

    def record(self, command: str, *, number: int = 0, pending: Collection[str] = (), message: str = "") -> Kept:
        """Say what is to be noted of this work, so that it can be gone on with."""
        names = (patch.name for patch in self.series.patches)
        return Kept(
            command=command, number=number, base=self.base, kind=self.kind, digest=self.digest, message=message,
            patches=tuple(zip(names, self.commits, strict=True)), pending=tuple(pending), gitlinks=dict(self.gitlinks),
        )  # fmt: skip


def open_series(project: Project, name: str, *, means: Means, base: str | None = None, whole: bool = True) -> Workshop:
    """Lay out a base, the line's home unless `base` names another, and commit the series' patches on it.

    The caller holds the series. With `whole` all of the base's files are there that are not compiled, else those that
    the patches name. Raises WorkTreeError where unfinished work is in the way, SeriesError for a series that cannot be
    read, UsageError for a base that it is not for, ApplyError where it does not apply whole; nothing is left then.
    """
    folder, room = project.series_folder(name), work_folder(project, name)
    clear_folder(room, name)
    series, line = load_series(folder, name=name), read_line(folder, name=name)
    digest = folder_digest(folder)
    try:
        found = find_base(
            base or line.home, line, component=name.partition("/")[0], means=means,
            interpreter=this_interpreter(means), scratch=room / CLONE,
        )  # fmt: skip
        _require_covered(line, found)
        tree = _lay_out(found, series, room / TREE, whole=whole)
        with temporary_directory("toolkit-series-") as scratch:
            apply_series(series, tree, into=scratch / "patched", scratch=scratch)
        return _commit_series(
            Workshop(
                project=project, name=name, folder=folder, room=room, series=series, commits=(),
                patches=tuple(read_again(patch) for patch in series.patches), worktree=WorkTree(room / TREE),
                base=found.base.version, kind=found.base.kind, gitlinks=tree.gitlinks, digest=digest,
            ),
            found,
        )  # fmt: skip
    except BaseException:
        drop_work(room)
        raise


def take_up(project: Project, name: str, command: str) -> tuple[Workshop, Kept]:
    """Return the work that a command left, with what it noted.

    The caller holds the series. Raises UsageError where it left none, WorkTreeError where somebody changed the series
    meanwhile.
    """
    folder, room = project.series_folder(name), work_folder(project, name)
    kept = require_kept(room, command, name)
    if folder_digest(folder) != kept.digest:
        raise WorkTreeError(
            f"series {name} was changed since `toolkit patch {command}` began; its work tree is {room / TREE}",
            hint=f"take out of it what you need, then give it up: toolkit patch {command} --abort --series {name}",
        )
    series = load_series(folder, name=name)
    shop = Workshop(
        project=project, name=name, folder=folder, room=room, series=series,
        patches=tuple(read_again(patch) for patch in series.patches), commits=tuple(one for _, one in kept.patches),
        worktree=WorkTree(room / TREE), base=kept.base, kind=kept.kind, gitlinks=kept.gitlinks, digest=kept.digest,
    )  # fmt: skip
    return shop, kept


def require_number(series: Series, number: int) -> int:
    """Return a patch's number; UsageError where the series has none of it."""
    if not 1 <= number <= len(series.patches):
        names = ", ".join(patch.name for patch in series.patches)
        raise UsageError(f"series {series.name} has no patch {number}", hint=f"it has {names}")
    return number


def apply_strictly(shop: Workshop, series: Series) -> None:
    """Raise ApplyError unless a series applies whole to the base that the work tree begins with."""
    worktree = shop.worktree
    with temporary_directory("toolkit-series-") as scratch:
        members = worktree.members()
        worktree.write_base(sorted(series.paths & members), scratch / "base")
        base = FetchedBase(
            component=shop.component, kind=shop.kind, digest=worktree.base, path=worktree.folder, file=shop.base,
            distribution="", version=shop.base, target=NO_TARGET,
        )  # fmt: skip
        tree = SourceTree(base=base, root=scratch / "base", members=members, gitlinks=shop.gitlinks)
        apply_series(series, tree, into=scratch / "patched", scratch=scratch)


def folder_digest(folder: Path) -> str:
    """Digest the names and bytes of a series' files."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return framed_digest(part for path in files for part in (path.name, path.read_bytes()))


def _require_covered(line: Line, found: FoundBase) -> None:
    if not line.is_for(found.coverage):
        raise UsageError(
            f"series {line.name} is not for {found.coverage}",
            hint=f"it is for {', '.join(line.covers)}; move it with `toolkit patch rebase --onto`",
        )


def _lay_out(found: FoundBase, series: Series, into: Path, *, whole: bool) -> SourceTree:
    """Write the files that people work with: a release's libraries are most of its bytes, and no patch changes them."""
    remove_tree(into)
    if not whole:
        return lay_out_base(found, series.paths, into).tree
    members = lay_out_base(found, (), into).tree.members
    return lay_out_base(found, [path for path in members if not _is_compiled(path)], into).tree


def _is_compiled(path: str) -> bool:
    return path.endswith(COMPILED_SUFFIXES) or ".so." in path


def _commit_series(shop: Workshop, found: FoundBase) -> Workshop:
    shop.worktree.start(gitlinks=shop.gitlinks, has_modes=has_modes(found.base))
    commits = tuple(commit_patches(shop.patches, shop.worktree))
    shop.worktree.keep({one.patch.name: commit for one, commit in zip(shop.patches, commits, strict=True)})
    return replace(shop, commits=commits)
