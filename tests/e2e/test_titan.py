"""The recipe `dsv4-titan` on the real wheel of torchtitan_npu, whose witnesses need torch on a CPU alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, Place
from toolkit.files import sha256_file
from toolkit.manifest import rehash_manifest

pytestmark = pytest.mark.e2e

RECIPE = "dsv4-titan"
MODEL = "torchtitan_npu/models/deepseek_v4/model/model.py"
PATCHED_VERSION = re.compile(r"0\.2\.2\.post2\+p4\.k[0-9a-f]{8}")
FAULTS = {
    "titan-query-norm": "Dynamo captures square, mean, add, rsqrt, mul for rms_norm; bfloat16, queries of 1: value",
    "titan-attention-target": "bfloat16 target off by 0.0",
    "titan-sparse-attention": "bfloat16 output off by 0.0",
    "titan-index-score": "bfloat16 scores off by 0.0",
}
"""What each witness sees on the base first."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, caller: dict[str, str]) -> tuple[Place, str]:
    """Build the recipe, and return the place with what the command printed."""
    place = Place(folder=tmp_path_factory.mktemp("titan"), environ=caller)
    done = place.toolkit("build", "--recipe", RECIPE)
    assert done.returncode == 0, done.stdout + done.stderr
    return place, done.stdout


@pytest.fixture(scope="module")
def current(built: tuple[Place, str]) -> Path:
    """Return the generation that was built."""
    folder = built[0].folder / "overlays" / RECIPE
    return folder / os.readlink(folder / "current")


def results(current: Path) -> dict[tuple[str, str], dict[str, object]]:
    proof = json.loads((current / "proof.json").read_text())
    return {(result["name"], result["side"]): result for result in proof["results"]}


def test_every_witness_is_red_on_the_base_for_its_fault_and_green_on_the_overlay(
    built: tuple[Place, str], current: Path
) -> None:
    found = results(current)
    for witness, fault in FAULTS.items():
        assert re.search(rf"^{witness}\s+\S red, as it must be\s+\S pass\s+[\d.]+$", built[1], re.MULTILINE)
        assert str(found[witness, "base"]["detail"]).startswith(fault)
        assert found[witness, "overlay"]["status"] == "pass"
    assert {name for name, _ in found} == {"contract", "titan-model", *FAULTS}


def test_what_was_judged_is_the_overlay_s_own_file(current: Path) -> None:
    model = current / "site" / MODEL
    listed = json.loads((current / "manifest.json").read_text())["files"][MODEL]["sha256"]
    assert sha256_file(model) == listed
    for name in ("titan-model", *FAULTS):
        evidence = results(current)[name, "overlay"]["evidence"]
        assert isinstance(evidence, dict)
        assert (evidence["file"], evidence["sha256"]) == (str(model), listed)


def test_a_second_build_has_nothing_to_do(built: tuple[Place, str]) -> None:
    done = built[0].toolkit("build", "--recipe", RECIPE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{RECIPE}: nothing to do, torchtitan_npu 0.2.2.post2+p4.k")


def test_the_env_file_makes_the_patched_distribution_the_first(built: tuple[Place, str], current: Path) -> None:
    look = (
        "import importlib.metadata as m, importlib.util as u; "
        "print(m.version('torchtitan_npu'), u.find_spec('torchtitan_npu').origin)"
    )
    script = f'set -eu; . {current.parent.parent}/env.sh; {sys.executable} -c "{look}"'
    done = subprocess.run(
        ["bash", "-c", script], cwd=built[0].folder, env=dict(built[0].environ), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    version, origin = done.stdout.split()
    assert PATCHED_VERSION.fullmatch(version)
    assert Path(origin) == current / "site/torchtitan_npu/__init__.py"


def test_one_undone_patch_turns_its_own_witness_red_and_no_other(built: tuple[Place, str], current: Path) -> None:
    place, victim = built[0], current / "site" / MODEL
    right = victim.read_text()
    patch = next((ROOT / "patches/torchtitan_npu/0.2.2").glob("0003-*.patch")).read_text()
    for removed, added in changed_lines(patch):
        assert victim.read_text().count(added) == 1
        victim.write_text(victim.read_text().replace(added, removed))
    rehash_manifest(current)
    try:
        words = [word for witness in FAULTS for word in ("--check", witness)]
        done = place.toolkit("verify", "--recipe", RECIPE, *words)
        assert done.returncode == 16, done.stderr
        for witness in FAULTS:
            verdict = "fail" if witness == "titan-sparse-attention" else "pass"
            assert re.search(rf"^{witness}\s+\S red, as it must be\s+\S {verdict}\s", done.stdout, re.MULTILINE)
    finally:
        victim.write_text(right)
        rehash_manifest(current)


def changed_lines(patch: str) -> list[tuple[str, str]]:
    """Return what each hunk takes out and what it puts in, as text of whole lines that stand together."""
    hunks = re.split(r"^@@ .*\n", patch, flags=re.MULTILINE)[1:]
    pairs = []
    for hunk in hunks:
        lines = hunk.splitlines()
        changed = [at for at, line in enumerate(lines) if line.startswith(("+", "-"))]
        between = lines[changed[0] : changed[-1] + 1]
        old = "".join(f"{line[1:]}\n" for line in between if not line.startswith("+"))
        new = "".join(f"{line[1:]}\n" for line in between if not line.startswith("-"))
        pairs.append((old, new))
    return pairs
