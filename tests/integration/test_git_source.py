"""Git bases against real servers, real interrupts and a user's settings."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.git_cases import TARGET, is_native, patch
from tests.git_server import GitServer, make_certificate
from tests.repositories import add_submodule, commit_files, git, make_upstream
from toolkit.errors import FetchError
from toolkit.git import Limits, is_marked, missing_part
from toolkit.model import FetchedBase
from toolkit.sources import git as source
from toolkit.sources.git.caches import Patience
from toolkit.store import Store

HASTY = Patience(waits=(), limits=Limits(whole=20, silence=1))

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def server(tmp_path: Path, certificate: tuple[Path, Path]) -> Iterator[GitServer]:
    (tmp_path / "served").mkdir()
    with GitServer(tmp_path / "served", *certificate).running() as running:
        yield running


@pytest.fixture
def commit(server: GitServer, tmp_path: Path) -> str:
    """Serve a repository with two commits as `x`, and return the older one's id."""
    commit = make_upstream(tmp_path / "up", {"a": "1", "big": os.urandom(1 << 18)})
    commit_files(tmp_path / "up", {"a": "2"})
    git(tmp_path, "clone", "--quiet", "--bare", str(tmp_path / "up"), str(server.root / "x"))
    git(server.root / "x", "update-server-info")
    return commit


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def fetch(store: Store, server: GitServer, commit: str, *ways: str, patience: Patience = HASTY) -> FetchedBase:
    locked = source.Locked(urls=tuple(server.address(way, "x") for way in ways), commit=commit)
    return source.fetch(
        locked, component="x", target=TARGET, store=store, offline=False, env=server.env, patience=patience
    )


# --- servers ---------------------------------------------------------------------------------------------------


def test_a_commit_is_fetched_by_its_id_without_history(store: Store, server: GitServer, commit: str) -> None:
    base = fetch(store, server, commit, "smart")

    assert missing_part(base.path, commit) == ""
    assert git(base.path, "rev-list", "--count", "--all") == "1"


@pytest.mark.parametrize("way", ["old", "dumb"])
def test_a_server_that_gives_out_no_commit_by_id_is_asked_for_its_history(
    store: Store, server: GitServer, commit: str, way: str
) -> None:
    base = fetch(store, server, commit, way)

    assert missing_part(base.path, commit) == ""
    assert git(base.path, "rev-list", "--count", "--all") == "2"


def test_after_a_commit_came_by_its_id_the_history_is_asked_for_whole(
    store: Store, server: GitServer, commit: str
) -> None:
    tip = git(server.root / "x", "rev-parse", "HEAD")
    alone = fetch(store, server, tip, "old")
    assert git(alone.path, "rev-list", "--count", tip) == "1"

    base = fetch(store, server, commit, "old")

    assert base.path == alone.path
    assert missing_part(base.path, commit) == missing_part(base.path, tip) == ""


def test_a_history_without_the_commit_is_said_to_lack_it(store: Store, server: GitServer, commit: str) -> None:
    with pytest.raises(FetchError) as raised:
        fetch(store, server, "1" * 40, "old")
    assert raised.value.details == (
        f"{server.address('old', 'x')}: what it sent is not the commit: there is no commit {'1' * 40}",
    )


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        pytest.param("403", "unable to access '{}/': The requested URL returned error: 403", id="refuses"),
        pytest.param("404", "repository '{}/' not found", id="does not have it"),
        pytest.param("503", "unable to access '{}/': The requested URL returned error: 503", id="is overloaded"),
        pytest.param("401", "could not read Username for '{}': terminal prompts disabled", id="asks for a password"),
    ],
)
def test_a_server_that_refuses(store: Store, server: GitServer, commit: str, way: str, reason: str) -> None:
    address = server.address(way, "x")
    with pytest.raises(FetchError) as raised:
        fetch(store, server, commit, way)
    expected = reason.format(address.partition("/401")[0] if way == "401" else address)
    assert raised.value.message == f"x: commit {commit} of x cannot be had from its address"
    assert raised.value.details == (f"{address}: {expected}",)
    assert (
        raised.value.hint
        == "name another place with `--mirror x=URL`, a folder with a clone of it will do; or mend the commit"
    )


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        pytest.param("silent", "Operation too slow", id="hangs"),
        pytest.param("half", "early EOF", id="dies half-way"),
        pytest.param("away", 'Protocol "http" not supported', id="leads to plain http"),
    ],
)
def test_a_server_that_cannot_be_used_leaves_the_store_fit_for_the_next(
    store: Store, server: GitServer, commit: str, way: str, reason: str
) -> None:
    started = time.monotonic()
    with pytest.raises(FetchError) as raised:
        fetch(store, server, commit, way)
    assert time.monotonic() - started < 15
    assert reason in raised.value.details[0]
    folder = next((store.root / "git").iterdir())
    assert not is_marked(folder, commit)

    assert missing_part(fetch(store, server, commit, way, "smart").path, commit) == ""


