"""Which recipe is made up for a base, and for which interpreter, before anything is built."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.matrix_sample import make_matrix_sample
from tests.sample import Sample
from toolkit.model import Interpreter
from toolkit.target import inspect_interpreter
from toolkit.upkeep.matrix import Column
from toolkit.upkeep.trials import COMPILED, Trial, Unfit, make_trial
from toolkit.upkeep.words import Commit, Release, Word

COMMIT = "c" * 40
GIT_RECIPE = """\
schema = 1
description = "from source"

[target]
python = ["{tag}"]
platforms = ["{platform}"]
torch = "9.1.0"

[[component]]
name = "sample_npu"
series = "sample_npu/3"

[component.base]
kind = "git"
urls = ["https://host/sample.git"]
commit = "{commit}"

[component.base.build]
requires = {requires}

[[component]]
name = "beside"

[component.base]
kind = "{kind}"
distribution = "beside"
version = "2.0"
{more}
[verify]
checks = ["loads"]
"""
GIT_LOCK = """\
schema = 1
recipe = "{name}"

[[component]]
name = "sample_npu"
kind = "git"
urls = ["https://host/sample.git"]
commit = "{commit}"
requires = {requires}

[[component.requirement]]
distribution = "{needed}"
version = "9.1.0"
file = "{needed}-9.1.0-py3-none-any.whl"
sha256 = "{sha256}"
python_tag = "{tag}"
platform = "{platform}"

[[component]]
name = "beside"
kind = "wheel"
distribution = "beside"
version = "2.0"

[[component.artifact]]
file = "beside-2.0-py3-none-any.whl"
sha256 = "{sha256}"
python_tag = "{tag}"
platform = "{platform}"
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return make_matrix_sample(tmp_path_factory.mktemp("matrix"))


@pytest.fixture
def sample(made: Sample, tmp_path: Path) -> Sample:
    """Return a copy of the project, for the test alone; the store is everybody's."""
    return replace(made, root=shutil.copytree(made.root, tmp_path / "project"))


@pytest.fixture
def own(sample: Sample) -> Interpreter:
    return inspect_interpreter(Path("python3"), env=sample.environ)


def column(word: Word) -> Column:
    name = word.version if isinstance(word, Release) else str(word)[4:16]
    return Column(component="sample_npu", name=name, word=word, coverage=str(word))


def release(version: str) -> Column:
    return column(Release(distribution="sample_npu", version=version))


def trial(
    sample: Sample, base: Column, pythons: Sequence[Interpreter], *, series: str = "sample_npu/1", bare: bool = False
) -> Trial:
    return make_trial(
        base, series=series, bare=bare, accept=["0001-change"], interpreters=pythons,
        means=replace(sample.means, offline=True),
    )  # fmt: skip


def add_git_recipe(sample: Sample, own: Interpreter, name: str, *needed: str) -> None:
    """Write a recipe that builds the component from source beside a release, and its lock."""
    platform = own.platforms[0]
    words = {
        "name": name, "tag": own.python_tag, "platform": platform, "commit": "d" * 40, "requires": list(needed),
        "needed": needed[0].partition("==")[0], "sha256": "e" * 64, "kind": "wheel", "more": "",
    }  # fmt: skip
    for suffix, text in ((".toml", GIT_RECIPE), (".lock", GIT_LOCK)):
        written = text.format(**words).replace("'", '"')
        (sample.root / "recipes" / f"{name}{suffix}").write_text(written, encoding="utf-8")


def test_a_series_is_put_into_the_base_as_its_recipe_sets_it_up(sample: Sample, own: Interpreter) -> None:
    made = trial(sample, release("1.1"), [own])
    (part,) = made.recipe.components
    assert (part.series, part.accept_upstream, part.base.coverage) == (
        "sample_npu/1", ("0001-change",), "sample_npu==1.1",
    )  # fmt: skip
    assert made.recipe.env == {"SAMPLE_BACKEND": "small"}
    assert made.lock.components[0].base.identity == "sample_npu==1.1"
    assert made.interpreter == own


