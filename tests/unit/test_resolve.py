"""Resolving: what is pinned and still fits stays as it is, and nothing else does."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.sample import Sample
from tests.wheels import make_wheel
from toolkit.errors import LockError
from toolkit.files import sha256_file
from toolkit.model import Lock
from toolkit.plan import load_lock, read_recipe
from toolkit.resolve import resolve_recipe

OTHER = "manylinux_2_28_aarch64"


@dataclass(kw_only=True)
class Resolver:
    """The command on the sample, its registry a folder of the test's own; `stages` are what it said."""

    sample: Sample
    index: Path
    stages: list[str] = field(default_factory=list)

    def __call__(self, *, upgrade: bool = False) -> tuple[str, ...]:
        environ = self.sample.environ | {"PIP_FIND_LINKS": str(self.index)}
        self.stages.clear()
        _, changed = resolve_recipe(
            self.sample.project, "sample", upgrade=upgrade, environ=environ,
            stage=lambda prefix, text: self.stages.append(f"{prefix}: {text}"),
        )  # fmt: skip
        return changed

    @property
    def path(self) -> Path:
        return self.sample.recipe.with_suffix(".lock")

    @property
    def lock(self) -> Lock:
        return load_lock(self.sample.project, read_recipe(self.sample.project, "sample"))

    def edit(self, old: str, new: str) -> None:
        text = self.sample.recipe.read_text()
        assert old in text
        self.sample.recipe.write_text(text.replace(old, new))

    def add_wheel(self, *, version: str = "1.0", platform: str | None = None) -> Path:
        tag = self.sample.wheel.stem.split("-", 2)[2]
        own = tag.split("-")[2]
        return make_wheel(self.index, "sample_npu", version, tag=tag.replace(own, platform or own), metadata="X: 1\n")


@pytest.fixture
def resolver(sample: Sample, tmp_path: Path) -> Resolver:
    shutil.copytree(sample.wheel.parent, tmp_path / "index")
    return Resolver(sample=sample, index=tmp_path / "index")


def test_an_entry_that_fits_is_kept_and_nobody_is_asked(resolver: Resolver) -> None:
    shutil.rmtree(resolver.index)
    before = resolver.path.stat()

    assert resolver() == ()
    assert resolver.stages == []
    assert resolver.path.stat().st_mtime_ns == before.st_mtime_ns


def test_a_target_that_the_contract_gains_is_looked_up(resolver: Resolver) -> None:
    resolver.edit("platforms = [", f'platforms = ["{OTHER}", ')
    other = resolver.add_wheel(platform=OTHER)

    assert resolver() == ("sample_npu",)
    assert resolver.stages == ["sample/sample_npu: resolve sample_npu==1.0"]
    text = resolver.path.read_text()
    assert sha256_file(other) in text
    assert sha256_file(resolver.sample.wheel) in text


def test_a_target_that_cannot_be_had_leaves_the_lock_as_it_was(resolver: Resolver) -> None:
    resolver.edit("platforms = [", f'platforms = ["{OTHER}", ')
    before = resolver.path.read_bytes()

    with pytest.raises(LockError, match="has no wheel for 1 of 2 targets"):
        resolver()
    assert resolver.path.read_bytes() == before


def test_another_version_is_looked_up(resolver: Resolver) -> None:
    resolver.edit('version = "1.0"', 'version = "2.0"')
    wheel = resolver.add_wheel(version="2.0")

    assert resolver() == ("sample_npu",)
    assert sha256_file(wheel) in resolver.path.read_text()


def test_a_release_that_was_replaced_is_noticed_by_upgrade_only(resolver: Resolver) -> None:
    wheel = resolver.add_wheel()

    assert resolver() == ()
    assert sha256_file(wheel) not in resolver.path.read_text()
    assert resolver(upgrade=True) == ("sample_npu",)
    assert sha256_file(wheel) in resolver.path.read_text()


def test_an_upgrade_that_finds_the_same_changes_nothing(resolver: Resolver) -> None:
    before = resolver.path.stat()

    assert resolver(upgrade=True) == ()
    assert resolver.stages == ["sample/sample_npu: resolve sample_npu==1.0"]
    assert resolver.path.stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize("raw", [None, b"", b"schema = 2", b"\xff"], ids=["none", "empty", "other schema", "garbled"])
def test_a_lock_that_cannot_be_read_is_made_anew(resolver: Resolver, raw: bytes | None) -> None:
    before = resolver.path.read_bytes()
    resolver.path.unlink()
    if raw is not None:
        resolver.path.write_bytes(raw)

    assert resolver() == ("sample_npu",)
    assert resolver.path.read_bytes() == before


def test_the_entry_of_a_component_that_went_is_dropped_and_named(resolver: Resolver) -> None:
    text = resolver.path.read_text()
    entry = text[text.index("[[component]]") :]
    resolver.path.write_text(text + "\n" + entry.replace('name = "sample_npu"', 'name = "old_npu"'))

    assert resolver() == ("old_npu",)
    assert [part.name for part in resolver.lock.components] == ["sample_npu"]
    assert resolver.path.read_text() == text
