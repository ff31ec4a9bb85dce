"""The whole tree of a commit with its patches and submodules in it: named, and written for a build."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from toolkit.errors import SourceError
from toolkit.files import staged_directory
from toolkit.git import (
    EXECUTABLE,
    GITLINK,
    SYMLINK,
    Listing,
    Tree,
    TreeEdit,
    check_out_commit,
    edit_tree,
    git_in,
    gitlinks,
    read_blobs,
    read_tree,
)
from toolkit.model import BuildTree, FetchedBase, PatchedTree, Submodule, framed_digest

IsNative = Callable[[str], bool]
Edits = Mapping[str, TreeEdit]
"""Changes to a tree by their paths from its top."""


def check_out(
    base: FetchedBase,
    submodules: Sequence[Submodule],
    patched: Sequence[PatchedTree],
    into: Path,
    *,
    is_native: IsNative,
) -> BuildTree:
    """Write the whole tree with its submodules below `into`, the patched files over it.

    Each repository's folder has a `.git` of its own, with its commit checked out and the patches staged, that shares
    nothing with the store. Made aside: where this raises, nothing is at `into`. Raises SourceError for a tree that may
    not be written, and for a submodule that the tree does not have at that commit.
    """
    edits = _read_edits(patched, base.subfolder)
    shares = _deal_out(edits, ["", *(module.path for module in submodules)])
    with staged_directory(into.absolute()) as aside:
        tree = check_out_commit(base.path, base.digest, shares[""], aside, what=base.file)
        recorded = gitlinks(tree.entries)
        for module in submodules:
            what = f"submodule {module.path!r} of {base.file}"
            if recorded.get(module.path) != module.commit:
                raise SourceError(f"{what} is to be at {module.commit}, but is not in the tree at that commit")
            inner = _within(shares[module.path], module.path)
            below = check_out_commit(module.repository, module.commit, inner, aside / module.path, what=what)
            recorded |= {f"{module.path}/{path}": commit for path, commit in gitlinks(below.entries).items()}
    digest, native_digest = _digest(base, tree, edits, is_native)
    return BuildTree(base=base, root=into, digest=digest, native_digest=native_digest)


def digest_tree(base: FetchedBase, patched: Sequence[PatchedTree], *, is_native: IsNative) -> tuple[str, str]:
    """Return a patched tree's digest and its native digest, as `check_out` gives them, without writing it.

    The digest is git's own tree id where no patch lies in a submodule. Raises SourceError for a tree that may not be
    written.
    """
    edits = _read_edits(patched, base.subfolder)
    links = gitlinks(read_tree(base.path, base.digest, what=base.file).entries).keys()
    moved = {edit.path for edit in edits.values() if edit.commit is not None}
    removed = {edit.path for edit in edits.values() if edit.commit is None and edit.source is None}
    own = _deal_out(edits, ["", *(links | moved) - removed])[""]
    return _digest(base, edit_tree(base.path, base.digest, own, what=base.file), edits, is_native)


def write_members(
    repository: Path, entries: Listing, *, prefix: str, subfolder: str, paths: Collection[str], into: Path
) -> tuple[frozenset[str], dict[str, str]]:
    """Write those of `paths` that a tree has below `into`; return all its files, and its submodules with commits.

    The tree lies at `prefix` in the whole; all paths begin at `subfolder`, and what lies outside of it is left out.
    """
    found = {}
    for entry in entries.values():
        path = path_below(f"{prefix}{entry.path}", subfolder)
        if path is not None:
            found[path] = entry
    wanted = [(path, found[path]) for path in sorted(found.keys() & set(paths)) if found[path].mode != GITLINK]
    blobs = read_blobs(git_in(repository), sorted({entry.id for _, entry in wanted}))
    into.mkdir(parents=True, exist_ok=True)
    for path, entry in wanted:
        _write_member(into / path, entry.mode, blobs[entry.id])
    members = frozenset(path for path, entry in found.items() if entry.mode != GITLINK)
    return members, {path: entry.id for path, entry in found.items() if entry.mode == GITLINK}


def path_below(path: str, subfolder: str) -> str | None:
    """Return a path from the subfolder on, or None for one that lies outside of it."""
    if not subfolder:
        return path
    return path.removeprefix(f"{subfolder}/") if path.startswith(f"{subfolder}/") else None


def _write_member(path: Path, mode: str, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if mode == SYMLINK:
        os.symlink(os.fsdecode(content), path)
        return
    path.write_bytes(content)
    path.chmod(0o755 if mode == EXECUTABLE else 0o644)


# --- patches ---------------------------------------------------------------------------------------------------


def _read_edits(patched: Sequence[PatchedTree], subfolder: str) -> Edits:
    """Collect what patches change, by path from the tree's top."""
    edits = {}
    for tree in patched:
        for file in tree.changed:
            source = tree.root / file.path if file.sha256 is not None else None
            edits[_from_top(file.path, subfolder)] = TreeEdit(path=_from_top(file.path, subfolder), source=source)
        for path, commit in tree.gitlinks.items():
            edits[_from_top(path, subfolder)] = TreeEdit(path=_from_top(path, subfolder), commit=commit)
    return edits


def _from_top(path: str, subfolder: str) -> str:
    return f"{subfolder}/{path}" if subfolder else path


def _deal_out(edits: Edits, folders: Sequence[str]) -> dict[str, list[TreeEdit]]:
    """Give every edit to the innermost repository whose folder it lies below; the top's folder is the empty one."""
    shares: dict[str, list[TreeEdit]] = {folder: [] for folder in folders}
    for path, edit in edits.items():
        parents = [str(parent) for parent in PurePosixPath(path).parents]
        shares[next((parent for parent in parents if parent in shares), "")].append(edit)
    return shares


def _within(edits: Sequence[TreeEdit], folder: str) -> list[TreeEdit]:
    return [
        TreeEdit(path=edit.path.removeprefix(f"{folder}/"), source=edit.source, commit=edit.commit) for edit in edits
    ]


# --- digests ---------------------------------------------------------------------------------------------------


def _digest(base: FetchedBase, tree: Tree, edits: Edits, is_native: IsNative) -> tuple[str, str]:
    links = gitlinks(tree.entries)
    inner = [edit for path, edit in sorted(edits.items()) if any(path.startswith(f"{link}/") for link in links)]

    def is_chosen(path: str) -> bool:
        below = path_below(path, base.subfolder)
        return below is None or is_native(below)

    digest = framed_digest(["tree", tree.id, *_edit_parts(inner)]) if inner else tree.id
    chosen = [entry for path, entry in sorted(tree.entries.items()) if is_chosen(path)]
    native = [part for entry in chosen for part in (entry.path, entry.mode, entry.id)]
    changed = list(_edit_parts([edit for edit in inner if is_chosen(edit.path)]))
    submodules = "with submodules" if base.submodules else "without submodules"
    return digest, framed_digest(["native", base.digest, submodules, str(len(native)), *native, *changed])


def _edit_parts(edits: Sequence[TreeEdit]) -> Iterator[str | bytes]:
    """Name what patches make of files in submodules, whose unpatched content their commits name."""
    for edit in edits:
        yield edit.path
        if edit.source is None:
            yield edit.commit or "deleted"
            continue
        yield EXECUTABLE if edit.source.stat().st_mode & stat.S_IXUSR else "file"
        yield edit.source.read_bytes()
