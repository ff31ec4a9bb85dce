"""What this process has loaded: the files behind its modules, and the libraries mapped into it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

MAPS = Path("/proc/self/maps")
PATH_COLUMN = 5


def module_files(packages: Iterable[str] | None = None) -> dict[str, list[Path]]:
    """Return the files and package folders of imported modules by module name.

    With `packages`, only those packages and what is below them. A module made in memory has none, and so is left out.
    """
    wanted = None if packages is None else frozenset(packages)
    found: dict[str, list[Path]] = {}
    for name, module in list(sys.modules.items()):
        if wanted is None or name.split(".")[0] in wanted:
            places = _places(module)
            if places:
                found[name] = places
    return found


def mapped_files() -> list[Path]:
    """Return every file mapped into this process, sorted; one removed or replaced since ends in ` (deleted)`."""
    lines = MAPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    columns = (line.split(maxsplit=PATH_COLUMN) for line in lines)
    return sorted({Path(words[PATH_COLUMN]) for words in columns if words[PATH_COLUMN:] and words[5].startswith("/")})


def is_library(name: str) -> bool:
    """Tell whether a file name is a shared library's that the loader finds by name, not a Python extension's.

    Extensions of different packages may share a name (`_C.cpython-311-x86_64-linux-gnu.so`).
    """
    return name.startswith("lib") and (name.endswith(".so") or ".so." in name)


def is_below(path: Path, folder: Path) -> bool:
    """Tell whether a path lies in a folder, symlinks followed on both sides."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _places(module: object) -> list[Path]:
    # Read from the module's own names: asking a package with a lazy `__getattr__` for one that it lacks imports more.
    names = getattr(module, "__dict__", {})
    file = names.get("__file__")
    if isinstance(file, str):
        # What stands in sys.modules in a module's place may carry a made-up relative name, as torch.ops does.
        return [Path(file)] if os.path.isabs(file) else []
    folders = getattr(names.get("__spec__"), "submodule_search_locations", None)
    if folders is None:
        return []
    try:
        return [Path(folder) for folder in folders]
    except Exception:  # A namespace package asks its parent, which may be a lazy stand-in that raises what it likes.
        return []
