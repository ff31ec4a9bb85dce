"""The options that commands share, and the values that are made of them."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from toolkit.errors import ToolkitError, UsageError
from toolkit.project import DEFAULT_RECIPE, find_project

if TYPE_CHECKING:
    from toolkit.answers import Answer
    from toolkit.model import Overlay
    from toolkit.plan import Plan
    from toolkit.project import Project
    from toolkit.report import Console
    from toolkit.store import Store
    from toolkit.work import Means

log = logging.getLogger(__name__)

SANDBOX_MODES = ("auto", "require", "off")

MEANS = {
    "offline": "offline", "time_limit": "time_limit", "jobs": "check_jobs", "build_jobs": "jobs", "sandbox": "sandbox",
}  # fmt: skip
"""What is handed on to the stages, by the name of its option."""

LONGEST = 86400
"""The most seconds that a checking process may be given: a day."""

Command = TypeVar("Command", bound=Callable[..., Any])


def complete_recipe(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    from toolkit.recipe import recipe_names

    try:
        project = find_project(start=_here(), environ=os.environ)
    except ToolkitError:
        return []
    return [name for name in recipe_names(project.recipes) if name.startswith(typed)]


def common_options(command: Command) -> Command:
    """Add what every command takes."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON document on standard output."),
        click.option("--project", type=click.Path(path_type=Path), envvar="TOOLKIT_PROJECT", help="Checkout to use."),
        click.option("--overlays", type=click.Path(path_type=Path), help="Folder of the built overlays."),
        click.option("--store", type=click.Path(path_type=Path), help="Folder of the store (TOOLKIT_STORE)."),
        click.option("-v", "--verbose", count=True, help="Show more; twice shows every command that is run."),
    ):
        command = option(command)
    return command


def recipe_option(command: Command) -> Command:
    """Add --recipe."""
    return click.option(
        "--recipe", default=DEFAULT_RECIPE, show_default=True, envvar="TOOLKIT_RECIPE", shell_complete=complete_recipe,
        help="A recipe's name, or the path of its .toml file.",
    )(command)  # fmt: skip


def interpreter_option(command: Command) -> Command:
    """Add --python."""
    return click.option(
        "--python", "interpreter", type=click.Path(path_type=Path), envvar="TOOLKIT_PYTHON",
        help="The interpreter that will import the overlay; the one that runs toolkit if not given.",
    )(command)  # fmt: skip


def target_options(command: Command) -> Command:
    """Add what says for which interpreter and machine."""
    for option in (
        click.option("--platform", help="Build for this platform tag, such as manylinux_2_28_aarch64."),
        click.option("--python-tag", help="Build for this interpreter tag, such as cp312."),
        interpreter_option,
    ):
        command = option(command)
    return command


def junit_option(command: Command) -> Command:
    """Add --junit."""
    return click.option(
        "--junit", type=click.Path(path_type=Path, dir_okay=False), help="Write the proof as JUnit XML too."
    )(command)


def work_options(command: Command) -> Command:
    """Add what says how a build or proof goes about its work."""
    for option in (
        click.option("--check-jobs", default=2, show_default=True, type=click.IntRange(1), help="Checks side by side."),
        click.option(
            "--time-limit",
            default=300.0,
            show_default=True,
            callback=_require_seconds,
            help="Seconds that a checking process gets.",
        ),
        click.option(
            "--sandbox",
            default="auto",
            show_default=True,
            type=click.Choice(SANDBOX_MODES),
            help="Shut a source build off from the network and from other folders: where possible, always, never.",
        ),
        click.option(
            "--jobs", type=click.IntRange(1), help="Compilers side by side; by cores and memory if not given."
        ),
    ):
        command = option(command)
    return network_options(command)


def network_options(command: Command) -> Command:
    """Add what says where bases are fetched from."""
    for option in (
        click.option(
            "--mirror", "mirrors", multiple=True, metavar="NAME=URL", callback=_parse_mirrors,
            help="Fetch a git repository from there first (TOOLKIT_MIRROR_NAME); may be given again.",
        ),
        click.option("--offline", is_flag=True, help="Use the store only."),
    ):  # fmt: skip
        command = option(command)
    return command


