"""`toolkit patch list`, `show` and `status`: nothing is changed by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from toolkit.errors import FindingsError, UsageError
from toolkit.options import common_options, complete_recipe, give, make_console, means_of, network_options, project_of
from toolkit.patching.choosing import chosen_series, series_option
from toolkit.project import DEFAULT_RECIPE

if TYPE_CHECKING:
    from toolkit.project import Project


@click.command("list")
@series_option
@common_options
def patch_list(series: str | None, **options: Any) -> None:
    """List the series with their patches: how each stands with upstream, its witness and its files.

    \b
    Example:  toolkit patch list
              toolkit patch list --series torch_npu/2.13 --json
    """
    from toolkit.patching import answers_looking as answers
    from toolkit.upkeep.hygiene import read_series

    console, project = make_console(options), project_of(options)
    names = [chosen_series(project, series)] if series else _all_series(project)
    give(console, answers.describe_list([read_series(project, name) for name in names]))


@click.command("show")
@click.argument("patch")
@series_option
@click.option(
    "--recipe", default=DEFAULT_RECIPE, envvar="TOOLKIT_RECIPE", show_default=True, shell_complete=complete_recipe,
    help="Whose series is meant where --series is not given.",
)  # fmt: skip
@common_options
def patch_show(patch: str, series: str | None, recipe: str, **options: Any) -> None:
    """Show all that is known of one patch. PATCH is its number or its name.

    \b
    Example:  toolkit patch show 2 --series torch_npu/2.13
              toolkit patch show 0003-user-fallbacks-last --json
    """
    from toolkit.patching import answers_looking as answers
    from toolkit.upkeep.hygiene import read_series
    from toolkit.upkeep.viewing import choose_patch, view_patch

    console, project = make_console(options), project_of(options)
    one = read_series(project, chosen_series(project, series, recipe))
    give(console, answers.describe_patch(view_patch(one, choose_patch(one, patch), project)))


@click.command("status")
@series_option
@click.option(
    "--recipe", shell_complete=complete_recipe, help="Only the series of this recipe, on the bases that its lock names."
)
@network_options
@common_options
def patch_status(series: str | None, recipe: str | None, **options: Any) -> None:
    """Say how every patch stands, and what is not in order in the patches folder.

    A series is judged on its home, the first base that its series.toml covers; with --recipe on the base that the
    recipe has locked. The exit code is 23 where a patch conflicts or is upstream, in whole and not accepted by the
    recipe or in part, where a base cannot be had, or where something is not in order.

    \b
    Example:  toolkit patch status
              toolkit patch status --recipe dsv4-dvm-release --offline
    """
    from toolkit.patching import answers_looking as answers
    from toolkit.upkeep.status import series_status

    if series and recipe:
        raise UsageError("--series and --recipe are two ways to choose", hint="give one of them")
    console, project = make_console(options), project_of(options)
    chosen = chosen_series(project, series) if series else None
    found = series_status(project, means=means_of(project, options), watcher=console, recipe=recipe, series=chosen)
    give(console, answers.describe_status(found))
    if count := len(found.findings):
        if options["as_json"]:  # The document is the report; a second one would spoil it.
            raise click.exceptions.Exit(FindingsError.exit_code)
        raise FindingsError(
            f"{count} thing{'s' * (count > 1)} to look at or to mend, as listed",
            hint="nothing was changed; `toolkit patch show` shows a patch, `edit`, `rebase` and `retire` change it",
        )


def _all_series(project: Project) -> list[str]:
    names = project.series_names()
    if not names:
        raise UsageError("there is no series", hint=f"expected folders <component>/<line> in {project.patches[0]}")
    return names
