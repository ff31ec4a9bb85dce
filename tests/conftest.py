"""What every test gets: places of its own, so that one which forgets to name the store or the overlays fails."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NOT_FOR_TESTS = ("TOOLKIT_", "XDG_", "GIT_")
"""Variables of the caller that would change what a test sees. pip's stay: they say where the index is."""

PIP_CONFIG_FILES = (".config/pip/pip.conf", ".pip/pip.conf")

TOGETHER = "tests/e2e/"
"""What stays on one worker although it is many modules: they share an overlay that takes minutes to build."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each module to one of several workers as a whole, so that what a module makes once is made once."""
    from xdist.scheduler import LoadFileScheduling

    class ByModule(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return TOGETHER if nodeid.startswith(TOGETHER) else str(super()._split_scope(nodeid))

    return ByModule(config, log)


@pytest.fixture(scope="session", autouse=True)
def heeded_signals() -> None:
    """Heed what a run in the background, or under nohup, ignores: the children that tests end by it inherit that."""
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture(autouse=True)
def own_log_handlers() -> Iterator[None]:
    """Take away the log handlers that a command run in this process leaves: their streams are closed with the test."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    for handler in [one for one in root.handlers if one not in before]:
        root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of all home folders."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def own_places(homes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test an empty home, and default places for the store and the overlays that raise when used."""
    for name in [name for name in os.environ if name.startswith(NOT_FOR_TESTS)]:
        monkeypatch.delenv(name)
    home = Path(tempfile.mkdtemp(dir=homes))
    for place in (home / ".cache" / "toolkit", home / ".local" / "share" / "toolkit"):
        place.parent.mkdir(parents=True)
        place.write_text("A test must name its store and its overlays.\n", encoding="utf-8")
    monkeypatch.setenv("TOOLKIT_STORE", str(home / ".cache" / "toolkit" / "store"))
    monkeypatch.setenv("TOOLKIT_OVERLAYS", str(home / ".local" / "share" / "toolkit" / "overlays"))
    _keep_pip_settings(monkeypatch)
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder that any user may reach and write, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="toolkit-test-"))
    folder.chmod(0o777)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o777)
    shutil.rmtree(folder)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a file system of 1 MiB; skips where this user may not mount one."""
    place = tmp_path / "small-disk"
    place.mkdir()
    _mount(place, "size=1m")
    yield place
    subprocess.run(["umount", place], check=True)


def _mount(place: Path, options: str) -> None:
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", place], capture_output=True, check=False)
    except OSError as fault:
        pytest.skip(f"no tmpfs can be mounted here: {fault}")
    if done.returncode != 0:
        pytest.skip(f"no tmpfs can be mounted here: {done.stderr.decode(errors='replace').partition(chr(10))[0]}")


def _keep_pip_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name the user's own pip.conf, which pip would no longer find in the new home."""
    if "PIP_CONFIG_FILE" in os.environ:
        return
    found = next((path for name in PIP_CONFIG_FILES if (path := Path.home() / name).is_file()), None)
    if found is not None:
        monkeypatch.setenv("PIP_CONFIG_FILE", str(found))
