"""The files that a series names, copied from its base to where they are patched."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable, Collection, Iterable
from pathlib import Path, PurePosixPath

from toolkit.errors import ApplyError
from toolkit.model import SourceTree

ReadFile = Callable[[str], bytes]
"""Reads one member of a base, laid out or not."""


def lay_out(
    paths: Collection[str], tree: SourceTree, target: Path, *, read_file: ReadFile | None = None
) -> dict[str, str]:
    """Copy those of `paths` that the base has below `target`; return why each of the others cannot be patched.

    Only regular files in real folders can. What was not laid out is read with `read_file`; ApplyError without it.
    """
    refused = {path: why for path in sorted(paths) if (why := _symlink_on_the_way(path, tree.root))}
    wanted = sorted((set(paths) & tree.members) - refused.keys())
    there = [path for path in wanted if (tree.root / path).is_file()]
    copy_files(there, tree.root, target)
    for path in sorted(set(wanted) - set(there)):
        if read_file is None:
            raise ApplyError(f"{path} is a file of {tree.base.file}, but was not laid out in {tree.root}")
        place = target / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(read_file(path))
    return refused


def copy_files(paths: Iterable[str], source: Path, target: Path) -> None:
    """Copy files with their paths; of their modes only whether they are executable is kept."""
    for path in paths:
        copy = target / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / path, copy)
        copy.chmod(0o755 if (source / path).stat().st_mode & stat.S_IXUSR else 0o644)


def _symlink_on_the_way(path: str, root: Path) -> str:
    for place in (PurePosixPath(path), *PurePosixPath(path).parents):
        if str(place) != "." and (root / place).is_symlink():
            return f"{place} is a symlink in the base"
    return ""
