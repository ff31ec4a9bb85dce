"""Resolving and fetching release wheels with the real pip, from folders and from a server on this machine."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.server
import logging
import os
import shutil
import socket
import subprocess
import sys
import threading
import venv
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.wheels import make_wheel
from toolkit.errors import FetchError, HashMismatchError, LockError, SourceError, UsageError
from toolkit.files import sha256_file
from toolkit.model import Contract, Target
from toolkit.registry import RAW_PROGRESS_PIP, PublishedFile, find_wheel, require_pip
from toolkit.sources.wheel import Artifact, Base, Locked, fetch, resolve
from toolkit.store import Store

X86, ARM = "manylinux_2_28_x86_64", "manylinux_2_28_aarch64"
CP311 = Target(python_tag="cp311", platform=X86)
BASE = Base(kind="wheel", distribution="sample-parts", version="1.0")
CONTRACT = Contract(python_tags=("cp311", "cp312"), platforms=(X86, ARM), torch="2.13.0")
TAGS = {
    CP311: "cp311-cp311-manylinux_2_28_x86_64",
    Target(python_tag="cp311", platform=ARM): "cp311-cp311-manylinux2014_aarch64",
    Target(python_tag="cp312", platform=X86): "cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64",
    Target(python_tag="cp312", platform=ARM): "cp38-abi3-manylinux_2_24_aarch64",
}
CARELESS_PIP = """
import shutil, sys
from pathlib import Path
if sys.argv[1] == "--version":
    print("pip 23.1 from here (python 3.11)")
else:
    for wheel in Path({index!r}).glob("*.whl"):
        shutil.copy(wheel, sys.argv[sys.argv.index("--dest") + 1])
"""
"""A pip that checks nothing."""

HAS_RAW_PROGRESS = tuple(map(int, version("pip").split(".")[:2])) >= RAW_PROGRESS_PIP


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Make a folder of wheels that pip takes for its index."""
    (tmp_path / "index").mkdir()
    return tmp_path / "index"


@pytest.fixture
def env(tmp_path: Path, index: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index),
        "PIP_RETRIES": "0",
    }


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def add_wheel(index: Path, target: Target = CP311, *, content: str = "", dist: str = "1.0", inside: str = "") -> Path:
    """Add a wheel of `sample-parts` to the index; `inside` is what its WHEEL file says instead of the truth."""
    lies = {"WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {inside}\n"} if inside else {}
    return make_wheel(
        index, "sample_parts", dist, {"sample_parts/__init__.py": content}, tag=TAGS[target], dist_info=lies
    )


def lock_of(file: Path, sha256: str | None = None) -> Locked:
    artifact = Artifact(
        file=file.name, sha256=sha256 or sha256_file(file), python_tag=CP311.python_tag, platform=CP311.platform
    )
    return Locked(distribution="sample-parts", version="1.0", artifact=(artifact,))


def fetch_it(locked: Locked, store: Store, env: dict[str, str]) -> Path:
    return fetch(locked, component="sample", target=CP311, store=store, offline=False, env=env).path


def use_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> str:
    """Make an environment whose pip is that program, and let it be the one beside this interpreter."""
    venv.create(tmp_path / "own", symlinks=True)
    (next((tmp_path / "own" / "lib").glob("python*")) / "site-packages" / "pip.py").write_text(program)
    python = str(tmp_path / "own" / "bin" / "python")
    monkeypatch.setattr(sys, "executable", python)
    return python


def assert_nothing_kept(store: Store) -> None:
    assert store.entries() == []
    assert list((store.root / "base").iterdir()) == []


# --- resolving ---------------------------------------------------------------------------------------------------


