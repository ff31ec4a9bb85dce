"""A project in small for the matrix: two series, and four releases that stand to them in four ways.

1.0 has the fault, 1.1 too but lower down, 2.0 has upstream's own fix, and 3.0 has the fault in other words; it asks for
a torch that nobody has. Their wheels are in the store and in a folder that pip takes for its index.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.sample import Sample, make_sample, own_tag
from tests.series_cases import write_patches
from tests.wheels import make_wheel
from toolkit.files import sha256_file
from toolkit.lock import write_lock
from toolkit.model import Lock, LockedComponent
from toolkit.sources.wheel import Artifact, Locked

CORE = """\
def first():
    return 1


def answer():
    total = 40
    return total + 1


def last():
    return 3
"""
RELEASES = {
    "1.0": CORE,
    "1.1": f"# One line more.\n\n{CORE}",
    "2.0": CORE.replace("total + 1", "total + 2"),
    "3.0": CORE.replace("total + 1", "total * 9"),
}
COVERS = {"sample_npu/1": ("1.0", "1.1"), "sample_npu/3": ("3.0",)}
NAME = "0001-change"


def make_matrix_sample(folder: Path) -> Sample:
    """Write the project below `folder`, with all its releases in its store and no lock but one made for 1.0."""
    sample = make_sample(folder)
    shutil.rmtree(sample.root / "patches")
    sample.recipe.write_text(sample.recipe.read_text().replace("sample_npu/1.0", "sample_npu/1"), encoding="utf-8")
    sample.wheel.unlink()
    for version in RELEASES:
        add_release(sample, version)
    for number, (series, covered) in enumerate(COVERS.items()):
        _write_series(sample, series, RELEASES[covered[0]], folder / f"commits-{number}")
        write_line(sample, series, *(f"sample_npu=={version}" for version in covered))
    _write_lock(sample)
    return sample


def add_release(sample: Sample, version: str, *, tag: str = "") -> Path:
    """Put a release into the index and into the store."""
    own = own_tag()
    files = {"sample_npu/__init__.py": "", "sample_npu/core.py": RELEASES.get(version, CORE)}
    wheel = make_wheel(
        sample.wheel.parent, "sample_npu", version, files, tag=tag or f"{own.interpreter}-{own.abi}-{own.platform}",
        metadata="Requires-Dist: torch==9.*\n" if version == "3.0" else "",
    )  # fmt: skip
    kept = sample.means.store.root / "base" / sha256_file(wheel)
    kept.mkdir(parents=True)
    shutil.copy(wheel, kept)
    return wheel


def write_line(sample: Sample, series: str, *covers: str, more: str = "") -> None:
    """Write a series' series.toml."""
    listed = ", ".join(f'"{name}"' for name in covers)
    (sample.root / "patches" / series / "series.toml").write_text(f"schema = 1\ncovers = [{listed}]\n{more}")


def _write_series(sample: Sample, series: str, core: str, repository: Path) -> None:
    fixed = core.replace("total + 1", "total + 2").replace("total * 9", "total + 2")
    trees = [{"sample_npu/core.py": text.encode()} for text in (core, fixed)]
    message = "change\n\nWithout it answer() is wrong.\n\nUpstream-Status: Pending [a sample]\nWitness: answer\n"
    write_patches(repository, sample.root / "patches" / series, *trees, message=message)


def _write_lock(sample: Sample) -> None:
    tag = own_tag()
    wheel = next(sample.wheel.parent.glob("sample_npu-1.0-*.whl"))
    artifact = Artifact(
        file=wheel.name, sha256=sha256_file(wheel), python_tag=tag.interpreter, platform=tag.platform
    )  # fmt: skip
    base = Locked(distribution="sample_npu", version="1.0", artifact=(artifact,))
    locked = Lock(
        recipe="sample", components=(LockedComponent(name="sample_npu", base=base),), path=sample.root / "sample.lock"
    )
    write_lock(locked, sample.recipe.with_suffix(".lock"))
