"""The series that this project ships are what a series has to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.model import Patch
from toolkit.series import load_series

PATCHES = Path(__file__).parents[2] / "patches"
SERIES = sorted(path.relative_to(PATCHES).as_posix() for path in PATCHES.glob("*/*") if path.is_dir())
COMPONENTS = sorted({name.split("/")[0] for name in SERIES})


def patches_of(name: str) -> tuple[Patch, ...]:
    return load_series(PATCHES / name, name=name).patches


@pytest.mark.parametrize("name", SERIES)
def test_a_shipped_series_is_read_without_fault(name: str) -> None:
    patches = patches_of(name)
    assert [patch.number for patch in patches] == list(range(1, len(patches) + 1))
    assert all(patch.subject and patch.body for patch in patches)


@pytest.mark.parametrize("component", COMPONENTS)
def test_the_same_change_has_one_name_subject_and_witness_on_every_line(component: str) -> None:
    lines = [name for name in SERIES if name.startswith(f"{component}/")]
    known: dict[str, set[tuple[str, str]]] = {}
    for patch in (patch for line in lines for patch in patches_of(line)):
        known.setdefault(patch.name, set()).add((patch.subject, patch.witness))
    assert [name for name, said in known.items() if len(said) > 1] == []


def test_both_lines_of_torch_npu_have_the_same_changes() -> None:
    names = [[patch.name for patch in patches_of(f"torch_npu/{line}")] for line in ("2.12", "2.13")]
    assert names[0] == names[1]


@pytest.mark.parametrize("name", SERIES)
def test_a_release_wheel_or_an_installed_package_can_take_a_shipped_series(name: str) -> None:
    changes = [change for patch in patches_of(name) for change in patch.changes]
    assert {change.part for change in changes} == {"python"}
    assert {change.path.split("/")[0] for change in changes} == {name.split("/")[0]}


@pytest.mark.parametrize("name", SERIES)
def test_a_shipped_patch_names_nobody_and_no_time_of_its_own(name: str) -> None:
    for patch in patches_of(name):
        head = patch.path.read_text(encoding="utf-8").splitlines()[:3]
        assert head == [
            f"From {'0' * 40} Mon Sep 17 00:00:00 2001",
            "From: toolkit authors <toolkit@example.invalid>",
            "Date: Tue, 1 Sep 2026 00:00:00 +0000",
        ]
