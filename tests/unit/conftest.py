"""The small project of `tests.sample`, locked and built once for all tests of the upper rooms."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.sample import Sample, copy_of, make_sample
from toolkit.resolve import resolve_recipe


@pytest.fixture(scope="session")
def locked_once(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    sample = make_sample(tmp_path_factory.mktemp("locked"))
    resolve_recipe(sample.project, "sample", upgrade=False, environ=sample.environ, stage=lambda prefix, text: None)
    return sample


@pytest.fixture
def sample(locked_once: Sample, tmp_path: Path) -> Sample:
    """Return a copy of the locked project, for the test alone; its store is empty."""
    return copy_of(locked_once, tmp_path)


@pytest.fixture(scope="session")
def built(locked_once: Sample, tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Return the project with an overlay that stands. Shared: what a test changes, it puts back."""
    sample = copy_of(locked_once, tmp_path_factory.mktemp("built"))
    sample.build()
    return sample


@pytest.fixture
def generation(built: Sample) -> Path:
    """Return the generation that stands."""
    return built.folder.path / os.readlink(built.folder.path / "current")
