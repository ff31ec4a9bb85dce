"""The interpreter: whether it can be used, how it starts, and what the PATH has in its place."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.doctor_sites import Planted, grades, make_recipe, named, plant
from toolkit.doctor.asked import Asked
from toolkit.doctor.interpreters import examine_interpreter
from toolkit.model import Observation, Recipe


def look(planted: Planted, wanted: Recipe | None = None) -> list[Observation]:
    survey = planted.survey()
    return examine_interpreter(planted.asked(survey, wanted), survey, "")


def program(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")
    path.chmod(0o755)


def test_a_sound_environment_has_no_doubt(planted: Planted) -> None:
    program(planted.python.parent / "torchrun", f"#!{planted.python}\nimport torch\n")
    found = planted.interpreter

    observations = look(planted, make_recipe())

    assert grades(observations) == {} or set(grades(observations)) == {"interpreter.headers"}
    assert named(observations, "interpreter.python")[1] == (
        f"CPython {found.version} ({found.python_tag}, {found.platforms[0]}) at {planted.python}"
    )
    assert named(observations, "interpreter.path")[1] == "python and python3 and torchrun on the PATH are its own"
    assert named(observations, "interpreter.start")[1] == "starts with this environment's PYTHONPATH and .pth files"


def test_none_that_can_be_used(tmp_path: Path) -> None:
    asked = Asked(
        environ={}, cwd=tmp_path, interpreter=None, interpreter_fault="the interpreter 'no' does not exist",
        packages={}, project=None, recipe="mine",
    )  # fmt: skip

    assert [(one.name, one.grade, one.seen, one.do) for one in examine_interpreter(asked, None, "")] == [
        ("interpreter.python", "fail", "the interpreter 'no' does not exist", "name another with --python")
    ]


def test_a_tag_that_the_recipe_does_not_take(planted: Planted) -> None:
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"

    assert named(look(planted, make_recipe(tags=("cp39",))), "interpreter.tag") == (
        "fail", f"{planted.python} is {tag}, expected cp39, by the recipe mine",
        "name another interpreter with --python",
    )  # fmt: skip


def test_without_a_recipe_the_tag_is_left_out(planted: Planted) -> None:
    assert "interpreter.tag" not in {one.name for one in look(planted)}


@pytest.mark.parametrize("home", ["", "/opt/python"], ids=["without PYTHONHOME", "with PYTHONHOME"])
def test_a_start_that_fails(planted: Planted, home: str) -> None:
    asked = planted.asked()
    if home:
        asked = replace(asked, environ={**asked.environ, "PYTHONHOME": home})

    assert named(examine_interpreter(asked, None, "No module named 'encodings'"), "interpreter.start") == (
        "fail", "it does not start with this environment: No module named 'encodings'",
        "unset PYTHONHOME" if home else "start it by hand with this environment; PYTHONPATH, .pth files run first",
    )  # fmt: skip


def test_no_headers(planted: Planted) -> None:
    survey = replace(planted.survey(), include=planted.root)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"

    assert named(examine_interpreter(planted.asked(survey), survey, ""), "interpreter.headers") == (
        "warn", f"no Python.h in {planted.root}: extensions and Triton's launchers do not compile",
        f"install the headers of Python {version} (python3-dev, python3-devel)",
    )  # fmt: skip


# --- the PATH ----------------------------------------------------------------------------------------------------


def advice(planted: Planted) -> str:
    return (
        f"put {planted.python.parent} first on PATH, or start with `toolkit run -- CMD`; or name it with --python"
    )  # fmt: skip


def test_another_environments_python(planted: Planted, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = plant(tmp_path / "other")
    planted.environ["PATH"] = f"{other.python.parent}:{planted.environ['PATH']}"

    assert named(look(planted), "interpreter.path") == (
        "warn", f"on the PATH python is {other.python}, python3 is {other.python}3: not the target", advice(planted),
    )  # fmt: skip


def test_the_machines_own_python_is_not_the_environments(planted: Planted) -> None:
    base = Path(planted.python).resolve()
    planted.environ["PATH"] = str(base.parent)

    assert named(look(planted), "interpreter.path")[0] == "warn"


@pytest.mark.parametrize(
    ("first", "grade"),
    [
        pytest.param("#!{python}\n", "ok", id="the target's"),
        pytest.param("#!/usr/bin/env python3\n", "ok", id="the PATH's, which is looked at"),
        pytest.param("#!/bin/sh\n'''exec' {python} \"$0\" \"$@\"\n' '''\n", "ok", id="a long name"),
        pytest.param("#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n", "ok", id="a name with a blank"),
        pytest.param("#!/usr/local/bin/python3\n", "warn", id="another's"),
        pytest.param("#!/bin/sh\n'''exec' /other/bin/python \"$0\" \"$@\"\n' '''\n", "warn", id="another's long name"),
        pytest.param("#!/bin/bash\n", "warn", id="a script"),
        pytest.param("\x7fELF\n", "warn", id="no script"),
    ],
)
def test_whose_torchrun_it_is(planted: Planted, first: str, grade: str) -> None:
    program(planted.python.parent / "torchrun", first.replace("{python}", str(planted.python)))

    observed = named(look(planted), "interpreter.path")

    assert observed[0] == grade
    if grade == "warn":
        assert observed[1] == f"on the PATH torchrun is {planted.python.parent / 'torchrun'}: not the target"


@pytest.mark.parametrize("is_target", [True, False], ids=["the target", "another"])
def test_a_shim_is_asked_what_it_runs(planted: Planted, is_target: bool) -> None:
    shims = planted.root / "shims"
    shims.mkdir()
    runs = planted.python if is_target else planted.python.resolve()
    program(shims / "python", f'#!/bin/sh\nexec {runs} "$@"\n')
    planted.environ["PATH"] = f"{shims}:{planted.environ['PATH']}"

    assert named(look(planted), "interpreter.path")[0] == ("ok" if is_target else "warn")


def test_no_python_on_the_path(planted: Planted) -> None:
    planted.environ["PATH"] = str(planted.cwd)

    assert named(look(planted), "interpreter.path") == ("warn", "there is no python on the PATH", advice(planted))
