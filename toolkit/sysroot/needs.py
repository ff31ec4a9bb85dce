"""Read from a wheel's ELF files what they expect CANN to provide.

Works on any machine for any machine's wheel: the files are parsed, never loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

# Libraries that are on every machine that a manylinux tag names (PEP 600), the loader among them.
SYSTEM_LIBRARY = re.compile(r"(ld-linux[\w-]*|lib(c|m|dl|rt|util|pthread|gcc_s|stdc\+\+|atomic|gomp|z))\.so(\.\d+)*")
# Libraries of torch's own wheel; torch is loaded before the extension is.
TORCH_LIBRARY = re.compile(r"lib(torch|c10|shm)\w*\.so")
# Opened by name at run time, so that no ELF file lists it: the home of every `aclnn` operator.
OPENED_LIBRARIES = frozenset({"libopapi.so"})

# CANN's C functions by the prefixes of its headers, then the checked string functions of its C library.
C_NAME = re.compile(
    r"(acl(nn|rt|op|mdl|tdt|prof|sys|sk)?[A-Z]|aclshmemx?_|Hccl[A-Z]|rt[A-Z]|Aoe[A-Z]|Msprof[A-Z])\w+|v?[a-z]+_s"
)
# CANN's C++ names as mangled by the Itanium ABI: functions, K for const ones, tables and type information.
CXX_NAME = re.compile(r"_Z(T[VTIS])?NK?(2ge|4gert|3atb)\w+")
# A C string that is such a name; the linker may have stored it as the tail of a longer text.
LOOKED_UP_NAME = re.compile(
    rb"(?<!\w)(acl(nn|rt|op|mdl|tdt|prof|sys|sk)?[A-Z]|aclshmemx?_|Hccl[A-Z]|rt[A-Z]|Aoe[A-Z])\w+(?=\0)"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """What a CANN home must hold for a wheel to load, each sorted.

    `libraries` are file names that some ELF file needs or opens, `linked` the names that it leaves undefined,
    `looked_up` the names that it may ask `dlsym` for.
    """

    libraries: tuple[str, ...]
    linked: tuple[str, ...]
    looked_up: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Library:
    """What one ELF file says of itself. `undefined` leaves out names bound to a versioned library, as libc's are."""

    name: str
    needed: frozenset[str]
    defined: frozenset[str]
    undefined: frozenset[str]
    strings: frozenset[str]


def read_needs(site: Path) -> Needs:
    """Read the needs of every ELF file under `site`, an unpacked wheel.

    A library is CANN's if the wheel does not hold it and neither torch's wheel nor the platform tag promises it. A
    symbol is CANN's if no file of the wheel defines it, it is bound to no versioned library, and its name belongs
    to CANN's C prefixes or C++ namespaces: the remaining undefined names are torch's, Python's and libc's.
    """
    found = [_read_library(path) for path in _elf_files(site)]
    held = frozenset(library.name for library in found)
    defined = frozenset[str]().union(*(library.defined for library in found))
    undefined = frozenset[str]().union(*(library.undefined for library in found)) - defined
    looked_up = frozenset[str]().union(*(library.strings for library in found)) - defined - undefined
    needed = frozenset[str]().union(*(library.needed for library in found)) - held
    return Needs(
        libraries=tuple(sorted(OPENED_LIBRARIES.union(name for name in needed if _is_cann_library(name)))),
        linked=tuple(sorted(undefined)),
        looked_up=tuple(sorted(looked_up)),
    )


def _is_cann_library(name: str) -> bool:
    return not (SYSTEM_LIBRARY.fullmatch(name) or TORCH_LIBRARY.fullmatch(name))


def _elf_files(site: Path) -> Iterator[Path]:
    for path in sorted(site.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as stream:
                if stream.read(4) == b"\x7fELF":
                    yield path


def _read_library(path: Path) -> _Library:
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        needed, soname = _read_dynamic(elf)
        defined, undefined = _read_symbols(elf)
        return _Library(
            name=soname or path.name, needed=needed, defined=defined, undefined=undefined, strings=_read_strings(elf)
        )


def _read_dynamic(elf: ELFFile) -> tuple[frozenset[str], str | None]:
    section = elf.get_section_by_name(".dynamic")
    if section is None:
        return frozenset(), None
    needed = frozenset(tag.needed for tag in section.iter_tags("DT_NEEDED"))
    return needed, next((tag.soname for tag in section.iter_tags("DT_SONAME")), None)


def _read_symbols(elf: ELFFile) -> tuple[frozenset[str], frozenset[str]]:
    table, versions = elf.get_section_by_name(".dynsym"), elf.get_section_by_name(".gnu.version")
    defined, undefined = set(), set()
    for index, symbol in enumerate(table.iter_symbols() if table else ()):
        if symbol["st_shndx"] != "SHN_UNDEF":
            defined.add(symbol.name)
        elif _is_cann_symbol(symbol.name) and not (versions and _has_version(versions.get_symbol(index)["ndx"])):
            undefined.add(symbol.name)
    return frozenset(defined), frozenset(undefined)


def _has_version(index: str | int) -> bool:
    """Tell whether a symbol is bound to a version: pyelftools names the two indexes that mean "none"."""
    return index not in ("VER_NDX_LOCAL", "VER_NDX_GLOBAL")


def _is_cann_symbol(name: str) -> bool:
    return bool(C_NAME.fullmatch(name) or CXX_NAME.fullmatch(name))


def _read_strings(elf: ELFFile) -> frozenset[str]:
    """Read the names from all `.rodata*`: compilers put mergeable strings into sections of their own."""
    return frozenset(
        match.group().decode("ascii")
        for section in elf.iter_sections()
        if section.name.startswith(".rodata")
        for match in LOOKED_UP_NAME.finditer(section.data())
    )
