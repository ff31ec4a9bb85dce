"""Which files to look into: `output_code.py` by its name, all other Python files by what they turn out to hold."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import UsageError
from toolkit.scan.reading import DEBUG_NAME
from toolkit.scan.values import FileReport

SUFFIX = ".py"
DEBUG_FOLDER = ".debug"


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A file to look into; `is_named` where the user named it, or its name says that it is generated code."""

    path: str
    is_named: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Search:
    """What lies in the given places: files, folders that cannot be listed, and what was seen already: links, copies."""

    candidates: Sequence[Candidate]
    unreadable: Sequence[FileReport]
    repeated: Sequence[str]


def find_files(places: Sequence[Path]) -> Search:
    """Find the candidates in files and folders, each file and folder once; UsageError where a place is not there."""
    walk = _Walk()
    _require_here(places)
    for place in places:
        if not os.path.lexists(place):
            raise UsageError(f"there is no {str(place)!r}", hint="name folders of a run, or files of generated code")
        if place.is_dir():
            walk.folder(str(place))
        else:
            walk.file(str(place), is_named=True)
    return Search(candidates=walk.candidates, unreadable=walk.unreadable, repeated=walk.repeated)


def _require_here(places: Sequence[Path]) -> None:
    """Raise UsageError for places that count from a current folder which is gone."""
    try:
        if not all(place.is_absolute() for place in places):
            os.getcwd()
    except FileNotFoundError as fault:
        raise UsageError("the current folder is no longer there", hint="change to one that is") from fault


class _Walk:
    """Remembers what was seen, by its real place."""

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []
        self.unreadable: list[FileReport] = []
        self.repeated: list[str] = []
        self._seen: set[str] = set()

    def folder(self, root: str) -> None:
        """Take in a folder and all below it, in the order of names; links are followed, but nowhere twice."""
        pending = [(root, os.path.realpath(root))]
        while pending:
            path, real = pending.pop()
            if real in self._seen:
                self.repeated.append(path)
                continue
            self._seen.add(real)
            folders = []
            for entry in self._entries(path):
                there = os.path.realpath(entry.path) if entry.is_symlink() else os.path.join(real, entry.name)
                if _is_folder(entry):
                    folders.append((entry.path, there))
                elif entry.name.endswith(SUFFIX):
                    self.file(entry.path, is_named=entry.name == DEBUG_NAME, real=there)
            pending += reversed(folders)

    def file(self, path: str, *, is_named: bool, real: str | None = None) -> None:
        """Take in a file."""
        real = os.path.realpath(path) if real is None else real
        if real in self._seen or self._is_copy(real):
            self.repeated.append(path)
            return
        self._seen.add(real)
        self.candidates.append(Candidate(path=path, is_named=is_named))

    def _is_copy(self, real: str) -> bool:
        """Whether a file is what the debug mode puts beside a cached wrapper: NAME.debug/output_code.py of NAME.py."""
        folder, name = os.path.split(real)
        wrapper = folder.removesuffix(DEBUG_FOLDER) + SUFFIX
        if name != DEBUG_NAME or not folder.endswith(DEBUG_FOLDER) or wrapper not in self._seen:
            return False
        try:
            return filecmp.cmp(real, wrapper, shallow=False)
        except OSError:  # Whoever reads it will say why it cannot be read.
            return False

    def _entries(self, path: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(path) as found:
                yield from sorted(found, key=lambda entry: entry.name)
        except OSError as fault:
            why = f"the folder cannot be listed: {fault.strerror}"
            self.unreadable.append(FileReport(path=path, state="unreadable", why=why))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # A link that leads to itself.
        return False
