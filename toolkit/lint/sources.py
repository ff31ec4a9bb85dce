"""The files of a code base, found and read without importing any of it."""

from __future__ import annotations

import ast
import io
import os
import re
import stat
import sys
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import UsageError
from toolkit.lint.findings import Skipped

MAX_BYTES = 16_000_000
"""Larger files are data, not code that anyone wrote."""

TOO_DEEP = "nested too deeply"

_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
"""The syntax that is read: this interpreter's."""

_MAX_DEPTH = 150
"""Levels of a tree that the checks go down without a doubt; Python allows them some 1,000 calls."""

_ALLOW = re.compile(r"#\s*toolkit:\s*allow\[([^\]]*)\]\s*:?\s*(.*)")
_NO_CODE = {"__pycache__", "node_modules"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Allow:
    """A comment that allows checks on the lines `covers`."""

    line: int
    covers: tuple[int, ...]
    checks: tuple[str, ...]
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A parsed file; `module` is its dotted name as seen from the place, `short` by the `__init__.py` around it."""

    file: str
    module: str
    short: str
    is_package: bool
    text: str
    lines: tuple[str, ...]
    tree: ast.Module
    allows: tuple[Allow, ...]


def read_sources(places: Sequence[Path]) -> tuple[list[Source], list[Skipped]]:
    """Read every Python file in the places once; UsageError for a place that is not there or has none."""
    files, skipped = _find_files(places)
    sources = []
    for path, place in files.items():
        read = _read(path, place)
        if isinstance(read, Source):
            sources.append(read)
        else:
            skipped.append(read)
    return sources, sorted(skipped, key=lambda one: one.file)


def split_by_depth(sources: Sequence[Source]) -> tuple[list[Source], list[Skipped]]:
    """Set aside the files whose trees are so deep that a check may run out of stack."""
    flat = [source for source in sources if not _is_deep(source.tree)]
    kept = {source.file for source in flat}
    return flat, [Skipped(file=source.file, why=TOO_DEEP) for source in sources if source.file not in kept]


def _is_deep(tree: ast.AST) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(_MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return False
    return True


def _find_files(places: Sequence[Path]) -> tuple[dict[Path, Path], list[Skipped]]:
    """Return the files, each with the place that it was found in."""
    found: dict[str, tuple[Path, Path]] = {}
    skipped: list[Skipped] = []
    for place in places:
        mode = _mode_of(place)
        if stat.S_ISDIR(mode):
            refused: list[Skipped] = []
            files = list(_walk(place, refused))
            if not files and not refused:
                raise UsageError(
                    f"there is no Python file in {str(place)!r}", hint="name the folder of the code base, or its files"
                )
            skipped += refused
        elif stat.S_ISREG(mode):
            files = [place]
        else:
            raise UsageError(f"{str(place)!r} is neither a file nor a folder", hint="name Python files or folders")
        for path in files:
            found.setdefault(os.path.realpath(path), (path, place))
    return dict(found.values()), skipped


def _mode_of(place: Path) -> int:
    try:
        return place.stat().st_mode
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"cannot look at {str(place)!r}: {reason}", hint="name Python files or folders") from error


def _walk(place: Path, refused: list[Skipped]) -> Iterator[Path]:
    """Yield the Python files below a folder in order; links to folders are not followed."""

    def note(error: OSError) -> None:
        refused.append(Skipped(file=str(error.filename), why=f"cannot be listed: {error.strerror}"))

    for folder, folders, names in os.walk(place, onerror=note):
        folders[:] = sorted(name for name in folders if _has_code(folder, name))
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(".py"))


def _has_code(folder: str, name: str) -> bool:
    return not (name.startswith(".") or name in _NO_CODE or Path(folder, name, "pyvenv.cfg").exists())


def _read(path: Path, place: Path) -> Source | Skipped:
    """Parse a file, or say why it cannot be."""
    file = str(path)
    try:
        mode, size = (found := path.stat()).st_mode, found.st_size
        if not stat.S_ISREG(mode):
            return Skipped(file=file, why="no regular file")
        if size > MAX_BYTES:
            return Skipped(file=file, why=f"{size:,} bytes, more than {MAX_BYTES:,}")
        data = path.read_bytes()
    except OSError as error:
        return Skipped(file=file, why=f"cannot be read: {error.strerror}")
    if b"\0" in data:
        return Skipped(file=file, why="binary: it has null bytes")
    try:
        return _parse(path, place, data)
    except UnicodeDecodeError as error:
        return Skipped(file=file, why=f"not UTF-8: byte {error.object[error.start]:#04x} at offset {error.start:,}")
    except (LookupError, UnicodeError) as error:  # A codec that is none for text: `# coding: zlib_codec`.
        return Skipped(file=file, why=f"its declared encoding cannot be read: {error}")
    except SyntaxError as error:
        at = f" in line {error.lineno}" if error.lineno else ""
        return Skipped(file=file, why=f"it cannot be parsed: {error.msg}{at} (as Python {_PYTHON} reads it)")
    except (RecursionError, MemoryError):
        return Skipped(file=file, why=TOO_DEEP)


def _parse(path: Path, place: Path, data: bytes) -> Source:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError:
        data.decode("utf-8")  # Says where it is not UTF-8, if that is the reason.
        raise
    text = io.TextIOWrapper(io.BytesIO(data), encoding=encoding).read()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # What a compiler would say of escapes is not our matter.
        tree = ast.parse(text)
    short = _module_name(path, None)
    return Source(
        file=str(path),
        module=max(_module_name(path, place), short, key=len),
        short=short,
        is_package=path.name == "__init__.py",
        text=text,
        lines=tuple(text.split("\n")),
        tree=tree,
        allows=tuple(_allows(text)) if "toolkit:" in text else (),
    )


def _module_name(path: Path, place: Path | None) -> str:
    """Name a module by the packages that hold it, and by all folders below a place: not each has an `__init__.py`."""
    path = path.absolute()
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    below = set() if place is None or path == place.absolute() else set(path.parents) - {place.absolute()}
    below -= set(place.absolute().parents) if place is not None else set()
    while folder.name and (folder in below or (folder / "__init__.py").is_file()):
        parts.append(folder.name)
        folder = folder.parent
    return ".".join(reversed(parts))


def _allows(text: str) -> Iterator[Allow]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        match = _ALLOW.match(token.string) if token.type == tokenize.COMMENT else None
        if match is None:
            continue
        line = token.start[0]
        is_alone = not token.line[: token.start[1]].strip()
        checks = tuple(word.strip() for word in match[1].split(","))
        yield Allow(line=line, covers=(line, line + 1) if is_alone else (line,), checks=checks, reason=match[2].strip())
