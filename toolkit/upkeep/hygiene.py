"""The order in `patches/`: everything in it that is in no series, has no witness, or is used by nobody."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit import plan, prove
from toolkit.errors import RecipeError, SeriesError, ToolkitError
from toolkit.model import Component, Patch
from toolkit.project import RETIRED, Project
from toolkit.recipe import recipe_names
from toolkit.schema import shown_path
from toolkit.series import LINE_FILE, Line, read_line
from toolkit.series.load import COMPANIONS, read_folder

LINE_NUMBER = re.compile(r":(\d+): ")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One thing that is not in order, and the file or folder that it is about."""

    path: Path
    what: str

    def __str__(self) -> str:
        return f"{shown_path(self.path)}: {self.what}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadSeries:
    """A series' folder with whatever could be read of it; `line` is None where its series.toml is missing or wrong."""

    name: str
    folder: Path
    patches: tuple[Patch, ...]
    line: Line | None
    faults: tuple[Fault, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """One component of one recipe that takes a series."""

    recipe: str
    part: Component


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What `patches/` holds and who uses it. `faults` are all of the whole folder's; `remarks` need nobody's hand."""

    series: tuple[ReadSeries, ...]
    uses: Mapping[str, tuple[Use, ...]]
    faults: tuple[Fault, ...]
    remarks: tuple[str, ...]

    def find(self, name: str) -> ReadSeries:
        """Return a series that is there."""
        return next(one for one in self.series if one.name == name)

    def accepted(self, name: str) -> frozenset[str]:
        """Name the patches of a series that some recipe takes as upstream's own where a base has them."""
        return frozenset(patch for use in self.uses.get(name, ()) for patch in use.part.accept_upstream)


def look_through(project: Project) -> Order:
    """Read every series and every recipe of a project; what is wrong is said of all, never only of the first."""
    found = tuple(read_series(project, name) for name in project.series_names())
    uses, unread = _read_uses(project)
    faults = [*_strays(project), *(fault for one in found for fault in one.faults)]
    faults += _witness_faults(found, project)
    faults += unread or _unused(found, uses)
    return Order(series=found, uses=uses, faults=tuple(faults), remarks=tuple(_remarks(found, uses)))


def read_series(project: Project, name: str) -> ReadSeries:
    """Read what can be read of one series."""
    folder = project.series_folder(name)
    patches, refused = read_folder(folder)
    faults = [_folder_fault(folder, text) for text in refused]
    line = None
    try:
        line = read_line(folder, name=name)
    except SeriesError as fault:
        path = folder / LINE_FILE
        faults += [Fault(path=path, what=_in_line(text, path)) for text in fault.details or [fault.message]]
    return ReadSeries(name=name, folder=folder, patches=patches, line=line, faults=tuple(faults))


def _in_line(text: str, path: Path) -> str:
    """Take a file's name from before what is said of it, and put a line's number into words."""
    rest = text.removeprefix(shown_path(path))
    numbered = LINE_NUMBER.match(rest)
    return f"line {numbered[1]}: {rest[numbered.end() :]}" if numbered else rest.removeprefix(": ")


def _folder_fault(folder: Path, text: str) -> Fault:
    """Take apart what a fault begins with: the name of its file, or the folder."""
    name, _, what = text.partition(": ")
    path = folder / name
    return Fault(path=path, what=what)


def _strays(project: Project) -> Iterator[Fault]:
    """Find files that lie beside the series instead of in one."""
    for patches in project.patches:
        components = [place for place in _visible(patches) if place.is_dir() and place.name != RETIRED]
        for path in (path for folder in (patches, *components) for path in _visible(folder)):
            if path.is_file() and path.name not in COMPANIONS:
                yield Fault(path=path, what="lies outside of every series, expected <component>/<line>/NNNN-slug.patch")


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _read_uses(project: Project) -> tuple[dict[str, tuple[Use, ...]], list[Fault]]:
    """Return who takes each series, and the recipes that cannot be read: nobody knows what those take."""
    uses: dict[str, tuple[Use, ...]] = {}
    faults = []
    for name in recipe_names(project.recipes):
        try:
            wanted = plan.read_recipe(project, name)
        except RecipeError as fault:
            path = next(place / f"{name}.toml" for place in project.recipes if (place / f"{name}.toml").exists())
            faults += [
                Fault(path=path, what=f"{fault.message}: {what}") for what in fault.details or ("it is not read",)
            ]
            continue
        for part in wanted.components:
            if part.series:
                uses[part.series] = (*uses.get(part.series, ()), Use(recipe=name, part=part))
    return uses, faults


def _unused(found: Sequence[ReadSeries], uses: Mapping[str, Sequence[Use]]) -> list[Fault]:
    return [Fault(path=one.folder, what="no recipe uses this series") for one in found if one.name not in uses]


def _witness_faults(found: Sequence[ReadSeries], project: Project) -> Iterator[Fault]:
    """Find patches without their witness, and witnesses without a patch."""
    patches = [patch for one in found for patch in one.patches]
    catalogue = project.verify / prove.CATALOGUE
    try:
        known = prove.load_catalogue(project.verify)
        for patch, what in plan.witness_faults([patch for patch in patches if patch.witness], project):
            yield Fault(path=patch.path, what=what)
    except ToolkitError as fault:
        yield Fault(path=catalogue, what=fault.message)
        return
    named = {patch.witness for patch in patches}
    for name, check in known.items():
        if check.witness and name not in named:
            yield Fault(path=catalogue, what=f"no patch names the witness {name!r}")


def _remarks(found: Sequence[ReadSeries], uses: Mapping[str, Sequence[Use]]) -> Iterator[str]:
    for one in found:
        taken = {use.part.base.coverage for use in uses.get(one.name, ())}
        for covered in one.line.covers if one.line and taken else ():
            if covered not in taken:
                yield f"{one.name} covers {shown_base(covered)}, which no recipe uses"


def shown_base(coverage: str) -> str:
    """Name a base for a person: of a commit, the first letters do."""
    return coverage[: len("git:") + 12] if coverage.startswith("git:") else coverage
