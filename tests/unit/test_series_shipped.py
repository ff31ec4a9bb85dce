"""The series that this project ships are what a series has to be, and its recipes take them as they may."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from toolkit.model import Patch, Recipe
from toolkit.plan import read_recipe, require_covered
from toolkit.project import find_project
from toolkit.recipe import recipe_names
from toolkit.series import Line, load_series, read_line
from toolkit.series.wording import LINK

PROJECT = find_project(start=Path(__file__).parents[2], environ={})
SERIES = PROJECT.series_names()
RECIPES = recipe_names(PROJECT.recipes)
COMPONENTS = sorted({name.split("/")[0] for name in SERIES})

NORMAL_HEAD = f"From {'0' * 40} Mon Sep 17 00:00:00 2001"
OURS = "From: toolkit authors <toolkit@example.invalid>"
OUR_DATE = "Date: Tue, 1 Sep 2026 00:00:00 +0000"


def patches_of(name: str) -> tuple[Patch, ...]:
    return load_series(PROJECT.series_folder(name), name=name).patches


def line_of(name: str) -> Line:
    return read_line(PROJECT.series_folder(name), name=name)


def recipes_with(name: str) -> list[Recipe]:
    read = [read_recipe(PROJECT, recipe) for recipe in RECIPES]
    return [recipe for recipe in read if any(part.series == name for part in recipe.components)]


@pytest.mark.parametrize("name", SERIES)
def test_a_shipped_series_is_read_without_fault(name: str) -> None:
    patches = patches_of(name)
    assert [patch.number for patch in patches] == list(range(1, len(patches) + 1))
    assert all(patch.subject and patch.body for patch in patches)


@pytest.mark.parametrize("name", SERIES)
def test_a_shipped_series_says_which_bases_it_is_for_and_where_its_upstream_is(name: str) -> None:
    line = line_of(name)
    assert line.covers
    assert line.upstream
    assert all(address.startswith("https://") for address in line.upstream)


@pytest.mark.parametrize("name", SERIES)
def test_a_shipped_series_is_in_a_recipe_whose_base_it_covers(name: str) -> None:
    recipes = recipes_with(name)
    assert recipes
    for recipe in recipes:
        for part in recipe.components:
            require_covered(PROJECT, part)


@pytest.mark.parametrize("name", SERIES)
def test_a_diagnostic_series_is_in_diagnostic_recipes_only_and_they_have_no_other(name: str) -> None:
    assert {bool(recipe.diagnostic) for recipe in recipes_with(name)} == {line_of(name).diagnostic}


@pytest.mark.parametrize("component", COMPONENTS)
def test_the_same_change_has_one_subject_and_witness_on_every_line(component: str) -> None:
    lines = [name for name in SERIES if name.startswith(f"{component}/")]
    known: dict[str, set[tuple[str, str]]] = {}
    for patch in (patch for line in lines for patch in patches_of(line)):
        known.setdefault(change_of(patch), set()).add((patch.subject, patch.witness))
    assert [name for name, said in known.items() if len(said) > 1] == []


def test_both_lines_of_torch_npu_have_the_same_changes() -> None:
    names = [[patch.name for patch in patches_of(f"torch_npu/{line}")] for line in ("2.12", "2.13")]
    assert names[0] == names[1]


def test_the_scalar_load_is_on_the_line_that_lacks_it_alone() -> None:
    """On 2.13 the load is right already; a patch there would break it, and nothing would be raised."""
    changes = {name: [change_of(patch) for patch in patches_of(name)] for name in SERIES if name.endswith("-triton")}
    only_there = set(changes["torch_npu/2.12-triton"]) - set(changes["torch_npu/2.13-triton"])
    assert only_there == {"triton-integer-index-as-a-scalar-load"}
    assert set(changes["torch_npu/2.13-triton"]) < set(changes["torch_npu/2.12-triton"])


@pytest.mark.parametrize("name", SERIES)
def test_a_release_wheel_or_an_installed_package_can_take_a_shipped_series(name: str) -> None:
    changes = [change for patch in patches_of(name) for change in patch.changes]
    assert {change.part for change in changes} == {"python"}
    assert len({change.path.split("/")[0] for change in changes}) == 1


@pytest.mark.parametrize("name", SERIES)
def test_a_shipped_patch_names_nobody_and_no_time_unless_it_was_taken_from_upstream(name: str) -> None:
    for patch in patches_of(name):
        head, author, date = patch.path.read_text(encoding="utf-8").splitlines()[:3]
        assert head == NORMAL_HEAD
        if (author, date) != (OURS, OUR_DATE):
            assert re.match(r"From: .+ <.+@.+>$", author), patch.path
            assert patch.upstream_status.startswith("Backport"), patch.path
            assert LINK.search(patch.upstream_status), patch.path


@pytest.mark.parametrize("name", SERIES)
def test_a_shipped_series_is_a_folder_of_this_checkout(name: str) -> None:
    folder = PROJECT.series_folder(name)
    assert sorted(entry.name for entry in os.scandir(folder) if entry.is_dir()) == []


def change_of(patch: Patch) -> str:
    """Return a patch's name without its number, which may be another on each line."""
    return patch.name.partition("-")[2]
