"""Upstreams of the tests of git bases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.git_cases import Upstream
from tests.repositories import add_submodule, make_upstream
from toolkit.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def upstream(tmp_path: Path, store: Store) -> Upstream:
    files = {"setup.py": "s\n", "pkg/a.py": "1\n", "pkg/csrc/a.cpp": "c\n", "ext/pkg/b.py": "2\n", "ext/n.cpp": "3\n"}
    return Upstream(tmp_path / "x", files, store)


@pytest.fixture
def family(upstream: Upstream, tmp_path: Path) -> Upstream:
    """Return an upstream with a submodule that has one of its own, by relative addresses."""
    leaf = make_upstream(tmp_path / "leaf", {"leaf.h": "l\n"})
    make_upstream(tmp_path / "inner", {"inner.h": "i\n"})
    inner = add_submodule(tmp_path / "inner", "deep/leaf", "../leaf", leaf)
    make_upstream(tmp_path / "mlir", {"m": "m\n"})
    add_submodule(upstream.folder, "never", "https://127.0.0.1:1/never", "3" * 40, extra="\tupdate = none\n")
    upstream.commit = add_submodule(upstream.folder, "third_party/inner", "../inner/", inner)
    return upstream