def test_a_server_that_takes_a_connection_and_says_nothing(store: Store, server: GitServer, commit: str) -> None:
    waits: list[float] = []
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"https://127.0.0.1:{mute.getsockname()[1]}/x"
        locked = source.Locked(urls=(address,), commit=commit)
        with pytest.raises(FetchError) as raised:
            source.fetch(
                locked, component="x", target=TARGET, store=store, offline=False, env=server.env,
                patience=Patience(limits=Limits(whole=1.5, silence=60), sleep=waits.append),
            )  # fmt: skip
    assert waits == []
    assert raised.value.details == (f"{address}: it did not end within 1.5 s",)


def test_a_server_that_sends_another_commit_under_that_name(
    store: Store, server: GitServer, commit: str, tmp_path: Path
) -> None:
    server.stand_ins[commit] = git(tmp_path / "up", "rev-parse", "HEAD")
    with pytest.raises(FetchError) as raised:
        fetch(store, server, commit, "other")
    assert raised.value.details == (
        f"{server.address('other', 'x')}: what it sent under that name is not commit {commit}",
    )
    assert not is_marked(next((store.root / "git").iterdir()), commit)

    assert missing_part(fetch(store, server, commit, "other", "smart").path, commit) == ""


def test_only_what_may_pass_is_tried_again(store: Store, server: GitServer, commit: str) -> None:
    waits: list[float] = []
    patience = Patience(limits=HASTY.limits, sleep=waits.append)

    fetch(store, server, commit, "403", "503", "smart", patience=patience)

    assert waits == [2.0, 4.0]
    asked = [path.split("/")[1] for path in server.requests]
    assert (asked.count("403"), asked.count("503")) == (1, 3)


def test_a_certificate_that_is_not_trusted_is_refused(store: Store, server: GitServer, commit: str) -> None:
    locked = source.Locked(urls=(server.address("smart", "x"),), commit=commit)
    with pytest.raises(FetchError) as raised:
        source.fetch(locked, component="x", target=TARGET, store=store, offline=False, env={}, patience=HASTY)
    assert "certificate" in raised.value.details[0]


def test_a_password_in_a_mirrors_address_is_not_shown(
    store: Store, server: GitServer, commit: str, caplog: pytest.LogCaptureFixture
) -> None:
    address = server.address("403", "x").replace("https://", "https://me:secret@")
    locked = source.Locked(urls=(server.address("404", "x"),), commit=commit)
    caplog.set_level("DEBUG")
    with pytest.raises(FetchError) as raised:
        source.fetch(
            locked, component="x", target=TARGET, store=store, offline=False,
            env={**server.env, "TOOLKIT_MIRROR_X": address}, patience=HASTY,
        )  # fmt: skip
    assert len(raised.value.details) == 2
    assert "secret" not in f"{raised.value.details}{raised.value.message}{caplog.text}"


def test_a_password_opens_a_mirror_and_stands_on_no_command_line(
    store: Store, server: GitServer, commit: str, caplog: pytest.LogCaptureFixture
) -> None:
    address = server.address("guarded", "x")
    locked = source.Locked(urls=(server.address("404", "x"),), commit=commit)
    caplog.set_level("DEBUG")
    base = source.fetch(
        locked, component="x", target=TARGET, store=store, offline=False, patience=HASTY,
        env={**server.env, "TOOLKIT_MIRROR_X": address.replace("https://", "https://me:se:cret%2F@")},
    )  # fmt: skip
    assert base.digest == commit
    assert any(address.encode() in command for command in server.commands)
    assert not any(b"cret" in command for command in server.commands if b"git" in command)
    assert "cret" not in caplog.text
    assert not any(b"cret" in path.read_bytes() for path in base.path.rglob("*") if path.is_file())


