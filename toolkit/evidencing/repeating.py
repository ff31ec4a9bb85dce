"""`toolkit evidence repeat`: run a command several times and say what of its results is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from toolkit.errors import FindingsError
from toolkit.evidencing.commanding import SETTINGS, command_options, current_folder, environment_of
from toolkit.options import give, interpreter_of, make_console, project_of

READING_LIMIT = 3600.0
"""Seconds that reading what all runs have saved may take."""


@click.command("repeat", context_settings=SETTINGS)
@click.option("-n", "times", default=3, show_default=True, type=click.IntRange(2, 1000), help="How many runs.")
@click.option(
    "--hashes", metavar="REGEX", help="How a printed hash looks: two groups, name and hash, searched in each line."
)
@click.option(
    "--tensors", metavar="GLOB", multiple=True,
    help="Compare the tensors in these files, which each run saves anew; may be given again.",
)  # fmt: skip
@click.option("--keep-caches", is_flag=True, help="With the compiler caches that there are, not new ones in each run.")
@command_options
def evidence_repeat(
    command: tuple[str, ...], times: int, hashes: str | None, tensors: tuple[str, ...], keep_caches: bool,
    env_of: str | None, host: bool, timeout: float | None, keep: Path | None, **options: Any,
) -> None:  # fmt: skip
    """Run a command several times in fresh processes; say which hashes and tensors are the same every time.

    It runs in the current folder with your environment and with new compiler caches each time. Compared are lines
    such as `name: <sha256>` in what it prints, and with --tensors what it saves: torch.save, .npy, .safetensors. The
    exit code is 23 where something is not the same in every run.

    \b
    Example:  toolkit evidence repeat -- python train.py --steps 10
              toolkit evidence repeat -n 5 --tensors 'out/*.pt' -- torchrun train.py
    """
    from toolkit import repeats
    from toolkit.evidencing import answers_repeating as answers

    console, project = make_console(options), project_of(options)
    asked = repeats.Asked(
        argv=command, times=times, cwd=current_folder(), tensors=tensors,
        hashes=repeats.compile_pattern(hashes) if hashes is not None else None, own_caches=not keep_caches,
        environ=environment_of(env_of, host=host, options=options), timeout=timeout,
        keep=keep.absolute() if keep else None,
    )  # fmt: skip
    reading = repeats.Reading(
        interpreter=interpreter_of(options), verify=project.verify, time_limit=READING_LIMIT
    )  # fmt: skip
    found = repeats.repeat(asked, reading, lambda text: console.stage("repeat", text))
    give(console, answers.describe_repetition(found))
    if count := len(found.unstable):
        if options["as_json"]:  # The document is the report; a second one would spoil it.
            raise click.exceptions.Exit(FindingsError.exit_code)
        raise FindingsError(
            f"{count} of {len(found.values)} values are not the same in every run, as listed",
            hint=f"what the runs have printed and saved is in {found.kept}",
        )
