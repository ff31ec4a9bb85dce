"""Which bases a series is for: `series.toml`, read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.errors import SeriesError
from toolkit.model import Component
from toolkit.requirements import BuildTable
from toolkit.series import Line, read_line, require_covered
from toolkit.sources import git, installed, wheel

COMMIT = "f38033913dbefc3a74dbdc4d4838794790d834f8"
COVERS = f'covers = ["torch_npu==2.13.0", "git:{COMMIT}", "installed:cann_ops_transformer==9.1", "installed:x"]\n'


def line_of(tmp_path: Path, text: str) -> Line:
    (tmp_path / "series.toml").write_text(text, encoding="utf-8")
    return read_line(tmp_path, name="torch_npu/2.13")


def test_a_line_names_its_bases_and_is_written_on_the_first(tmp_path: Path) -> None:
    line = line_of(
        tmp_path, f'schema = 1\n{COVERS}upstream = ["https://a.invalid/b.git"]\nsubfolder = "c"\ndiagnostic = true\n'
    )

    assert line.home == "torch_npu==2.13.0"
    assert line.is_for(f"git:{COMMIT}")
    assert not line.is_for("torch_npu==2.13.1")
    assert (line.name, line.upstream, line.subfolder, line.diagnostic) == (
        "torch_npu/2.13", ("https://a.invalid/b.git",), "c", True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("schema = 1\n", "covers", id="no bases named"),
        pytest.param("schema = 1\ncovers = []\n", "covers", id="an empty list"),
        pytest.param('schema = 1\ncovers = ["torch_npu>=2.13"]\n', "covers[0]", id="a range"),
        pytest.param('schema = 1\ncovers = ["git:f380339"]\n', "covers[0]", id="a short commit id"),
        pytest.param(
            'schema = 1\ncovers = ["torch_npu==2.13.0", "torch_npu==2.13.0"]\n',
            "covers names 'torch_npu==2.13.0' twice",
            id="a base named twice",
        ),
        pytest.param('schema = 1\ncover = ["torch_npu==2.13.0"]\n', "did you mean 'covers'", id="a mistyped key"),
        pytest.param('schema = 2\ncovers = ["torch_npu==2.13.0"]\n', "schema", id="another format"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_what_is_wrong(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(SeriesError) as caught:
        line_of(tmp_path, text)
    assert str(caught.value) == "series.toml of series 'torch_npu/2.13' is wrong"
    assert fault in "\n".join(caught.value.details)
    assert "secret" not in "\n".join(caught.value.details)


def test_what_is_no_toml_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(SeriesError) as caught:
        line_of(tmp_path, "schema = 1\ncovers = [\n")
    assert str(caught.value) == "series.toml of series 'torch_npu/2.13' is no TOML"
    assert caught.value.details


def component(base: object) -> Component:
    return Component(name="torch_npu", import_name="torch_npu", base=base)  # type: ignore[arg-type]


def test_each_kind_of_base_is_found_by_its_name(tmp_path: Path) -> None:
    line = line_of(tmp_path, f"schema = 1\n{COVERS}")
    build = BuildTable(backend="pep517", requires=("setuptools",))

    for base in (
        wheel.Base(kind="wheel", distribution="torch_npu", version="2.13.0"),
        git.Base(kind="git", urls=("https://a.invalid/b.git",), commit=COMMIT, build=build),
        installed.Base(kind="installed", package="cann_ops_transformer", version="9.1"),
        installed.Base(kind="installed", package="x"),
    ):
        require_covered(line, component(base))


def test_a_commit_that_is_not_covered_is_refused_with_the_way_to_look_at_it(tmp_path: Path) -> None:
    line = line_of(tmp_path, 'schema = 1\ncovers = ["torch_npu==2.13.0"]\n')
    build = BuildTable(backend="pep517", requires=("setuptools",))
    base = git.Base(kind="git", urls=("https://a.invalid/b.git",), commit=COMMIT, build=build)

    with pytest.raises(SeriesError) as caught:
        require_covered(line, component(base))
    assert str(caught.value) == f"series 'torch_npu/2.13' is not for torch_npu git:{COMMIT}"
    assert f"`toolkit patch matrix --against git:URL@{COMMIT}`" in caught.value.hint
