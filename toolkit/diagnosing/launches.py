"""`toolkit preflight`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolkit.errors import ContractMismatchError, FindingsError, TargetError, UsageError
from toolkit.options import (
    checked_overlay,
    common_options,
    give,
    interpreter_of,
    interpreter_option,
    make_console,
    project_of,
    recipe_option,
)

if TYPE_CHECKING:
    from toolkit.launch import Launch
    from toolkit.model import Overlay
    from toolkit.preflight import Subject


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--go", is_flag=True, help="Where nothing is `fail`, become the command, with the overlay active.")
@click.option(
    "--cmd", "script", type=click.Path(path_type=Path, dir_okay=False),
    help="Read the command from a file, as a shell would: a run script, exports and a command. What stands behind -- "
    "are its arguments.",
)  # fmt: skip
@click.option(
    "--acceptance", type=click.Path(path_type=Path, dir_okay=False),
    help="A .toml file with what an acceptance run is here, where that is not the default.",
)  # fmt: skip
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@recipe_option
@interpreter_option
@common_options
def preflight(
    recipe: str, go: bool, script: Path | None, acceptance: Path | None, command: tuple[str, ...], **options: Any
) -> None:
    """Hold a training command against the recipe and an acceptance run's configuration before it is started.

    Variables may stand in front of the command, as in a shell. A line is shown for each thing that is not `ok` (with
    -v, for each that was looked at), then the whole command with the overlay's variables. The exit code is 0 where
    nothing is `fail`, else 23, and then nothing is started with --go either.

    \b
    Example:  toolkit preflight -- NGPU=8 ./run_train.sh --training.dtype=bfloat16 --compile.enable
              toolkit preflight --recipe dsv4-dvm-release --go -- ./run_train.sh --training.steps 10
              toolkit preflight --cmd accept.sh --json
    """
    from toolkit import preflight as room
    from toolkit.diagnosing import answers_launches as answers
    from toolkit.diagnosing.answers_machine import STYLES
    from toolkit.diagnosing.wrapping import screen_width
    from toolkit.model import worst_grade
    from toolkit.process import replace_process

    if not command and script is None:
        raise UsageError("there is no command to look at", hint="give it behind --, or in a file with --cmd FILE")
    if script is None:
        _require_words(command)
    console = make_console(options)
    subject = _subject(recipe, script, acceptance, command, options)
    observations = room.examine_launch(subject, is_started=go)
    answer = answers.describe_preflight(
        observations, subject, verbose=bool(options["verbose"]), width=screen_width(console.columns)
    )  # fmt: skip
    has_failed = worst_grade(observations) == "fail"
    if go and not has_failed:
        if options["as_json"]:
            give(console, answer)
        else:
            console.note(answer.text)
        replace_process(subject.argv, room.started_environment(subject))
    console.answer(answer.text, answer.document, styles=STYLES)
    if has_failed:
        raise click.exceptions.Exit(FindingsError.exit_code)  # The report is said already.


def _require_words(command: tuple[str, ...]) -> None:
    """Refuse a command line that was quoted whole, which is one word and no program's name."""
    first, _, rest = command[0].strip().partition(" ")
    if len(command) == 1 and rest and not Path(command[0]).exists():
        raise UsageError(
            f"the command behind -- is one word with blanks in it, {first!r} and what follows",
            hint="write it without the quotes around all of it",
        )


def _subject(
    recipe: str, script: Path | None, acceptance: Path | None, command: tuple[str, ...], options: dict[str, Any]
) -> Subject:
    from toolkit.preflight import make_subject
    from toolkit.preflight.acceptance import read_acceptance

    here, text = _here(), None if script is None else _text_of(script)

    def read(environ: Mapping[str, str]) -> Launch:
        from toolkit.launch import read_command, read_command_text

        if text is None:
            return read_command(command, environ=environ, folder=here)
        return read_command_text(text, environ=environ, folder=here, arguments=command)

    wanted = read_acceptance(acceptance)
    overlay, misfit = _overlay(recipe, options)
    return make_subject(
        read, environ=os.environ, folder=here, overlay=overlay, interpreter=interpreter_of(options),
        acceptance=wanted, misfit=misfit, started=() if script is None else ("bash", os.fspath(script), *command),
    )  # fmt: skip


def _overlay(recipe: str, options: dict[str, Any]) -> tuple[Overlay, tuple[str, str] | None]:
    """Return the recipe's overlay, and why it does not fit the interpreter, if it does not."""
    from toolkit import current

    try:
        return checked_overlay(recipe, options), None
    except (ContractMismatchError, TargetError) as fault:
        folder = current.recipe_folder(project_of(options), recipe)
        return current.open_current(folder), (fault.message, fault.hint or "name another interpreter with --python")


def _text_of(script: Path) -> str:
    try:
        return script.read_bytes().decode("utf-8", errors="replace")
    except OSError as fault:
        raise UsageError(f"cannot read {script}: {fault.strerror}", hint="name a file with --cmd FILE") from fault


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as fault:
        raise UsageError("the current folder is no longer there", hint="change to one that is") from fault
