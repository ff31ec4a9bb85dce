"""`toolkit lint`: static checks of code that is going to be compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from toolkit.errors import FindingsError
from toolkit.options import common_options, give, make_console


@click.group()
def lint() -> None:
    """Find in a code base, without running it, what will not compile safely.

    \b
    Example:  toolkit lint model torchtitan_npu
    """


@lint.command("model")
@click.argument(
    "places", nargs=-1, required=True, metavar="PATH…", callback=lambda _c, _p, words: _paths(words)
)  # fmt: skip
@click.option("--select", multiple=True, metavar="ID", help="Only this check; may be given again.")
@click.option("--ignore", multiple=True, metavar="ID", help="All but this check; may be given again.")
@common_options
def lint_model(places: tuple[Path, ...], select: tuple[str, ...], ignore: tuple[str, ...], **options: Any) -> None:
    """Check the boundary of custom operators: forward paths, autograd functions, fake functions, set-up.

    Each PATH is a file or a folder that is searched for `.py` files. They are parsed, never imported. A comment
    `# toolkit: allow[ID] reason` on the line, or alone above it, allows a finding. docs/lint.md tells each check. The
    exit code is 23 where there are findings, or files that could not be read.

    \b
    Example:  toolkit lint model torchtitan_npu
              toolkit lint model src/models src/ops --ignore hand-written-rms-norm
              toolkit lint model train.py --select determinism-after-compile --json
    """
    from toolkit import lint as checks
    from toolkit.diagnosing import answers_code as answers
    from toolkit.diagnosing.wrapping import screen_width

    console = make_console(options)
    report = checks.lint_model(places, select=select, ignore=ignore)
    give(console, answers.describe_lint(report, verbose=bool(options["verbose"]), width=screen_width(console.columns)))
    if report.findings or report.skipped:
        if options["as_json"]:  # The document is the report; a second one would spoil it.
            raise click.exceptions.Exit(FindingsError.exit_code)
        raise FindingsError(answers.describe_outcome(report), hint=answers.hint_of(report))


def _paths(words: tuple[str, ...]) -> tuple[Path, ...]:
    """Return the places; an empty word is none, whatever variable it came from."""
    if not all(words):
        raise click.BadParameter("a PATH is empty: name the folder of the code base, or its files")
    return tuple(map(Path, words))
