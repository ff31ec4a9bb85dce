"""The machine and the environment, looked at before anything fails."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from toolkit.doctor.asked import Asked
from toolkit.doctor.import_path import examine_path
from toolkit.doctor.interpreters import examine_interpreter
from toolkit.doctor.machine import examine_machine
from toolkit.doctor.observed import bad
from toolkit.doctor.survey import LIMIT, Survey, survey_imports
from toolkit.doctor.torches import examine_torch
from toolkit.doctor.tritons import examine_triton
from toolkit.errors import TargetError, ToolkitError, UsageError
from toolkit.model import Interpreter, Observation, Recipe
from toolkit.plan import read_recipe
from toolkit.project import Project
from toolkit.target import inspect_interpreter

ROOT = Path("/")


def examine(
    *, python: Path, environ: Mapping[str, str], cwd: Path, project: Project | None, recipe: str, root: Path = ROOT
) -> tuple[Observation, ...]:  # fmt: skip
    """Look at everything that training would meet, started in `cwd` with `environ`: in a fixed order, by group.

    `python` is the target; torch is imported nowhere. Without a project the recipe's part is left out. Raises
    UsageError for a recipe that the project does not have.
    """
    interpreter, fault = _interpreter(python, environ)
    survey, survey_fault = _survey(interpreter, environ, cwd)
    wanted, recipe_faults = _recipe(project, recipe)
    asked = Asked(
        environ=environ, cwd=cwd, interpreter=interpreter, interpreter_fault=fault,
        packages={} if survey is None else survey.packages, project=project, recipe=recipe, wanted=wanted, root=root,
    )  # fmt: skip
    observations = [*recipe_faults, *examine_interpreter(asked, survey, survey_fault)]
    if survey is not None:
        observations += [*examine_path(asked, survey), *examine_torch(asked, survey), *examine_triton(asked, survey)]
    return (*observations, *examine_machine(asked))


def _interpreter(python: Path, environ: Mapping[str, str]) -> tuple[Interpreter | None, str]:
    try:
        return inspect_interpreter(python, env=environ, timeout=LIMIT), ""
    except TargetError as fault:
        return None, ": ".join([fault.message, *fault.details[-1:]])


def _survey(interpreter: Interpreter | None, environ: Mapping[str, str], cwd: Path) -> tuple[Survey | None, str]:
    if interpreter is None:
        return None, ""
    try:
        return survey_imports(interpreter, environ, cwd), ""
    except TargetError as fault:
        return None, fault.message


def _recipe(project: Project | None, name: str) -> tuple[Recipe | None, list[Observation]]:
    """Read the recipe; one that cannot be read is told, and the rest is looked at without it."""
    if project is None:
        return None, []
    try:
        return read_recipe(project, name), []
    except UsageError:
        raise
    except ToolkitError as fault:
        return None, [bad("recipe.read", f"{fault.message}: {'; '.join(fault.details[:2])}", fault.hint or "mend it")]
