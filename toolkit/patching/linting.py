"""`toolkit patch lint`."""

from __future__ import annotations

from typing import Any

import click

from toolkit.errors import FindingsError, UsageError
from toolkit.options import common_options, give, make_console, means_of, network_options, project_of
from toolkit.patching.choosing import chosen_series, complete_series


@click.command("lint")
@click.option(
    "--series", "names", multiple=True, metavar="COMPONENT/LINE", shell_complete=complete_series,
    help="Only this folder below patches/; may be given again. All of them if not given.",
)  # fmt: skip
@network_options
@common_options
def patch_lint(names: tuple[str, ...], **options: Any) -> None:
    """Find what is wrong with the patches by themselves, all of it at once.

    Headers, trailers, order, white space, hunks and patches without effect, Python that does not compile, witnesses
    that are missing, and files that git would write otherwise. Python is compiled on a covered release, fetched through
    pip if need be, or on a commit that is on this machine already.

    \b
    Example:  toolkit patch lint
              toolkit patch lint --series torch_npu/2.13 --json
    """
    from toolkit.patching import answers_linting as answers
    from toolkit.upkeep.lint import lint_series

    console, project = make_console(options), project_of(options)
    chosen = [chosen_series(project, name) for name in dict.fromkeys(names)] or project.series_names()
    if not chosen:
        raise UsageError("there is no series", hint=f"expected folders <component>/<line> in {project.patches[0]}")
    reports = lint_series(chosen, project, means_of(project, options), console)
    give(console, answers.describe_lint(reports))
    if answers.count_faults(reports):
        if options["as_json"]:  # The document is the report; a second one would spoil it.
            raise click.exceptions.Exit(FindingsError.exit_code)
        raise FindingsError(
            answers.describe_count(reports), hint="mend the files by hand, or with `toolkit patch edit` and `refresh`"
        )
