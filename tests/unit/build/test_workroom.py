"""The folder of a build: emptied before, and the way back into it after."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.build.workroom import RECORD, BuildRecord, open_workroom, shell_command, write_record
from toolkit.errors import UsageError


def record(env: dict[str, str]) -> BuildRecord:
    return BuildRecord(component="part", command=["python"], prefix=["bwrap", "--"], env=env, cwd="/srv/tree")


def test_a_kept_folder_is_emptied_but_for_its_tree(tmp_path: Path) -> None:
    for name in ("tree", "home", "tmp", "dist", "bin", "logs"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "file").touch()
        (tmp_path / name / "deep").chmod(0o500)
    (tmp_path / RECORD).touch()

    room = open_workroom(tmp_path)

    left = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert left == [Path("tree/deep/file")]
    assert all(path.is_dir() for path in (room.home, room.tmp, room.dist, room.compilers, room.log.parent))


def test_a_folder_behind_a_symlink_is_known_by_its_real_name(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    assert open_workroom(tmp_path / "link").root == (tmp_path / "real").resolve()


def test_a_shell_has_the_builds_environment_and_sandbox_and_the_callers_terminal(tmp_path: Path) -> None:
    write_record(open_workroom(tmp_path), record({"PATH": "/usr/bin:/bin", "A": "1"}))

    argv, env, cwd = shell_command(tmp_path, {"TERM": "xterm", "SECRET": "s", "A": "2"})

    assert argv[:4] == ["bwrap", "--", "sh", "-c"]
    assert argv[4] in ("umask 022; exec bash --norc -i", "umask 022; exec sh -i")
    assert (env, cwd) == ({"PATH": "/usr/bin:/bin", "A": "1", "TERM": "xterm"}, Path("/srv/tree"))


def test_without_bash_there_is_a_plain_shell(tmp_path: Path) -> None:
    write_record(open_workroom(tmp_path), record({"PATH": str(tmp_path)}))

    argv, env, _ = shell_command(tmp_path, {})

    assert (argv[-1], env["TERM"]) == ("umask 022; exec sh -i", "dumb")


def test_a_record_is_for_its_owner_alone(tmp_path: Path) -> None:
    write_record(open_workroom(tmp_path), record({"TOKEN": "s3cret"}))

    assert (tmp_path / RECORD).stat().st_mode & 0o777 == 0o600


def test_where_no_build_is_kept_there_is_no_shell(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        shell_command(tmp_path / "none", {})

    assert caught.value.message == f"there is no kept build in {tmp_path}/none"
    assert caught.value.hint == "a build's folder is kept only where the build fails"


@pytest.mark.parametrize("text", ["{", '{"argv": []}', "[]", "7"])
def test_a_record_that_cannot_be_read_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / RECORD).write_text(text)

    with pytest.raises(UsageError, match=f"^{tmp_path}/{RECORD} cannot be read: "):
        shell_command(tmp_path, {})
