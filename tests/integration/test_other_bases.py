"""Bases that are neither a release wheel nor a commit: an sdist, which is built, and a package that is installed."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.native_sample import NativeSample, make_native_sample
from tests.upstream import check_out, download_requirements, make_patches
from toolkit.errors import RepackError, SourceError

SDIST = """\
kind = "sdist"
distribution = "sample_npu"
version = "1.2.0"

[component.base.build]
backend = "setup.py"
requires = {requires}
env = {{ BUILD_WITHOUT_SHA = "1" }}
"""

INSTALLED = """\
[[component]]
name = "sample_ops"
series = "sample_ops/9.1"
accept_upstream = ["0001-integer-head-ratio"]

[component.base]
kind = "installed"
package = "sample_ops"
optional = {optional}
"""

PKG_INFO = "Metadata-Version: 2.1\nName: sample_npu\nVersion: 1.2.0\n"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return download_requirements(tmp_path_factory.mktemp("wheels"), "build")


@pytest.fixture
def sample(tmp_path: Path, wheels: Path) -> NativeSample:
    return make_native_sample(tmp_path, wheels=wheels)


def toolkit(sample: NativeSample, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        sample.toolkit(*words), cwd=sample.root, env=sample.environ, capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip


def built(sample: NativeSample, *words: str) -> dict[str, object]:
    done = toolkit(sample, "build", "--json", *words)
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


# --- an sdist ----------------------------------------------------------------------------------------------------


def make_sdist(sample: NativeSample, folder: Path, scratch: Path) -> None:
    """Pack the upstream with its submodules as a release of it would be."""
    tree = check_out(sample.upstream.main, sample.upstream.older, scratch / "tree")
    with tarfile.open(folder / "sample_npu-1.2.0.tar.gz", "w:gz") as archive:
        for path in sorted(path for path in tree.rglob("*") if path.is_file() and ".git" not in path.parts):
            archive.add(path, f"sample_npu-1.2.0/{path.relative_to(tree)}")
        member = tarfile.TarInfo("sample_npu-1.2.0/PKG-INFO")
        member.size = len(PKG_INFO)
        archive.addfile(member, io.BytesIO(PKG_INFO.encode()))


def test_an_sdist_is_locked_built_and_proven(sample: NativeSample, tmp_path: Path, wheels: Path) -> None:
    index = tmp_path / "index"
    index.mkdir()
    for wheel in wheels.iterdir():
        (index / wheel.name).symlink_to(wheel)
    make_sdist(sample, index, tmp_path / "scratch")
    text = sample.recipe.read_text()
    begin, end = (
        text.index('kind = "git"'),
        text.index('pass_env = ["CC", "CXX"]\n') + len('pass_env = ["CC", "CXX"]\n'),
    )
    requires = text[text.index("requires = ") + len("requires = ") :].partition("\n")[0]
    sample.recipe.write_text(text[:begin] + SDIST.format(requires=requires) + text[end:])
    sample = replace(sample, environ=sample.environ | {"PIP_FIND_LINKS": str(index)})

    done = toolkit(sample, "lock")
    assert done.returncode == 0, done.stderr
    lock = sample.recipe.with_suffix(".lock").read_text()
    assert 'file = "sample_npu-1.2.0.tar.gz"' in lock
    answer = built(sample)
    (package,) = answer["packages"]  # type: ignore[misc]
    assert package["version"].startswith("1.2.0+p1.k")
    assert answer["proof_record"]["ok"] is True  # type: ignore[index]
    assert len(package["built"]["tree"]) == 64


# --- an installed package -----------------------------------------------------------------------------------------


def install(sample: NativeSample, home: Path, scratch: Path, *, commit: str = "") -> Path:
    """Put the ops package where CANN's own site-packages are, and return its folder."""
    tree = check_out(sample.upstream.ops, commit or sample.upstream.ops_older, scratch)
    site = home / "python/site-packages"
    site.mkdir(parents=True)
    (tree / "torch_extension/sample_ops").rename(site / "sample_ops")
    return site / "sample_ops"


def with_installed(sample: NativeSample, home: Path, *, optional: bool = False) -> NativeSample:
    make_patches(sample.upstream, ["ops"], sample.root / "patches/sample_ops/9.1")
    text = sample.recipe.read_text()
    before, after = text[: text.index("[env]")], text[text.index("[env]") :]
    sample.recipe.write_text(before + INSTALLED.format(optional=str(optional).lower()) + "\n" + after)
    return replace(sample, environ=sample.environ | {"ASCEND_HOME_PATH": str(home)})


