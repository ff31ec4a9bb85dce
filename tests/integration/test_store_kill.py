"""The store under violence: killed at any moment, several processes at once, a full or read-only disk."""

from __future__ import annotations

import errno
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

import toolkit
from toolkit import store as store_room
from toolkit.errors import StoreError
from toolkit.files import storage_error
from toolkit.store import LOCK_FOLDER, WAIT_NOTICE, Store

CHECKOUT = Path(toolkit.__file__).parents[1]
PATIENCE = 10.0
FILES = {"one": b"1" * 3000, "two": b"2" * 70_000, "sub/three": b"3", "sub/empty": b""}
KILLS = 25
SEED = 20260504

CHILD = f"""
import logging, os, signal, sys
from pathlib import Path
from toolkit import store as store_room
from toolkit.store import Store

FILES = {FILES!r}

def fill(folder):
    for name, raw in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(raw)

logging.basicConfig(format="%(message)s", level=logging.WARNING)
store_room.WAIT_LIMIT = {PATIENCE}
store = Store(Path(sys.argv[1]))
"""


def child(code: str, store: Store, *arguments: object) -> subprocess.Popen[str]:
    """Start a Python process with `CHILD`'s names and `code`; both ends of its conversation are pipes."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD + code, str(store.root), *map(str, arguments)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str], line: str = "") -> tuple[int, str, str]:
    """Answer a child, wait for its end, and return its code and what it printed."""
    out, err = process.communicate(line, timeout=PATIENCE)
    return process.returncode, out, err


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """See that a child is gone at the end, whatever the test finds."""
    with process:
        try:
            yield process
        finally:
            process.kill()


def read_line(stream: IO[str] | None) -> str:
    """Read the one line that a child prints next; fails where none comes."""
    assert stream is not None
    assert select.select([stream], [], [], PATIENCE)[0], "the child printed nothing"
    return stream.readline().rstrip("\n")


def fill(folder: Path) -> None:
    for name, raw in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(raw)


def refuse(folder: Path) -> None:
    raise AssertionError(f"nothing was to be made, but {folder} was begun")


def assert_whole(folder: Path) -> None:
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert found == FILES


def leftovers(store: Store) -> list[Path]:
    return list(store.root.glob("*/.part-*"))


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a lock that nobody gives back be a failure soon."""
    monkeypatch.setattr(store_room, "WAIT_LIMIT", PATIENCE)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


# --- killed ----------------------------------------------------------------------------------------------------

DIE_AT_EVERY_STEP = """
def die_before_step(number, root):
    # An audit event comes before what it announces. All that the store does to the disk raises one.
    left = number
    def count(event, arguments):
        nonlocal left
        if event.startswith(("os.", "fcntl.", "shutil.")) or event == "open" and str(arguments[0]).startswith(root):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(count)

def collect(store):
    store.collect(older_than=0, now=lambda: 1e12)

def make(store):
    store.obtain("wheel", "k", fill)

code, step = None, 0
while code != 0:
    step += 1
    store = Store(Path(sys.argv[1]) / str(step))
    if sys.argv[2] == "collect":
        make(store)
    if (pid := os.fork()) == 0:
        die_before_step(step, str(store.root))
        globals()[sys.argv[2]](store)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(code, flush=True)
"""

DIE_AT_RANDOM = """
import random, time

rng = random.Random(int(sys.argv[3]))
for _ in range(int(sys.argv[2])):
    if (pid := os.fork()) == 0:
        for number in range(100_000):
            store.obtain("wheel", str(number), fill)
        os._exit(0)
    time.sleep(rng.uniform(0, 0.02))
    os.kill(pid, signal.SIGKILL)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def die_at_every_step(root: Path, work: str) -> list[Store]:
    """Do the work again and again, each time killed one step later, and return the stores as that left them."""
    code, out, err = finish(child(DIE_AT_EVERY_STEP, Store(root), work))
    assert code == 0, err
    ends = [int(line) for line in out.split()]
    assert ends == [-signal.SIGKILL] * (len(ends) - 1) + [0]
    return [Store(root / str(step)) for step in range(1, len(ends) + 1)]


def test_a_make_that_is_killed_before_any_of_its_steps_leaves_no_half_entry(tmp_path: Path) -> None:
    stores = die_at_every_step(tmp_path, "make")
    half_made = [store for store in stores if leftovers(store)]
    whole = [store for store in stores if store.entries()]

    assert len(half_made) >= len(FILES), "no kill hit a make that had begun"
    assert whole == stores[-len(whole) :]
    for store in stores:
        for entry in store.entries():
            assert_whole(entry.path)
        assert_whole(store.obtain("wheel", "k", fill))
        assert not leftovers(store)


def test_a_collection_that_is_killed_before_any_of_its_steps_leaves_no_half_entry(tmp_path: Path) -> None:
    stores = die_at_every_step(tmp_path, "collect")

    assert [store for store in stores if leftovers(store)], "no kill hit a removal that had begun"
    assert stores[-1].entries() == []
    for store in stores:
        for entry in store.entries():
            assert_whole(entry.path)
        store.collect(older_than=0, now=lambda: 1e12)
        assert store.entries() == []
        assert not leftovers(store)


def test_makes_that_are_killed_at_random_moments_leave_whole_entries_only(store: Store) -> None:
    code, out, err = finish(child(DIE_AT_RANDOM, store, KILLS, SEED))
    assert code == 0, err
    assert out.split() == [str(-signal.SIGKILL)] * KILLS

    entries = store.entries()
    assert entries
    for entry in entries:
        assert_whole(entry.path)
    assert_whole(store.obtain("wheel", str(len(entries)), fill))
    store.collect(older_than=1e9)
    assert not leftovers(store)


# --- several at once -------------------------------------------------------------------------------------------

MAKE_WHEN_TOLD = """
store_room.WAIT_NOTICE = 0.05

