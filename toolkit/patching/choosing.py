"""Which series a `toolkit patch` command is about."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from toolkit.errors import ToolkitError, UsageError
from toolkit.project import DEFAULT_RECIPE, Project, find_project

if TYPE_CHECKING:
    from pathlib import Path

Command = TypeVar("Command", bound=Callable[..., Any])


def series_option(command: Command) -> Command:
    """Add --series; with `--recipe` beside it a command can ask `chosen_series`."""
    return click.option(
        "--series", metavar="COMPONENT/LINE", shell_complete=complete_series,
        help="A folder below patches/; the recipe's own, where it has just one.",
    )(command)  # fmt: skip


def complete_series(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    try:
        project = find_project(start=_here(), environ=os.environ)
    except ToolkitError:
        return []
    return [name for name in project.series_names() if name.startswith(typed)]


def chosen_series(project: Project, series: str | None, recipe: str | None = None) -> str:
    """Return the name of the series that is asked for; UsageError where there is none, or more than one to choose.

    Where none is, it is the one of the recipe: the given one, else that of TOOLKIT_RECIPE, else the default.
    """
    from toolkit import plan
    from toolkit.schema import did_you_mean

    if series is not None:
        known = project.series_names()
        if series not in known:
            raise UsageError(
                f"there is no series {series!r}{did_you_mean(series, known)}",
                hint=f"known series: {', '.join(known) or 'none'}",
            )
        return series
    recipe = recipe or os.environ.get("TOOLKIT_RECIPE") or DEFAULT_RECIPE
    found = [part.series for part in plan.read_recipe(project, recipe).components if part.series]
    if len(found) != 1:
        raise UsageError(
            f"recipe {recipe!r} has {len(found) or 'no'} series", hint=f"name one with --series: {', '.join(found)}"
        )
    return found[0]


def _here() -> Path:
    from pathlib import Path

    return Path.cwd()
