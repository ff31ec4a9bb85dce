"""A series while it is written: killed at any moment, on a full disk, it is the old one or the new one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.changing_sample import NAMES, SERIES, Changing, copy_of, in_process, make_changing

WRITER = """
import os, shutil, signal, sys
from dataclasses import replace
from pathlib import Path
from tests.changing_sample import SERIES, Changing, in_a_process
from toolkit.upkeep.hold import hold_series
from toolkit.upkeep.workshop import open_series
from toolkit.upkeep.writeback import write_back

root, environ = Path(sys.argv[1]), dict(os.environ)
changing = Changing(root=root, environ=environ, run=in_a_process)
WATCHED = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "shutil.copyfile", "ctypes.dlsym",
           "ctypes.dlsym/handle", "shutil.rmtree")

def arm(moment):
    \"\"\"Kill this process at its moment-th event that has to do with files.\"\"\"
    left = [moment]
    def watch(event, arguments):
        if event in WATCHED and (event.startswith("ctypes") or str(root) in str(arguments)):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(watch)

def read(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}

def write_once(shop, moment):
    child = os.fork()
    if child == 0:
        arm(moment)
        write_back(shop, afresh=(1, 2, 3))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

with hold_series(changing.project, SERIES):
    shop = open_series(changing.project, SERIES, means=changing.means, whole=False)
    old, kept = read(changing.folder), root.parent / "kept"
    shutil.copytree(changing.folder, kept)
    print("old:", *sorted(old))

moment, ends, new = 0, [], None
while True:
    moment += 1
    code = write_once(shop, moment)
    with hold_series(changing.project, SERIES):
        state = read(changing.folder)
    ends.append("old" if state == old else "new")
    if state != old:
        assert new in (None, state), sorted(state)
        new = state
        shutil.rmtree(changing.folder)
        shutil.copytree(kept, changing.folder)
    if code == 0:
        break
    assert code == -signal.SIGKILL, code
print(len(ends), *ends)
print("new:", *sorted(new), new != old)
"""


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Changing:
    changing = make_changing(tmp_path_factory.mktemp("changing"))
    for path in changing.folder.glob("*.patch"):  # Not in normal form: there is something to write.
        path.write_bytes(path.read_bytes() + b"-- \n2.39.5\n\n")
    return changing


@pytest.fixture
def changing(
    made_once: Changing, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Changing:
    return copy_of(made_once, tmp_path, in_process(capfd, monkeypatch))


def test_killed_at_any_moment_the_series_is_the_old_one_or_the_new_one(changing: Changing) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(changing.root)], env=os.environ | changing.environ, capture_output=True,
        text=True, check=False, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    old, ends, new = done.stdout.splitlines()
    count, *states = ends.split()

    files = " ".join([*(f"{name}.patch" for name in NAMES), "README.md", "series.toml"])
    assert (old, new) == (f"old: {files}", f"new: {files} True")
    assert int(count) > 20
    assert states.count("old") > 10
    assert states.count("new") > 1, "it was killed after the step too"
    assert states == sorted(states, reverse=True), "old up to one moment, new from there on"


def test_after_a_killed_command_the_next_one_finds_everything_in_order(changing: Changing) -> None:
    """The work tree that it leaves is no one's: it is removed."""
    before = changing.files()
    killer = "kill -9 $PPID; sleep 1"
    done = subprocess.run(
        [sys.executable, "-m", "toolkit", "patch", "split", "2", "--series", SERIES, "--command", killer],
        cwd=changing.root, env=os.environ | changing.environ, check=False, capture_output=True,
    )  # fmt: skip
    assert done.returncode == -9
    assert changing.files() == before
    assert changing.patch("refresh").code == 22
    assert changing.patch("split", "--abort").code == 0

    assert changing.patch("refresh").code == 0


def test_a_full_disk_leaves_the_series_as_it_was(made_once: Changing, small_disk: Path, changing: Changing) -> None:
    full = copy_of(made_once, small_disk, changing.run)
    before = full.files()
    with (small_disk / "filling").open("wb") as stream:
        free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_bsize
        stream.write(b"\0" * (free - (24 << 10)))
    done = full.patch("refresh")

    assert done.code == 12, done.err
    assert done.err.startswith("error: cannot write: ")
    assert full.files() == before
    (small_disk / "filling").unlink()
    assert full.patch("refresh").code == 0
    assert full.files() != before


def test_a_file_that_may_not_grow_leaves_the_series_as_it_was(changing: Changing) -> None:
    """What git could still write is not enough for the patches."""
    before = changing.files()
    words = f"ulimit -f 1; exec {sys.executable} -m toolkit patch refresh --series {SERIES}"
    done = subprocess.run(
        ["/bin/sh", "-c", words], cwd=changing.root, env=os.environ | changing.environ, check=False,
        capture_output=True, text=True,
    )  # fmt: skip

    assert done.returncode != 0
    assert changing.files() == before
    assert changing.patch("refresh").code == 0
