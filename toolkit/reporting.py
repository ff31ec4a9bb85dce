"""`toolkit report`: the account of the current overlay as a page, as Markdown or as JUnit XML."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from toolkit.errors import UsageError
from toolkit.options import common_options, give, make_console, project_of, recipe_option, require_recipe

if TYPE_CHECKING:
    from toolkit.current import RecipeFolder
    from toolkit.page import Account
    from toolkit.project import Project

Format = Literal["html", "markdown", "junit"]

FORMATS: tuple[Format, ...] = ("html", "markdown", "junit")
ENDINGS: dict[str, Format] = {".md": "markdown", ".markdown": "markdown", ".xml": "junit"}
NAMES: dict[Format, str] = {"html": "report.html", "markdown": "report.md", "junit": "report.xml"}
"""What a report is called in the overlay's own folder."""


@click.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file; in the overlay's folder if not given.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="By the file's ending (.md, .xml) if not given.")
@click.option("--python-tag", help="With --platform: the overlay that was built for another target.")
@click.option("--platform", help="With --python-tag: such as manylinux_2_28_aarch64.")
@click.option("--full", is_flag=True, help="With Markdown: diffs, generated code and every value too.")
@recipe_option
@common_options
def report(
    recipe: str,
    output: Path | None,
    form: Format | None,
    python_tag: str | None,
    platform: str | None,
    full: bool,
    **options: Any,
) -> None:
    """Write what the current overlay is and what its proof shows: one page that needs nothing else.

    \b
    Example:  toolkit report --recipe dsv4-dvm-release -o report.html
              toolkit report --format markdown -o report.md
              toolkit report -o report.xml --json
    """
    from toolkit import answers, current
    from toolkit.account import facts_document

    console, project = make_console(options), project_of(options)
    chosen: Format = form or ENDINGS.get(output.suffix.lower() if output else "", "html")
    if full and chosen != "markdown":
        raise UsageError("--full is for Markdown only", hint="add --format markdown, or leave it out: a page is whole")
    folder = current.recipe_folder(project, recipe, other_target=_target(python_tag, platform))
    account = _gather(folder, recipe, project, is_own=python_tag is None)
    file = output or folder.path / NAMES[chosen]
    _write(account, chosen, output, folder, is_full=full)
    facts = {**facts_document(account), "report": str(file), "format": chosen, "bytes": file.stat().st_size}
    give(console, answers.Answer(text=f"report: {file}", document=facts))


def _gather(folder: RecipeFolder, recipe: str, project: Project, *, is_own: bool) -> Account:
    from toolkit import current
    from toolkit.account import gather_account

    if folder.current() is None:
        require_recipe(recipe, project)
    facts = current.facts_of(project, folder, recipe, sys.executable, os.environ)
    current.require_own(folder, facts)
    generation = current.require_generation(folder)
    stale = current.changed_since(folder, facts) if is_own else None
    notices = [f"{stale} was changed after the overlay was built: this is about the overlay as it was built"]
    return gather_account(generation, project=project, recipe=recipe, notices=notices if stale else [])


def _write(account: Account, form: Format, output: Path | None, folder: RecipeFolder, *, is_full: bool) -> None:
    """Write the report where it was asked for, or beside the proof and linked from the recipe's folder."""
    from toolkit import prove
    from toolkit.files import write_atomic
    from toolkit.page import render_brief, render_html, render_markdown

    place = _require_replaceable(output, account.overlay.root) if output else account.overlay.root / NAMES[form]
    if form == "junit":
        prove.write_junit(account.proof, place)
    else:
        render = render_html if form == "html" else render_markdown if is_full else render_brief
        write_atomic(place, render(account))
    if output is None:
        folder.link_to_current(NAMES[form])


def _require_replaceable(output: Path, overlay: Path) -> Path:
    """Return the place of a report; UsageError for what a file must not take the place of."""
    if output.name not in NAMES.values() and output.resolve().is_relative_to(overlay.resolve()):
        raise UsageError(f"{output} is a place of the overlay's own", hint="name a file outside it with -o")
    if output.exists() and not output.is_file():
        kind = "a folder" if output.is_dir() else "no regular file"
        raise UsageError(f"{output} is {kind}", hint="name a file with -o, such as report.html")
    above = next(parent for parent in output.absolute().parents if parent.exists())
    if not above.is_dir():
        raise UsageError(f"{above} is no folder", hint="name a file in a folder with -o, such as report.html")
    return output


def _target(python_tag: str | None, platform: str | None) -> str | None:
    if (python_tag is None) != (platform is None):
        raise UsageError(
            "--python-tag and --platform name another target together", hint="give both, or neither for this machine's"
        )
    return None if python_tag is None else f"{python_tag}-{platform}"
