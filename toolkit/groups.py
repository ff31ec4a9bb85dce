"""The commands that come in groups: the key, the store, the recipes, and what failed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from toolkit.options import (
    common_options,
    complete_recipe,
    give,
    make_console,
    means_of,
    plan_of,
    project_of,
    recipe_option,
    store_of,
    target_options,
)
from toolkit.project import DEFAULT_RECIPE

if TYPE_CHECKING:
    from toolkit.model import Key


@click.group(invoke_without_command=True)
@recipe_option
@target_options
@common_options
@click.pass_context
def key(context: click.Context, /, recipe: str, **options: Any) -> None:
    """Print the digest over everything that goes into the overlay; nothing is downloaded for it.

    \b
    Example:  toolkit key --recipe dsv4-dvm-release
              toolkit key explain
    """
    if context.invoked_subcommand is None:
        _show_key(recipe, options, explain=False)
    elif any(context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in context.params):
        raise click.UsageError(f"options of `{context.invoked_subcommand}` go behind it", context)


@key.command("explain")
@recipe_option
@target_options
@common_options
def key_explain(recipe: str, **options: Any) -> None:
    """List the inputs of the key.

    \b
    Example:  toolkit key explain --recipe dsv4-dvm-release --json > key.json
    """
    _show_key(recipe, options, explain=True)


@key.command("diff")
@click.argument("old")
@click.argument("new")
@target_options
@common_options
def key_diff(old: str, new: str, **options: Any) -> None:
    """Say which inputs differ between two keys; the exit code is 1 where any does.

    Each of OLD and NEW is a recipe's name or .toml file, the file of a `toolkit key explain --json`, or an overlay's
    folder.

    \b
    Example:  toolkit key diff key.json dsv4-dvm-release
    """
    from toolkit import answers, keyfile
    from toolkit.model import key_difference

    def read(name: str) -> Key:
        found = None if name.endswith(".toml") else keyfile.read_key(Path(name))
        return found or plan_of(project_of(options), name, options).key

    difference = key_difference(read(old), read(new))
    give(make_console(options), answers.describe_key_difference(difference))
    if difference:
        raise click.exceptions.Exit(1)


@click.group()
def cache() -> None:
    """Look at, clean, export and import the store.

    \b
    Example:  toolkit cache export toolkit-cache.tar
    """


@cache.command("list")
@common_options
def cache_list(**options: Any) -> None:
    """List the store's entries, least recently used first.

    \b
    Example:  toolkit cache list --json
    """
    from toolkit import answers

    store = store_of(options)
    give(make_console(options), answers.describe_entries(store.root, store.entries()))


@cache.command("gc")
@click.option("--days", default=30.0, show_default=True, type=click.FloatRange(0), help="Keep what was used since.")
@common_options
def cache_gc(days: float, **options: Any) -> None:
    """Remove entries that were not used lately, and what killed runs left.

    \b
    Example:  toolkit cache gc --days 7
    """
    from toolkit import answers

    store = store_of(options)
    give(make_console(options), answers.describe_freed(store.root, store.collect(older_than=days * 86400)))


@cache.command("export")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@recipe_option
@target_options
@common_options
def cache_export(file: Path, recipe: str, **options: Any) -> None:
    """Write a recipe's wheels, lock and manifest to one file that a CI cache can keep.

    \b
    Example:  toolkit cache export toolkit-cache.tar --recipe dsv4-dvm-release
    """
    from toolkit import answers, pipeline

    project = project_of(options)
    plan = plan_of(project, recipe, options)
    index = pipeline.export_cache(plan, means_of(project, options), file)
    give(make_console(options), answers.describe_bundle(file, index.recipe, index.key, entries=len(index.entries)))


@cache.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@common_options
def cache_import(file: Path, **options: Any) -> None:
    """Bring an exported file's wheels into the store, every hash checked.

    \b
    Example:  toolkit cache import toolkit-cache.tar
    """
    from toolkit import answers, bundle

    index, new = bundle.import_bundle(store_of(options), file)
    made = answers.describe_bundle(file, index.recipe, index.key, entries=len(index.entries), new=new)
    give(make_console(options), made)


@click.group("recipe")
def recipe_group() -> None:
    """Look at the recipes.

    \b
    Example:  toolkit recipe list
    """


@recipe_group.command("list")
@common_options
def recipe_list(**options: Any) -> None:
    """List the recipes with what each is for.

    \b
    Example:  toolkit recipe list
    """
    from toolkit import answers, plan, recipe

    project = project_of(options)
    found = [plan.read_recipe(project, name) for name in recipe.recipe_names(project.recipes)]
    give(make_console(options), answers.describe_recipes(found))


@recipe_group.command("show")
@click.argument("name", default=DEFAULT_RECIPE, shell_complete=complete_recipe)
@common_options
def recipe_show(name: str, **options: Any) -> None:
    """Show one recipe with `extends` resolved, its pins and its patches.

    \b
    Example:  toolkit recipe show dsv4-dvm-release --json
    """
    from toolkit import answers, plan

    project = project_of(options)
    shown = plan.read_recipe(project, name)
    series = [plan.read_series(project, part) for part in shown.components]
    give(make_console(options), answers.describe_recipe(shown, plan.standing_lock(project, shown), series))


@click.group()
def debug() -> None:
    """Look into what failed.

    \b
    Example:  toolkit debug shell --recipe dsv4-dvm
    """


@debug.command("shell")
@click.option("--component", help="Whose build; may be left out where the recipe has one that failed.")
@recipe_option
@common_options
def debug_shell(recipe: str, component: str | None, **options: Any) -> None:
    """Open a shell in a failed build's kept folder, in the environment that the build had.

    \b
    Example:  toolkit debug shell --recipe dsv4-dvm --component torch_npu
    """
    from toolkit import build as room
    from toolkit import current, lanes
    from toolkit.process import replace_process

    project = project_of(options)
    work = lanes.kept_build(component, current.recipe_folder(project, recipe).path)
    console = make_console(options)
    console.note(f"the failed build of {recipe}, in {work}; its logs are in {work / 'logs'}")
    console.note(f"it ran: {room.build_words(work)}; `git diff` shows what you change, `git diff --cached` the patches")
    argv, environ, folder = room.shell_command(work, os.environ)
    os.chdir(folder)
    replace_process(argv, environ)


def _show_key(recipe: str, options: dict[str, Any], *, explain: bool) -> None:
    from toolkit import answers

    plan = plan_of(project_of(options), recipe, options)
    give(make_console(options), answers.describe_key(plan.key, explain=explain))
