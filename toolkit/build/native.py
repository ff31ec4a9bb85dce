"""What a built wheel's native files ask of the machine that will load them.

They are parsed, never loaded, straight from the wheel.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from toolkit.errors import BuildError
from toolkit.platforms import split_platform
from toolkit.wheels.archive import open_wheel

FAMILIES = ("GLIBC", "GLIBCXX", "CXXABI")
SYMBOL_VERSION = re.compile(rf"({'|'.join(FAMILIES)})_(\d+(?:\.\d+)*)")
ORIGIN = re.compile(r"\$(ORIGIN|\{ORIGIN\})(/|$)")
RUN_PATHS = {"DT_RPATH": "RPATH", "DT_RUNPATH": "RUNPATH"}


@dataclass(frozen=True, kw_only=True, slots=True)
class NativeFacts:
    """`libraries` are needed and not in the wheel, `symbol_versions` the highest of each family, such as `2.28`.

    `findings` say where a file asks for a newer glibc than the platform has.
    """

    libraries: tuple[str, ...] = ()
    symbol_versions: Mapping[str, str]
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class NativeFile:
    """What one ELF file says of itself: entries of its RPATH and RUNPATH, symbol versions by family and file."""

    name: str
    run_paths: tuple[tuple[str, str], ...]
    needed: frozenset[str]
    versions: frozenset[tuple[str, str]]


def examine_wheel(wheel: Path, *, platform: str) -> NativeFacts:
    """Examine every ELF file of a wheel that is to run on `platform`, a manylinux tag.

    Raises BuildError for one that looks for libraries at a place of the build machine, or that cannot be read.
    """
    with open_wheel(wheel) as archive:
        files = [_read_file(wheel, name, raw) for name in sorted(archive.members) if _is_elf(raw := archive.read(name))]
        brought = {name.rpartition("/")[2] for name in archive.members}
    _refuse_foreign_run_paths(wheel, files)
    return NativeFacts(
        libraries=tuple(sorted({name for file in files for name in file.needed} - brought)),
        symbol_versions=_highest(version for file in files for version in file.versions),
        findings=tuple(_too_new(files, platform)),
    )


def _refuse_foreign_run_paths(wheel: Path, files: Iterable[NativeFile]) -> None:
    faults = [
        f"{file.name}: {kind} entry {entry!r}"
        for file in files
        for kind, value in file.run_paths
        for entry in value.split(":")
        if not ORIGIN.match(entry)
    ]
    if faults:
        raise BuildError(
            f"{wheel.name} looks for libraries at places of the machine that built it: {faults[0]}",
            hint="an entry must begin with $ORIGIN: set CMAKE_INSTALL_RPATH and CMAKE_BUILD_WITH_INSTALL_RPATH, "
            "or drop the entry with a patch",
            details=faults,
        )


def _too_new(files: Iterable[NativeFile], platform: str) -> list[str]:
    minor, _ = split_platform(platform)
    return [
        f"{file.name} asks for GLIBC_{version}, {platform} has no newer than GLIBC_2.{minor}"
        for file in files
        if (version := _highest(file.versions).get("GLIBC")) and _order(version) > (2, minor)
    ]


def _highest(versions: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for family, version in sorted(versions, key=lambda pair: (FAMILIES.index(pair[0]), _order(pair[1]))):
        found[family] = version
    return found


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _is_elf(raw: bytes) -> bool:
    return raw.startswith(b"\x7fELF")


def _read_file(wheel: Path, name: str, raw: bytes) -> NativeFile:
    try:
        elf = ELFFile(io.BytesIO(raw))
        tags = [tag for segment in elf.iter_segments("PT_DYNAMIC") for tag in segment.iter_tags()]
        return NativeFile(
            name=name,
            run_paths=tuple((RUN_PATHS[kind], _text_of(tag)) for tag in tags if (kind := tag.entry.d_tag) in RUN_PATHS),
            needed=frozenset(tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"),
            versions=frozenset(_versions(elf)),
        )
    except (ELFError, AttributeError, UnicodeDecodeError) as fault:  # What pyelftools raises for a garbled file.
        raise BuildError(
            f"{wheel.name} has a native file that cannot be read: {name}: {fault}", hint="build it again"
        ) from fault


def _text_of(tag: Any) -> str:
    return str(tag.rpath if tag.entry.d_tag == "DT_RPATH" else tag.runpath)


def _versions(elf: Any) -> list[tuple[str, str]]:
    section = elf.get_section_by_name(".gnu.version_r")
    names = [entry.name for _, entries in section.iter_versions() for entry in entries] if section else []
    return [(match[1], match[2]) for name in names if (match := SYMBOL_VERSION.fullmatch(name))]