def test_every_target_is_resolved_to_a_name_and_a_hash(index: Path, env: dict[str, str]) -> None:
    files = {target: add_wheel(index, target) for target in TAGS}
    seen: list[tuple[int, int | None]] = []
    locked = resolve(BASE, CONTRACT, component="c", env=env, progress=lambda *counts: seen.append(counts))
    assert locked == Locked(
        distribution="sample-parts",
        version="1.0",
        artifact=tuple(
            Artifact(
                file=files[target].name, sha256=sha256_file(files[target]),
                python_tag=target.python_tag, platform=target.platform,
            )
            for target in sorted(TAGS, key=str)
        ),
    )  # fmt: skip
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_targets_without_a_wheel_are_all_reported_with_what_exists(index: Path, env: dict[str, str]) -> None:
    add_wheel(index)
    add_wheel(index, Target(python_tag="cp312", platform=ARM), dist="0.9")
    with pytest.raises(LockError) as caught:
        resolve(BASE, CONTRACT, component="torch_npu", env=env)
    assert caught.value.message == "torch_npu: sample-parts==1.0 has no wheel for 3 of 4 targets"
    assert list(caught.value.details) == [
        "cp311-manylinux_2_28_aarch64: versions with a wheel for it: 0.9",
        "cp312-manylinux_2_28_x86_64: versions with a wheel for it: none",
        "cp312-manylinux_2_28_aarch64: versions with a wheel for it: 0.9",
    ]
    assert caught.value.hint == (
        "it has one for cp311-manylinux_2_28_x86_64; change [target] or the version in the recipe"
    )


