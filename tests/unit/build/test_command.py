"""The command of a build, and the steps that it tells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from toolkit.build.command import build_command, list_wheels, step_reader, take_wheel
from toolkit.build.interpreter import BuildPython, inspect_python
from toolkit.build.workroom import Workroom
from toolkit.errors import BuildError

ROOM = Workroom(root=Path("/srv/room"))


def python(*, has_build: bool = True) -> BuildPython:
    return BuildPython(executable=Path("/env/bin/python"), files=(), has_build=has_build, commands={})


def test_a_backend_is_run_without_another_environment_around_it() -> None:
    assert build_command("pep517", python(), ROOM) == [
        "/env/bin/python", "-m", "build", "--wheel", "--no-isolation", "--outdir", "/srv/room/dist", ".",
    ]  # fmt: skip


def test_upstreams_own_command() -> None:
    assert build_command("setup.py", python(has_build=False), ROOM) == [
        "/env/bin/python", "setup.py", "build", "bdist_wheel",
    ]  # fmt: skip


def test_an_environment_without_build_cannot_run_a_backend() -> None:
    with pytest.raises(BuildError) as caught:
        build_command("pep517", python(has_build=False), ROOM)

    assert caught.value.message == (
        "the build's environment has no package `build`, which runs a project's build backend"
    )
    assert 'add "build" to `requires`' in caught.value.hint


def test_an_environment_that_cannot_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as caught:
        inspect_python(tmp_path)

    assert caught.value.message == (
        f"the build's environment {tmp_path} cannot be used: "
        f"cannot start '{tmp_path}/bin/python': No such file or directory"
    )
    assert caught.value.hint == "remove that folder: the next build makes it anew"


@pytest.mark.parametrize(
    ("line", "steps"),
    [
        pytest.param("[3/120] Building CXX object a.o", [(3, 120)], id="ninja"),
        pytest.param("[ 12%] Building CXX object a.o", [(12, 100)], id="makefiles of CMake"),
        pytest.param("[100%] Built target a", [(100, 100)], id="at the end"),
        pytest.param("copied [3/120]", [], id="not where a line begins"),
        pytest.param("[1, 2]", [], id="something else"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_steps_are_read(line: str, steps: list[tuple[int, int]]) -> None:
    told: list[tuple[int, int | None]] = []
    read = step_reader(lambda done, total: told.append((done, total)))
    assert read is not None

    read(line)

    assert told == steps


def test_without_a_listener_nothing_is_read() -> None:
    assert step_reader(None) is None


def test_a_wheel_that_is_written_again_is_new(tmp_path: Path) -> None:
    wheel = tmp_path / "a-1-py3-none-any.whl"
    wheel.write_text("old")
    before = list_wheels(tmp_path)
    wheel.write_text("newer")

    assert take_wheel(tmp_path, before, within=tmp_path) == wheel


def leave_dangling(dist: Path, _outside: Path) -> str:
    (dist / "a-1-py3-none-any.whl").symlink_to("nowhere")
    return f"a-1-py3-none-any.whl in {dist}, which is no regular file"


def leave_link(dist: Path, outside: Path) -> str:
    (dist / "a-1-py3-none-any.whl").symlink_to(outside / "other.whl")
    return f"a-1-py3-none-any.whl in {dist}, which is no regular file"


def leave_folder(dist: Path, _outside: Path) -> str:
    (dist / "a-1-py3-none-any.whl").mkdir()
    return f"a-1-py3-none-any.whl in {dist}, which is no regular file"


def lead_outside(dist: Path, outside: Path) -> str:
    dist.rmdir()
    dist.symlink_to(outside)
    return f"its wheel behind {dist}, which leads to {outside}"


def lead_nowhere(dist: Path, _outside: Path) -> str:
    dist.rmdir()
    dist.symlink_to("dist")
    return f"no wheel in {dist}, expected one wheel"


@pytest.mark.parametrize("leave", [leave_dangling, leave_link, leave_folder, lead_outside, lead_nowhere])
def test_what_is_no_wheel_of_the_builds_own_is_not_taken(tmp_path: Path, leave: Callable[[Path, Path], str]) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "dist").mkdir(parents=True)
    outside.mkdir()
    (outside / "other.whl").write_text("secret")
    said = leave(work / "dist", outside)

    with pytest.raises(BuildError) as caught:
        take_wheel(work / "dist", {}, within=work)

    assert caught.value.message == f"the build ended well and left {said}"


def test_a_dangling_symlink_that_the_tree_brings_is_not_new(tmp_path: Path) -> None:
    (tmp_path / "old-1-py3-none-any.whl").symlink_to("nowhere")
    before = list_wheels(tmp_path)
    (tmp_path / "a-1-py3-none-any.whl").touch()

    assert take_wheel(tmp_path, before, within=tmp_path).name == "a-1-py3-none-any.whl"
