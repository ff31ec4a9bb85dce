"""Reading a folder of patches as an ordered series."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from toolkit.errors import SeriesError
from toolkit.model import Patch, Series
from toolkit.series.lint import read_patch

PATCH_FILE = re.compile(r"(\d{4})-([A-Za-z0-9][A-Za-z0-9._-]*)\.patch$")
COMPANIONS = frozenset(("series.toml", "README", "README.md"))


def load_series(folder: Path, *, name: str) -> Series:
    """Read the patches `NNNN-slug.patch` of a folder in their order.

    Reads no git and writes nothing. Raises SeriesError with every fault of every patch in `details`.
    """
    if not folder.is_dir():
        raise SeriesError(f"there is no series {name!r}: no folder {folder}", hint=_neighbours(folder))
    patches, faults = read_folder(folder)
    if faults:
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise SeriesError(
            f"series {name!r} has {count}", hint=f"mend the files in {folder} and try again", details=faults
        )
    return Series(name=name, patches=patches)


def read_folder(folder: Path) -> tuple[tuple[Patch, ...], list[str]]:
    """Read the patches of a folder in their order, and everything that is wrong with them and with the folder."""
    numbered, faults = _number_files(folder)
    patches: list[Patch] = []
    for number, path in numbered:
        patch, own_faults = read_patch(path, number)
        patches.append(patch)
        faults.extend(f"{path.name}: {fault}" for fault in own_faults)
    if not numbered:
        faults.append(f"{folder}: has no patch, expected files named NNNN-slug.patch")
    return tuple(patches), faults


def series_key_inputs(series: Series) -> list[tuple[str, str]]:
    """Name what a series adds to a key: each patch with its place, and the sha256 of its bytes."""
    return [(f"series[{place}] {patch.name}", patch.sha256) for place, patch in enumerate(series.patches, 1)]


def _number_files(folder: Path) -> tuple[list[tuple[int, Path]], list[str]]:
    numbered, faults = [], []
    for path in sorted(folder.iterdir()):
        match = PATCH_FILE.match(path.name)
        if match and path.is_file():
            numbered.append((int(match[1]), path))
        elif path.name not in COMPANIONS:
            faults.append(f"{path.name}: outside the order, expected NNNN-slug.patch")
    return numbered, [*faults, *_order_faults(numbered)]


def _order_faults(numbered: list[tuple[int, Path]]) -> Iterator[str]:
    previous, previous_name = 0, ""
    for number, path in numbered:
        if number == previous and previous_name:
            yield f"{path.name}: has number {number:04}, as {previous_name} has"
        elif number != previous + 1:
            yield f"{path.name}: has number {number:04}, expected {previous + 1:04}"
        previous, previous_name = number, path.name


def _neighbours(folder: Path) -> str:
    present = sorted(path.name for path in folder.parent.iterdir()) if folder.parent.is_dir() else []
    return f"{folder.parent} has {', '.join(present)}" if present else f"{folder.parent} has no series"
