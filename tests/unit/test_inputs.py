"""Keys hold every input by name, and none of the caller's values in clear."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.inputs import build_inputs, overlay_inputs
from toolkit.model import BuildSpec, Contract, Interpreter, Recipe, Requirement, Target

TARGET = Target(python_tag="cp311", platform="manylinux_2_28_x86_64")
PYTHON = Interpreter(
    executable=Path("/usr/bin/python3"), version="3.11.7", python_tag="cp311", platforms=(TARGET.platform,), torch=None
)
SPEC = BuildSpec(
    backend="setup.py",
    requirements=(
        Requirement(distribution="ninja", version="1.0", file="ninja-1.0-py3-none-any.whl", sha256="a" * 64),
    ),
    env={"USE_X": "1"},
    pass_env=("TOKEN",),
    subfolder="inner",
)


def listed(spec: BuildSpec = SPEC, **environ: str) -> dict[str, str]:
    return dict(build_inputs(spec, PYTHON, TARGET, {"PATH": "/nowhere", **environ}))


def test_a_builds_inputs_are_all_that_decides_what_it_makes() -> None:
    assert {name: value for name, value in listed().items() if name != "logic/build"} == {
        "build/backend": "setup.py",
        "build/subfolder": "inner",
        "build/submodules": "no",
        "build/python": "3.11.7 cp311-manylinux_2_28_x86_64",
        "build/compiler": listed()["build/compiler"],
        "build/requirement/ninja": f"ninja-1.0-py3-none-any.whl {'a' * 64}",
        "build/env/USE_X": "1",
        "build/pass_env/TOKEN": "not set",
    }


def test_what_is_passed_on_counts_and_is_not_written_down() -> None:
    values = [listed(TOKEN=value)["build/pass_env/TOKEN"] for value in ("hunter2", "hunter3", "")]
    assert len({*values, listed()["build/pass_env/TOKEN"]}) == 4
    assert not any("hunter" in value for value in values)


@pytest.mark.parametrize("name", ["HOME", "CFLAGS", "PYTHONPATH"])
def test_what_does_not_reach_the_build_does_not_count(name: str) -> None:
    assert listed(**{name: "/x"}) == listed()


@pytest.mark.parametrize(
    ("diagnostic", "said"), [("", None), ("to narrow", "to narrow")], ids=["for work", "for diagnosis"]
)
def test_what_an_overlay_is_for_is_in_its_key_where_that_is_diagnosis(diagnostic: str, said: str | None) -> None:
    contract = Contract(python_tags=("cp311",), platforms=(TARGET.platform,), torch="2.13.0")
    recipe = Recipe(
        name="sample", description="", contract=contract, components=(), env={}, checks=(), files=(),
        diagnostic=diagnostic,
    )  # fmt: skip

    assert dict(overlay_inputs(recipe, TARGET, {})).get("diagnostic") == said
