"""The generated pages are what the code says, and the pages name no command or file that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from tests.generate_docs import DOCS, generated_pages
from toolkit.cli import cli
from toolkit.patching import MODULES

ROOT = DOCS.parent
CONTEXT = click.Context(cli)
COMMANDS = cli.list_commands(CONTEXT)
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("name", sorted(generated_pages()))
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == generated_pages()[name], "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_a_page_shows_exist(page: Path) -> None:
    shown = set(re.findall(r"(?:^|[`/ ])toolkit ([a-z]+)\b", page.read_text(encoding="utf-8"), flags=re.MULTILINE))
    prose = {"turns", "checkout", "is", "will", "that", "and", "s", "has", "or"}
    assert shown - prose - set(COMMANDS) == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_patch_commands_that_a_page_shows_exist(page: Path) -> None:
    shown = set(re.findall(r"toolkit patch ([a-z]+)\b", page.read_text(encoding="utf-8")))
    assert shown - set(MODULES) == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_in_its_help(name: str) -> None:
    command = cli.get_command(CONTEXT, name)
    assert command is not None
    for one in [command, *_inner_commands(command)]:
        assert "Example:" in (one.help or ""), one.name


def test_the_matrix_has_every_patch_and_what_its_witness_said_on_the_line_s_own_base() -> None:
    page = (DOCS / "patch-matrix.md").read_text(encoding="utf-8").replace("\\_", "_")
    rows = page.splitlines()
    for folder in sorted(path for path in (ROOT / "patches").glob("*/*") if (path / "series.toml").is_file()):
        start = next(at for at, row in enumerate(rows) if f"**{folder.parent.name}/{folder.name}**" in row)
        names = sorted(path.stem for path in folder.glob("*.patch"))
        shown = [row.split(" | ")[0].removeprefix("| ") for row in rows[start + 1 : start + 1 + len(names)]]
        assert shown == names, "generate it again, as docs/patches.md says"
        assert all("applies<br>needed, works" in row for row in rows[start + 1 : start + 1 + len(names)])


def test_the_page_on_patches_shows_every_patch_command() -> None:
    page = (DOCS / "patches.md").read_text(encoding="utf-8")
    assert [name for name in MODULES if not re.search(rf"`?\b{name}\b", page)] == []


def _inner_commands(command: click.Command) -> list[click.Command]:
    if not isinstance(command, click.Group):
        return []
    context = click.Context(command)
    found = [command.get_command(context, name) for name in command.list_commands(context)]
    return [one for one in found if one is not None]
