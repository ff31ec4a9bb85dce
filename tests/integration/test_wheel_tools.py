"""The wheels and overlays that we write, in the eyes of pip, installer, wheel and unzip."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.wheels import as_wheel, make_wheel, patched_tree
from toolkit.model import AppliedPatch, Wheel, make_key
from toolkit.overlay import lay_site
from toolkit.repack import repack_wheel

KEY = make_key([("patch", "0001")])
FILES = {
    "sample/__init__.py": "from .core import answer\n",
    "sample/core.py": "def answer():\n    return 41\n",
    "sample/größe.txt": "x" * 5000,
    "sample/version.py": "__version__ = '1.0'\n",
    "sample-1.0.data/scripts/sample-run": "#!/bin/sh\necho ran\n",
    "sample-1.0.data/headers/sample.h": "int x;\n",
    "sample-1.0.data/data/share/sample/x": "data\n",
    "sample-1.0.data/purelib/pure.py": "",
}


@pytest.fixture
def wheel(tmp_path: Path) -> Wheel:
    base = make_wheel(tmp_path / "base", files=FILES, modes={"sample-1.0.data/scripts/sample-run": 0o755})
    tree = patched_tree(base, tmp_path / "tree", {"sample/core.py": "def answer():\n    return 42\n"})
    tree = replace(tree, applied=(AppliedPatch(name="0001-change", status="clean"),))
    return repack_wheel(tree, key=KEY, import_name="sample", into=tmp_path).wheel


def run(*argv: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(word) for word in argv], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pip_install(wheel: Path, into: Path, cwd: Path) -> None:
    run(
        sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps",
        "--no-compile", "--target", into, wheel, cwd=cwd,
    )  # fmt: skip


def files_below(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc"}


def test_pip_installs_a_repacked_wheel_at_its_new_version(wheel: Wheel, tmp_path: Path) -> None:
    pip_install(wheel.path, tmp_path / "site", tmp_path)
    script = (
        "import importlib.metadata, sample, sample.version\n"
        "print(importlib.metadata.version('sample'), sample.version.__version__, sample.answer())\n"
    )

    found = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": str(tmp_path / "site")}, capture_output=True, text=True
    )

    assert found.stdout == f"{wheel.version} {wheel.version} 42\n"


def test_installer_accepts_its_record(wheel: Wheel) -> None:
    sources = pytest.importorskip("installer.sources")

    with sources.WheelFile.open(wheel.path) as source:
        source.validate_record()


def test_wheel_unpacks_it(wheel: Wheel, tmp_path: Path) -> None:
    pytest.importorskip("wheel")

    run(sys.executable, "-m", "wheel", "unpack", "--dest", tmp_path / "unpacked", wheel.path, cwd=tmp_path)

    assert (tmp_path / "unpacked" / f"sample-{wheel.version}" / "sample" / "core.py").is_file()


@pytest.mark.skipif(shutil.which("unzip") is None, reason="unzip is not installed")
def test_unzip_finds_no_fault(wheel: Wheel, tmp_path: Path) -> None:
    assert "No errors detected" in run("unzip", "-t", wheel.path, cwd=tmp_path)


def test_site_has_what_pip_would_install(wheel: Wheel, tmp_path: Path) -> None:
    pip_install(wheel.path, tmp_path / "pip", tmp_path)
    laid = lay_site([as_wheel(wheel.path)], tmp_path / "site")

    info = f"sample-{wheel.version}.dist-info"
    only_pips = {f"{info}/{name}" for name in ("INSTALLER", "REQUESTED", "direct_url.json")}
    by_pip = {name for name in files_below(tmp_path / "pip") if not name.endswith(".h")}
    by_us = {name for name in files_below(tmp_path / "site") if not name.endswith(".h")}
    assert by_pip - by_us == only_pips
    assert by_us - by_pip == set()
    assert {entry.path for entry in laid.entries} == by_us | {"include/python/sample/sample.h"}
    for name in by_us - {f"{info}/RECORD"}:
        assert (tmp_path / "site" / name).read_bytes() == (tmp_path / "pip" / name).read_bytes(), name
    assert (tmp_path / "site/bin/sample-run").stat().st_mode & 0o111


def test_metadata_is_found_in_site(wheel: Wheel, tmp_path: Path) -> None:
    lay_site([as_wheel(wheel.path)], tmp_path / "site")

    found = list(importlib.metadata.distributions(path=[str(tmp_path / "site")]))
    assert [(one.metadata["Name"], one.version) for one in found] == [("sample", wheel.version)]