def test_a_registry_that_does_not_answer_is_no_missing_wheel(env: dict[str, str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # Bound, but not listening: connecting is refused.
        unreachable = {"PIP_INDEX_URL": f"http://127.0.0.1:{taken.getsockname()[1]}/", "PIP_RETRIES": "1"}
        with pytest.raises(LockError) as caught:
            resolve(BASE, CONTRACT, component="c", env={**env, **unreachable, "PIP_NO_INDEX": "0"})
    assert caught.value.message.startswith("the registry did not answer which wheel of sample-parts==1.0 is for cp31")
    assert any("No matching distribution found" in line for line in caught.value.details)


def test_settings_of_the_users_pip_do_not_change_the_answer(index: Path, env: dict[str, str], tmp_path: Path) -> None:
    file = add_wheel(index)
    (tmp_path / "constraints.txt").write_text("sample-parts<1\n")
    own = {
        "PIP_CONSTRAINT": str(tmp_path / "constraints.txt"), "PIP_USER": "1",
        "PIP_REQUIREMENT": str(tmp_path / "none.txt"), "PIP_NO_BINARY": ":all:",
        "PYTHONPATH": "/nonexistent", "PYTHONHOME": "/nonexistent",
    }  # fmt: skip
    contract = Contract(python_tags=("cp311",), platforms=(X86,), torch="2.13.0")
    assert resolve(BASE, contract, component="c", env={**env, **own}).artifact[0].file == file.name


def test_pip_answers_outside_a_virtual_environment_too(
    index: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    base = sys._base_executable  # type: ignore[attr-defined]
    if subprocess.run([base, "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("the interpreter that this environment was made from has no pip")
    add_wheel(index)
    monkeypatch.setattr(sys, "executable", base)
    found = find_wheel("sample-parts", "1.0", CP311, env={**env, "PIP_REQUIRE_VIRTUALENV": "1"})
    assert isinstance(found, PublishedFile)


def test_an_interpreter_without_pip_is_named(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    bare = str(tmp_path / "bare" / "bin" / "python")
    monkeypatch.setattr(sys, "executable", bare)
    with pytest.raises(UsageError) as caught:
        resolve(BASE, CONTRACT, component="c", env=env)
    assert caught.value.message == f"{bare} has no pip"
    assert caught.value.hint == f"give it one: {bare} -m ensurepip --upgrade"


def test_too_old_a_pip_is_named(tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    old = use_pip(tmp_path, monkeypatch, "print('pip 21.2.4 from here (python 3.10)')")
    with pytest.raises(UsageError) as caught:
        require_pip(env)
    assert caught.value.message == f"pip 21.2 of {old} is too old, expected 23.1 or newer"


# --- fetching ----------------------------------------------------------------------------------------------------


def test_a_wheel_is_stored_alone_under_its_name_and_used_again(index: Path, env: dict[str, str], store: Store) -> None:
    file = add_wheel(index)
    locked = lock_of(file)
    path = fetch_it(locked, store, env)
    assert path == store.root / "base" / sha256_file(file) / file.name
    assert list(path.parent.iterdir()) == [path]
    assert path.read_bytes() == file.read_bytes()
    shutil.rmtree(index)
    assert fetch_it(locked, store, env) == path


def test_other_bytes_are_refused_with_both_hashes(index: Path, env: dict[str, str], store: Store) -> None:
    file = add_wheel(index)
    pinned = sha256_file(file)
    add_wheel(index, content="evil = True\n")
    with pytest.raises(HashMismatchError) as caught:
        fetch_it(lock_of(file, pinned), store, env)
    assert caught.value.message == (f"{file.name} from the registry has sha256 {sha256_file(file)}, expected {pinned}")
    assert (caught.value.expected, caught.value.actual) == (pinned, sha256_file(file))
    assert_nothing_kept(store)


def test_a_truncated_file_is_refused(index: Path, env: dict[str, str], store: Store) -> None:
    file = add_wheel(index)
    locked = lock_of(file)
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(HashMismatchError):
        fetch_it(locked, store, env)
    assert_nothing_kept(store)


def test_a_wheel_that_is_gone_from_the_registry_is_an_error(index: Path, env: dict[str, str], store: Store) -> None:
    file = add_wheel(index)
    locked = lock_of(file)
    file.unlink()
    with pytest.raises(FetchError) as caught:
        fetch_it(locked, store, env)
    assert caught.value.message == f"pip could not download {file.name} for cp311-manylinux_2_28_x86_64"
    assert caught.value.details[-1] == "ERROR: No matching distribution found for sample-parts==1.0"
    assert_nothing_kept(store)


def test_the_locked_name_is_what_must_arrive(index: Path, env: dict[str, str], store: Store) -> None:
    file = add_wheel(index)
    locked = lock_of(file)
    file.rename(index / "sample_parts-1.0-1-cp311-cp311-manylinux_2_28_x86_64.whl")
    with pytest.raises(FetchError) as caught:
        fetch_it(locked, store, env)
    assert caught.value.message == (
        "pip brought sample_parts-1.0-1-cp311-cp311-manylinux_2_28_x86_64.whl, "
        "expected sample_parts-1.0-cp311-cp311-manylinux_2_28_x86_64.whl"
    )
    assert_nothing_kept(store)


def test_a_wheel_that_says_it_is_for_another_tag_is_refused(index: Path, env: dict[str, str], store: Store) -> None:
    file = add_wheel(index, inside="cp310-cp310-manylinux_2_28_x86_64")
    with pytest.raises(SourceError) as caught:
        fetch_it(lock_of(file), store, env)
    assert caught.value.message == (
        f"{file.name} is for cp310-cp310-manylinux_2_28_x86_64 by its WHEEL file, expected cp311-manylinux_2_28_x86_64"
    )
    assert_nothing_kept(store)


def test_a_wheel_that_says_it_is_another_version_is_refused(index: Path, env: dict[str, str], store: Store) -> None:
    other = add_wheel(index, dist="1.1")
    file = other.rename(index / other.name.replace("1.1", "1.0"))
    with pytest.raises(FetchError):
        fetch_it(lock_of(file), store, env)
    assert_nothing_kept(store)


def test_pips_own_checks_are_not_relied_on(
    index: Path, env: dict[str, str], store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_pip(tmp_path, monkeypatch, CARELESS_PIP.format(index=str(index)))
    file = add_wheel(index)
    with pytest.raises(HashMismatchError) as caught:
        fetch_it(lock_of(file, "ab" * 32), store, env)
    assert caught.value.message == (
        f"{file.name} from the registry, through pip has sha256 {sha256_file(file)}, expected {'ab' * 32}"
    )
    assert_nothing_kept(store)
    other = add_wheel(index, dist="1.1").replace(file)
    with pytest.raises(SourceError) as wrong:
        fetch_it(lock_of(other), store, env)
    assert wrong.value.message == f"{file.name} is sample_parts 1.1, expected sample-parts==1.0"
    assert_nothing_kept(store)


def test_an_archive_with_an_unsafe_member_is_refused(index: Path, env: dict[str, str], store: Store) -> None:
    file = make_wheel(index, "sample_parts", files={"../evil.py": ""}, tag=TAGS[CP311])
    with pytest.raises(SourceError, match=r"\.\./evil\.py"):
        fetch_it(lock_of(file), store, env)
    assert_nothing_kept(store)


def test_what_is_no_archive_is_refused(index: Path, env: dict[str, str], store: Store) -> None:
    file = add_wheel(index)
    file.write_bytes(b"not a zip file")
    with pytest.raises(FetchError):
        fetch_it(lock_of(file), store, env)
    assert_nothing_kept(store)


def test_online_a_damaged_entry_is_fetched_again(
    index: Path, env: dict[str, str], store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    file = add_wheel(index)
    path = fetch_it(lock_of(file), store, env)
    path.write_bytes(b"damaged")
    with caplog.at_level(logging.WARNING, logger="toolkit"):
        assert fetch_it(lock_of(file), store, env) == path
    assert path.read_bytes() == file.read_bytes()
    assert [record.getMessage() for record in caplog.records] == [
        f"sample: store entry {path.parent} is damaged; fetching it again"
    ]


# --- over HTTP ---------------------------------------------------------------------------------------------------


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder as an index; a wheel is cut short if the server is told so."""

    def do_GET(self) -> None:
        if not self.path.endswith(".whl"):
            return self.answer_page()
        content = (Path(self.directory) / self.path.rpartition("/")[2]).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        keep = len(content) // 2 if getattr(self.server, "cuts", False) else len(content)
        self.wfile.write(content[:keep])
        return None

    def answer_page(self) -> None:
        links = "".join(
            f'<a href="/files/{path.name}#sha256={hashlib.sha256(path.read_bytes()).hexdigest()}">{path.name}</a>'
            for path in Path(self.directory).glob("*.whl")
        )
        body = f"<!DOCTYPE html><html><body>{links}</body></html>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serving(index: Path, *, cuts: bool = False) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(index)))
    server.cuts = cuts  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/simple/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def over_http(env: dict[str, str], url: str) -> dict[str, str]:
    return {**env, "PIP_NO_INDEX": "0", "PIP_FIND_LINKS": "", "PIP_INDEX_URL": url}


def test_no_address_is_kept_in_a_lock(index: Path, env: dict[str, str]) -> None:
    file = add_wheel(index)
    contract = Contract(python_tags=("cp311",), platforms=(X86,), torch="2.13.0")
    with serving(index) as url:
        locked = resolve(BASE, contract, component="c", env=over_http(env, url))
    assert locked == lock_of(file)
    assert "127.0.0.1" not in repr(locked)


def test_a_connection_that_breaks_off_keeps_nothing(index: Path, env: dict[str, str], store: Store) -> None:
    file = add_wheel(index)
    with serving(index, cuts=True) as url, pytest.raises(FetchError):
        fetch_it(lock_of(file), store, over_http(env, url))
    assert_nothing_kept(store)


@pytest.mark.skipif(not HAS_RAW_PROGRESS, reason="this pip has no raw progress bar")
def test_bytes_are_counted_while_they_arrive(index: Path, env: dict[str, str], store: Store) -> None:
    file = add_wheel(index, content=f"data = {os.urandom(1_500_000).hex()!r}\n")
    seen: list[tuple[int, int | None]] = []
    with serving(index) as url:
        fetch(
            lock_of(file), component="sample", target=CP311, store=store, offline=False, env=over_http(env, url),
            progress=lambda *counts: seen.append(counts),
        )  # fmt: skip
    size = file.stat().st_size
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == ((0, size), (size, size))


# --- a full disk -------------------------------------------------------------------------------------------------

FULL_DISK = """
import os, sys
from pathlib import Path
from tests.integration.test_fetch import CP311, lock_of
from toolkit.errors import StorageError
from toolkit.sources.wheel import fetch
from toolkit.store import Store

store = Store(Path(sys.argv[1]) / "store")
try:
    fetch(lock_of(Path(sys.argv[2])), component="sample", target=CP311, store=store, offline=False, env=os.environ)
except StorageError as fault:
    print(fault.message, store.entries(), os.listdir(store.root / "base"))
"""


def test_a_full_disk_keeps_nothing(index: Path, env: dict[str, str], tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["unshare", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs -o size=1m none "$0" && exec "$@"']
    if shutil.which("unshare") is None or subprocess.run([*mount, small, "true"], check=False).returncode != 0:
        pytest.skip("this machine does not let us mount a small file system")
    file = add_wheel(index, content=f"data = {os.urandom(1_500_000).hex()!r}\n")
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [*mount, small, sys.executable, "-c", FULL_DISK, small, file],
        env={**env, "PYTHONPATH": root}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    folder = f"{small}/store/base/.part-{sha256_file(file)}/download"
    assert done.stdout == f"cannot write: {folder} is full [] []\n"
