"""Sdists with the real pip, from folders and a server on this machine; nothing of a project runs before its build."""

from __future__ import annotations

import functools
import http.server
import logging
import os
import shutil
import threading
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.tarballs import NOON, make_sdist
from toolkit.errors import FetchError, HashMismatchError, LockError, SourceError
from toolkit.files import sha256_file
from toolkit.lock import read_lock, write_lock
from toolkit.model import Contract, FetchedBase, Interpreter, Lock, LockedComponent, Target
from toolkit.registry import RAW_PROGRESS_PIP, PublishedFile
from toolkit.requirements import BuildTable
from toolkit.sdists import find_sdist
from toolkit.sources import sdist
from toolkit.sources.sdist import Base, Locked
from toolkit.store import Store

CP311 = Target(python_tag="cp311", platform="manylinux_2_28_x86_64")
CONTRACT = Contract(python_tags=("cp311",), platforms=("manylinux_2_28_x86_64",), torch="2.13.0")
INTERPRETER = Interpreter(
    executable=Path("python3"), version="3.11.9", python_tag="cp311", platforms=(CP311.platform,), torch=None
)
BASE = Base(kind="sdist", distribution="sample", version="1.0", build=BuildTable(requires=()))
TRAP = "import pathlib; pathlib.Path({!r}).touch(); raise SystemExit('the project ran')\n"
HAS_RAW_PROGRESS = tuple(map(int, version("pip").split(".")[:2])) >= RAW_PROGRESS_PIP
OWN_BACKEND = "[build-system]\nrequires = []\nbuild-backend = 'own'\nbackend-path = ['.']\n"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Make a folder of sdists that pip takes for its index."""
    (tmp_path / "index").mkdir()
    return tmp_path / "index"


@pytest.fixture
def env(tmp_path: Path, index: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index), "PIP_RETRIES": "0", "PIP_ONLY_BINARY": ":all:", "PIP_NO_BUILD_ISOLATION": "1",
    }  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def lock_of(path: Path) -> Locked:
    return Locked(
        distribution="sample", version="1.0", file=path.name, sha256=sha256_file(path), requires=(), requirement=()
    )


def fetch_it(locked: Locked, store: Store, env: dict[str, str]) -> FetchedBase:
    return sdist.fetch(
        locked, component="sample", target=CP311, store=store, offline=False, interpreter=INTERPRETER, env=env
    )


@pytest.mark.parametrize(
    "project",
    [
        {"setup.py": "{trap}"},
        {"pyproject.toml": OWN_BACKEND, "own.py": "{trap}"},
        {"pyproject.toml": "[build-system]\nrequires = ['nowhere-to-be-had']\nbuild-backend = 'nowhere'\n"},
    ],
    ids=["setup.py", "a backend of its own", "a backend that cannot be had"],
)
def test_it_is_resolved_and_fetched_without_running_anything_of_it(
    index: Path, env: dict[str, str], store: Store, tmp_path: Path, project: dict[str, str]
) -> None:
    ran = tmp_path / "ran"
    files = {name: content.replace("{trap}", TRAP.format(str(ran))) for name, content in project.items()}
    path = make_sdist(index, files=files)

    locked = sdist.resolve(BASE, CONTRACT, component="sample", env=env)
    assert (locked.file, locked.sha256, locked.requirement) == ("sample-1.0.tar.gz", sha256_file(path), ())
    got = fetch_it(locked, store, env)
    assert got == FetchedBase(
        component="sample", kind="sdist", digest=locked.sha256, path=store.root / "base" / locked.sha256 / path.name,
        file=path.name, distribution="sample", version="1.0", target=CP311, epoch=NOON,
    )  # fmt: skip
    assert [file.name for file in got.path.parent.iterdir()] == [path.name]
    assert not ran.exists()


def test_no_address_is_kept_in_the_lock(index: Path, env: dict[str, str], tmp_path: Path) -> None:
    make_sdist(index, "sample_parts")
    asked = Base(
        kind="sdist", distribution="sample-parts", version="1.0", subfolder="sample", build=BuildTable(requires=())
    )
    locked = sdist.resolve(asked, CONTRACT, component="sample", env=env)
    path = tmp_path / "r.lock"
    write_lock(Lock(recipe="r", components=(LockedComponent(name="sample", base=locked),), path=path), path)
    assert str(index) not in path.read_text()
    assert "://" not in path.read_text()

    back = read_lock(path, locked_types={"sdist": Locked}).components[0].base
    assert back == locked
    assert back.identity == asked.identity == "sdist sample-parts==1.0 in sample, built with nothing"


def test_a_python_that_it_does_not_support_is_no_matter_here(index: Path, env: dict[str, str]) -> None:
    make_sdist(index, metadata="Metadata-Version: 2.1\nName: sample\nVersion: 1.0\nRequires-Python: >=99\n")
    assert find_sdist("sample", "1.0", env=env).file == "sample-1.0.tar.gz"


def test_a_release_without_an_sdist_is_answered_with_those_that_have_one(index: Path, env: dict[str, str]) -> None:
    make_sdist(index, version="0.9")
    with pytest.raises(LockError) as caught:
        find_sdist("sample", "1.0", env=env)
    assert caught.value.message == "sample==1.0 has no sdist at the registry"
    assert caught.value.hint == ("versions with an sdist: 0.9; change the version in the recipe, or use a git base")


def test_a_zip_archive_is_refused(index: Path, env: dict[str, str]) -> None:
    folder = index.parent / "made" / "sample-1.0"
    folder.mkdir(parents=True)
    (folder / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: sample\nVersion: 1.0\n")
    (folder / "setup.py").write_text("")
    shutil.make_archive(str(index / "sample-1.0"), "zip", folder.parent, "sample-1.0")
    with pytest.raises(LockError) as caught:
        find_sdist("sample", "1.0", env=env)
    assert caught.value.message == "the sdist of sample==1.0 is sample-1.0.zip, expected a .tar.gz"


def test_a_registry_that_does_not_answer_is_told(env: dict[str, str]) -> None:
    del env["PIP_NO_INDEX"]
    env.update(PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_RETRIES="1", PIP_TIMEOUT="1", PIP_FIND_LINKS="")
    with pytest.raises(LockError) as caught:
        find_sdist("sample", "1.0", env=env)
    assert caught.value.message == "the registry did not answer which sdist sample==1.0 has"


def test_other_bytes_under_the_same_name_are_not_kept(index: Path, env: dict[str, str], store: Store) -> None:
    path = make_sdist(index)
    locked = lock_of(path)
    make_sdist(index, files={"other": ""})
    with pytest.raises(HashMismatchError) as caught:
        fetch_it(locked, store, env)
    assert (caught.value.expected, caught.value.actual) == (locked.sha256, sha256_file(path))
    assert store.entries() == []


def test_an_archive_that_is_gone_is_a_fetch_error(index: Path, env: dict[str, str], store: Store) -> None:
    path = make_sdist(index)
    locked = lock_of(path)
    path.unlink()
    with pytest.raises(FetchError) as caught:
        fetch_it(locked, store, env)
    assert caught.value.message == "pip could not download sample-1.0.tar.gz"
    assert store.entries() == []


@pytest.fixture
def server(index: Path) -> Iterator[str]:
    """Serve the folder above the index on this machine."""
    handler = functools.partial(QuietHandler, directory=str(index.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words: object) -> None:
        """Say nothing."""


def test_a_server_is_asked_for_its_sdist_though_it_has_a_wheel(
    index: Path, env: dict[str, str], store: Store, server: str
) -> None:
    path = make_sdist(index)
    (index / "sample-1.0-py3-none-any.whl").write_bytes(b"no wheel")
    env["PIP_FIND_LINKS"] = f"{server}/index/"
    found = find_sdist("sample", "1.0", env=env)
    assert found == PublishedFile(file=path.name, sha256=sha256_file(path))
    assert fetch_it(lock_of(path), store, env).path.read_bytes() == path.read_bytes()


@pytest.mark.skipif(not HAS_RAW_PROGRESS, reason="this pip has no raw progress bar")
def test_bytes_are_counted_while_they_arrive(index: Path, env: dict[str, str], store: Store, server: str) -> None:
    path = make_sdist(index, files={"setup.py": "", "data": os.urandom(1_000_000).hex()})
    seen: list[tuple[int, int | None]] = []
    sdist.fetch(
        lock_of(path), component="sample", target=CP311, store=store, offline=False, interpreter=INTERPRETER,
        env={**env, "PIP_FIND_LINKS": f"{server}/index/"}, progress=lambda *counts: seen.append(counts),
    )  # fmt: skip
    size = path.stat().st_size
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == ((0, size), (size, size))


def test_a_damaged_entry_is_fetched_again(
    index: Path, env: dict[str, str], store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    path = make_sdist(index)
    kept = store.obtain("base", sha256_file(path), lambda folder: None)
    with caplog.at_level(logging.WARNING):
        fetch_it(lock_of(path), store, env)
    assert (kept / path.name).read_bytes() == path.read_bytes()
    assert caplog.messages == [f"sample: store entry {kept} is damaged; fetching it again"]


def test_what_is_not_the_locked_release_is_not_kept(index: Path, env: dict[str, str], store: Store) -> None:
    path = make_sdist(index, metadata="Name: sample\nVersion: 2.0\n")
    with pytest.raises(SourceError) as caught:
        fetch_it(lock_of(path), store, env)
    assert caught.value.message == "sample-1.0.tar.gz is sample 2.0 in 'sample-1.0', expected sample==1.0"
    assert caught.value.hint == "the registry's file is misnamed: do not use it"
    assert store.entries() == []
