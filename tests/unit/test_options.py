"""The values that the commands' options become."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
import pytest

from tests.sample import Sample
from toolkit import cli, envfile
from toolkit.options import complete_recipe, interpreter_of, means_of, names_target, project_of, store_of
from toolkit.store import Store
from toolkit.work import Means


def options_of(*words: str) -> dict[str, object]:
    """Return what `toolkit build` makes of these words."""
    return cli.cli.commands["build"].make_context("build", list(words)).params


def test_the_interpreter_is_the_one_that_runs_toolkit_unless_one_is_named(tmp_path: Path) -> None:
    assert interpreter_of(options_of()) == Path(sys.executable)
    assert interpreter_of(options_of("--python", "bin/python")) == Path("bin/python")


def test_a_bare_name_is_the_interpreter_that_path_leads_to_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "python-x").symlink_to(sys.executable)
        monkeypatch.setenv("PATH", str(tmp_path / folder))
        assert interpreter_of(options_of("--python", "python-x")) == tmp_path / folder / "python-x"
    assert interpreter_of(options_of("--python", "python-y")) == Path("python-y")


@pytest.mark.parametrize(
    ("words", "named"),
    [((), False), (("--python-tag", "cp312"), True), (("--platform", "any"), True), (("--python", "x"), False)],
    ids=["none", "interpreter tag", "platform", "interpreter"],
)
def test_a_target_is_named_by_a_tag(words: tuple[str, ...], named: bool) -> None:
    assert names_target(options_of(*words)) is named


def test_the_store_is_the_one_that_is_named_last_by_whoever_is_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLKIT_STORE", "/by/variable")

    assert store_of(options_of()).root == Path("/by/variable")
    assert store_of(options_of("--store", "own")).root == tmp_path / "own"


def test_the_project_is_found_from_where_the_user_stands(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLKIT_OVERLAYS")
    monkeypatch.chdir(sample.root / "patches")
    assert project_of(options_of()) == sample.project

    monkeypatch.chdir("/")
    assert project_of(options_of("--project", str(sample.root))) == sample.project
    named = project_of(options_of("--project", str(sample.root), "--overlays", "overlays"))
    assert named.overlays == Path("/overlays")


def test_a_build_works_with_what_its_options_say(sample: Sample) -> None:
    words = ("--store", "/s", "--offline", "--check-jobs", "3", "--time-limit", "7.5", "--jobs", "5")
    means = means_of(sample.project, options_of(*words))

    assert (means.store.root, means.offline, means.jobs, means.time_limit) == (Path("/s"), True, 3, 7.5)
    assert (means.build_jobs, means.sandbox) == (5, "auto")


def test_the_options_defaults_are_those_of_the_work(sample: Sample) -> None:
    usual = Means(project=sample.project, store=Store(Path("/s")), environ=os.environ)
    for options in (options_of("--store", "/s"), {"store": Path("/s")}):
        means = means_of(sample.project, options)
        assert (means.offline, means.jobs, means.time_limit) == (usual.offline, usual.jobs, usual.time_limit)


def test_the_shells_on_offer_are_those_that_there_are() -> None:
    assert cli.SHELLS == envfile.SHELLS


def test_recipes_complete_by_name_and_nothing_does_outside_a_project(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = click.Context(cli.cli)
    parameter = next(one for one in cli.cli.commands["build"].params if one.name == "recipe")
    monkeypatch.chdir(sample.root)

    assert complete_recipe(context, parameter, "sa") == ["sample"]
    assert complete_recipe(context, parameter, "x") == []
