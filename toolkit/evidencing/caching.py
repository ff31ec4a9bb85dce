"""`toolkit evidence cachekey`: run a command with cold and warm caches and say what its cache keys do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from toolkit.errors import FindingsError
from toolkit.evidencing.commanding import SETTINGS, command_options, current_folder, environment_of
from toolkit.options import give, make_console


@click.command("cachekey", context_settings=SETTINGS)
@command_options
def evidence_cachekey(
    command: tuple[str, ...], env_of: str | None, host: bool, timeout: float | None, keep: Path | None, **options: Any
) -> None:
    """Run a command three times; say what torch.compile's cache keys do from process to process.

    The first run has a new cache, the second finds it, the third has another new one. Told are, for each graph, hit,
    miss or bypass in the FX graph cache and in AOTAutograd's, the seconds that compiling took, and where keys differ
    which part of the key's input does. It reads torch's own trace (TORCH_TRACE). The exit code is 23 where a graph is
    not found in the warm cache, or has not the same key in every run.

    \b
    Example:  toolkit evidence cachekey -- python train.py --steps 1
              toolkit evidence cachekey --env-of dsv4-dvm-release --host -- python graph.py
    """
    from toolkit import cachekeys
    from toolkit.evidencing import answers_caching as answers

    console = make_console(options)
    asked = cachekeys.Asked(
        argv=command,
        cwd=current_folder(),
        environ=environment_of(env_of, host=host, options=options),
        timeout=timeout,
        keep=keep.absolute() if keep else None,
    )
    found = cachekeys.record_keys(asked, lambda text: console.stage("cachekey", text))
    give(console, answers.describe_recording(found))
    if count := len(found.findings):
        if options["as_json"]:  # The document is the report; a second one would spoil it.
            raise click.exceptions.Exit(FindingsError.exit_code)
        raise FindingsError(
            f"{count} of {len(found.graphs)} lookups are not as they should be, as listed",
            hint="--json has the whole keys, and every part of their input that differs",
        )
