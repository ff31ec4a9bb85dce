"""The trace of a finished build: it holds exactly as long as nothing that went into it has changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from toolkit.trace import Trace, changed_input, digest_variable, read_trace, record_trace, write_trace

FACTS = {"toolkit": "0.1.0", "python": "/usr/bin/python3"}


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """Make a folder of inputs: a recipe, and a series of two patches."""
    root = tmp_path / "inputs"
    (root / "series").mkdir(parents=True)
    for name in ("recipe.toml", "series/0001-a.patch", "series/0002-b.patch"):
        (root / name).write_text(name)
    return root


@pytest.fixture
def trace(inputs: Path) -> Trace:
    files = sorted(path for path in inputs.rglob("*") if path.is_file())
    return record_trace(files=files, folders=[inputs / "series"], facts=FACTS, result={"key": "k"})


def test_nothing_changed(trace: Trace) -> None:
    assert changed_input(trace, FACTS) is None


def test_a_trace_is_read_as_it_was_written(trace: Trace, tmp_path: Path) -> None:
    write_trace(trace, tmp_path / "built.json")

    assert read_trace(tmp_path / "built.json") == trace
    assert trace.result == {"key": "k"}


def test_a_touched_file_has_not_changed(trace: Trace, inputs: Path) -> None:
    os.utime(inputs / "recipe.toml", ns=(1, 1))

    assert changed_input(trace, FACTS) is None


def test_a_file_written_anew_with_the_same_bytes_has_not_changed(trace: Trace, inputs: Path) -> None:
    (inputs / "recipe.toml").unlink()
    (inputs / "recipe.toml").write_text("recipe.toml")

    assert changed_input(trace, FACTS) is None


def _edit(path: Path) -> None:
    path.write_text(path.read_text().upper())


def _edit_and_set_the_time_back(path: Path) -> None:
    before = path.stat()
    _edit(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _make_a_folder_of(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "change",
    [_edit, _edit_and_set_the_time_back, Path.unlink, _make_a_folder_of],
    ids=["edited", "edited, its time set back", "removed", "a folder now"],
)
def test_a_changed_file_is_named(trace: Trace, inputs: Path, change: Callable[[Path], None]) -> None:
    change(inputs / "recipe.toml")

    assert changed_input(trace, FACTS) == str(inputs / "recipe.toml")


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "0003-c.patch").touch(),
        lambda folder: (folder / "0002-b.patch").unlink(),
        lambda folder: (folder / "0002-b.patch").rename(folder / "0002-c.patch"),
        lambda folder: folder.rename(folder.with_name("other")),
    ],
    ids=["a file more", "a file less", "a file renamed", "the folder renamed"],
)
def test_a_folder_with_other_names_in_it_is_named(trace: Trace, inputs: Path, change: Callable[[Path], object]) -> None:
    change(inputs / "series")

    assert changed_input(trace, FACTS) == str(inputs / "series")


def test_what_python_caches_beside_its_sources_is_no_change(trace: Trace, inputs: Path) -> None:
    (inputs / "series" / "__pycache__").mkdir()

    assert changed_input(trace, FACTS) is None


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        pytest.param({**FACTS, "toolkit": "0.2.0"}, "toolkit", id="another value"),
        pytest.param({**FACTS, "new": ""}, "new", id="one that the trace does not know"),
    ],
)
def test_another_fact_is_named(trace: Trace, facts: dict[str, str], name: str) -> None:
    assert changed_input(trace, facts) == name


def test_recording_what_is_not_there_is_an_error(inputs: Path) -> None:
    with pytest.raises(FileNotFoundError):
        record_trace(files=[inputs / "none"], folders=[], facts={}, result={})


# --- traces that cannot be used --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda body: body | {"schema": 3}, id="another schema"),
        pytest.param(lambda body: {name: body[name] for name in body if name != "schema"}, id="no schema"),
        pytest.param(lambda body: {name: body[name] for name in body if name != "facts"}, id="no facts"),
        pytest.param(lambda body: body | {"files": None}, id="files that are null"),
        pytest.param(lambda body: body | {"files": {"a": 3}}, id="a file that is a number"),
        pytest.param(lambda body: body | {"files": {"a": [3, "x"]}}, id="a signature that is a number"),
        pytest.param(lambda body: body | {"files": {"a": [[], "x", "y"]}}, id="a file with a member too many"),
        pytest.param(lambda body: body | {"folders": ["a"]}, id="folders that are a list"),
        pytest.param(lambda body: body | {"folders": {"a": None}}, id="a folder that is null"),
        pytest.param(lambda body: body | {"result": 3}, id="a result that is a number"),
        pytest.param(lambda body: [body], id="a list"),
    ],
)
def test_a_trace_of_another_form_is_none(trace: Trace, tmp_path: Path, spoil: Callable[[dict], object]) -> None:
    path = tmp_path / "built.json"
    write_trace(trace, path)
    path.write_text(json.dumps(spoil(json.loads(path.read_text()))))

    assert read_trace(path) is None


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff\xfe\xff", b"null"], ids=["empty", "cut short", "not text", "null"])
def test_a_trace_that_cannot_be_read_is_none(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "built.json").write_bytes(raw)

    assert read_trace(tmp_path / "built.json") is None


def test_no_trace_is_none(tmp_path: Path) -> None:
    assert read_trace(tmp_path / "built.json") is None
    assert read_trace(tmp_path) is None


# --- programs and variables --------------------------------------------------------------------------------------


def test_what_a_path_leads_to_is_noticed_also_where_there_was_nothing(tmp_path: Path) -> None:
    (tmp_path / "gcc-12").touch()
    (tmp_path / "gcc-13").touch()
    (tmp_path / "cc").symlink_to("gcc-12")
    trace = record_trace(files=[], folders=[], links=[tmp_path / "cc", tmp_path / "ccache"])
    assert changed_input(trace, {}) is None

    (tmp_path / "cc").unlink()
    (tmp_path / "cc").symlink_to("gcc-13")
    assert changed_input(trace, {}) == str(tmp_path / "cc")
    (tmp_path / "cc").unlink()
    (tmp_path / "cc").symlink_to("gcc-12")
    (tmp_path / "ccache").touch()
    assert changed_input(trace, {}) == str(tmp_path / "ccache")


def test_a_variable_is_noticed_and_its_value_is_not_written_down(tmp_path: Path) -> None:
    watched = {name: digest_variable({"TOKEN": "hunter2"}, name) for name in ("TOKEN", "CC")}
    trace = record_trace(files=[], folders=[], variables=watched)
    write_trace(trace, tmp_path / "built.json")

    assert "hunter2" not in (tmp_path / "built.json").read_text()
    assert changed_input(trace, {}, {"TOKEN": "hunter2", "OTHER": "x"}) is None
    assert changed_input(trace, {}, {"TOKEN": "hunter3"}) == "TOKEN"
    assert changed_input(trace, {}, {"TOKEN": "hunter2", "CC": ""}) == "CC"
