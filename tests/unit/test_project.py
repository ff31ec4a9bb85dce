"""The places of a run: a checkout's folders, and those that an installed package carries."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

import toolkit
from toolkit.errors import UsageError
from toolkit.process import run
from toolkit.project import find_checkout, find_project

ROOM = Path(toolkit.__file__).parent


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "checkout")


def make_checkout(root: Path) -> Path:
    for folder in ("recipes", "patches/torch_npu/2.13", "patches/torch_npu/2.12", "verify"):
        (root / folder).mkdir(parents=True)
    (root / "verify" / "checks.json").write_text("{}")
    return root


# --- the checkout ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("below", [".", "recipes", "patches/torch_npu"])
def test_the_checkout_at_or_above_the_start_is_found(checkout: Path, below: str) -> None:
    assert find_checkout(checkout / below) == checkout


def test_the_nearest_checkout_is_found(checkout: Path) -> None:
    inner = make_checkout(checkout / "inner")

    assert find_checkout(inner / "verify") == inner


@pytest.mark.parametrize("lacking", ["recipes", "patches"])
def test_a_folder_that_lacks_a_mark_is_no_checkout(checkout: Path, lacking: str) -> None:
    shutil.rmtree(checkout / lacking)

    assert find_checkout(checkout) is None


def test_a_relative_start_is_looked_at_from_where_it_is(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout / "recipes")

    assert find_checkout(Path()) == checkout


# --- the project -----------------------------------------------------------------------------------------------


def test_a_checkout_has_all_that_a_run_needs(checkout: Path) -> None:
    project = find_project(start=checkout / "recipes", environ={})

    assert project.root == checkout
    assert project.recipes == (checkout / "recipes",)
    assert project.patches == (checkout / "patches",)
    assert project.verify == checkout / "verify"
    assert project.overlays == checkout / "overlays"


def test_a_named_root_wins_over_the_start(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = make_checkout(tmp_path / "other")
    monkeypatch.chdir(tmp_path)

    assert find_project(start=other, environ={}, root=Path("checkout")).root == checkout


def test_a_root_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        find_project(start=tmp_path, environ={}, root=tmp_path)

    assert caught.value.message == f"{tmp_path} is no toolkit checkout"
    assert caught.value.hint == "expected folders recipes and patches there; see --project"


@pytest.mark.parametrize(
    ("environ", "overlays", "expected"),
    [
        pytest.param({}, None, "checkout/overlays", id="the checkout's"),
        pytest.param({"TOOLKIT_OVERLAYS": ""}, None, "checkout/overlays", id="an empty variable"),
        pytest.param({"TOOLKIT_OVERLAYS": "variable"}, None, "variable", id="the variable's"),
        pytest.param({"TOOLKIT_OVERLAYS": "variable"}, "option", "option", id="the option's"),
    ],
)
def test_overlays_go_where_they_are_asked_to(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    environ: dict[str, str], overlays: str | None, expected: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)

    project = find_project(start=checkout, environ=environ, overlays=Path(overlays) if overlays else None)

    assert project.overlays == tmp_path / expected


# --- series ----------------------------------------------------------------------------------------------------


def test_series_are_named_by_component_and_line(checkout: Path) -> None:
    (checkout / "patches" / "torch_npu" / "README.md").touch()
    (checkout / "patches" / "README.md").touch()

    assert find_project(start=checkout, environ={}).series_names() == ["torch_npu/2.12", "torch_npu/2.13"]


def test_a_series_folder_is_found_by_its_name(checkout: Path) -> None:
    project = find_project(start=checkout, environ={})

    assert project.series_folder("torch_npu/2.13") == checkout / "patches" / "torch_npu" / "2.13"


def test_a_series_that_is_not_there_is_refused(checkout: Path) -> None:
    project = find_project(start=checkout, environ={})

    with pytest.raises(UsageError) as caught:
        project.series_folder("torch_npu/1.0")

    assert caught.value.message == f"no series 'torch_npu/1.0' in {checkout}/patches"


def test_a_lock_lies_beside_its_recipe(checkout: Path) -> None:
    project = find_project(start=checkout, environ={})

    assert project.lock_path(checkout / "recipes" / "a.b.toml") == checkout / "recipes" / "a.b.lock"


# --- an installed package --------------------------------------------------------------------------------------

SHOW = """
import os
from pathlib import Path
from toolkit.errors import UsageError
from toolkit.project import find_project
try:
    project = find_project(start=Path.cwd(), environ={})
    print(project.root, *project.recipes, project.verify, project.overlays, sep="\\n")
except UsageError as fault:
    print(fault.message, fault.hint, sep="\\n")
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Install as little of the package as finding a project takes, and return where."""
    site = tmp_path / "site"
    (site / "toolkit").mkdir(parents=True)
    for name in ("__init__.py", "errors.py", "project.py"):
        shutil.copy(ROOM / name, site / "toolkit" / name)
    return site


def show_project(installed: Path, start: Path, home: Path) -> list[str]:
    env = {"PYTHONPATH": str(installed), "HOME": str(home)}
    return run([sys.executable, "-c", SHOW], cwd=start, env=env).stdout.splitlines()


def test_an_installed_package_carries_its_own_recipes(installed: Path, tmp_path: Path, own_places: Path) -> None:
    data = make_checkout(installed / "toolkit" / "data")

    assert show_project(installed, tmp_path, own_places) == [
        "None", f"{data}/recipes", f"{data}/verify", f"{own_places}/.local/share/toolkit/overlays",
    ]  # fmt: skip


def test_a_checkout_takes_the_place_of_what_the_package_carries(
    installed: Path, checkout: Path, own_places: Path
) -> None:
    make_checkout(installed / "toolkit" / "data")

    assert show_project(installed, checkout, own_places) == [
        str(checkout), f"{checkout}/recipes", f"{checkout}/verify", f"{checkout}/overlays",
    ]  # fmt: skip


def test_an_editable_install_has_its_checkout_everywhere(installed: Path, tmp_path: Path, own_places: Path) -> None:
    make_checkout(installed)

    assert show_project(installed, tmp_path, own_places) == [
        str(installed), f"{installed}/recipes", f"{installed}/verify", f"{installed}/overlays",
    ]  # fmt: skip


def test_no_recipes_anywhere_is_refused(installed: Path, tmp_path: Path, own_places: Path) -> None:
    assert show_project(installed, tmp_path, own_places) == [
        "no recipes found", "run in a checkout, or name one with --project DIR",
    ]  # fmt: skip


def test_a_checkout_without_its_checks_is_refused(installed: Path, checkout: Path, own_places: Path) -> None:
    (checkout / "verify" / "checks.json").unlink()

    assert show_project(installed, checkout, own_places) == [
        f"there is no verify/checks.json in {checkout}, nor in the installed package",
        "the checkout is not whole; clone it again, or name another with --project DIR",
    ]
