"""The overlay that a recipe has now: which folder it is in, and what is refused of it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.changes import content, edited_json
from tests.sample import Sample
from toolkit import __version__
from toolkit.current import (
    PROVE_AGAIN,
    RecipeFolder,
    facts_of,
    open_current,
    recipe_folder,
    require_generation,
    require_own,
    unchanged,
    up_to_date,
    write_env_files,
)
from toolkit.errors import OverlayError, UsageError

# --- folders -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sample", "own/sample.toml", "sample.toml", "own/sample", "/a/sample.toml"])
def test_a_recipe_has_one_folder_however_it_is_named(sample: Sample, name: str) -> None:
    assert recipe_folder(sample.project, name).path == sample.overlays / "sample"


def test_a_name_with_a_dot_is_kept_whole(sample: Sample) -> None:
    assert recipe_folder(sample.project, "sample-2.13").path == sample.overlays / "sample-2.13"


def test_a_build_for_another_machine_has_a_folder_of_its_own(sample: Sample) -> None:
    other = recipe_folder(sample.project, "sample", other_target="cp312-manylinux_2_28_aarch64")

    assert other.path == sample.overlays / "sample.cp312-manylinux_2_28_aarch64"


def test_current_and_the_env_files_point_to_the_generation_wherever_the_folder_lies(tmp_path: Path) -> None:
    folder = RecipeFolder(path=tmp_path / "sample")
    assert folder.current() is None
    for key in ("a" * 64, "b" * 64):
        generation = folder.generation(key)
        generation.mkdir(parents=True)
        (generation / "env.sh").write_text(key)
        folder.make_current(generation, {"env.sh": ""})
    (tmp_path / "sample").rename(tmp_path / "moved")

    assert (tmp_path / "moved/current").resolve() == tmp_path / "moved/generations" / ("b" * 16)
    assert (tmp_path / "moved/env.sh").read_text() == "b" * 64
    assert sorted(os.listdir(tmp_path / "moved")) == ["current", "env.sh", "generations"]


@pytest.mark.parametrize("dangling", [False, True], ids=["no current", "current leads nowhere"])
def test_no_overlay_is_an_error_that_says_how_to_build_it(tmp_path: Path, dangling: bool) -> None:
    folder = RecipeFolder(path=tmp_path / "sample")
    folder.path.mkdir()
    if dangling:
        (folder.path / "current").symlink_to("generations/none")

    with pytest.raises(OverlayError) as caught:
        require_generation(folder)
    assert caught.value.message == f"there is no overlay in {tmp_path}/sample"
    assert caught.value.hint == "build it: toolkit build --recipe sample"


def test_env_files_are_written_only_where_they_differ(tmp_path: Path) -> None:
    write_env_files(tmp_path, {"env.sh": "one", "env.fish": "two"})
    before = (tmp_path / "env.sh").stat()
    write_env_files(tmp_path, {"env.sh": "one", "env.fish": "three"})

    assert (tmp_path / "env.sh").stat() == before
    assert (tmp_path / "env.fish").read_text() == "three"


# --- what is refused ---------------------------------------------------------------------------------------------


def proof(change: Callable[[Any], object]) -> Callable[[Path], AbstractContextManager[None]]:
    return lambda generation: edited_json(generation / "proof.json", change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            lambda g: content(g / "proof.json", None), "the overlay at {} has no proof that can be read", id="no proof"
        ),
        pytest.param(
            lambda g: content(g / "proof.json", b"[]"), "the overlay at {} has no proof that can be read", id="a list"
        ),
        pytest.param(
            proof(lambda body: body["environment"].pop("manifest")),
            "the overlay at {} has no proof that can be read",
            id="a proof of nothing",
        ),
        pytest.param(
            proof(lambda body: body["environment"].update(manifest="0" * 64)),
            "the proof of the overlay at {} is one of other files",
            id="a proof of other files",
        ),
        pytest.param(
            proof(lambda body: body.update(ok=False)), "the last proof of the overlay at {} failed", id="a failed proof"
        ),
        pytest.param(
            proof(lambda body: body.update(ok=1)), "the last proof of the overlay at {} failed", id="not quite true"
        ),
    ],
)
def test_an_overlay_without_a_proof_that_holds_is_refused(
    built: Sample, generation: Path, change: Callable[[Path], AbstractContextManager[None]], message: str
) -> None:
    with change(generation):
        with pytest.raises(OverlayError) as caught:
            open_current(built.folder)
        assert (caught.value.message, caught.value.hint) == (message.format(generation), PROVE_AGAIN)
        assert up_to_date(built.folder, built.facts) is None
        assert open_current(built.folder, full=True).root == generation
    assert open_current(built.folder).root == generation


def test_a_changed_file_is_named_by_either_check(built: Sample, generation: Path) -> None:
    core = generation / "site/sample_npu/core.py"
    with content(core, b"def answer():\n    return 41\n"):
        for full in (False, True):
            with pytest.raises(OverlayError, match=r"sample_npu/core\.py was changed"):
                open_current(built.folder, full=full)


# --- whether there is anything to do -----------------------------------------------------------------------------


def test_an_overlay_whose_inputs_and_facts_stand_is_up_to_date(built: Sample, generation: Path) -> None:
    trace = up_to_date(built.folder, built.facts)

    assert trace is not None
    assert trace.result["generation"] == generation.name
    assert trace.facts == built.facts


@pytest.mark.parametrize(
    "fact",
    ["toolkit", "project", "folder", "recipe", "python", "ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"],
    ids=lambda name: name,
)
def test_another_fact_is_something_to_do(built: Sample, fact: str) -> None:
    assert fact in built.facts
    assert unchanged(built.folder, built.facts | {fact: "another"}) is None


def test_the_facts_say_who_built_what_where_and_for_whom(built: Sample) -> None:
    facts = facts_of(built.project, built.folder, "sample", "bin/python", {"ASCEND_HOME_PATH": "/cann"})

    assert facts == {
        "toolkit": __version__,
        "project": str(built.root),
        "folder": str(built.overlays / "sample"),
        "recipe": "sample",
        "python": os.path.abspath("bin/python"),
        "ASCEND_HOME_PATH": "/cann",
        "ASCEND_TOOLKIT_HOME": "",
        "recipe file": str((built.root / "recipes/sample.toml").resolve()),
    }
    assert built.facts["python"] == sys.executable


def test_a_current_that_was_moved_by_hand_is_something_to_do(built: Sample, generation: Path) -> None:
    twin = generation.with_name("twin")
    shutil.copytree(generation, twin)
    built.folder.make_current(twin, {})
    try:
        assert open_current(built.folder).root == twin
        assert up_to_date(built.folder, built.facts) is None
    finally:
        built.folder.make_current(generation, {})
        shutil.rmtree(twin)
    assert up_to_date(built.folder, built.facts) is not None


def test_another_recipe_file_of_the_same_name_does_not_take_the_overlay_for_its_own(
    built: Sample, tmp_path: Path
) -> None:
    other = tmp_path / "sample.toml"
    other.write_bytes(built.recipe.read_bytes())
    require_own(built.folder, built.facts)
    with pytest.raises(UsageError) as caught:
        require_own(built.folder, facts_of(built.project, built.folder, str(other), "python", {}))
    assert caught.value.message == (
        f"the overlay in {built.folder.path} is that of {built.recipe.resolve()}, not of {other.resolve()}"
    )
    assert caught.value.hint == "give the recipe another name, or keep its overlays apart with --overlays DIR"


def test_a_recipe_that_was_moved_with_its_project_still_has_its_overlay(built: Sample) -> None:
    require_own(built.folder, built.facts | {"recipe file": "/moved/sample.toml"})