def test_ssh_never_asks_and_may_not_wait_for_ever(store: Store, server: GitServer, commit: str, tmp_path: Path) -> None:
    shim = tmp_path / "bin" / "ssh"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nfor last; do :; done\neval "$last"\n', encoding="utf-8")
    shim.chmod(0o755)
    locked = source.Locked(urls=(f"git@host.example:{server.root}/x",), commit=commit)
    path = f"{shim.parent}:{os.environ['PATH']}"

    base = source.fetch(
        locked, component="x", target=TARGET, store=store, offline=False, env={"PATH": path}, patience=HASTY
    )

    assert missing_part(base.path, commit) == ""
    asked = (tmp_path / "asked").read_text(encoding="utf-8")
    assert "-o BatchMode=yes -o ConnectTimeout=15" in asked
    assert asked.endswith(f"git@host.example git-upload-pack '{server.root}/x'\n")


# --- the user's settings ---------------------------------------------------------------------------------------


def test_a_users_settings_and_variables_have_no_effect(
    store: Store, server: GitServer, commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n", encoding="utf-8")
    trap.chmod(0o755)
    hooks, template = tmp_path / "hooks", tmp_path / "template" / "hooks"
    for folder in (hooks, template):
        folder.mkdir(parents=True)
        for name in ("post-checkout", "reference-transaction", "post-index-change"):
            shutil.copy(trap, folder / name)
    settings = f"""
[core]
    hooksPath = {hooks}
    fsmonitor = {trap}
    sshCommand = {trap}
    askPass = {trap}
    attributesFile = {tmp_path}/attributes
    autocrlf = true
[credential]
    helper = !{trap}
[init]
    templateDir = {tmp_path}/template
[url "https://127.0.0.1:1/"]
    insteadOf = https://127.0.0.1
[filter "trap"]
    smudge = {trap}
[fetch]
    recurseSubmodules = true
"""
    (tmp_path / "attributes").write_text("* filter=trap\n", encoding="utf-8")
    (tmp_path / "home" / ".config" / "git").mkdir(parents=True)
    for place in (".gitconfig", ".config/git/config"):
        (tmp_path / "home" / place).write_text(settings, encoding="utf-8")
    theirs = {
        "HOME": f"{tmp_path}/home", "XDG_CONFIG_HOME": f"{tmp_path}/home/.config", "GIT_DIR": "/nonexistent",
        "GIT_CONFIG_GLOBAL": f"{tmp_path}/home/.gitconfig", "GIT_SSH_COMMAND": str(trap), "GIT_ASKPASS": str(trap),
        "GIT_INDEX_FILE": "/nonexistent", "GIT_WORK_TREE": "/nonexistent", "GIT_OBJECT_DIRECTORY": "/nonexistent",
        "GIT_TEMPLATE_DIR": str(template.parent), "GIT_EXTERNAL_DIFF": str(trap), "GIT_EXEC_PATH": "/nonexistent",
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": str(hooks),
    }  # fmt: skip
    for name, value in theirs.items():
        monkeypatch.setenv(name, value)

    locked = source.Locked(urls=(server.address("401", "x"), server.address("smart", "x")), commit=commit)
    base = source.fetch(
        locked, component="x", target=TARGET, store=store, offline=False, env={**os.environ, **server.env},
        patience=HASTY,
    )  # fmt: skip
    tree = source.check_out(base, (), [], tmp_path / "tree", is_native=is_native)

    assert (tree.root / "a").read_bytes() == b"1"
    assert not (tmp_path / "sprung").exists()
    assert not (tree.root / ".git" / "hooks").exists()


# --- interrupts, and two at once -------------------------------------------------------------------------------

PROGRAM = """
import os, sys
from pathlib import Path
from toolkit.model import Target
from toolkit.sources import git
from toolkit.store import Store
git.fetch(git.Locked(urls=(sys.argv[2],), commit=sys.argv[3]), component="x",
          target=Target(python_tag="cp312", platform="manylinux_2_28_x86_64"), store=Store(Path(sys.argv[1])),
          offline=False, env=os.environ)
"""


def start(store: Store, address: str, commit: str, server: GitServer) -> subprocess.Popen[bytes]:
    env = {**os.environ, **server.env, "PYTHONPATH": str(Path.cwd()), "MARK": str(store.root)}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(store.root), address, commit], env=env, stderr=subprocess.PIPE
    )


