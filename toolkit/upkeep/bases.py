"""Any base's files: of a release, of a commit, of what a ref names, of what is installed on this machine.

Only the files that are asked for are written: out of a wheel that stays packed, or out of git's objects, without a
checkout.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from toolkit import sources, target
from toolkit.errors import FetchError, SourceError, UsageError
from toolkit.git import Listing, commit_time, git_in, make_repository, missing_part, read_blobs, read_tree
from toolkit.git.fetching import folder_of, is_folder
from toolkit.git.refs import objects_folder, resolve_ref
from toolkit.mirrors import VARIABLE, address_fault, addresses, without_credentials
from toolkit.model import FetchedBase, Interpreter, LockedBase, Progress, SourceTree, Target
from toolkit.series import Line
from toolkit.sources import git, installed
from toolkit.upkeep.releases import find_release
from toolkit.upkeep.words import COMMIT, Commit, Installed, Ref, Release, Word, parse_against
from toolkit.wheels.archive import open_wheel
from toolkit.work import Means

__all__ = [
    "BaseTree", "Commit", "FoundBase", "Installed", "Ref", "Release", "Word", "find_base", "lay_out_base",
    "obtain_tree", "parse_against", "this_interpreter",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundBase:
    """A base whose bytes are on this machine, to be laid out as often as there are series to look at.

    `label` is for people: the release, or the ref and the commit. `coverage` is the base as `covers` of a series.toml
    names it. `remark` says what a person should know of where it was read from, and is mostly empty.
    """

    label: str
    coverage: str
    base: FetchedBase
    remark: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class BaseTree:
    """Those files of a base that were asked for, and a way to read any other: `read_file` takes one of its members."""

    label: str
    coverage: str
    tree: SourceTree
    base: FetchedBase
    read_file: Callable[[str], bytes]
    remark: str = ""


def obtain_tree(
    word: Word | str, line: Line | None, paths: Collection[str], *, component: str, means: Means,
    interpreter: Interpreter, into: Path, progress: Progress | None = None,
) -> BaseTree:  # fmt: skip
    """Find a base and write those of `paths` that it has below `into`; see `find_base` and `lay_out_base`."""
    found = find_base(
        word, line, component=component, means=means, interpreter=interpreter,
        scratch=into.with_name(f"{into.name}.clone"), progress=progress,
    )  # fmt: skip
    return lay_out_base(found, paths, into)


def find_base(
    word: Word | str, line: Line | None, *, component: str, means: Means, interpreter: Interpreter, scratch: Path,
    progress: Progress | None = None,
) -> FoundBase:  # fmt: skip
    """Bring what a word names into the store, or find it there; a folder with a clone is read where it is.

    The line says where the commits of its upstream are fetched from, and in which folder of a repository its paths
    begin. `scratch` must not be there; for a folder with a clone it is made, and what is found needs it to stay.
    Raises LockError for a release that does not exist or was yanked, FetchError for what cannot be had, SourceError
    for a base that is not what it says, UsageError for a word that names nothing.
    """
    wanted = parse_against(word) if isinstance(word, str) else word
    if isinstance(wanted, Release):
        locked, chosen, remark = find_release(wanted, component=component, means=means, interpreter=interpreter)
        base = _fetch(locked, component, means, interpreter, chosen, progress)
        return FoundBase(label=str(wanted), coverage=str(wanted), base=base, remark=remark)
    if isinstance(wanted, Installed):
        asked = installed.Locked(package=wanted.package, version=wanted.version, optional=False)
        base = _fetch(asked, component, means, interpreter, own_target(interpreter), progress)
        return FoundBase(label=str(wanted), coverage=str(wanted), base=base, remark=f"it is {base.version} here")
    if isinstance(wanted, Commit):
        base = _fetch_commit(wanted.id, _upstream(wanted, line), line, component, means, interpreter, progress)
        return FoundBase(label=wanted.id[:12], coverage=str(wanted), base=base)
    return _find_ref(wanted, line, component, means, interpreter, scratch, progress)


def lay_out_base(found: FoundBase, paths: Collection[str], into: Path) -> BaseTree:
    """Write those of `paths` that a base has below `into`; SourceError for a damaged or unsafe one."""
    base = found.base
    tree = sources.available_sources()[base.kind].lay_out(base, paths, into)
    if base.subfolder and not tree.members:
        raise SourceError(
            f"{base.file} has no folder {base.subfolder!r}", hint="mend `subfolder` in the series' series.toml"
        )
    read = _commit_reader(base) if base.kind == git.KIND else _wheel_reader(base)
    return BaseTree(
        label=found.label, coverage=found.coverage, tree=tree, base=base, read_file=read, remark=found.remark
    )


def this_interpreter(means: Means) -> Interpreter:
    """Look at the interpreter that runs this program."""
    return target.inspect_interpreter(Path(sys.executable), env=means.environ)


def own_target(interpreter: Interpreter) -> Target:
    """Return an interpreter on the newest platform that it can use: any wheel that it can load is for that."""
    return Target(python_tag=interpreter.python_tag, platform=interpreter.platforms[0])


# --- fetching --------------------------------------------------------------------------------------------------


def _fetch(
    locked: LockedBase, component: str, means: Means, interpreter: Interpreter, chosen: Target,
    progress: Progress | None,
) -> FetchedBase:  # fmt: skip
    return sources.available_sources()[locked.kind].fetch(
        locked, component=component, target=chosen, store=means.store, offline=means.offline,
        interpreter=interpreter, env=means.environ, progress=progress,
    )  # fmt: skip


def _fetch_commit(
    commit: str, urls: tuple[str, ...], line: Line | None, component: str, means: Means, interpreter: Interpreter,
    progress: Progress | None,
) -> FetchedBase:  # fmt: skip
    locked = git.Locked(urls=urls, commit=commit, subfolder=line.subfolder if line else "")
    return _fetch(locked, component, means, interpreter, own_target(interpreter), progress)


def _upstream(wanted: Commit, line: Line | None) -> tuple[str, ...]:
    if line is None or not line.upstream:
        raise UsageError(
            f"nothing says where commit {wanted.id} is",
            hint="name its repository, git:URL@COMMIT, or write `upstream` into the series' series.toml",
        )
    return line.upstream


def _find_ref(
    wanted: Ref, line: Line | None, component: str, means: Means, interpreter: Interpreter, scratch: Path,
    progress: Progress | None,
) -> FoundBase:  # fmt: skip
    """Find out which commit a ref names, and bring it; what is on this machine already is not copied."""
    place = _absolute(wanted.url)
    if why := address_fault(place):
        raise UsageError(f"{without_credentials(wanted.url)!r} is no address of a repository: {why}")
    objects = objects_folder(folder_of(place)) if is_folder(place) else None
    if means.offline and objects is None and not COMMIT.match(wanted.ref):
        raise FetchError(
            f"{wanted}: offline nobody is asked what {wanted.ref!r} names",
            hint="name a folder with a clone, or the full id of a commit that the store has",
        )
    commit = _ask(place, wanted.ref, means)
    if objects is None:
        base = _fetch_commit(commit, (place,), line, component, means, interpreter, progress)
    else:
        base = _read_clone(objects, commit, line, component, own_target(interpreter), scratch)
    label = commit[:12] if commit == wanted.ref else f"{wanted.ref} ({commit[:12]})"
    return FoundBase(label=label, coverage=f"git:{commit}", base=base)


def _absolute(url: str) -> str:
    """Return an address as git is given it: a folder by its whole path."""
    return os.path.abspath(url) if url.startswith((".", "/")) or os.path.isdir(url) else url


def _ask(place: str, ref: str, means: Means) -> str:
    """Return the commit that a ref names; a mirror of one component says nothing of a repository named by hand."""
    environ = {name: value for name, value in means.environ.items() if not name.startswith(VARIABLE)}
    *stand_ins, last = addresses("", (place,), environ)
    for address in stand_ins:
        with contextlib.suppress(FetchError):  # The last one's is told.
            return resolve_ref(address, ref, env=environ)
    return resolve_ref(last, ref, env=environ)


def _read_clone(
    objects: Path, commit: str, line: Line | None, component: str, chosen: Target, scratch: Path
) -> FetchedBase:
    """Look at a commit through a repository of ours that borrows a clone's objects: nothing else of it is read."""
    make_repository(scratch, commit)
    (scratch / "objects" / "info").mkdir(exist_ok=True)
    (scratch / "objects" / "info" / "alternates").write_bytes(os.fsencode(objects.absolute()) + b"\n")
    if why := missing_part(scratch, commit):
        raise FetchError(
            f"{component}: commit {commit} is not whole in {objects.parent}: {why}",
            hint="fetch it there; a partial clone lacks files that were never checked out",
        )
    return FetchedBase(
        component=component, kind=git.KIND, digest=commit, path=scratch, file=f"{component}@{commit[:12]}",
        distribution="", version=commit[:12], target=chosen, subfolder=line.subfolder if line else "",
        epoch=commit_time(scratch, commit),
    )  # fmt: skip


# --- reading ---------------------------------------------------------------------------------------------------


def _wheel_reader(base: FetchedBase) -> Callable[[str], bytes]:
    def read(path: str) -> bytes:
        with open_wheel(base.path) as wheel:
            return wheel.read(path)

    return read


def _commit_reader(base: FetchedBase) -> Callable[[str], bytes]:
    """Read files of a commit, whose tree is listed when the first is asked for."""

    @cache
    def entries() -> Listing:
        return read_tree(base.path, base.digest, what=base.file).entries

    def read(path: str) -> bytes:
        entry = entries()[f"{base.subfolder}/{path}" if base.subfolder else path]
        return read_blobs(git_in(base.path), [entry.id])[entry.id]

    return read
