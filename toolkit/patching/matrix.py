"""`toolkit patch matrix`: every patch against every base."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from toolkit.errors import FindingsError
from toolkit.options import common_options, give, make_console, means_of, project_of, work_options
from toolkit.patching.choosing import chosen_series, complete_series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.report import Console
    from toolkit.upkeep.matrix import Matrix
    from toolkit.work import Means

Format = Literal["console", "markdown", "html"]
FORMATS: tuple[Format, ...] = ("console", "markdown", "html")


@click.command("matrix")
@click.option(
    "--against", multiple=True, metavar="BASE",
    help="A release NAME==VERSION, or git:URL@REF with an address or a folder; may be given again. If none is given: "
    "the newest release of every upstream line, from the oldest that has patches.",
)  # fmt: skip
@click.option(
    "--series", "names", multiple=True, metavar="COMPONENT/LINE", shell_complete=complete_series,
    help="A folder below patches/; may be given again. All if none is.",
)  # fmt: skip
@click.option("--witness", is_flag=True, help="Run each patch's witness on every base that can be loaded here.")
@click.option(
    "--python", "interpreters", multiple=True, type=click.Path(path_type=Path),
    help="An interpreter for witnesses, with a torch in it; may be given again. The one that runs toolkit if none is.",
)  # fmt: skip
@click.option("--format", "form", type=click.Choice(FORMATS), default="console", show_default=True, help="For whom.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write it to a file.")
@work_options
@common_options
def patch_matrix(
    against: tuple[str, ...],
    names: tuple[str, ...],
    witness: bool,
    interpreters: tuple[Path, ...],
    form: Format,
    output: Path | None,
    **options: Any,
) -> None:
    """Say how every patch stands to every base, and with --witness whether it is needed there and works.

    Only the files that the patches touch are read: from a wheel without unpacking it, from git without a checkout.
    A base that is asked for must be there; of the usual ones, a cell says why it is empty. The exit code is 23 where a
    person has to look at a base that a series is for.

    \b
    Example:  toolkit patch matrix
              toolkit patch matrix --against torch_npu==2.14.0 --series torch_npu/2.13 -v
              toolkit patch matrix --witness --python .venv-torch-2.12.0/bin/python --format html --output matrix.html
    """
    console, project = make_console(options), project_of(options)
    chosen = [chosen_series(project, name) for name in dict.fromkeys(names)] or project.series_names()
    matrix = _fill(chosen, against, interpreters if witness else None, means_of(project, options), console)
    _show(matrix, form, output, console, options)
    if matrix.findings and options["as_json"]:
        raise click.exceptions.Exit(FindingsError.exit_code)
    if count := len(matrix.findings):
        raise FindingsError(
            f"{count} cell{'s' * (count > 1)} of the matrix must be looked at",
            details=matrix.findings, hint="`-v` shows every hunk; nothing was changed",
        )  # fmt: skip


def _fill(
    names: Sequence[str], against: Sequence[str], interpreters: Sequence[Path] | None, means: Means, console: Console
) -> Matrix:
    """Judge the series, and run the witnesses where interpreters are given: none means the one at hand."""
    from toolkit.upkeep import judging
    from toolkit.upkeep.bases import this_interpreter

    chosen = judging.read_chosen(means.project, names)
    matrix = judging.make_matrix(
        chosen, judging.choose_columns(chosen, against, means), means=means, interpreter=this_interpreter(means),
        watcher=console, is_strict=bool(against),
    )  # fmt: skip
    if interpreters is None:
        return matrix
    from toolkit.witnessing import run_witnesses

    pythons = interpreters or (Path(sys.executable),)
    return run_witnesses(matrix, chosen, interpreters=pythons, means=means, watcher=console)


def _show(matrix: Matrix, form: Format, output: Path | None, console: Console, options: dict[str, Any]) -> None:
    from toolkit.answers import Answer
    from toolkit.files import write_output
    from toolkit.patching import answers_matrix, html_matrix

    answer = answers_matrix.describe_matrix(matrix, verbose=bool(options["verbose"]))
    text = answer.text
    if form == "markdown":
        text = answers_matrix.render_markdown(matrix).rstrip("\n")
    elif form == "html":
        text = html_matrix.render_html(matrix).rstrip("\n")
    if output is not None:
        write_output(output, f"{text}\n")
        text = f"wrote {output}"
    give(console, Answer(text=text, document=answer.document))
