"""`toolkit patch status --recipe`: on the bases that a lock names, a release wheel and a package of the machine."""

from __future__ import annotations

import pytest

from tests.looking_sample import Looking, Toolkit, toolkit_of
from tests.sample import Sample, make_sample
from toolkit.process import run

INSTALLED = """
[[component]]
name = "other"
series = "other/1.0"

[component.base]
kind = "installed"
package = "no_such_package"
version = "1.0"
optional = true
"""


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """A project with its lock made."""
    made = make_sample(tmp_path_factory.mktemp("recipe"))
    lock(made)
    return made


def lock(sample: Sample) -> None:
    run(sample.toolkit("lock"), env=sample.environ, cwd=sample.root)


@pytest.fixture
def toolkit(sample: Sample, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Toolkit:
    for name, value in sample.environ.items():
        monkeypatch.setenv(name, value)
    return toolkit_of(Looking(root=sample.root, home=""), capsys)


def test_a_recipe_is_judged_on_the_wheel_that_its_lock_names(toolkit: Toolkit) -> None:
    ended = toolkit("status", "--recipe", "sample")
    assert ended.out.splitlines()[:2] == [
        "sample_npu/1.0 on sample_npu==1.0, the base of recipe sample",
        "  0001-right-answer  applies",
    ]
    assert ended.code == 0


def test_a_recipe_without_a_lock_gives_a_row_that_says_so(toolkit: Toolkit, sample: Sample) -> None:
    kept = sample.recipe.with_suffix(".lock")
    text = kept.read_bytes()
    kept.unlink()
    try:
        ended = toolkit("status", "--recipe", "sample", "--json")
    finally:
        kept.write_bytes(text)
    (row,) = ended.document["series"]
    assert (ended.code, row["patches"]) == (23, [])
    assert row["why"] == f"there is no lock at {kept}"


def test_a_package_that_only_another_machine_has_is_no_finding(toolkit: Toolkit, sample: Sample) -> None:
    text, series = sample.recipe.read_text(), sample.root / "patches/other/1.0"
    series.mkdir(parents=True)
    (series / "0001-right-answer.patch").write_bytes(sample.patch.read_bytes())
    (series / "series.toml").write_text('schema = 1\ncovers = ["installed:no_such_package==1.0"]\n')
    sample.recipe.write_text(text.replace("\n[env]", f"{INSTALLED}\n[env]"))
    lock(sample)
    ended = toolkit("status", "--recipe", "sample")
    assert "  not judged: this machine does not have it\n" in ended.out
    assert ended.out.endswith("1 patch: 1 applies; 1 of 2 series not judged\n")
    assert ended.code == 0
    alone = toolkit("status", "--series", "other/1.0")
    assert "  not judged: " in alone.out
    assert alone.code == 0


def test_a_recipe_that_is_not_there_is_refused(toolkit: Toolkit) -> None:
    ended = toolkit("status", "--recipe", "smple")
    assert (ended.code, ended.out) == (2, "")
    assert "'smple'" in ended.err
