"""The recipe's overlay as it lies there, and as the environment has it: a real one, built once, spoilt and mended."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.changes import content, edited
from tests.sample import Sample, own_tag
from toolkit.doctor.asked import Asked
from toolkit.doctor.overlay_state import examine_overlay
from toolkit.envfile import activate, activation_of
from toolkit.manifest import read_overlay
from toolkit.target import inspect_interpreter

BUILD = "build it again: toolkit build --recipe sample"


@pytest.fixture
def asked(built: Sample, generation: Path) -> Asked:
    """Return a look at the built project from an environment in which its overlay is active."""
    environ = activate({"PATH": os.environ["PATH"]}, activation_of(read_overlay(generation)))
    interpreter = inspect_interpreter(Path(sys.executable), env=os.environ)
    return Asked(
        environ=environ, cwd=built.root, interpreter=interpreter, packages={}, project=built.project, recipe="sample"
    )


def look(asked: Asked) -> list[tuple[str, str, str, str]]:
    return [(one.grade, one.name, one.seen, one.do) for one in examine_overlay(asked)]


def faults(asked: Asked) -> list[tuple[str, str, str, str]]:
    return [one for one in look(asked) if one[0] != "ok"]


def test_an_overlay_that_stands_and_is_active(asked: Asked, generation: Path) -> None:
    overlay = read_overlay(generation)
    version = overlay.packages[0].version

    assert look(asked) == [
        ("ok", "overlay.built", f"sample: generation {generation.name}, sample_npu {version}", ""),
        ("ok", "overlay.proof", f"its files are those that {generation}/proof.json is about", ""),
        (
            "ok",
            "overlay.contract",
            f"made for {overlay.target} and torch {overlay.contract.torch}, as is {asked.interpreter.executable}",  # type: ignore[union-attr]
            "",
        ),
        ("ok", "overlay.active", "the current generation is active: first on PYTHONPATH, caches its own", ""),
    ]


def test_outside_a_project_only_the_active_one_is_looked_at(asked: Asked) -> None:
    assert look(replace(asked, project=None)) == []


# --- as it lies there ------------------------------------------------------------------------------------------


def test_there_is_none(sample: Sample, asked: Asked) -> None:
    assert look(replace(asked, project=sample.project, environ={})) == [
        (
            "warn",
            "overlay.built",
            f"there is no overlay of sample in {sample.folder.path}",
            "build it: toolkit build --recipe sample",
        )
    ]


def test_a_file_that_was_edited(asked: Asked, generation: Path) -> None:
    file = generation / "site/sample_npu/core.py"
    with edited(file, "return 42", "return 43"):
        found = faults(asked)

    assert [one[:2] + one[3:] for one in found] == [("fail", "overlay.manifest", BUILD)]
    assert found[0][2].startswith(
        f"the overlay at {generation} is not what its manifest says: sample_npu/core.py was changed (sha256 "
    )


def test_a_proof_that_is_gone(asked: Asked, generation: Path) -> None:
    with content(generation / "proof.json", None):
        found = faults(asked)

    assert found == [
        (
            "fail",
            "overlay.proof",
            f"the overlay at {generation} has no proof that can be read",
            "toolkit verify says what does not hold",
        )
    ]


def test_an_interpreter_that_it_was_not_made_for(asked: Asked) -> None:
    assert asked.interpreter is not None
    other = replace(asked.interpreter, python_tag="cp39")

    tag = own_tag()
    assert faults(replace(asked, interpreter=other)) == [
        (
            "fail",
            "overlay.contract",
            f"the overlay of 'sample' is for {tag.interpreter}-{tag.platform}, {other.executable} is cp39 on "
            f"{other.platforms[0]}",
            "name the interpreter that it is for with --python, or build for this one: toolkit build",
        )
    ]


def test_a_recipe_that_was_changed_since(asked: Asked, built: Sample) -> None:
    with edited(built.recipe, '"a sample"', '"another"'):
        found = faults(asked)

    assert found == [("warn", "overlay.inputs", f"{built.recipe} was changed after the overlay was built", BUILD)]


def test_another_recipe_file_of_the_same_name(asked: Asked, built: Sample, tmp_path: Path) -> None:
    other = shutil.copy(built.recipe, tmp_path / "sample.toml")

    found = faults(replace(asked, recipe=str(other)))

    assert found[0] == (
        "fail",
        "overlay.inputs",
        f"the overlay in {built.folder.path} is that of {built.recipe}, not of {other}",
        "give the recipe another name, or keep its overlays apart with --overlays DIR",
    )


# --- as the environment has it ---------------------------------------------------------------------------------


def test_none_is_active(asked: Asked, built: Sample) -> None:
    assert faults(replace(asked, environ={})) == [
        (
            "warn",
            "overlay.active",
            "no overlay is active: TOOLKIT_OVERLAY is not set",
            f"source {built.folder.path}/env.sh, or start commands with `toolkit run --`",
        )
    ]


def test_the_active_one_is_gone(asked: Asked, built: Sample) -> None:
    environ = {**asked.environ, "TOOLKIT_OVERLAY": "/gone/overlay"}

    assert faults(replace(asked, environ=environ)) == [
        (
            "fail",
            "overlay.active",
            "TOOLKIT_OVERLAY is /gone/overlay, which is gone",
            f"source {built.folder.path}/env.sh in this shell",
        )
    ]


def test_an_older_generation_is_active(asked: Asked, built: Sample, generation: Path) -> None:
    older = generation.with_name("0123456789abcdef")
    shutil.copytree(generation, older)
    try:
        environ = activate({}, activation_of(read_overlay(older)))
        found = faults(replace(asked, environ=environ))
    finally:
        shutil.rmtree(older)

    assert found == [
        (
            "warn",
            "overlay.active",
            f"the active generation of sample is 0123456789abcdef, the current one is {generation.name}",
            f"source {built.folder.path}/env.sh again in this shell",
        )
    ]


def test_another_overlay_is_active(asked: Asked, built: Sample, generation: Path, tmp_path: Path) -> None:
    other = tmp_path / "other/generations/1"
    shutil.copytree(generation, other)
    environ = activate({}, activation_of(read_overlay(other)))

    assert faults(replace(asked, environ=environ)) == [
        (
            "fail",
            "overlay.active",
            f"another overlay is active, {other}, not that of sample, {generation}",
            f"source {built.folder.path}/env.sh, or name its recipe with --recipe",
        )
    ]


@pytest.mark.parametrize("before", ["", "/somewhere"])
def test_something_stands_before_it(asked: Asked, generation: Path, before: str) -> None:
    environ = {**asked.environ, "PYTHONPATH": f"{before}:{asked.environ['PYTHONPATH']}"}

    assert faults(replace(asked, environ=environ)) == [
        (
            "fail",
            "overlay.python_path",
            f"TOOLKIT_OVERLAY is {generation}, but PYTHONPATH begins with {before or 'nothing'!r}: the overlay "
            "may not win",
            "put nothing before it: activate the overlay last",
        )
    ]


@pytest.mark.parametrize(
    ("name", "value", "has"),
    [
        ("TORCH_EXTENSIONS_DIR", "/tmp/extensions", "/tmp/extensions"),
        ("TRITON_CACHE_DIR", None, "not set"),
        ("SAMPLE_BACKEND", "large", "large"),
    ],
)
def test_a_variable_was_changed_since(asked: Asked, generation: Path, name: str, value: str | None, has: str) -> None:
    environ = {**asked.environ, name: value or ""}
    if value is None:
        del environ[name]
    wanted = activation_of(read_overlay(generation)).variables[name]

    assert faults(replace(asked, environ=environ)) == [
        (
            "warn",
            "overlay.variables",
            f"{name} is {has}, the overlay's is {wanted}",
            "activate the overlay again, or leave it where that is meant",
        )
    ]


def test_the_link_current_is_the_same_overlay(asked: Asked, built: Sample, generation: Path) -> None:
    environ = {name: value.replace(str(generation), str(built.folder.path / "current"))
               for name, value in asked.environ.items()}  # fmt: skip
    assert json.dumps(environ) != json.dumps(dict(asked.environ))

    assert faults(replace(asked, environ=environ)) == []
