"""A recipe for diagnosis from end to end: its overlay says what it is for, wherever it is met."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sample import Sample, make_sample
from toolkit.process import Completed, run

PURPOSE = "to tell whose fault a wrong answer is"


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    """Return the small project with its series and its recipe marked as diagnostic."""
    sample = make_sample(tmp_path)
    line = sample.patch.with_name("series.toml")
    line.write_text(f"{line.read_text(encoding='utf-8')}diagnostic = true\n", encoding="utf-8")
    mark(sample.recipe)
    return sample


def mark(recipe: Path) -> None:
    recipe.write_text(f'diagnostic = "{PURPOSE}"\n{recipe.read_text(encoding="utf-8")}', encoding="utf-8")


def toolkit(sample: Sample, *words: str, code: int = 0) -> Completed:
    done = run(sample.toolkit(*words), cwd=sample.root, env=sample.environ, check=False, timeout=300)
    assert done.returncode == code, done.stderr
    return done


def test_an_overlay_for_diagnosis_says_so_when_it_is_built_stands_and_is_sourced(sample: Sample) -> None:
    notice = f"for diagnosis only: {PURPOSE}"
    toolkit(sample, "lock")

    for built in (toolkit(sample, "build"), toolkit(sample, "build")):
        said, env_file, report = built.stdout.splitlines()[-3:]
        assert (said, env_file[:9], report[:7]) == (notice, "env file:", "report:")
    document = json.loads(toolkit(sample, "build", "--json").stdout)
    assert document["diagnostic"] == PURPOSE
    source = ["sh", "-c", '. "$1"', "sh", document["env_file"]]
    assert run(source, cwd=sample.root, env=sample.environ, check=False).stderr == f"{notice}\n"
    assert toolkit(sample, "recipe", "list").stdout == "sample  a sample (for diagnosis only)\n"
    assert toolkit(sample, "recipe", "show", "sample").stdout.splitlines()[1] == notice


def test_another_purpose_is_another_overlay(sample: Sample) -> None:
    toolkit(sample, "lock")
    before = toolkit(sample, "key").stdout
    sample.recipe.write_text(sample.recipe.read_text(encoding="utf-8").replace(PURPOSE, "to look"), encoding="utf-8")

    assert toolkit(sample, "key").stdout != before


def test_a_recipe_for_work_takes_neither_the_recipe_nor_the_series(sample: Sample) -> None:
    heir = sample.recipe.with_name("heir.toml")
    heir.write_text('schema = 1\nextends = "sample"\ndescription = "an heir"\n', encoding="utf-8")
    plain = sample.recipe.read_text(encoding="utf-8").partition("\n")[2]
    sample.recipe.with_name("plain.toml").write_text(plain, encoding="utf-8")

    assert (
        f"recipes/heir.toml:2: extends: recipe 'sample' is for diagnosis only ({PURPOSE}), which no other recipe may "
        "extend; extend what it extends, or start from a recipe that is for work"
    ) in toolkit(sample, "recipe", "show", "heir", code=3).stderr
    assert (
        "recipes/plain.toml:11: component[0].series: series 'sample_npu/1.0' only narrows faults down: expected "
        '`diagnostic = "<what an overlay of it is for>"` at the top of the recipe'
    ) in toolkit(sample, "build", "--recipe", "plain", code=3).stderr