def statuses(answer: dict[str, object], name: str) -> list[str]:
    results = answer["proof_record"]["results"]  # type: ignore[index]
    return [one["status"] for one in results if one["name"] == name]


def test_an_installed_package_is_mended_as_a_copy(sample: NativeSample, tmp_path: Path) -> None:
    package = install(sample, tmp_path / "cann", tmp_path / "ops")
    before = {path: path.read_bytes() for path in package.rglob("*") if path.is_file()}
    sample = with_installed(sample, tmp_path / "cann")
    assert toolkit(sample, "lock").returncode == 0

    answer = built(sample)
    assert answer["patches"]["sample_ops"] == [  # type: ignore[index]
        {"name": "0001-integer-head-ratio", "status": "clean", "offsets": []}
    ]
    assert statuses(answer, "integer-head-ratio") == ["fail", "pass"]
    assert {path: path.read_bytes() for path in package.rglob("*") if path.is_file()} == before
    assert "nothing to do" in toolkit(sample, "build").stdout

    file = next(path for path in before if path.name == "__init__.py")
    file.write_bytes(file.read_bytes() + b"\n# edited by its owner\n")
    again = built(sample)
    assert again["did"] == ["overlay", "proof"]
    assert again["key"] != answer["key"]


def test_an_installed_package_that_is_mended_already_is_green_on_both_sides(
    sample: NativeSample, tmp_path: Path
) -> None:
    install(sample, tmp_path / "cann", tmp_path / "ops", commit=sample.upstream.ops_newer)
    sample = with_installed(sample, tmp_path / "cann")
    assert toolkit(sample, "lock").returncode == 0

    answer = built(sample)
    assert answer["patches"]["sample_ops"][0]["status"] == "upstream"  # type: ignore[index]
    assert statuses(answer, "integer-head-ratio") == ["pass", "pass"]


def test_a_package_that_is_not_installed_is_an_error_or_left_out(sample: NativeSample, tmp_path: Path) -> None:
    (tmp_path / "cann").mkdir()
    needed = with_installed(sample, tmp_path / "cann")
    assert toolkit(needed, "lock").returncode == 0
    done = toolkit(needed, "build")
    assert done.returncode == SourceError.exit_code
    assert "sample_ops" in done.stderr
    assert "set_env.sh" in done.stderr

    needed.recipe.write_text(needed.recipe.read_text().replace("optional = false", "optional = true"))
    assert toolkit(needed, "lock").returncode == 0
    done = toolkit(needed, "build", "--json")
    assert done.returncode == 0, done.stderr
    assert [package["component"] for package in json.loads(done.stdout)["packages"]] == ["sample_npu"]
    assert "sample/sample_ops: it is not installed here, and optional: left out" in done.stderr
    assert "nothing to do" in toolkit(needed, "build").stdout

    install(needed, tmp_path / "cann", tmp_path / "ops")
    arrived = built(needed)
    assert [package["component"] for package in arrived["packages"]] == [  # type: ignore[attr-defined]
        "sample_npu", "sample_ops",
    ]  # fmt: skip


def test_a_native_patch_of_a_wheel_names_the_recipe_that_can_take_it(sample: NativeSample, tmp_path: Path) -> None:
    assert toolkit(sample, "lock").returncode == 0
    done = toolkit(sample, "build", "--until", "wheel", "--json")
    assert done.returncode == 0, done.stderr
    base = Path(json.loads(done.stdout)["components"][0]["wheel"]["path"])
    unpatched = next(base.parent.parent.parent.glob("native/*/*.whl"))
    sample.set_patches("native")

    home = tmp_path / "cann"
    site = home / "python/site-packages"
    site.mkdir(parents=True)
    subprocess.run(["unzip", "-q", unpatched, "-d", site], check=True)
    other = sample.recipe.with_name("from-cann.toml")
    text = sample.recipe.read_text()
    begin, end = (
        text.index('kind = "git"'),
        text.index('pass_env = ["CC", "CXX"]\n') + len('pass_env = ["CC", "CXX"]\n'),
    )
    other.write_text(text[:begin] + 'kind = "installed"\npackage = "sample_npu"\n' + text[end:])
    sample = replace(sample, environ=sample.environ | {"ASCEND_HOME_PATH": str(home)})
    assert toolkit(sample, "lock", "--recipe", "from-cann").returncode == 0

    done = toolkit(sample, "build", "--recipe", "from-cann")
    assert done.returncode == RepackError.exit_code, done.stderr
    assert "patch 0001-clamp-high of series 'sample_npu/1.2' changes what is compiled" in done.stderr
    assert "hint: build from source: --recipe sample" in done.stderr
    assert not os.path.lexists(sample.overlays / "from-cann/current")