def make(folder):
    print("making", flush=True)
    sys.stdin.readline()
    fill(folder)

print(store.obtain("wheel", "k", make))
"""


def test_of_two_processes_one_makes_and_the_other_waits_and_uses_it(store: Store) -> None:
    with ended(child(MAKE_WHEN_TOLD, store)) as first:
        assert read_line(first.stdout) == "making"
        with ended(child(MAKE_WHEN_TOLD, store)) as second:
            assert read_line(second.stderr) == "another toolkit process is making wheel-k; waiting for it"

            assert finish(first, "go\n") == (0, f"{store.root}/wheel/k\n", "")
            assert finish(second) == (0, f"{store.root}/wheel/k\n", "")

    assert_whole(store.root / "wheel" / "k")


def test_many_processes_at_once_make_each_entry_once(store: Store, tmp_path: Path) -> None:
    code = """
log = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def make(folder):
    fill(folder)
    os.write(log, f"{folder.name}\\n".encode())
sys.stdin.readline()
for number in range(20):
    store.obtain("wheel", str(number), make)
"""
    makers = [child(code, store, tmp_path / "log") for _ in range(4)]
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.write("go\n")
        maker.stdin.flush()

    assert [finish(maker)[0] for maker in makers] == [0] * 4
    assert sorted((tmp_path / "log").read_text().split()) == sorted(f".part-{number}" for number in range(20))
    for entry in store.entries():
        assert_whole(entry.path)


def test_the_lock_of_a_killed_process_is_free_at_once(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    with ended(child(MAKE_WHEN_TOLD, store)) as holder:
        assert read_line(holder.stdout) == "making"
        holder.kill()
    began = time.monotonic()

    assert_whole(store.obtain("wheel", "k", fill))

    assert time.monotonic() - began < WAIT_NOTICE
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_who_waits_for_a_killed_process_goes_on(store: Store) -> None:
    with ended(child(MAKE_WHEN_TOLD, store)) as holder:
        assert read_line(holder.stdout) == "making"
        with ended(child(MAKE_WHEN_TOLD, store)) as waiting:
            assert read_line(waiting.stderr).endswith("waiting for it")
            holder.kill()
            assert read_line(waiting.stdout) == "making"
            assert finish(waiting, "go\n") == (0, f"{store.root}/wheel/k\n", "")


def test_a_collection_leaves_alone_what_another_process_is_making(store: Store) -> None:
    with ended(child(MAKE_WHEN_TOLD, store)) as maker:
        assert read_line(maker.stdout) == "making"
        assert store.collect(older_than=0) == 0
        assert len(leftovers(store)) == 1

        assert finish(maker, "go\n")[0] == 0
    assert_whole(store.root / "wheel" / "k")


def test_a_child_of_a_killed_process_does_not_keep_its_lock(store: Store) -> None:
    code = """
import subprocess
with store.locked("wheel-k"):
    print(subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid, flush=True)
    sys.stdin.readline()
"""
    with ended(child(code, store)) as holder:
        survivor = int(read_line(holder.stdout))
        holder.kill()
    began = time.monotonic()
    try:
        store.obtain("wheel", "k", fill)
        assert time.monotonic() - began < WAIT_NOTICE
    finally:
        os.kill(survivor, signal.SIGKILL)


# --- disks -----------------------------------------------------------------------------------------------------


def test_a_full_disk_leaves_nothing_half_made(small_disk: Path) -> None:
    store = Store(small_disk / "store")

    def make(folder: Path) -> None:
        fill(folder)
        (folder / "large").write_bytes(b"x" * (2 << 20))

    with pytest.raises(OSError, match="No space left on device") as caught:
        store.obtain("wheel", "k", make)

    refusal = storage_error(caught.value)
    assert caught.value.errno == errno.ENOSPC
    assert refusal is not None
    assert refusal.message == "cannot write: the file system is full (No space left on device)"
    assert store.entries() == []
    assert not leftovers(store)
    assert_whole(store.obtain("wheel", "k", fill))


def test_a_read_only_disk_is_named_and_its_entries_are_found(small_disk: Path) -> None:
    store = Store(small_disk / "store")
    store.obtain("wheel", "old", fill)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)

    assert_whole(store.obtain("wheel", "old", refuse))
    with pytest.raises(StoreError) as caught:
        store.obtain("wheel", "new", refuse)

    assert caught.value.message == f"the store at {store.root} cannot be written: Read-only file system"
    assert caught.value.hint == "choose another with --store DIR or TOOLKIT_STORE"


def test_a_new_store_on_a_read_only_disk_is_an_error(small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    store = Store(small_disk / "store")

    with pytest.raises(StoreError) as caught:
        store.obtain("wheel", "k", refuse)

    assert caught.value.message == f"the store at {store.root} cannot be written: Read-only file system"
    assert not (store.root / LOCK_FOLDER).exists()