def gits_at_work(store: Store) -> list[int]:
    """List the processes that work in a repository of the store."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"GIT_DIR={store.root}".encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def wait_until_asked(server: GitServer, store: Store) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if gits_at_work(store):
            time.sleep(0.3)
            if len(gits_at_work(store)) > 1:  # git and git-remote-https: it is at the server.
                return
        time.sleep(0.02)
    raise AssertionError("the fetch never came to the server")


def test_an_interrupt_ends_git_with_its_children(store: Store, server: GitServer, commit: str) -> None:
    child = start(store, server.address("silent", "x"), commit, server)
    wait_until_asked(server, store)

    child.send_signal(signal.SIGINT)
    child.communicate(timeout=20)

    assert child.returncode != 0
    deadline = time.monotonic() + 5
    while gits_at_work(store) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert gits_at_work(store) == []


def test_a_killed_fetch_leaves_nothing_that_is_taken_for_whole(store: Store, server: GitServer, commit: str) -> None:
    child = start(store, server.address("silent", "x"), commit, server)
    wait_until_asked(server, store)
    for process in gits_at_work(store):
        os.kill(process, signal.SIGKILL)
    child.kill()
    child.communicate()
    folder = next((store.root / "git").iterdir())
    (folder / "shallow.lock").touch()
    (folder / "objects" / "pack" / "tmp_pack_x").write_bytes(b"PACK")

    with pytest.raises(FetchError):
        source.fetch(
            source.Locked(urls=(server.address("silent", "x"),), commit=commit), component="x", target=TARGET,
            store=store, offline=True, env={},
        )  # fmt: skip
    base = source.fetch(
        source.Locked(urls=(server.address("silent", "x"),), commit=commit), component="x", target=TARGET, store=store,
        offline=False, env={**server.env, "TOOLKIT_MIRROR_X": server.address("smart", "x")}, patience=HASTY,
    )  # fmt: skip
    assert base.path == folder
    assert missing_part(folder, commit) == ""
    assert [path.name for path in folder.rglob("tmp_*")] == []


def test_two_at_once_fetch_once(store: Store, server: GitServer, commit: str) -> None:
    found: list[FetchedBase] = []
    threads = [
        threading.Thread(target=lambda: found.append(fetch(store, server, commit, "smart"))) for _ in range(3)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 3
    assert len({base.path for base in found}) == 1
    assert sum("/info/refs" in path for path in server.requests) == 1


# --- submodules ------------------------------------------------------------------------------------------------


def test_a_submodule_with_a_relative_address_comes_from_the_same_server(
    store: Store, server: GitServer, commit: str, tmp_path: Path
) -> None:
    make_upstream(tmp_path / "outer", {"b": "1"})
    outer = add_submodule(tmp_path / "outer", "lib/x", "../x", commit)
    git(tmp_path, "clone", "--quiet", "--bare", str(tmp_path / "outer"), str(server.root / "outer"))
    locked = source.Locked(urls=(server.address("smart", "outer"),), commit=outer)
    base = source.fetch(
        locked, component="outer", target=TARGET, store=store, offline=False, env=server.env, patience=HASTY
    )
    modules = source.fetch_submodules(
        base, patch(base, {}), store=store, offline=False, env=server.env, patience=HASTY
    )  # fmt: skip
    tree = source.check_out(base, modules, [], tmp_path / "tree", is_native=is_native)

    assert (tree.root / "lib" / "x" / "a").read_bytes() == b"1"
    assert git(tree.root, "status", "--porcelain") == ""