def _parse_mirrors(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Turn `--mirror NAME=URL` into the variables that say the same; one for a name given twice has both."""
    found: dict[str, str] = {}
    for value in values:
        from toolkit.mirrors import variable_of, without_credentials

        name, equals, address = value.partition("=")
        if not (name and equals and address):
            raise click.BadParameter(f"{without_credentials(value)!r} is not NAME=URL.")
        if os.path.exists(address):  # As an address it may hold blanks, which separate several.
            address = Path(address).absolute().as_uri()
        variable = variable_of(name)
        found[variable] = f"{found[variable]}\n{address}" if variable in found else address
    return found


def _require_seconds(_context: click.Context, _parameter: click.Parameter, value: float) -> float:
    """Refuse what no clock can count: a range of click's lets NaN and infinity through."""
    if not 0 < value <= LONGEST:
        raise click.BadParameter(f"{value:g} is not in the range 0<x<={LONGEST}.")
    return value


# --- values from options -----------------------------------------------------------------------------------------


def make_console(options: dict[str, Any]) -> Console:
    from toolkit.report import Console

    console = Console(stdout=sys.stdout, stderr=sys.stderr, environ=os.environ, json_mode=options["as_json"])
    level = {0: logging.WARNING, 1: logging.INFO}.get(options["verbose"], logging.DEBUG)
    logging.basicConfig(level=level, handlers=[console.logging_handler()], force=True)
    return console


def give(console: Console, answer: Answer) -> None:
    console.answer(answer.text, answer.document)


def project_of(options: dict[str, Any]) -> Project:
    return find_project(start=_here(), environ=os.environ, root=options["project"], overlays=options["overlays"])


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as fault:
        raise UsageError("the current folder is no longer there", hint="change to one that is") from fault


def store_of(options: dict[str, Any]) -> Store:
    from toolkit.store import Store, default_store

    chosen: Path | None = options["store"]
    root = chosen.absolute() if chosen else default_store(os.environ)
    if not str(root).isprintable():
        raise UsageError(
            f"the store {str(root)!r} has control characters in its name", hint="choose another with --store DIR"
        )
    return Store(root)


def means_of(project: Project, options: dict[str, Any]) -> Means:
    from toolkit.work import Means

    given = {name: options[option] for name, option in MEANS.items() if option in options}
    return Means(
        project=project,
        store=store_of(options),
        environ={**os.environ, **options.get("mirrors", {})},
        **given,
    )


def plan_of(project: Project, recipe: str, options: dict[str, Any]) -> Plan:
    from toolkit.plan import make_plan

    made = make_plan(
        project=project,
        name=recipe,
        interpreter=interpreter_of(options),
        environ=os.environ,
        python_tag=options.get("python_tag"),
        platform=options.get("platform"),
    )
    if options.get("mirrors"):
        _warn_of_unknown_mirrors(options["mirrors"], made)
    return made


def _warn_of_unknown_mirrors(mirrors: dict[str, str], plan: Plan) -> None:
    """Warn of mirrors for what the recipe does not name; submodules have names that only their repository knows."""
    from toolkit.mirrors import repository_name, variable_of
    from toolkit.schema import did_you_mean

    names = [part.component.name for part in plan.components]
    names += [repository_name(url) for part in plan.components for url in getattr(part.component.base, "urls", ())]
    known = {variable_of(name): name for name in names}
    for variable in mirrors.keys() - known.keys():
        near = did_you_mean(variable, known)
        log.warning("no component is called as in %s%s; it counts for a submodule of that name only", variable, near)


def names_target(options: dict[str, Any]) -> bool:
    """Whether a target is asked for by its tags, which may be one that this machine cannot load."""
    return options["python_tag"] is not None or options["platform"] is not None


def checked_overlay(recipe: str, options: dict[str, Any]) -> Overlay:
    """Return the current overlay once its files hold and it fits the interpreter."""
    from toolkit import current

    project = project_of(options)
    folder = current.recipe_folder(project, recipe)
    if folder.current() is None:
        require_recipe(recipe, project)
    interpreter = interpreter_of(options)
    facts = current.facts_of(project, folder, recipe, str(interpreter), os.environ)
    current.require_own(folder, facts)
    overlay = current.open_current(folder)
    if not current.unchanged(folder, facts):
        from toolkit import target

        found = target.inspect_interpreter(interpreter, env=os.environ)
        target.require_fit(overlay, found, os.environ)
        make_console(options)
        if stale := current.changed_since(folder, facts):
            log.warning(
                "%s was changed after the overlay was built; take it in with `toolkit build --recipe %s`", stale, recipe
            )
    return overlay


def warn_of_extensions(overlay: Overlay, options: dict[str, Any]) -> None:
    """Warn of what a killed compiler has left among an overlay's extensions, and say what to do about it."""
    from toolkit.extensions import describe_findings

    if lines := describe_findings(overlay.root):
        make_console(options)
    for line in lines:
        log.warning("%s", line)


def require_recipe(recipe: str, project: Project) -> None:
    """Raise UsageError for a name that no recipe has: what was never built may have been misspelt."""
    from toolkit.recipe import find_recipe

    find_recipe(recipe, project.recipes)


def interpreter_of(options: dict[str, Any]) -> Path:
    """Return the chosen interpreter, a bare name looked up on PATH: what it meant last time says nothing now."""
    chosen: Path | None = options["interpreter"]
    if chosen is None:
        return Path(sys.executable)
    import shutil

    return Path(shutil.which(chosen) or chosen)
