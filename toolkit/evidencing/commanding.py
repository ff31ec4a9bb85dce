"""What `toolkit evidence repeat` and `cachekey` share: whose command is run, and with which environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from toolkit.errors import UsageError
from toolkit.options import (
    LONGEST,
    checked_overlay,
    common_options,
    complete_recipe,
    interpreter_of,
    interpreter_option,
    make_console,
    means_of,
    plan_of,
    project_of,
    warn_of_extensions,
)

Command = TypeVar("Command", bound=Callable[..., Any])

SETTINGS = {"ignore_unknown_options": True, "allow_interspersed_args": False}
"""What follows `--` is the user's own."""


def command_options(command: Command) -> Command:
    """Add the command that is run, and what says how."""
    for option in (
        click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED),
        click.option(
            "--env-of", metavar="RECIPE", shell_complete=complete_recipe, help="With the overlay of this recipe active."
        ),
        click.option("--host", is_flag=True, help="With --env-of, on a machine without an NPU: also the host sysroot."),
        click.option("--timeout", metavar="SECONDS", type=float, callback=_require_seconds, help="For each run."),
        click.option(
            "--keep", metavar="FOLDER", type=click.Path(path_type=Path),
            help="Keep what the runs have given in this folder, which must be empty or not there.",
        ),
    ):  # fmt: skip
        command = option(command)
    return common_options(interpreter_option(command))


def current_folder() -> Path:
    """Return the folder in which the user's command runs; UsageError where it is gone."""
    try:
        return Path.cwd()
    except FileNotFoundError as fault:
        raise UsageError("the current folder is no longer there", hint="change to one that is") from fault


def environment_of(recipe: str | None, *, host: bool, options: dict[str, Any]) -> dict[str, str]:
    """Return the caller's environment, with a recipe's overlay active where one is named, as `toolkit run` has it."""
    if recipe is None:
        if host:
            raise UsageError("--host adds the host sysroot of a recipe", hint="name it with --env-of RECIPE")
        return dict(os.environ)
    from toolkit import envfile

    overlay = checked_overlay(recipe, options)
    warn_of_extensions(overlay, options)
    environ = envfile.activate(os.environ, envfile.activation_of(overlay))
    environ["PATH"] = f"{interpreter_of(options).absolute().parent}{os.pathsep}{environ.get('PATH', os.defpath)}"
    if host:
        from toolkit import grounds

        project = project_of(options)
        plan = plan_of(project, recipe, options)
        environ |= grounds.runtime_variables(plan, means_of(project, options), make_console(options))
    return environ


def _require_seconds(_context: click.Context, _parameter: click.Parameter, value: float | None) -> float | None:
    """Refuse what no clock can count: NaN, infinity, and what is not above zero."""
    if value is not None and not 0 < value <= LONGEST:
        raise click.BadParameter(f"{value:g} is not in the range 0<x<={LONGEST}.")
    return value
