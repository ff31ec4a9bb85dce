"""The .pth files of site-packages, and the finders of editable installs: read, not run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

LARGEST = 1 << 20
"""How many bytes of a file are read at most; such files are short."""

FINDERS = "__editable__*_finder.py"
"""How setuptools names the finder of an editable install."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PthLine:
    """One line of a .pth file that counts: the folder that it puts on sys.path, or the code that it runs."""

    file: Path
    folder: Path | None = None
    code: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class EditableFinder:
    """The finder of an editable install: where it says that each package is."""

    file: Path
    places: dict[str, Path]


def read_pth_files(folders: Iterable[Path]) -> Iterator[PthLine]:
    """Yield the lines of the .pth files in site folders, in the order in which a start takes them."""
    for folder in folders:
        for file in sorted(folder.glob("*.pth")):
            if not file.name.startswith("."):
                yield from _lines_of(file)


def read_editable_finders(folders: Iterable[Path]) -> Iterator[EditableFinder]:
    """Yield the finders that editable installs have left in site folders; one that cannot be read has no places."""
    for folder in folders:
        for file in sorted(folder.glob(FINDERS)):
            yield EditableFinder(file=file, places=_mapping_of(file))


def _lines_of(file: Path) -> Iterator[PthLine]:
    for line in _text(file).splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        if line.startswith(("import ", "import\t")):
            yield PthLine(file=file, code=stripped)
        else:
            yield PthLine(file=file, folder=file.parent / stripped)


def _mapping_of(file: Path) -> dict[str, Path]:
    try:
        tree = ast.parse(_text(file))
        for node in tree.body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and _target(node) == "MAPPING" and node.value is not None:
                return {str(name): Path(place) for name, place in ast.literal_eval(node.value).items()}
    except (SyntaxError, ValueError, TypeError, AttributeError):
        pass
    return {}


def _target(node: ast.Assign | ast.AnnAssign) -> str:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return target.id if isinstance(target, ast.Name) else ""


def _text(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return stream.read(LARGEST).decode("utf-8-sig", "replace")
    except OSError:
        return ""
