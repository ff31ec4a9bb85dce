"""Distributions on the target's path, read from their metadata folders, and whether their files are as installed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from toolkit.files import sha256_file
from toolkit.wheels.record import RecordLine, parse_record, record_hash

SUFFIXES = (".dist-info", ".egg-info")
VERSION = re.compile(r"""^__version__\s*(?::\s*\w+\s*)?=\s*(['"])(?P<version>[^'"]+)\1""", re.MULTILINE)
ASSIGNED = r"""^{name}\s*(?::[^=]*)?=\s*(['"])(?P<value>[^'"]*)\1"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Installed:
    """One distribution: `name` in normal form, `metadata` its folder, in which its RECORD is; `site` holds both.

    `source` is the folder of an editable install, as `direct_url.json` says it.
    """

    name: str
    version: str
    metadata: Path
    requires: tuple[str, ...] = ()
    source: str = ""

    @property
    def site(self) -> Path:
        """The folder that it is installed in."""
        return self.metadata.parent

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Damage:
    """How the files of a package differ from what its RECORD says."""

    checked: int
    missing: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def is_none(self) -> bool:
        """Whether every checked file is as it was installed."""
        return not (self.missing or self.changed)

    def __str__(self) -> str:
        kinds = (("missing", self.missing), ("changed", self.changed))
        told = [f"{len(files)} {kind} (such as {files[0]})" for kind, files in kinds if files]
        return f"of {self.checked} files {' and '.join(told)}" if told else f"all {self.checked} files are as installed"


def read_installed(path: Iterable[str], cwd: Path, wanted: Callable[[str], bool]) -> tuple[Installed, ...]:
    """List the distributions on a sys.path whose normalized name is wanted, first the one that metadata asks first."""
    seen: set[str] = set()
    found = []
    for entry in path:
        folder = cwd / entry
        if (real := os.path.realpath(folder)) in seen:
            continue
        seen.add(real)
        found += sorted(_in_folder(folder, wanted), key=lambda one: one.metadata.name)
    return tuple(found)


def record_of(one: Installed) -> tuple[RecordLine, ...]:
    """Return the lines of a distribution's RECORD; none where it has none that can be read."""
    try:
        return parse_record((one.metadata / "RECORD").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()


def damage_of(one: Installed, folder: str, hashed: Callable[[str], bool]) -> Damage:
    """Compare the files below one folder with RECORD: all by size, those that `hashed` names by content."""
    lines = [line for line in record_of(one) if line.path.startswith(f"{folder}/") and line.hash]
    missing, changed = [], []
    for line in lines:
        file = one.site / line.path
        try:
            size = file.stat().st_size
        except OSError:
            missing.append(line.path)
            continue
        is_other = line.size is not None and size != line.size
        if is_other or (hashed(line.path) and line.hash.startswith("sha256=") and _hash(file) != line.hash):
            changed.append(line.path)
    return Damage(checked=len(lines), missing=tuple(missing), changed=tuple(changed))


def version_in(package: Path) -> str:
    """Return the version that a package's own files say, as an import would see it; empty where they say none."""
    for name in ("version.py", "_version.py", "__init__.py"):
        if found := VERSION.search(_text(package / name)):
            return found["version"]
    return ""


def value_in(file: Path, name: str) -> str:
    """Return a string that a Python file assigns to a name at its top level; empty where it assigns none."""
    found = re.search(ASSIGNED.format(name=re.escape(name)), _text(file), re.MULTILINE)
    return found["value"] if found else ""


def normalized(name: str) -> str:
    """Return a distribution's name in its normal form."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _in_folder(folder: Path, wanted: Callable[[str], bool]) -> Iterator[Installed]:
    try:
        names = os.listdir(folder)
    except OSError:  # A zip, or a folder that is not there.
        return
    for name in names:
        if name.endswith(SUFFIXES) and wanted(normalized(name.rpartition(".")[0].partition("-")[0])):
            one = _read(folder / name)
            if one is not None:
                yield one


def _read(metadata: Path) -> Installed | None:
    """Read a metadata folder; None for one that says no name, as an interrupted install leaves it."""
    text = next((text for name in ("METADATA", "PKG-INFO") if (text := _text(metadata / name))), "")
    headers = HeaderParser().parsestr(text)
    if not headers.get("Name"):
        return None
    return Installed(
        name=normalized(str(headers["Name"])),
        version=str(headers.get("Version", "")),
        metadata=metadata,
        requires=tuple(str(one) for one in headers.get_all("Requires-Dist", [])),
        source=_source_of(metadata),
    )


def _source_of(metadata: Path) -> str:
    try:
        told = json.loads(_text(metadata / "direct_url.json") or "{}")
        is_editable = told.get("dir_info", {}).get("editable", False)
        return str(told.get("url", "")).removeprefix("file://") if is_editable else ""
    except (ValueError, AttributeError):
        return ""


def _hash(file: Path) -> str:
    try:
        return record_hash(sha256_file(file))
    except OSError:
        return ""


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
