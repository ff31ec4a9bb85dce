"""Witness runs for the matrix: whether a base still needs a patch, and whether the patch still works there.

Each base that one of the interpreters can load is built twice over, as it is and with a series, into overlays that
are thrown away; what takes long, wheels and sysroots, comes from the store and stays there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from toolkit import pipeline, target
from toolkit.errors import ToolkitError
from toolkit.files import temporary_directory
from toolkit.model import CheckResult, Interpreter
from toolkit.plan import plan_recipe
from toolkit.upkeep.judging import Chosen
from toolkit.upkeep.matrix import Cell, Column, Matrix, Needed, WitnessVerdict, Works
from toolkit.upkeep.trials import Trial, Unfit, make_trial, public_torch
from toolkit.work import Means, Watcher

NEEDED: Mapping[str, Needed] = {"fail": "still needed", "pass": "no longer needed"}
WORKS: Mapping[str, Works] = {"pass": "still works", "fail": "no longer works"}

Seen = dict[tuple[str, str, str], CheckResult]
"""What witnesses said of an unpatched base, by component, base and witness: no series has a part in that."""


def run_witnesses(
    matrix: Matrix, chosen: Sequence[Chosen], *, interpreters: Sequence[Path], means: Means, watcher: Watcher
) -> Matrix:
    """Return the matrix with every patch's witness run on every base that can be loaded here, and with reasons for
    those that were not run.

    A series that goes into a base is built into it, less what the base has already; of one that does not, the
    witnesses see the base alone. A base that fails does not stop the others: its cells say how.
    """
    pythons = [target.inspect_interpreter(path, env=means.environ) for path in interpreters]
    seen: Seen = {}
    cells: dict[tuple[str, str, str], Cell] = {}
    with means.store.in_use():
        for column in matrix.columns:
            own = [matrix.cells_of(one.name, column) for one in chosen if one.component == column.component]
            for group in sorted(own, key=lambda group: not _goes_in(group)):
                found = _run_series(column, group, pythons, seen, means, watcher)
                cells |= {(cell.series, cell.patch, cell.base): cell for cell in found}
    ordered = tuple(cells[cell.series, cell.patch, cell.base] for cell in matrix.cells)
    return replace(matrix, cells=ordered, runtime=means.runtime)


def _goes_in(cells: Sequence[Cell]) -> bool:
    """Whether a series can be applied to a base, less the patches that are there already."""
    return all(cell.verdict and (cell.verdict.goes_in or cell.verdict.verdict == "upstream") for cell in cells)


def _run_series(
    column: Column, cells: Sequence[Cell], pythons: Sequence[Interpreter], seen: Seen, means: Means, watcher: Watcher
) -> list[Cell]:
    """Run the witnesses of one series on one base; what stands in the way becomes the reason in each cell."""
    if column.why:
        return list(cells)
    goes_in = _goes_in(cells)
    names = tuple(dict.fromkeys(cell.verdict.witness for cell in cells if cell.verdict))
    wanted = [name for name in names if goes_in or (column.component, column.name, name) not in seen]
    found: dict[tuple[str, str], CheckResult] = {}
    torch = ""
    try:
        trial = make_trial(
            column, series=cells[0].series, bare=not goes_in, interpreters=pythons, means=means,
            accept=[cell.patch for cell in cells if cell.verdict and cell.verdict.verdict == "upstream"],
        )  # fmt: skip
        torch = public_torch(trial.interpreter)
        if wanted:
            found = _prove(trial, wanted, means, watcher)
    except Unfit as unfit:
        return [replace(cell, why=f"not run: {unfit}") for cell in cells]
    except ToolkitError as fault:
        return [replace(cell, witness=_broken(cell, fault, torch)) for cell in cells]
    seen.update({(column.component, column.name, name): one for (name, side), one in found.items() if side == "base"})
    return [replace(cell, witness=_verdict(cell, column, seen, found, goes_in, torch)) for cell in cells]


def _prove(
    trial: Trial, names: Sequence[str], means: Means, watcher: Watcher
) -> dict[tuple[str, str], CheckResult]:  # fmt: skip
    """Build a trial in a folder that is thrown away, and run these witnesses on both sides of it."""
    with temporary_directory("toolkit-witness-") as folder:
        project = means.project._replace(overlays=folder / "overlays")
        inner = replace(means, project=project)
        planned = plan_recipe(
            trial.recipe, trial.lock, project=project, interpreter=trial.interpreter.executable, environ=means.environ
        )
        wheels = pipeline.obtain_wheels(planned, inner, watcher)
        built, _ = pipeline.obtain_overlay(planned, wheels, watcher)
        proof = pipeline.make_proof(planned, built, inner, watcher, checks=tuple(names))
    return {(result.name, result.side): result for result in proof.results}


def _verdict(
    cell: Cell, column: Column, seen: Seen, found: Mapping[tuple[str, str], CheckResult], goes_in: bool, torch: str
) -> WitnessVerdict:
    """Say what a patch's witness came to; it works only where the patch itself was put in."""
    assert cell.verdict is not None
    name = cell.verdict.witness
    base = seen.get((column.component, column.name, name))
    overlay = found.get((name, "overlay")) if goes_in and cell.verdict.goes_in else None
    without = "the base has the change" if goes_in else "the series does not go in"
    return WitnessVerdict(
        witness=name,
        needed=NEEDED.get(base.status, "") if base else "",
        works=WORKS.get(overlay.status, "") if overlay else "",
        base=base.status if base else "not run",
        overlay=overlay.status if overlay else "not run",
        base_detail=base.detail if base else "it was not run",
        overlay_detail=overlay.detail if overlay else without,
        torch=torch,
    )


def _broken(cell: Cell, fault: ToolkitError, torch: str) -> WitnessVerdict:
    """Say that a base could not be built or run at all."""
    return WitnessVerdict(
        witness=cell.verdict.witness if cell.verdict else "", needed="", works="", base="error", overlay="error",
        base_detail=fault.message, overlay_detail=fault.message, torch=torch,
    )  # fmt: skip
