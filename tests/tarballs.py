"""Small sdists for tests: well-formed by default, wrong in exactly the way that a test asks for."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

NOON = 1_767_225_600
"""The time of every member: 2026-01-01."""

Member = tuple[tarfile.TarInfo, bytes]


def make_sdist(
    folder: Path,
    name: str = "sample",
    version: str = "1.0",
    files: Mapping[str, str] | None = None,
    *,
    metadata: str | None = None,
) -> Path:
    """Write `<name>-<version>.tar.gz` into a folder; `metadata` is its PKG-INFO, none where it is empty."""
    stem = f"{name}-{version}"
    said = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" if metadata is None else metadata
    members = [entry(f"{stem}/PKG-INFO", said)] if said else []
    members += [
        entry(f"{stem}/{path}", content) for path, content in (default_files() if files is None else files).items()
    ]
    return write_tarball(folder / f"{stem}.tar.gz", members)


def default_files() -> dict[str, str]:
    """Return a project with a package, something to compile and a script."""
    return {
        "pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n',
        "sample/__init__.py": "from .core import answer\n",
        "sample/core.py": "def answer():\n    return 41\n",
        "csrc/core.cpp": "int answer() { return 41; }\n",
        "run.sh": "#!/bin/sh\n",
    }


def entry(name: str, content: str = "", **wanted: object) -> Member:
    """Return a member; `wanted` are attributes of its header, which say something else than the truth."""
    raw = content.encode()
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = len(raw), NOON, 0o755 if name.endswith(".sh") else 0o644
    for attribute, value in wanted.items():
        setattr(info, attribute, value)
    return info, raw


def write_tarball(path: Path, members: Iterable[Member], *, form: int = tarfile.PAX_FORMAT) -> Path:
    """Write members as they are: duplicates, odd names, odd kinds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.GzipFile(path, "wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w", format=form) as archive:
        for info, raw in members:
            archive.addfile(info, io.BytesIO(raw) if info.isreg() else None)
    return path
