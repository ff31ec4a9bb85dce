"""Which sandbox is taken, and what a build in it may see and write. That it holds is shown in tests/integration."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from toolkit.build.sandbox import Sandbox, View, choose_sandbox, enter_sandbox, hidden_folder, seen_temporary
from toolkit.errors import SandboxError

BUBBLEWRAP = Sandbox(kind="bubblewrap", prefix=("bwrap",))


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return an empty folder for programs."""
    folder = tmp_path / "programs"
    folder.mkdir()
    return folder


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


# --- which one -------------------------------------------------------------------------------------------------


def test_off_tries_nothing(programs: Path) -> None:
    program(programs, "bwrap", f"touch {programs}/called")

    assert choose_sandbox("off", path=str(programs)) == Sandbox(kind="none")
    assert not (programs / "called").exists()


def test_bubblewrap_is_taken_first(programs: Path) -> None:
    program(programs, "bwrap", "exit 0")
    program(programs, "unshare", "exit 0")

    found = choose_sandbox("require", path=str(programs))

    assert (found.kind, found.prefix[0]) == ("bubblewrap", f"{programs}/bwrap")


def test_a_network_namespace_does_where_bubblewrap_does_not_work(programs: Path) -> None:
    program(programs, "bwrap", "exit 1")
    program(programs, "unshare", "exit 0")

    found = choose_sandbox("require", path=str(programs))

    assert (found.kind, found.prefix[0]) == ("network namespace", f"{programs}/unshare")
    assert "--pid" in found.prefix


def test_an_old_unshare_is_called_with_less(programs: Path) -> None:
    program(programs, "unshare", 'case "$*" in *--map-current-user*) exit 1;; esac')

    assert choose_sandbox("auto", path=str(programs)).prefix == (
        f"{programs}/unshare", "--map-root-user", "--net", "--",
    )  # fmt: skip


def test_each_way_is_tried_once_in_a_process(programs: Path) -> None:
    program(programs, "bwrap", f"echo x >> {programs}/calls")

    for _ in range(3):
        choose_sandbox("auto", path=str(programs))

    assert (programs / "calls").read_text() == "x\n"


def test_require_says_what_was_tried(programs: Path) -> None:
    program(programs, "unshare", "echo unshare failed: Operation not permitted >&2; exit 1")

    with pytest.raises(SandboxError) as caught:
        choose_sandbox("require", path=str(programs))

    assert caught.value.message == (
        "a build cannot be shut off from the network on this machine: bubblewrap: `bwrap` is not on PATH; "
        "network namespace: unshare failed: Operation not permitted"
    )
    assert caught.value.hint == "install bubblewrap (Debian: `apt install bubblewrap`), or build with --sandbox auto"
    assert caught.value.exit_code == 21


def test_require_tells_a_program_that_fails_without_a_word(programs: Path) -> None:
    program(programs, "bwrap", "exit 3")

    with pytest.raises(SandboxError, match="bubblewrap: bwrap ended with exit code 3;"):
        choose_sandbox("require", path=str(programs))


def test_auto_goes_on_without_any_and_warns(programs: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert choose_sandbox("auto", path=str(programs)) == Sandbox(kind="none")

    assert [record.getMessage() for record in caplog.records] == [
        "the build is not shut off from the network: bubblewrap: `bwrap` is not on PATH; "
        "network namespace: `unshare` is not on PATH"
    ]


# --- what it lets through --------------------------------------------------------------------------------------


def enter(home: Path | None = None, readable: tuple[Path, ...] = (), writable: tuple[Path, ...] = ()) -> list[str]:
    view = View(writable=writable, readable=readable, temporary=Path("/srv/room/tmp"), home=home)
    return list(enter_sandbox(BUBBLEWRAP, view))


def binds(words: list[str], option: str) -> list[str]:
    return [words[at + 1] for at, word in enumerate(words) if word == option]


def test_homes_are_hidden_and_cannot_be_written(tmp_path: Path) -> None:
    words = enter()

    assert {"/home", "/root"} & set(binds(words, "--tmpfs")) == {p for p in ("/home", "/root") if os.path.isdir(p)}
    assert binds(words, "--remount-ro") == binds(words, "--tmpfs")
    assert words.index("--remount-ro") > max(at for at, word in enumerate(words) if word.endswith("bind"))
    assert words[-1] == "--"


@pytest.mark.parametrize("home", ["/", "/usr", "/var", "/no-such-home", "/tmp", "/root/inside"])
def test_a_home_that_is_the_systems_or_hidden_already_is_not_hidden_again(home: str) -> None:
    assert binds(enter(Path(home)), "--tmpfs") == binds(enter(), "--tmpfs")


def test_the_private_temporary_folder_stands_for_the_machines() -> None:
    words = enter()
    at = words.index("--bind")

    assert words[at : at + 3] == ["--bind", "/srv/room/tmp", str(Path("/tmp").resolve())]


def test_what_is_needed_is_shown_where_it_is_hidden_only(tmp_path: Path) -> None:
    inside = tmp_path / "env"
    (inside / "bin").mkdir(parents=True)

    words = enter(readable=(Path("/usr/lib"), inside / "bin", inside, tmp_path / "gone", Path("/root"), Path("/")))

    hidden = tmp_path.is_relative_to("/tmp") or tmp_path.is_relative_to("/root") or tmp_path.is_relative_to("/home")
    assert binds(words, "--ro-bind") == ([str(inside)] if hidden else [])


def test_a_folder_is_shown_by_every_name_that_it_has(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")

    words = enter(home=tmp_path, readable=(tmp_path / "link",))

    assert sorted(binds(words, "--ro-bind")) == [f"{tmp_path}/link", f"{tmp_path}/real"]


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        pytest.param("/run/user/socket", "/run", id="hidden"),
        pytest.param("/tmp/of-the-machine", "/tmp", id="temporary"),
        pytest.param("/run/room/tree/a", None, id="written"),
        pytest.param("/run/cann/include", None, id="shown"),
        pytest.param("/usr/include", None, id="of the system"),
    ],
)
def test_a_hidden_path_is_told_from_one_that_is_only_not_there(path: str, folder: str | None) -> None:
    view = View(writable=(Path("/run/room"),), readable=(Path("/run/cann"),), temporary=Path("/srv"), home=None)

    assert hidden_folder(BUBBLEWRAP, view, Path(path)) == (Path(folder) if folder else None)
    assert hidden_folder(Sandbox(kind="none"), view, Path(path)) is None


def test_the_private_temporary_folder_has_a_short_name_where_it_can() -> None:
    assert seen_temporary(BUBBLEWRAP, Path("/srv/room/tmp")) == Path("/tmp")
    assert seen_temporary(Sandbox(kind="none"), Path("/srv/room/tmp")) == Path("/srv/room/tmp")


def test_other_sandboxes_have_no_view_of_files() -> None:
    sandbox = Sandbox(kind="network namespace", prefix=("unshare", "--net"))
    view = View(writable=(), readable=(), temporary=Path("/srv"), home=None)

    assert enter_sandbox(sandbox, view) == ("unshare", "--net")
