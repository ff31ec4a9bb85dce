"""Where a run's recipes, patches, checks and overlays lie.

A checkout's own folders take the place of those that travel inside the installed package, as its recipes refer to its
own series and checks. Kept light: a no-op run imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from toolkit.errors import UsageError

DEFAULT_RECIPE = "dsv4-dvm-release"

MARKS = ("recipes", "patches")
"""A folder that holds both of these is a checkout."""

RETIRED = "retired"
"""The folder below `patches/` of those that no series has any more."""


class Project(NamedTuple):
    """The places of one run; in `recipes` and `patches` the first folder that has a name wins.

    A named tuple, as are the other values of a no-op run: importing dataclasses would take it 10 ms.
    """

    root: Path | None
    recipes: tuple[Path, ...]
    patches: tuple[Path, ...]
    verify: Path
    overlays: Path

    def series_names(self) -> list[str]:
        """List the series that a recipe may name, as `<component>/<line>`: not what is retired, nor hidden folders."""
        return sorted(
            {
                f"{line.parent.name}/{line.name}"
                for folder in self.patches
                for line in folder.glob("*/*")
                if line.is_dir() and line.parent.name != RETIRED and not _is_hidden(line, folder)
            }
        )

    def series_folder(self, name: str) -> Path:
        """Return a series' folder; UsageError where no patches folder has it."""
        for folder in self.patches:
            if (folder / name).is_dir():
                return folder / name
        raise UsageError(f"no series {name!r} in {', '.join(map(str, self.patches))}")

    def lock_path(self, recipe_file: Path) -> Path:
        """Return the place of a recipe's lock: beside it."""
        return recipe_file.with_suffix(".lock")


def find_project(
    *, start: Path, environ: Mapping[str, str], root: Path | None = None, overlays: Path | None = None
) -> Project:
    """Find the checkout at `root`, else the one at or above `start`, else the package's own; UsageError for none.

    Overlays go to `overlays`, else TOOLKIT_OVERLAYS, else the checkout's `overlays/`, else the user's data folder.
    """
    if root is not None and not _is_checkout(root):
        raise UsageError(
            f"{root} is no toolkit checkout", hint=f"expected folders {' and '.join(MARKS)} there; see --project"
        )
    checkout = root.absolute() if root else find_checkout(start) or _own_checkout()
    home = checkout or _packaged_data()
    if home is None:
        raise UsageError("no recipes found", hint="run in a checkout, or name one with --project DIR")
    return Project(
        root=checkout,
        recipes=(home / "recipes",),
        patches=(home / "patches",),
        verify=_verify_folder(home),
        overlays=overlays.absolute() if overlays else _overlays_folder(checkout, environ),
    )


def find_checkout(start: Path) -> Path | None:
    """Return the nearest folder at or above `start` that is a checkout."""
    here = start.absolute()
    return next((place for place in (here, *here.parents) if _is_checkout(place)), None)


def _is_hidden(place: Path, above: Path) -> bool:
    return any(part.startswith(".") for part in place.relative_to(above).parts)


def _is_checkout(place: Path) -> bool:
    return all((place / mark).is_dir() for mark in MARKS)


def _verify_folder(home: Path) -> Path:
    """Return the home's own checks; a folder of recipes and patches alone is proven by the package's."""
    if (home / "verify" / "checks.json").is_file():
        return home / "verify"
    data = _packaged_data()
    if data is not None and (data / "verify" / "checks.json").is_file():
        return data / "verify"
    raise UsageError(
        f"there is no verify/checks.json in {home}, nor in the installed package",
        hint="the checkout is not whole; clone it again, or name another with --project DIR",
    )


def _own_checkout() -> Path | None:
    """Return the checkout that this package runs from: an editable install is used from anywhere."""
    place = Path(__file__).absolute().parent.parent
    return place if _is_checkout(place) else None


def _packaged_data() -> Path | None:
    """Return what the installed package carries, None in a checkout."""
    from importlib.resources import files

    data = Path(str(files("toolkit"))) / "data"
    return data if (data / "recipes").is_dir() else None


def _overlays_folder(checkout: Path | None, environ: Mapping[str, str]) -> Path:
    if chosen := environ.get("TOOLKIT_OVERLAYS"):
        return Path(chosen).absolute()
    if checkout is not None:
        return checkout / "overlays"
    from platformdirs import user_data_path

    return user_data_path("toolkit", appauthor=False) / "overlays"
