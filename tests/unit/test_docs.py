"""The generated pages are what the code says, and the pages name no command or file that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.generate_docs import DOCS, generated_pages
from toolkit.cli import cli

ROOT = DOCS.parent
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


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
    assert shown - prose - set(cli.commands) == set()


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_command_has_an_example_in_its_help(name: str) -> None:
    command = cli.commands[name]
    for one in [command, *getattr(command, "commands", {}).values()]:
        assert "Example:" in (one.help or ""), one.name
