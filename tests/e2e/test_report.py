"""The report of the default recipe: all that the build shows is on its page, which stays small and fits a phone."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest

from tests.chromium import Chromium, find_chromium
from tests.e2e.conftest import RECIPE, Place

pytestmark = pytest.mark.e2e

LIMIT = 1_500_000


@pytest.fixture(scope="module")
def page(place: Place) -> str:
    return (place.recipe_folder / "report.html").read_text(encoding="utf-8")


def test_the_build_prints_where_it_is(built: tuple[Place, str]) -> None:
    place, printed = built
    assert f"\nreport: {place.recipe_folder}/report.html\n" in printed


def test_it_has_every_patch_with_its_diff_and_every_check_with_its_command(place: Place, page: str) -> None:
    proof = json.loads((place.current / "proof.json").read_text())
    seen = unescape(re.sub("<[^>]*>", "", page))

    assert len(page.encode()) < LIMIT
    patches = sorted((place.project / "patches/torch_npu/2.13").glob("*.patch"))
    assert len(patches) >= 6
    for patch in patches:
        assert patch.stem in seen
        assert next(line for line in patch.read_text().splitlines() if line.startswith("diff --git ")) in seen
    for name in {result["name"] for result in proof["results"]}:
        assert f"toolkit verify --recipe {RECIPE} --check {name}" in seen


def test_it_shows_the_code_of_the_accumulator_before_and_after(page: str) -> None:
    start = page.index("<b>running_mean</b>", page.index('<section id="code"'))
    graph = page[start : page.index("<b>sibling</b>", start)]

    assert "<mark>- @dvm.kernel(ktype=&#x27;spec&#x27;" in graph
    assert "<mark>+ @dvm.kernel(ktype=&#x27;vector&#x27;" in graph
    assert "✗ old is lost: " in graph
    assert "vmain.aiv(" in graph


@pytest.mark.skipif(find_chromium() is None, reason="needs chromium: apt-get install chromium")
def test_it_fits_a_phone(page: str, tmp_path: Path) -> None:
    chromium = Chromium(program=str(find_chromium()), folder=tmp_path)
    unfolded = re.sub(r"<details( class=\"\w+\")?( open)?>", r"<details\1 open>", page)
    measured = chromium.measure(unfolded, width=390)

    assert measured["wide"] == []
    assert measured["scroll"] == 390
