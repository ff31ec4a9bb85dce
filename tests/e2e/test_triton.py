"""The Triton backend's recipe on the real release wheel, and the patch of the other line that must not reach it."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, Place

pytestmark = pytest.mark.e2e

RECIPE = "dsv4-triton-diagnostics"
FAULTS = {
    "bool-greater-than": "computed: arith.cmpi ugt, ",
    "user-fallbacks": "aten.max.dim was named for fallback, yet the code calls triton_",
}
"""What each witness sees on the base."""

needs_triton = pytest.mark.skipif(sys.version_info >= (3, 12), reason="triton-ascend has no wheel for this Python")


@pytest.fixture(scope="module")
def printed(place: Place) -> str:
    """Build the recipe with the default recipe's store, and return what the command printed."""
    done = place.toolkit("build", "--recipe", RECIPE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_triton
def test_every_witness_is_red_on_the_base_for_its_fault_and_green_on_the_overlay(place: Place, printed: str) -> None:
    folder = place.folder / "overlays" / RECIPE
    proof = json.loads((folder / os.readlink(folder / "current") / "proof.json").read_text())
    found = {(result["name"], result["side"]): result for result in proof["results"]}
    for witness, fault in FAULTS.items():
        assert re.search(rf"^{witness}\s+\S red, as it must be\s+\S pass\s+[\d.]+$", printed, re.MULTILINE)
        assert found[witness, "base"]["detail"].startswith(fault)
    assert found["triton-backend", "overlay"]["status"] == "pass"


def test_the_overlay_says_what_it_is_for(printed: str) -> None:
    assert "for diagnosis only: to narrow faults of DeepSeek-V4 training down with the Triton backend" in printed


@pytest.fixture
def misled(tmp_path: Path, place: Place) -> Place:
    """Return a project of its own, with a recipe that takes the scalar load alone, of the 2.12 line, to 2.13.0."""
    project = tmp_path / "project"
    for name in ("recipes", "patches", "verify"):
        shutil.copytree(ROOT / name, project / name)
    line = project / "patches/torch_npu/2.12-triton"
    for patch in line.glob("*.patch"):
        if "integer-index" in patch.name:
            patch.rename(line / f"0001{patch.name[4:]}")
        else:
            patch.unlink()
    for suffix in ("toml", "lock"):
        recipe = project / f"recipes/{RECIPE}.{suffix}"
        recipe.write_text(recipe.read_text().replace('"torch_npu/2.13-triton"', '"torch_npu/2.12-triton"'))
    return Place(folder=place.folder, project=project, environ=place.environ)


def test_the_scalar_load_of_2_12_is_refused_on_2_13_by_what_its_line_covers(misled: Place) -> None:
    done = misled.toolkit("build", "--recipe", RECIPE, "--until", "patch")
    assert done.returncode == 8
    assert "series 'torch_npu/2.12-triton' is not for torch_npu torch_npu==2.13.0" in done.stderr


def test_the_scalar_load_of_2_12_does_not_fit_2_13_where_its_line_is_widened(misled: Place) -> None:
    line = misled.project / "patches/torch_npu/2.12-triton/series.toml"
    line.write_text(line.read_text().replace("covers = [", 'covers = ["torch_npu==2.13.0", '))
    done = misled.toolkit("build", "--recipe", RECIPE, "--until", "patch")
    assert done.returncode == 9
    assert "patch 0001-triton-integer-index-as-a-scalar-load does not apply" in done.stderr
