"""Filling the matrix: the series that are asked for, judged against the bases that are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolkit import plan, series
from toolkit.errors import FetchError, LockError, SourceError, ToolkitError
from toolkit.files import temporary_directory
from toolkit.model import Interpreter, Series
from toolkit.project import Project
from toolkit.recipe import recipe_names
from toolkit.series import Line
from toolkit.series.judge import judge_series
from toolkit.sources import git
from toolkit.upkeep.bases import BaseTree, FoundBase, find_base, lay_out_base
from toolkit.upkeep.columns import Lines, asked_columns, usual_columns
from toolkit.upkeep.matrix import Cell, Column, Matrix, Row
from toolkit.upkeep.words import Commit, Installed, Release, Word
from toolkit.work import Means, Watcher

LACKING = (FetchError, LockError, SourceError)
"""What says that one base cannot be had, and nothing of any other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """One series with its line; `accepted` names its patches that some recipe takes as upstream's own."""

    name: str
    series: Series
    line: Line
    accepted: frozenset[str]

    @property
    def component(self) -> str:
        """The component that it is for."""
        return self.name.partition("/")[0]


def read_chosen(project: Project, names: Sequence[str]) -> tuple[Chosen, ...]:
    """Read series with their lines; SeriesError for one that is wrong."""
    accepted = _accepted_patches(project)
    found = []
    for name in names:
        folder = project.series_folder(name)
        found.append(
            Chosen(
                name=name, series=series.load_series(folder, name=name), line=series.read_line(folder, name=name),
                accepted=frozenset(patch for owner, patch in accepted if owner == name),
            )
        )  # fmt: skip
    return tuple(found)


def choose_columns(chosen: Sequence[Chosen], against: Sequence[str], means: Means) -> dict[str, list[Word]]:
    """Return the bases by component: those that are asked for, or the usual ones of every component."""
    lines: Lines = {
        component: [one.line for one in chosen if one.component == component]
        for component in dict.fromkeys(one.component for one in chosen)
    }
    if against:
        return asked_columns(against, lines, means)
    return {component: usual_columns(own, means) for component, own in lines.items()}


def make_matrix(
    chosen: Sequence[Chosen],
    words: Mapping[str, Sequence[Word]],
    *,
    means: Means,
    interpreter: Interpreter,
    watcher: Watcher,
    is_strict: bool = False,
) -> Matrix:
    """Judge every patch of the chosen series against every base of its component.

    A base that cannot be had gives a column of cells without a verdict, each with the reason, and the others are judged
    all the same; with `is_strict` its error is raised.
    """
    parts = [one for one in chosen if one.component in words]
    columns: list[Column] = []
    cells: list[Cell] = []
    for component, word in [(component, word) for component, bases in words.items() for word in bases]:
        watcher.stage(component, f"look at {word}")
        own = [one for one in parts if one.component == component]
        try:
            column, judged = _judge_base(word, own, component, means, interpreter, watcher)
        except LACKING as fault:
            if is_strict:
                raise
            column = _lacking(word, component, fault)
            judged = [cell for one in own for cell in _unknown_cells(one, column)]
        if (component, column.name) not in {(other.component, other.name) for other in columns}:
            columns.append(column)
            cells += judged
    return Matrix(columns=tuple(columns), rows=tuple(row for one in parts for row in _rows(one)), cells=tuple(cells))


def _judge_base(
    word: Word, chosen: Sequence[Chosen], component: str, means: Means, interpreter: Interpreter, watcher: Watcher
) -> tuple[Column, list[Cell]]:
    with temporary_directory("toolkit-matrix-") as scratch:
        with watcher.download(component, str(word)) as progress:
            found = find_base(
                word, _line_for(word, chosen), component=component, means=means, interpreter=interpreter,
                scratch=scratch / "clone", progress=progress,
            )  # fmt: skip
        column = Column(
            component=component, name=_name_of(word, found), word=word, coverage=found.coverage, remark=found.remark
        )
        return column, [cell for one in chosen for cell in _judge(one, _lay_out(found, one, scratch), column, scratch)]


def _lacking(word: Word, component: str, fault: ToolkitError) -> Column:
    """Return the column of a base that cannot be had; one that is a machine's own just is not on this one."""
    is_machines = isinstance(word, Installed)
    why = f"no {str(word).removeprefix('installed:')} on this machine" if is_machines else fault.message
    return Column(
        component=component, name=_name_of(word), word=word, coverage=str(word), why=why, is_here=not is_machines
    )


def _lay_out(found: FoundBase, one: Chosen, scratch: Path) -> BaseTree:
    """Write what a series names; its paths begin where its own line says."""
    base = found.base
    if base.kind == git.KIND:
        base = replace(base, subfolder=one.line.subfolder)
    return lay_out_base(replace(found, base=base), one.series.paths, scratch / one.name / "base")


def _judge(one: Chosen, tree: BaseTree, column: Column, scratch: Path) -> Iterator[Cell]:
    room = scratch / one.name / "judge"
    for verdict in judge_series(one.series, tree.tree, scratch=room, read_file=tree.read_file):
        yield Cell(
            series=one.name, patch=verdict.name, base=column.name, verdict=verdict,
            covered=one.line.is_for(column.coverage), accepted=verdict.name in one.accepted,
        )  # fmt: skip


def _unknown_cells(one: Chosen, column: Column) -> Iterator[Cell]:
    for patch in one.series.patches:
        yield Cell(
            series=one.name, patch=patch.name, base=column.name, verdict=None,
            covered=one.line.is_for(column.coverage), is_here=column.is_here, why=column.why,
        )  # fmt: skip


def _line_for(word: Word, chosen: Sequence[Chosen]) -> Line | None:
    """Return the line that covers a base, or else one that knows where its upstream is."""
    lines = [one.line for one in chosen]
    covering = [line for line in lines if line.is_for(str(word))]
    return next((line for line in (*covering, *lines) if line.upstream), lines[0] if lines else None)


def _name_of(word: Word, found: FoundBase | None = None) -> str:
    """Name a base among those of its component."""
    if isinstance(word, Release):
        return word.version
    if isinstance(word, Installed):
        return f"installed {word.version}".strip()
    if found is not None:
        return found.label
    return word.id[:12] if isinstance(word, Commit) else word.ref


def _rows(one: Chosen) -> Iterator[Row]:
    for patch in one.series.patches:
        yield Row(
            series=one.name, patch=patch.name, subject=patch.subject, witness=patch.witness,
            diagnostic=one.line.diagnostic,
        )  # fmt: skip


def _accepted_patches(project: Project) -> set[tuple[str, str]]:
    """Name the patches, with their series, that a recipe takes as upstream's own where a base has them."""
    found = set()
    for name in recipe_names(project.recipes):
        try:
            parts = plan.read_recipe(project, name).components
        except ToolkitError:  # Whoever builds it is told; the series are what is looked at here.
            continue
        found |= {(part.series, patch) for part in parts if part.series for patch in part.accept_upstream}
    return found
