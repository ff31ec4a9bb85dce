"""Extensions that another environment built: for another machine, Python, torch or torch_npu."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Collection, Iterator
from pathlib import Path

from toolkit.doctor.asked import Asked
from toolkit.doctor.elf import ElfError, Library, open_library
from toolkit.doctor.observed import bad
from toolkit.doctor.places import listed, real_path
from toolkit.model import Observation

NINJA_FILE = "build.ninja"
INCLUDED = re.compile(r"-(?:I|isystem)\s*(\S+)")
PYTHON_INCLUDE = re.compile(r".*/include/python(3)\.(\d+)t?/?$")
TAG = re.compile(r"\.cpython-(\d+)\w*-")
TORCH_NAME = re.compile(r"_Z(?:T[VTIS])?(?:N[rVK]*)?(?:3c10|2at|5torch)\w+")
TORCH_LIBRARIES = ("libc10.so", "libtorch.so", "libtorch_cpu.so", "libtorch_python.so")


def examine_built(asked: Asked, folder: Path, *, skipped: Collection[Path]) -> Iterator[Observation]:
    """Yield each library below a TORCH_EXTENSIONS_DIR that this environment cannot load or must not use."""
    torch = _open_torch(asked)
    for path in _libraries(folder):
        if path in skipped:
            continue
        try:
            library = open_library(path)
        except (ElfError, OSError):
            continue
        if fault := _machine_fault(asked, library) or _build_fault(asked, path) or _torch_fault(library, torch):
            yield bad(
                "cache.extensions.foreign",
                f"{path}: {fault}",
                f"rm -r {shlex.quote(str(path.parent))} (the next use compiles it again)",
            )


def _libraries(folder: Path) -> Iterator[Path]:
    for place, below, names in os.walk(folder):
        below.sort()
        yield from (Path(place) / name for name in sorted(names) if name.endswith(".so"))


def _machine_fault(asked: Asked, library: Library) -> str:
    if asked.interpreter is None or not asked.interpreter.platforms:
        return ""
    own = next((machine for machine in ("x86_64", "aarch64") if asked.interpreter.platforms[0].endswith(machine)), None)
    return f"a library for {library.machine}, this machine is {own}" if own and library.machine != own else ""


def _build_fault(asked: Asked, path: Path) -> str:
    """Say which Python, torch or torch_npu a library was built for where that is another than would load it."""
    ninja = path.with_name(NINJA_FILE)
    try:
        told = ninja.read_text(encoding="utf-8", errors="replace") if ninja.is_file() else ""
        folders = INCLUDED.findall(told)
    except OSError:
        folders = []
    if fault := _python_fault(asked, path, folders):
        return fault
    for package in ("torch", "torch_npu"):
        own = asked.packages.get(package)
        built = next((Path(one) for one in folders if one.endswith(f"/{package}/include")), None)
        if own and built and real_path(built) != real_path(own / "include"):
            return f"a library built for the {package} in {built.parent}, training would import the one in {own}"
    return ""


def _python_fault(asked: Asked, path: Path, folders: list[str]) -> str:
    """Compare the tag in a library's name, or the Python whose headers it was built with, with the interpreter's."""
    if asked.interpreter is None:
        return ""
    tags = [match[1] for match in [TAG.search(path.name)] if match]
    tags += [match[1] + match[2] for match in map(PYTHON_INCLUDE.match, folders) if match]
    own = asked.interpreter.python_tag[2:]
    other = next((tag for tag in tags if tag != own), None)
    return f"a library built for Python {other[0]}.{other[1:]}, training has {own[0]}.{own[1:]}" if other else ""


def _open_torch(asked: Asked) -> list[Library]:
    torch = asked.packages.get("torch")
    found = []
    for path in [torch / "lib" / name for name in TORCH_LIBRARIES] if torch else []:
        with contextlib.suppress(ElfError, OSError):
            found.append(open_library(path))
    return found


def _torch_fault(library: Library, torch: list[Library]) -> str:
    """Say which of torch's names a library needs that torch does not have."""
    if not torch:
        return ""
    wanted = [name for name in library.undefined() if TORCH_NAME.match(name)]
    lacking = sorted(name for name in wanted if not any(one.defines(name) for one in torch))
    if not lacking:
        return ""
    return f"a library built for another torch: the one in {torch[0].path.parent} lacks {listed(lacking, 2)}"
