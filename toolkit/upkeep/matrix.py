"""Patch by base: the table of how every patch stands to every base, and what in it a person has to look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from toolkit.model import Runtime, Status
from toolkit.series.verdict import PatchVerdict
from toolkit.upkeep.words import Word

Needed = Literal["still needed", "no longer needed", ""]
Works = Literal["still works", "no longer works", ""]


@dataclass(frozen=True, kw_only=True, slots=True)
class WitnessVerdict:
    """What a patch's witness says of one base: red on it, the patch is needed; green with the series, it works.

    Each is empty where the witness did not get so far, and `base_detail` or `overlay_detail` says why; otherwise those
    are what the witness saw. `torch` is the version that it ran with.
    """

    witness: str
    needed: Needed
    works: Works
    base: Status
    overlay: Status
    base_detail: str
    overlay_detail: str
    torch: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One base of one component; `name` is unique in it. `why` says why it could not be had, empty where it could.

    `word` is what it was asked for by, and `coverage` names it as `covers` of a series.toml does. `is_here` is false
    for a package that this machine would have to have, and has not.
    """

    component: str
    name: str
    word: Word
    coverage: str
    remark: str = ""
    why: str = ""
    is_here: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One patch of one series."""

    series: str
    patch: str
    subject: str
    witness: str
    diagnostic: bool

    @property
    def component(self) -> str:
        """The component whose patch it is."""
        return self.series.partition("/")[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """How one patch stands to one base. `covered` says whether its series is for that base.

    `why` says why there is no verdict, or no witness where witnesses were asked for. `accepted` says that a recipe of
    the project takes the patch as upstream's own where a base has it.
    """

    series: str
    patch: str
    base: str
    verdict: PatchVerdict | None
    covered: bool
    accepted: bool = False
    is_here: bool = True
    witness: WitnessVerdict | None = None
    why: str = ""

    @property
    def finding(self) -> str:
        """What a person has to look at: only a base that the series is for can be wrong. Empty where nothing is."""
        if not self.covered or not self.is_here:
            return ""
        if self.verdict is None:
            return self.why
        expected = self.verdict.goes_in or (self.accepted and self.verdict.verdict == "upstream")
        return _witness_finding(self.witness, self.verdict) if expected else self.verdict.verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Matrix:
    """All cells, by series, patch and base. `runtime` says what the witnesses ran on, None where none was to run."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    cells: tuple[Cell, ...]
    runtime: Runtime | None = None

    @property
    def components(self) -> tuple[str, ...]:
        """The components that there are columns for, in their order."""
        return tuple(dict.fromkeys(column.component for column in self.columns))

    @property
    def findings(self) -> tuple[str, ...]:
        """What a person has to look at, a line each."""
        return tuple(
            f"{cell.series} {cell.patch} on {cell.base}: {cell.finding}" for cell in self.cells if cell.finding
        )

    def columns_of(self, component: str) -> tuple[Column, ...]:
        """Return the bases of a component."""
        return tuple(column for column in self.columns if column.component == component)

    def rows_of(self, component: str) -> tuple[Row, ...]:
        """Return the patches of a component."""
        return tuple(row for row in self.rows if row.component == component)

    def cells_of(self, series: str, column: Column) -> tuple[Cell, ...]:
        """Return the cells of a series on a base of its component, in the series' order."""
        return tuple(cell for cell in self.cells if (cell.series, cell.base) == (series, column.name))

    def cell(self, row: Row, column: Column) -> Cell:
        """Return the cell of a patch and a base of the same component."""
        return next(
            cell for cell in self.cells if (cell.series, cell.patch, cell.base) == (row.series, row.patch, column.name)
        )


def _witness_finding(witness: WitnessVerdict | None, verdict: PatchVerdict) -> str:
    """Say what is wrong with what a witness came to, empty where nothing is or nobody could run it here."""
    if witness is None or witness.base == "not run":
        return ""
    if not witness.needed:
        return f"its witness on the base: {witness.base}, {witness.base_detail}"
    if not verdict.goes_in:
        return "upstream, but its witness is red on the base" if witness.needed == "still needed" else ""
    if witness.needed == "no longer needed":
        return "no longer needed, its witness is green on the base"
    if not witness.works and witness.overlay != "not run":
        return f"its witness on the patched base: {witness.overlay}, {witness.overlay_detail}"
    return f"no longer works, its witness says: {witness.overlay_detail}" if witness.works == "no longer works" else ""
