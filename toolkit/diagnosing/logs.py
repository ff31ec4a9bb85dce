"""`toolkit diagnose`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from toolkit.errors import FindingsError, UsageError
from toolkit.options import common_options, give, make_console

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.triage import RuleBook


@click.command()
@click.argument("places", nargs=-1, required=True, metavar="LOG…")
@click.option(
    "--env", "environment", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="The environment that the run had: the output of `env`, an env file, or JSON.",
)  # fmt: skip
@click.option(
    "--cmd", "command", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="The command that started the run, or its run script.",
)  # fmt: skip
@click.option(
    "--rules", "more", type=click.Path(path_type=Path, dir_okay=False), multiple=True, metavar="FILE",
    help="More rules, of your own; may be given again.",
)  # fmt: skip
@click.option("--exit-code", is_flag=True, help="Exit with 23 where anything failed.")
@common_options
def diagnose(
    places: tuple[str, ...],
    environment: Path | None,
    command: Path | None,
    more: tuple[Path, ...],
    exit_code: bool,
    **options: Any,
) -> None:
    """Say which layer of a failed run failed, why, and what to do, from its logs.

    Each LOG is a file (also packed), a folder with the logs of all ranks, or `-` for standard input. Give the logs of
    all ranks together: the earliest error that is no time-out is the cause, and many only follow from it. Nothing is
    sent anywhere, and torch is not needed.

    \b
    Example:  toolkit diagnose train.log
              toolkit diagnose outputs/logs --json
              make train 2>&1 | toolkit diagnose - --cmd run_train.sh
    """
    from toolkit.diagnosing import answers_logs as answers
    from toolkit.diagnosing.wrapping import screen_width
    from toolkit.triage import diagnose as find_cause

    console = make_console(options)
    found = find_cause(places, facts=_launch_facts(environment, command), book=_rules(more), stdin=_stdin())
    width = screen_width(console.columns)
    give(console, answers.describe_diagnosis(found, verbose=bool(options["verbose"]), width=width))
    if exit_code and any(one.kind in ("cause", "victim") for one in found.findings):
        raise click.exceptions.Exit(FindingsError.exit_code)  # The report is said already.


def _stdin() -> BinaryIO | None:
    """Return standard input, which a caller may have closed."""
    return None if sys.stdin is None else sys.stdin.buffer


def _rules(more: tuple[Path, ...]) -> RuleBook:
    """Return the shipped rules, those of the user's files before them."""
    from toolkit.triage import add_rules, shipped_rules

    book = shipped_rules()
    return add_rules(book, {str(path): _read(path, "--rules") for path in more}) if more else book


def _launch_facts(environment: Path | None, command: Path | None) -> Mapping[str, str]:
    """Return what is known of the launch from the files that are given."""
    if environment is None and command is None:
        return {}
    from toolkit.launch import Launch, launch_facts, read_command_text, read_environment_text

    environ = None if environment is None else read_environment_text(_read(environment, "--env"))
    if command is not None:
        return launch_facts(read_command_text(_read(command, "--cmd"), environ=environ, folder=command.parent))
    return launch_facts(Launch(environ=environ or {}, is_environ_whole=True))


def _read(path: Path, option: str) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as fault:
        raise UsageError(
            f"{option} {str(path)!r} cannot be read: {os.strerror(fault.errno or 0)}", hint="name a file that can"
        ) from fault
