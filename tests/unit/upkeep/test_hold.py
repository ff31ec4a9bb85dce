"""One command at a time on a series, and what it leaves for a person."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.errors import UsageError, WorkTreeError
from toolkit.project import Project
from toolkit.upkeep.hold import (
    TREE,
    Kept,
    clear_folder,
    drop_work,
    hold_series,
    read_kept,
    require_kept,
    waiting_command,
    work_folder,
    write_kept,
)

NAME = "sample/1.0"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "patches" / NAME).mkdir(parents=True)
    return Project(
        root=tmp_path, recipes=(), patches=(tmp_path / "patches",), verify=tmp_path, overlays=tmp_path / "overlays"
    )


def make_kept(command: str = "edit") -> Kept:
    return Kept(
        command=command, number=1, base="sample==1.0", kind="wheel", digest="d", patches=(("0001-a", "1" * 40),)
    )


def test_a_second_command_is_told_which_process_is_at_work(project: Project) -> None:
    with hold_series(project, NAME), pytest.raises(WorkTreeError) as caught, hold_series(project, NAME):
        pass
    assert caught.value.message == (
        f"another `toolkit patch` command is at work on series {NAME} (process {os.getpid()})"
    )
    assert caught.value.exit_code == 22


def test_another_series_is_not_held(project: Project) -> None:
    with hold_series(project, NAME), hold_series(project, "sample/2.0"):
        pass
    with hold_series(project, NAME):
        pass


def test_what_a_killed_process_held_is_free(project: Project) -> None:
    code = (
        "import os, pathlib, sys\n"
        "from toolkit.project import Project\nfrom toolkit.upkeep.hold import hold_series\n"
        "root = pathlib.Path(sys.argv[1])\n"
        "project = Project(root=root, recipes=(), patches=(root / 'patches',), verify=root, overlays=root)\n"
        f"with hold_series(project, {NAME!r}):\n    os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(project.root)], check=False)
    assert done.returncode == -9

    with hold_series(project, NAME):
        pass


def test_a_series_that_was_moved_away_and_not_replaced_is_put_back(project: Project, tmp_path: Path) -> None:
    (tmp_path / "patches/sample/1.0").rename(tmp_path / "patches/sample/.part-1.0")
    with hold_series(project, NAME):
        assert (tmp_path / "patches/sample/1.0").is_dir()


def test_an_installed_package_has_no_room_for_work(project: Project) -> None:
    with pytest.raises(UsageError) as caught:
        work_folder(project._replace(root=None), NAME)
    assert caught.value.message == "the patches of an installed package cannot be changed"


def test_what_was_kept_is_read_again(project: Project) -> None:
    folder = work_folder(project, NAME)
    write_kept(folder, make_kept())

    assert read_kept(folder) == require_kept(folder, "edit", NAME) == make_kept()
    assert waiting_command(folder) == "edit"


def test_new_work_is_refused_while_other_work_waits(project: Project) -> None:
    folder = work_folder(project, NAME)
    write_kept(folder, make_kept())
    with pytest.raises(WorkTreeError) as caught:
        clear_folder(folder, NAME)

    assert (
        caught.value.message
        == f"`toolkit patch edit` on series {NAME} is not finished: its work tree is {folder / TREE}"
    )
    assert caught.value.hint == (
        f"go on with `toolkit patch edit --continue --series {NAME}`, or give it up with --abort"
    )


def test_leftovers_without_a_record_are_removed(project: Project) -> None:
    folder = work_folder(project, NAME)
    (folder / TREE).mkdir(parents=True)
    clear_folder(folder, NAME)

    assert not folder.exists()


@pytest.mark.parametrize(
    ("left", "message"),
    [
        (None, f"no `toolkit patch edit` waits on series {NAME}"),
        ("new", f"what waits on series {NAME} is `toolkit patch new`, not `toolkit patch edit`"),
    ],
    ids=["nothing", "another"],
)
def test_only_what_the_command_itself_left_is_gone_on_with(project: Project, left: str | None, message: str) -> None:
    folder = work_folder(project, NAME)
    if left:
        write_kept(folder, make_kept(left))
    with pytest.raises(UsageError) as caught:
        require_kept(folder, "edit", NAME)
    assert caught.value.message == message


def test_a_damaged_record_names_the_file(project: Project) -> None:
    folder = work_folder(project, NAME)
    folder.mkdir(parents=True)
    (folder / "work.json").write_text("{}")
    with pytest.raises(WorkTreeError) as caught:
        read_kept(folder)
    assert caught.value.message.startswith(f"{folder / 'work.json'} cannot be read: ")


def test_dropped_work_is_gone(project: Project) -> None:
    folder = work_folder(project, NAME)
    write_kept(folder, make_kept())
    drop_work(folder)

    assert (folder.exists(), waiting_command(folder)) == (False, None)
