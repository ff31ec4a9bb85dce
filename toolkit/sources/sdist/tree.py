"""A source archive as a tree: laid out to be patched, written whole to be built, and what names its content."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from toolkit.errors import SourceError
from toolkit.files import sha256_file
from toolkit.model import BuildTree, FetchedBase, PatchedTree, Progress, SourceTree, Submodule, framed_digest
from toolkit.store import Store
from toolkit.tarballs import Tarball, extract_files, hash_files, list_tarball

FileState = tuple[int, str]
"""A file's mode, 0o644 or 0o755, and its sha256."""


def lay_out(base: FetchedBase, paths: Collection[str], into: Path) -> SourceTree:
    """Write those of `paths` that the archive has below `into`; both begin at the base's subfolder."""
    into.mkdir(parents=True, exist_ok=True)
    tarball = below_subfolder(list_tarball(base.path), base.subfolder)
    members = frozenset(tarball.entries)
    extract_files(tarball, members.intersection(paths), into)
    return SourceTree(base=base, root=into, members=members)


def fetch_submodules(
    base: FetchedBase, patched: PatchedTree, *, store: Store, offline: bool, env: Mapping[str, str],
    progress: Progress | None = None,
) -> tuple[Submodule, ...]:  # fmt: skip
    """Return none: an sdist has all its files in it."""
    return ()


def lay_out_submodules(
    base: FetchedBase, submodules: Sequence[Submodule], paths: Collection[str], into: Path
) -> SourceTree:
    """Write nothing; `into` is made."""
    into.mkdir(parents=True, exist_ok=True)
    return SourceTree(base=base, root=into, members=frozenset())


def check_out(
    base: FetchedBase, submodules: Sequence[Submodule], patched: Sequence[PatchedTree], into: Path,
    *, is_native: Callable[[str], bool],
) -> BuildTree:  # fmt: skip
    """Write the whole archive below `into`, which is made, the patched files over it."""
    into.mkdir(parents=True)
    tarball = list_tarball(base.path)
    changed = _changed_files(base, patched)
    names = tarball.entries.keys() - changed.keys()
    states = _states(tarball, extract_files(tarball, names, into))
    for name, source in changed.items():
        if source is not None:
            states[name] = _state(source)
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, into / name)
            (into / name).chmod(states[name][0])
    digest, native = _digests(base, states, is_native)
    return BuildTree(base=base, root=into, digest=digest, native_digest=native)


def digest_tree(
    base: FetchedBase, patched: Sequence[PatchedTree], *, is_native: Callable[[str], bool]
) -> tuple[str, str]:
    """Return a patched archive's digest and its native digest, as `check_out` gives them, without writing it."""
    tarball = list_tarball(base.path)
    changed = _changed_files(base, patched)
    states = _states(tarball, hash_files(tarball, tarball.entries.keys() - changed.keys()))
    states |= {name: _state(source) for name, source in changed.items() if source is not None}
    return _digests(base, states, is_native)


def below_subfolder(tarball: Tarball, subfolder: str) -> Tarball:
    """Return what an archive has below a folder, by its path from there."""
    if not subfolder:
        return tarball
    prefix = f"{subfolder}/"
    below = {name[len(prefix) :]: entry for name, entry in tarball.entries.items() if name.startswith(prefix)}
    return replace(tarball, entries=below)


def _changed_files(base: FetchedBase, patched: Sequence[PatchedTree]) -> dict[str, Path | None]:
    """Map what the patches change, from the archive's top, to its new content; None for what they take away."""
    prefix = f"{base.subfolder}/" if base.subfolder else ""
    return {
        f"{prefix}{changed.path}": _content(tree.root / changed.path, changed.sha256)
        for tree in patched
        for changed in tree.changed
    }


def _content(path: Path, sha256: str | None) -> Path | None:
    if sha256 is not None and sha256_file(path) != sha256:
        raise SourceError(f"{path} is not what the series made of it", hint="something else writes to the tree")
    return None if sha256 is None else path


def _states(tarball: Tarball, hashes: Mapping[str, str]) -> dict[str, FileState]:
    return {name: (tarball.entries[name].mode, digest) for name, digest in hashes.items()}


def _state(path: Path) -> FileState:
    return 0o755 if path.stat().st_mode & 0o111 else 0o644, sha256_file(path)


def _digests(base: FetchedBase, states: Mapping[str, FileState], is_native: Callable[[str], bool]) -> tuple[str, str]:
    """Return the digest over all files, and over the archive and those that can change what is compiled.

    A native wheel has its archive's Python files in it, and its time.
    """
    prefix = f"{base.subfolder}/" if base.subfolder else ""

    def counts(name: str) -> bool:
        return not name.startswith(prefix) or is_native(name[len(prefix) :])

    def frames(names: list[str]) -> Iterator[str]:
        for name in names:
            yield from (name, f"{states[name][0]:o}", states[name][1])

    names = sorted(states)
    native = frames([name for name in names if counts(name)])
    return framed_digest(frames(names)), framed_digest(["native", base.digest, str(base.epoch), *native])