def test_a_base_alone_has_no_series(sample: Sample, own: Interpreter) -> None:
    (part,) = trial(sample, release("1.1"), [own], bare=True).recipe.components
    assert (part.series, part.accept_upstream) == (None, ())


def test_the_first_interpreter_with_the_torch_that_a_release_asks_for_is_taken(
    sample: Sample, own: Interpreter
) -> None:
    pythons = [replace(own, torch=torch) for torch in (None, "2.13.0+cpu", "9.1.0+cpu", "9.2.0")]
    made = trial(sample, release("3.0"), pythons, series="sample_npu/3")
    assert made.interpreter.torch == "9.1.0+cpu"
    assert made.recipe.contract.torch == "9.1.0"


@pytest.mark.parametrize(
    ("torches", "why"),
    [
        (("2.13.0+cpu",), "needs torch 9, the interpreter has 2.13.0"),
        (("2.13.0", "2.14.0", "2.13.0", None), "needs torch 9, the interpreters have 2.13.0, 2.14.0, none"),
    ],
    ids=["one", "several"],
)
def test_no_interpreter_with_that_torch_is_a_reason(
    sample: Sample, own: Interpreter, torches: Sequence[str | None], why: str
) -> None:
    with pytest.raises(Unfit) as caught:
        trial(sample, release("3.0"), [replace(own, torch=torch) for torch in torches], series="sample_npu/3")
    assert str(caught.value) == why


def test_a_release_without_a_wheel_for_an_interpreter_goes_to_the_next(sample: Sample, own: Interpreter) -> None:
    other = replace(own, python_tag="cp310" if own.python_tag != "cp310" else "cp312")
    assert trial(sample, release("1.1"), [other, own]).interpreter == own
    with pytest.raises(Unfit) as caught:
        trial(sample, release("1.1"), [other])
    assert str(caught.value) == (
        f"there is no wheel of sample_npu==1.1 for {other.python_tag}-{sample_platform(sample, own)}"
    )


def sample_platform(sample: Sample, own: Interpreter) -> str:
    """Return the platform that the sample's recipe is for."""
    text = sample.recipe.read_text(encoding="utf-8")
    return next(name for name in own.platforms if f'platforms = ["{name}"]' in text)


def test_a_commit_is_built_as_another_of_its_component_is(sample: Sample, own: Interpreter) -> None:
    add_git_recipe(sample, own, "source", "setuptools==9.1.0")
    made = trial(sample, column(Commit(id=COMMIT)), [replace(own, torch="9.1.0")], series="sample_npu/3")
    part, beside = made.recipe.components
    assert (part.base.coverage, part.series) == (f"git:{COMMIT}", "sample_npu/3")
    assert (beside.base.coverage, beside.series) == ("beside==2.0", None)
    assert [entry.base.identity for entry in made.lock.components] == [
        f"commit {COMMIT} of https://host/sample.git built with setuptools==9.1.0", "beside==2.0",
    ]  # fmt: skip


def test_what_has_to_be_beside_it_must_be_for_that_torch(sample: Sample, own: Interpreter) -> None:
    add_git_recipe(sample, own, "source", "setuptools==9.1.0")
    with pytest.raises(Unfit) as caught:
        trial(sample, column(Commit(id=COMMIT)), [replace(own, torch="9.2.0")], series="sample_npu/3")
    assert str(caught.value) == (
        f"no recipe has a release of beside for torch 9.2.0 and {own.python_tag}-{own.platforms[0]}, "
        "which has to be beside it"
    )


def test_what_would_be_compiled_is_not_tried(sample: Sample, own: Interpreter) -> None:
    add_git_recipe(sample, own, "source", "torch==9.1.0")
    with pytest.raises(Unfit) as caught:
        trial(sample, column(Commit(id=COMMIT)), [replace(own, torch="9.1.0")], series="sample_npu/3")
    assert str(caught.value) == COMPILED


def test_a_commit_that_nobody_knows_how_to_build_is_not_tried(sample: Sample, own: Interpreter) -> None:
    with pytest.raises(Unfit) as caught:
        trial(sample, column(Commit(id=COMMIT)), [own])
    assert str(caught.value).startswith("no recipe says how sample_npu is built from source for ")
