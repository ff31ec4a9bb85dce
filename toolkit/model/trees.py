"""Bases, the trees that they are laid out as, and the patches that go into these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from toolkit.model.recipes import Target

Part = Literal["python", "native", "generated"]
ChangeKind = Literal["modified", "added", "deleted", "renamed"]
ApplyStatus = Literal["clean", "offset", "upstream"]
Form = Literal["wheel", "tree"]
"""What a base is when it has been fetched: a wheel that is patched as it is, or a source tree that is built."""

Progress = Callable[[int, int | None], None]
"""Called with bytes done and bytes in all (None where unknown)."""


# --- sources ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchedBase:
    """A base whose bytes are in the store. `digest` is the sha256 of the artifact, or the commit id.

    `path` is the artifact, for a commit the bare repository that has it. `distribution` is empty for a source tree:
    its wheel will say. `subfolder` is where in a source tree the paths of its patches begin; `epoch` is the time of
    a source tree, in seconds since 1970, for what a build stamps with a time. `addresses` are those that a commit's
    recipe names, from which the addresses of its submodules may be relative; `submodules` says whether it has any.
    """

    component: str
    kind: str
    digest: str
    path: Path
    file: str
    distribution: str
    version: str
    target: Target
    subfolder: str = ""
    epoch: int = 0
    addresses: tuple[str, ...] = ()
    submodules: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Submodule:
    """A repository inside a source tree, nested ones too: its folder from the tree's top, and what is checked out.

    `repository` is the bare repository in the store that has the commit.
    """

    path: str
    commit: str
    repository: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceTree:
    """Files of a base, laid out to be patched.

    `root` holds at least the files that were asked for; `members` names every file of the base, so that a patch
    that names none of them can be told from one that names a file which was not laid out. `gitlinks` are the
    submodules that a commit records, path to commit. All paths begin at the base's subfolder.
    """

    base: FetchedBase
    root: Path
    members: frozenset[str]
    gitlinks: Mapping[str, str] = field(default_factory=dict)


# --- series ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class FileChange:
    """One file that a patch names, as paths from the tree's root; `old_path` differs only for a rename or copy.

    With `is_gitlink`, what changes there is a submodule: the commit of it that the tree records.
    """

    path: str
    old_path: str
    kind: ChangeKind
    part: Part
    is_gitlink: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch:
    """One patch file, parsed. `name` is the file stem, `NNNN-slug`; `sha256` is over the file's bytes."""

    number: int
    name: str
    path: Path
    sha256: str
    subject: str
    body: str
    upstream_status: str
    witness: str
    fixes: tuple[str, ...]
    changes: tuple[FileChange, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """The ordered patches of one component on one line. `name` is the folder below `patches/`.

    `elsewhere` are the names of those that were split off, to be applied to another tree.
    """

    name: str
    patches: tuple[Patch, ...]
    elsewhere: tuple[str, ...] = ()

    @property
    def paths(self) -> frozenset[str]:
        """Every path that a patch reads or writes."""
        return frozenset(
            path for patch in self.patches for change in patch.changes for path in (change.path, change.old_path)
        )

    @property
    def native(self) -> tuple[str, ...]:
        """The names of the patches that change a native file or move a submodule."""
        return tuple(patch.name for patch in self.patches if any(change.part == "native" for change in patch.changes))


@dataclass(frozen=True, kw_only=True, slots=True)
class AppliedPatch:
    """How one patch went in. `offsets` are the hunks' line offsets as git reports them, 0 left out."""

    name: str
    status: ApplyStatus
    offsets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedFile:
    """One file of the patched tree that differs from the base; `sha256` is None where it was deleted."""

    path: str
    kind: ChangeKind
    part: Part
    sha256: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchedTree:
    """A tree with the whole series in it. `root` holds the changed files (a deleted one is absent there).

    `gitlinks` are the submodules that the series moves: path to the new commit, None where it takes one away.
    """

    source: SourceTree
    series: Series
    root: Path
    applied: tuple[AppliedPatch, ...]
    changed: tuple[ChangedFile, ...]
    gitlinks: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildTree:
    """A whole source tree, patches and submodules in it, that a build may dirty.

    `digest` names its content (a git tree id for a commit); `native_digest` names what can change a compiled file.
    `root` is the top; the project lies in the base's subfolder of it.
    """

    base: FetchedBase
    root: Path
    digest: str
    native_digest: str
