"""The files of editable installs, read without being run."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.doctor.pth import EditableFinder, PthLine, read_editable_finders, read_pth_files


def test_lines_that_count(tmp_path: Path) -> None:
    file = tmp_path / "a.pth"
    file.write_text("\ufeff# a note\n\n/src/one  \nrelative\nimport boot; boot.go()\nimporting\n", "utf-8")
    (tmp_path / ".hidden.pth").write_text("/src/two\n", "utf-8")

    assert list(read_pth_files([tmp_path])) == [
        PthLine(file=file, folder=Path("/src/one")),
        PthLine(file=file, folder=tmp_path / "relative"),
        PthLine(file=file, code="import boot; boot.go()"),
        PthLine(file=file, folder=tmp_path / "importing"),
    ]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        pytest.param("MAPPING: dict[str, str] = {'a': '/src/a'}\n", {"a": Path("/src/a")}, id="as it is written now"),
        pytest.param("MAPPING = {'a': '/src/a', 'b': '/b'}\n", {"a": Path("/src/a"), "b": Path("/b")}, id="as it was"),
        pytest.param("MAPPING = {name: '/src' for name in names}\n", {}, id="not a plain value"),
        pytest.param("MAPPING = ['a']\n", {}, id="no mapping"),
        pytest.param("MAPPING = {'a'\n", {}, id="no Python"),
        pytest.param("raise SystemExit\n", {}, id="without one"),
        pytest.param("MAPPING = \0\n", {}, id="a NUL byte"),
    ],
)
def test_the_mapping_of_an_editable_finder(tmp_path: Path, text: str, places: dict[str, Path]) -> None:
    file = tmp_path / "__editable___a_1_0_finder.py"
    file.write_text(text, "utf-8")

    assert list(read_editable_finders([tmp_path])) == [EditableFinder(file=file, places=places)]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert list(read_pth_files([tmp_path / "no"])) == []
    assert list(read_editable_finders([tmp_path / "no"])) == []
