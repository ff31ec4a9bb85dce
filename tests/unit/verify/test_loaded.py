"""What a process has loaded is asked of its modules without waking those that load lazily."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from verify.loaded import module_files


class Unwilling:
    """Stands in `sys.modules` for a package, as a lazy backend does, and cannot be asked for anything."""

    def __getattr__(self, name: str) -> object:
        raise LookupError(f"{name} is not there before the backend is")


class FoldersOfAnUnwilling:
    """What a namespace package's folders are below such a parent: each look asks the parent for its path."""

    def __iter__(self) -> Iterator[str]:
        raise LookupError("__path__ is not there before the backend is")

    def __len__(self) -> int:
        raise LookupError("__path__ is not there before the backend is")


def namespace_below(folders: object) -> ModuleType:
    module = ModuleType("lazy.inner")
    spec = ModuleSpec("lazy.inner", None, is_package=True)
    spec.submodule_search_locations = folders  # type: ignore[assignment]
    module.__spec__ = spec
    return module


def test_a_stand_in_that_raises_has_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lazy", Unwilling())  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "lazy.inner", namespace_below(FoldersOfAnUnwilling()))
    assert module_files(["lazy"]) == {}


def test_a_namespace_package_has_its_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "lazy.inner", namespace_below([str(tmp_path)]))
    assert module_files(["lazy"]) == {"lazy.inner": [tmp_path]}
