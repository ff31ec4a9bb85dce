"""Where a package is installed, asked of the target interpreter without importing it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.errors import CommandError, SourceError
from toolkit.files import temporary_directory
from toolkit.model import Interpreter
from toolkit.process import compose_env, last_lines, run

HOMES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
"""The variables that CANN's set_env.sh sets to its home."""

SITES = ("python/site-packages", "latest/python/site-packages")
"""Where a CANN home has its Python packages; set_env.sh puts that folder on PYTHONPATH."""

PROBE = """
import json, sys
from importlib.machinery import PathFinder
from importlib.util import find_spec
name, first = sys.argv[1], sys.argv[2:]
sys.path[:] = dict.fromkeys([*first, *filter(None, sys.path)])
specs = [PathFinder.find_spec(name, [place]) for place in sys.path] + [find_spec(name)]
found = [[spec.origin, list(spec.submodule_search_locations or ())] for spec in specs if spec is not None]
print(json.dumps({"places": sys.path, "found": found}))
"""
"""Runs in the target. The finders of a top-level name import nothing; the last answer is an editable install's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Copy:
    """One installed copy of a package: `place` is the folder that is searched, the package lies below it."""

    place: Path
    package: str

    @property
    def root(self) -> Path:
        """The package's own folder."""
        return self.place / self.package

    @property
    def cann_home(self) -> Path | None:
        """The CANN home that ships this copy, or None."""
        below = Path(SITES[0]).parts
        return self.place.parents[1] if self.place.parts[-2:] == below else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """All copies of a package, the one that Python would import first, and every place that was looked in."""

    copies: tuple[Copy, ...]
    places: tuple[Path, ...]


def find_package(package: str, *, interpreter: Interpreter, env: Mapping[str, str]) -> Finding:
    """Return where the interpreter would find a top-level package in the environment that set_env.sh makes.

    The caller's PYTHONPATH is left out: with an overlay active, its own patched copy would be the first on it. What
    set_env.sh puts there is looked in first, as Python does. Raises SourceError for what is found first and is no
    package of files in a folder.
    """
    facts = _probe(package, interpreter, cann_sites(env), env)
    copies: list[Copy] = []
    for origin, locations in facts["found"]:
        if origin is None:  # A folder without `__init__.py`: any package or module behind it goes before it.
            continue
        copy = _copy(package, origin, locations, is_first=not copies)
        if copy is not None and copy not in copies:
            copies.append(copy)
    return Finding(copies=tuple(copies), places=tuple(map(Path, facts["places"])))


def cann_sites(env: Mapping[str, str]) -> tuple[Path, ...]:
    """List the folders of Python packages of the CANN homes that the environment names, whether they are there or not.

    Several names of one folder are one place.
    """
    homes = [Path(env[name]) for name in HOMES if env.get(name)]
    sites: dict[Path, Path] = {}
    for site in (home / below for home in homes for below in SITES):
        sites.setdefault(site.resolve(), site)
    return tuple(sites.values())


def _copy(package: str, origin: str, locations: list[str], *, is_first: bool) -> Copy | None:
    """Return a copy that can be packed; what cannot is no matter unless Python would import it."""
    if len(locations) == 1 and (root := Path(locations[0])).is_dir() and root.name == package:
        return Copy(place=root.parent, package=package)
    if not is_first:
        return None
    raise SourceError(
        f"{package!r} is {origin}, expected a package in a folder of its own",
        hint="name the folder that Python imports it from as `package` in the recipe",
    )


def _probe(package: str, interpreter: Interpreter, first: tuple[Path, ...], env: Mapping[str, str]) -> dict[str, Any]:
    """Ask apart from the current folder and from PYTHON* variables, but with the user's site-packages."""
    argv: list[str | Path] = [interpreter.executable, "-E", "-c", PROBE, package, *(path.absolute() for path in first)]
    with temporary_directory("toolkit-probe-") as folder:
        try:
            done = run(argv, cwd=folder, env=compose_env(env), timeout=60, check=False)
            facts = json.loads(done.stdout)
            return {name: facts[name] for name in ("places", "found")}
        except (CommandError, ValueError, KeyError, TypeError) as fault:
            details = fault.details if isinstance(fault, CommandError) else last_lines(done.stdout, done.stderr)
            raise SourceError(
                f"{interpreter.executable} cannot be asked where {package!r} is",
                hint="name another interpreter with --python",
                details=details,
            ) from fault
