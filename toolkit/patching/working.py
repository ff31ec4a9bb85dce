"""What the commands that open a work tree have in common: their options, the shell, the editor."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

if TYPE_CHECKING:
    from toolkit.report import Console
    from toolkit.upkeep.adding import Ask
    from toolkit.upkeep.editing import Work

Command = TypeVar("Command", bound=Callable[..., Any])


def base_option(command: Command) -> Command:
    """Add --base."""
    return click.option(
        "--base", metavar="BASE", help="Work on this base of the line, not on its first: torch_npu==2.14.0, git:COMMIT."
    )(command)


def command_option(command: Command) -> Command:
    """Add --command."""
    return click.option("--command", metavar="CMD", help="Run this in the work tree, not your shell.")(command)


def pause_options(command: Command) -> Command:
    """Add --continue and --abort."""
    for option in (
        click.option("--abort", is_flag=True, help="Give up what was left; the series is as it was."),
        click.option("--continue", "goes_on", is_flag=True, help="Go on with what was left."),
    ):
        command = option(command)
    return command


def worker(console: Console, options: dict[str, Any], command: str | None, what: str) -> Work:
    """Return how a person gets to work: in a shell, or by a command."""
    from toolkit.upkeep.shell import work_in

    def work(folder: Path, author: str) -> None:
        if command is None:
            console.note(f"{what}: {folder}; leave the shell when you are done (exit)")
        work_in(folder, command, environ=os.environ, author=author, stdout=_stdout(options))

    return work


def asker(message: Path | None, options: dict[str, Any]) -> Ask:
    """Return how a message is come by: from a file, or from the user's editor."""
    from toolkit.upkeep.adding import fill_template
    from toolkit.upkeep.shell import edit_text, read_message

    def ask(folder: Path, template: str) -> str:
        if message is not None:
            return fill_template(template, read_message(message))
        return edit_text(
            folder, template, environ=os.environ, is_terminal=sys.stdin.isatty(), stdout=_stdout(options)
        )  # fmt: skip

    return ask


def _stdout(options: dict[str, Any]) -> TextIO | None:
    """Return where what a person runs may print, None for our own: beside a document nothing else may stand there."""
    return sys.stderr if options["as_json"] else None


def required(number: int | None) -> int:
    """Return a patch's number; click's own error where it was left out."""
    if number is None:
        raise click.UsageError("the number of a patch is needed.")
    return number


def require_line(value: str, option: str) -> None:
    """Raise click's own error for what is not one line of text."""
    if not value.strip() or not value.isprintable():
        raise click.BadParameter("it has to be one line of text.", param_hint=f"'{option}'")
