"""How every series stands: to its home, or to the base that a recipe has locked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from toolkit import plan, sources
from toolkit.errors import ToolkitError, UsageError
from toolkit.files import temporary_directory
from toolkit.model import Component, Contract, Interpreter, LockedBase, Recipe, Series, Target
from toolkit.project import Project
from toolkit.series import PatchVerdict, judge_series
from toolkit.upkeep.bases import (
    FoundBase,
    find_base,
    lay_out_base,
    own_target,
    parse_against,
    this_interpreter,
)
from toolkit.upkeep.hygiene import Fault, Order, ReadSeries, look_through, shown_base
from toolkit.work import Means, Watcher

INSTALLED = "installed:"
NOT_HERE = "this machine does not have it"


@dataclass(frozen=True, kw_only=True, slots=True)
class SeriesStatus:
    """One series on one base, whose name is empty where nothing says it. `recipe` is the one whose base it is, if any.

    `why` says why there are no verdicts; `is_here` is False where that is for want of a package that only another
    machine has. `accepted` names the patches that may be upstream's own.
    """

    series: str
    recipe: str
    base: str
    verdicts: tuple[PatchVerdict, ...] = ()
    accepted: frozenset[str] = frozenset()
    why: str = ""
    is_here: bool = True
    remark: str = ""

    @property
    def findings(self) -> tuple[str, ...]:
        """What a person has to look at, a line each."""
        if self.why and self.is_here:
            return (f"{self.series}{f' on {self.base}' * bool(self.base)} was not judged: {self.why}",)
        return tuple(
            f"{self.series} {one.name} on {self.base}: {one.verdict}" for one in self.verdicts if not self.is_well(one)
        )

    def is_well(self, verdict: PatchVerdict) -> bool:
        """Whether nobody has to do anything about a patch."""
        return verdict.goes_in or (verdict.verdict == "upstream" and verdict.name in self.accepted)


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """How the series that were asked for stand, and the order of the whole `patches/` folder."""

    series: tuple[SeriesStatus, ...]
    faults: tuple[Fault, ...]
    remarks: tuple[str, ...]

    @property
    def findings(self) -> tuple[str, ...]:
        """What a person has to look at or to mend, a line each."""
        return (*(found for one in self.series for found in one.findings), *map(str, self.faults))


def series_status(
    project: Project, *, means: Means, watcher: Watcher, recipe: str | None = None, series: str | None = None
) -> Status:
    """Judge all series on their homes, or one, or those of a recipe on the bases that its lock names.

    A base that cannot be had gives a row that says why; the others are judged all the same.
    """
    order = look_through(project)
    interpreter = this_interpreter(means)
    if recipe is not None:
        rows = list(_of_recipe(recipe, project, order, means, watcher, interpreter))
    else:
        chosen = [order.find(series)] if series else order.series
        rows = [_on_home(one, order, means, watcher, interpreter) for one in chosen]
    return Status(series=tuple(rows), faults=order.faults, remarks=order.remarks)


# --- a series by itself ------------------------------------------------------------------------------------------


def _on_home(one: ReadSeries, order: Order, means: Means, watcher: Watcher, interpreter: Interpreter) -> SeriesStatus:
    accepted = order.accepted(one.name)
    if one.line is None:
        return SeriesStatus(series=one.name, recipe="", base="", why="it does not say which its home is")
    row = SeriesStatus(series=one.name, recipe="", base=shown_base(one.line.home), accepted=accepted)
    with temporary_directory("toolkit-status-") as scratch:
        try:
            word = parse_against(one.line.home)
            with watcher.download(one.name, row.base) as progress:
                found = find_base(
                    word, one.line, component=one.name.partition("/")[0], means=means, interpreter=interpreter,
                    scratch=scratch / "clone", progress=progress,
                )  # fmt: skip
            return _judge(row, one, found, scratch)
        except ToolkitError as fault:
            return replace(row, why=fault.message, is_here=not one.line.home.startswith(INSTALLED))


def _judge(row: SeriesStatus, one: ReadSeries, found: FoundBase, scratch: Path) -> SeriesStatus:
    series = Series(name=one.name, patches=one.patches)
    laid = lay_out_base(found, series.paths, scratch / "base")
    verdicts = judge_series(series, laid.tree, scratch=scratch / "judge", read_file=laid.read_file)
    return replace(row, verdicts=verdicts, remark=found.remark)


# --- a recipe's series -------------------------------------------------------------------------------------------


def _of_recipe(
    name: str, project: Project, order: Order, means: Means, watcher: Watcher, interpreter: Interpreter
) -> Iterator[SeriesStatus]:
    wanted = plan.read_recipe(project, name)
    parts = [part for part in wanted.components if part.series]
    if not parts:
        raise UsageError(f"recipe {name!r} has no series")
    for part in parts:
        assert part.series is not None
        row = SeriesStatus(
            series=part.series, recipe=name, base=shown_base(part.base.coverage),
            accepted=frozenset(part.accept_upstream),
        )  # fmt: skip
        with temporary_directory("toolkit-status-") as scratch:
            try:
                found = _locked_base(part, wanted, project, means, watcher, interpreter)
                yield (
                    _judge(row, order.find(part.series), found, scratch)
                    if found
                    else replace(row, why=NOT_HERE, is_here=False)
                )
            except ToolkitError as fault:
                yield replace(row, why=fault.message)


def _locked_base(
    part: Component, wanted: Recipe, project: Project, means: Means, watcher: Watcher, interpreter: Interpreter
) -> FoundBase | None:
    """Bring the base that a recipe has locked; None for an optional one that this machine does not have."""
    entry = plan.read_lock(project, wanted).component(part.name)
    assert entry is not None  # A lock that fits its recipe names every component.
    source = sources.available_sources()[entry.base.kind]
    chosen = _choose_target(entry.base, wanted.contract, interpreter)
    if sources.is_absent(source.artifact_digest(entry.base, chosen, interpreter=interpreter, env=means.environ)):
        return None
    with watcher.download(f"{wanted.name}/{part.name}", f"the base for {chosen}") as progress:
        base = source.fetch(
            entry.base, component=part.name, target=chosen, store=means.store, offline=means.offline,
            interpreter=interpreter, env=means.environ, progress=progress,
        )  # fmt: skip
    return FoundBase(label=base.file, coverage=part.base.coverage, base=base)


def _choose_target(locked: LockedBase, contract: Contract, interpreter: Interpreter) -> Target:
    """Choose the interpreter's own target where the recipe is for it; what is read is the same in all of them."""
    covered = [target for target in contract.targets if locked.covers(target)]
    fitting = [
        target
        for target in covered
        if target.python_tag == interpreter.python_tag and target.platform in interpreter.platforms
    ]
    return [*fitting, *covered, own_target(interpreter)][0]
