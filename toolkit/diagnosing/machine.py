"""`toolkit doctor`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolkit.errors import FindingsError, UsageError
from toolkit.options import (
    common_options,
    interpreter_of,
    interpreter_option,
    make_console,
    project_of,
    recipe_option,
)

if TYPE_CHECKING:
    from toolkit.project import Project


@click.command()
@recipe_option
@interpreter_option
@common_options
def doctor(recipe: str, **options: Any) -> None:
    """Look at the machine and the environment before anything fails: a line for each thing, and what to do about it.

    It looks as training would start here and now: with this folder, these variables and the target interpreter. torch
    is not imported. Lines that are `ok` are counted, and shown with -v. The exit code is 0 where nothing is `fail`,
    else 23.

    \b
    Example:  toolkit doctor
              toolkit doctor --recipe dsv4-dvm-release --python .venv/bin/python --json
    """
    from toolkit.diagnosing import answers_machine as answers
    from toolkit.diagnosing.wrapping import screen_width
    from toolkit.doctor import examine
    from toolkit.model import worst_grade

    console = make_console(options)
    here = _here()
    store = {} if options["store"] is None else {"TOOLKIT_STORE": str(options["store"])}
    observations = examine(
        python=interpreter_of(options),
        environ={**os.environ, **store},
        cwd=here,
        project=_project(recipe, options),
        recipe=recipe,
    )
    answer = answers.describe_observations(
        observations, verbose=bool(options["verbose"]), width=screen_width(console.columns)
    )
    console.answer(answer.text, answer.document, styles=answers.STYLES)
    if worst_grade(observations) == "fail":
        raise click.exceptions.Exit(FindingsError.exit_code)  # The report is said already.


def _project(recipe: str, options: dict[str, Any]) -> Project | None:
    """Return the project; None outside of any, unless one is named, and for one that lacks a recipe nobody named."""
    from toolkit.recipe import recipe_names

    try:
        project = project_of(options)
    except UsageError:
        if options["project"] is not None:
            raise
        return None
    is_named = click.get_current_context().get_parameter_source("recipe") is not click.core.ParameterSource.DEFAULT
    return project if is_named or recipe in recipe_names(project.recipes) else None


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as fault:
        raise UsageError("the current folder is no longer there", hint="change to one that is") from fault
