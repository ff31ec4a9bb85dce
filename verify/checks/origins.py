"""Each package is imported from the site that was asked for, and no other copy of it takes part."""

from __future__ import annotations

import importlib
import importlib.util
import os
import site
import sys
import sysconfig
from importlib.machinery import ModuleSpec
from pathlib import Path

from verify import host
from verify.contract import Outcome, Request, failed_with, passed
from verify.loaded import is_below, is_library, mapped_files, module_files


def check(request: Request) -> Outcome:
    """Look where each package would come from, import it, and look where its modules and libraries came from."""
    names = [package.import_name for package in request.packages]
    shadows = find_shadows(names, request.site)
    try:
        host.prepare(request.runtime)
        for name in names:
            importlib.import_module(name)
    except Exception as fault:
        # A shadowing copy may fail in any way (half a package, another Python's library): the shadow is the finding.
        if not shadows:
            raise
        return failed_with([*shadows, f"importing it failed: {type(fault).__name__}: {fault}"])
    faults = [
        *shadows,
        *find_foreign_modules(names, request.site),
        *find_second_copies(names, request.site),
    ]
    evidence = {
        "modules": len(module_files(names)),
        "libraries": [str(path) for path in mapped_files() if is_below(path, request.site)],
    }
    if faults:
        return failed_with(faults, **evidence)
    return passed(f"{', '.join(names)}: all {evidence['modules']} modules come from {request.site}", **evidence)


def find_shadows(names: list[str], wanted: Path) -> list[str]:
    """Say of each package that would not be imported from `wanted` what stands before it."""
    faults = []
    for name in names:
        spec = importlib.util.find_spec(name)
        places = _spec_places(spec)
        if not places or not all(is_below(place, wanted) for place in places) or _is_namespace(spec):
            faults.append(f"{name} is not imported from {wanted}: {_describe_shadow(name, spec, places, wanted)}")
    return faults


def find_foreign_modules(names: list[str], wanted: Path) -> list[str]:
    """Say of each imported module of the packages that lies elsewhere where it does."""
    return [
        f"module {name} was loaded from {place}"
        for name, places in sorted(module_files(names).items())
        for place in places
        if not is_below(place, wanted)
    ]


def find_second_copies(names: list[str], wanted: Path) -> list[str]:
    """Say of each mapped library that is another copy of one of the packages' own where it lies."""
    own = _library_names(wanted)
    return [
        f"a second copy of {path.name} is mapped from {path.parent}"
        if path.name in own
        else f"{path.name} is mapped from {path.parent}, which is another copy of the package"
        for path in mapped_files()
        if not is_below(path, wanted) and (path.name in own or _in_package(path, names))
    ]


def _spec_places(spec: ModuleSpec | None) -> list[Path]:
    if spec is None:
        return []
    if spec.origin is not None and spec.has_location:
        return [Path(spec.origin)]
    return [Path(folder) for folder in spec.submodule_search_locations or ()]


def _is_namespace(spec: ModuleSpec | None) -> bool:
    return spec is not None and spec.origin is None


def _describe_shadow(name: str, spec: ModuleSpec | None, places: list[Path], wanted: Path) -> str:
    missing = "" if _position(wanted) is not None else f" ({wanted} is not on sys.path)"
    if spec is None:
        return f"nothing of that name is on sys.path{missing}"
    where = ", ".join(str(place) for place in places)
    if _is_namespace(spec):
        return f"a namespace package, a folder {name!r} without __init__.py, stands for it: {where}{missing}"
    return f"{_describe_entry(places[0], wanted)} stands in its place: {where}{missing}"


def _describe_entry(place: Path, wanted: Path) -> str:
    entry = _entry_of(place)
    if entry is None:
        return "an import hook"
    if os.path.realpath(entry or os.curdir) == os.path.realpath(os.curdir):
        return "a source tree in the current folder"
    if any(os.path.realpath(entry) == os.path.realpath(folder) for folder in _installed_folders()):
        return f"the package installed in {entry}"
    if entry in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        return f"the {'earlier ' if _is_earlier(entry, wanted) else ''}PYTHONPATH entry {entry}"
    return f"the sys.path entry {entry}"


def _entry_of(place: Path) -> str | None:
    """Return the entry of sys.path that a package's `__init__.py` or a module lies in."""
    holders = {os.path.realpath(place.parent), os.path.realpath(place.parent.parent)}
    return next((entry for entry in sys.path if os.path.realpath(entry or os.curdir) in holders), None)


def _installed_folders() -> set[str]:
    folders = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
    return {*folders, site.getusersitepackages()}


def _is_earlier(entry: str, wanted: Path) -> bool:
    position = _position(wanted)
    return position is not None and sys.path.index(entry) < position


def _position(folder: Path) -> int | None:
    real = os.path.realpath(folder)
    return next((at for at, entry in enumerate(sys.path) if entry and os.path.realpath(entry) == real), None)


def _library_names(root: Path) -> set[str]:
    """Return the names of the packages' own libraries.

    Folders named `*.libs` are left out: auditwheel puts there what several packages may carry, under names that hold
    the content's hash, so that a copy of the same name from elsewhere is the same library.
    """
    found: set[str] = set()
    for _, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.endswith(".libs")]
        found.update(name for name in files if is_library(name))
    return found


def _in_package(path: Path, names: list[str]) -> bool:
    if ".so" not in path.name:
        return False
    return any(parent.name in names and (parent / "__init__.py").is_file() for parent in path.parents)
