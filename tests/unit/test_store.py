"""The store: an entry under its final name is whole, made once, and stays while it is wanted."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.limits import file_size_limit, ordinary_user
from toolkit import store as store_room
from toolkit.errors import StoreError
from toolkit.files import storage_error
from toolkit.store import Store, default_store, hold_lock

DAY = 86400.0
PATIENCE = 10.0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def fill(folder: Path) -> None:
    (folder / "file").write_text("12345")
    (folder / "sub").mkdir()
    (folder / "sub" / "file").write_text("123")


def refuse(folder: Path) -> None:
    raise AssertionError(f"nothing was to be made, but {folder} was begun")


def content(store: Store) -> list[str]:
    """List what the store has but for its locks."""
    paths = (path.relative_to(store.root) for path in sorted(store.root.rglob("*")))
    return [path.as_posix() for path in paths if path.parts[0] != "locks"]


# --- obtaining -------------------------------------------------------------------------------------------------


def test_an_entry_is_made_and_found_again(store: Store) -> None:
    assert store.find("wheel", "k") is None

    made = store.obtain("wheel", "k", fill)

    assert made == store.root / "wheel" / "k"
    assert store.obtain("wheel", "k", refuse) == made
    assert store.find("wheel", "k") == made
    assert content(store) == ["wheel", "wheel/k", "wheel/k/file", "wheel/k/sub", "wheel/k/sub/file"]


def test_an_entry_has_no_name_while_it_is_made(store: Store) -> None:
    def make(folder: Path) -> None:
        assert store.find("wheel", "k") is None
        assert store.entries() == []
        assert folder.parent == store.root / "wheel", "a rename must not cross file systems"

    store.obtain("wheel", "k", make)


def test_the_same_key_of_another_kind_is_another_entry(store: Store) -> None:
    store.obtain("wheel", "k", fill)

    assert store.find("base", "k") is None


@pytest.mark.parametrize("fault", [ValueError("no"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_nothing_is_kept_of_an_entry_that_could_not_be_made(store: Store, fault: BaseException) -> None:
    def make(folder: Path) -> None:
        fill(folder)
        raise fault

    with pytest.raises(type(fault)):
        store.obtain("wheel", "k", make)

    assert content(store) == ["wheel"]
    assert store.obtain("wheel", "k", fill).is_dir()


def test_what_a_killed_run_left_is_not_part_of_the_entry(store: Store) -> None:
    (store.root / "wheel" / ".part-k").mkdir(parents=True)
    (store.root / "wheel" / ".part-k" / "leftover").touch()

    store.obtain("wheel", "k", fill)

    assert content(store) == ["wheel", "wheel/k", "wheel/k/file", "wheel/k/sub", "wheel/k/sub/file"]


def test_an_entry_that_another_made_while_this_one_waited_is_used(store: Store) -> None:
    waiting = threading.Thread(target=lambda: store.obtain("wheel", "k", refuse))

    with store.locked("wheel-k"):
        waiting.start()
        time.sleep(0.2)
        fill_entry(store, "k")
    waiting.join(PATIENCE)

    assert not waiting.is_alive()


def fill_entry(store: Store, key: str, *, age: float = 0.0) -> Path:
    """Put an entry in place as a finished run leaves it."""
    path = store.root / "wheel" / key
    path.mkdir(parents=True)
    fill(path)
    os.utime(path, times=(time.time() - age,) * 2)
    return path


# --- places that cannot be written -----------------------------------------------------------------------------

HINT = "choose another with --store DIR or TOOLKIT_STORE"


@pytest.mark.parametrize("depth", [1, 2], ids=["the file itself", "below the file"])
def test_a_store_below_a_regular_file(tmp_path: Path, depth: int) -> None:
    (tmp_path / "file").touch()
    store = Store(tmp_path.joinpath("file", *["x"] * (depth - 1)))

    with pytest.raises(StoreError) as caught:
        store.obtain("wheel", "k", refuse)

    assert caught.value.message == f"the store at {store.root} cannot be written: Not a directory"
    assert caught.value.hint == HINT


@pytest.mark.parametrize("taken", ["locks", "wheel"])
def test_a_store_with_a_file_where_a_folder_belongs(store: Store, taken: str) -> None:
    store.root.mkdir()
    (store.root / taken).touch()

    with pytest.raises(StoreError) as caught:
        store.obtain("wheel", "k", refuse)

    assert caught.value.message == f"the store at {store.root} cannot be written: File exists"


@pytest.mark.parametrize("prepared", [False, True], ids=["empty", "in use"])
def test_a_store_that_this_user_may_not_write(open_folder: Path, prepared: bool) -> None:
    store = Store(open_folder / "store")
    store.root.mkdir()
    if prepared:
        store.obtain("wheel", "old", fill)
    for folder in (store.root, *store.root.iterdir()):
        folder.chmod(0o555)

    with ordinary_user(), pytest.raises(StoreError) as caught:
        store.obtain("wheel", "k", refuse)

    assert caught.value.message == f"the store at {store.root} cannot be written: Permission denied"
    assert caught.value.hint == HINT


def test_an_entry_of_a_store_that_may_only_be_read_is_found(open_folder: Path) -> None:
    store = Store(open_folder / "store")
    made = store.obtain("wheel", "k", fill)
    for folder in (store.root, *store.root.iterdir()):
        folder.chmod(0o555)

    with ordinary_user():
        assert store.obtain("wheel", "k", refuse) == made


@pytest.mark.parametrize("size", [0, 1000], ids=["not a byte", "part of it"])
def test_nothing_half_made_stays_when_the_disk_refuses(store: Store, size: int) -> None:
    def make(folder: Path) -> None:
        (folder / "small").touch()
        (folder / "file").write_bytes(b"x" * 5000)

    with file_size_limit(size), pytest.raises(OSError, match="File too large") as caught:
        store.obtain("wheel", "k", make)

    assert caught.value.errno == errno.EFBIG
    assert storage_error(caught.value) is not None
    assert content(store) == ["wheel"]
    assert store.obtain("wheel", "k", make).is_dir()


def test_the_default_store_is_not_for_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreError, match="cannot be written: Not a directory"):
        Store(default_store(os.environ)).obtain("wheel", "k", refuse)
    with pytest.raises(StoreError, match="cannot be written: Not a directory"):
        Store(default_store({})).obtain("wheel", "k", refuse)


# --- where it is -----------------------------------------------------------------------------------------------


def test_the_store_is_where_the_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert default_store({"TOOLKIT_STORE": "mine"}) == tmp_path / "mine"


@pytest.mark.parametrize("environ", [{}, {"TOOLKIT_STORE": ""}], ids=["unset", "empty"])
def test_the_store_is_else_in_the_cache_folder_of_the_user(own_places: Path, environ: dict[str, str]) -> None:
    assert default_store(environ) == own_places / ".cache" / "toolkit"


# --- locks -----------------------------------------------------------------------------------------------------


def test_who_has_to_wait_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(store_room, "WAIT_NOTICE", 0.05)
    path = tmp_path / "x.lock"
    waiting = threading.Thread(target=_hold, args=(path,))

    with hold_lock(path, "the overlay x"):
        waiting.start()
        _wait_until(lambda: bool(caplog.records))
    waiting.join(PATIENCE)

    assert not waiting.is_alive()
    assert caplog.messages == ["another toolkit process is making the overlay x; waiting for it"]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_a_lock_that_is_never_given_back_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_room, "WAIT_NOTICE", 0.05)
    monkeypatch.setattr(store_room, "WAIT_LIMIT", 0.1)
    store, faults = Store(tmp_path), []

    def wait() -> None:
        with pytest.raises(StoreError) as caught:
            store.obtain("wheel", "k", refuse)
        faults.append(caught.value)

    waiting = threading.Thread(target=wait)
    with store.locked("wheel-k"):
        waiting.start()
        waiting.join(PATIENCE)

    assert [fault.message for fault in faults] == ["waited 0.1 s for another process to finish wheel-k"]
    assert [fault.hint for fault in faults] == [f"see who holds {tmp_path}/locks/wheel-k.lock"]


def test_a_lock_is_given_back_when_its_work_fails(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), hold_lock(tmp_path / "x.lock", "x"):
        raise RuntimeError

    waiting = threading.Thread(target=_hold, args=(tmp_path / "x.lock",), daemon=True)
    waiting.start()
    waiting.join(PATIENCE / 4)

    assert not waiting.is_alive()


def test_a_fault_of_the_work_is_not_taken_for_one_of_the_store(store: Store) -> None:
    with pytest.raises(FileNotFoundError), store.locked("wheel-k"):
        Path("/none/such").read_bytes()


def _hold(path: Path) -> None:
    with hold_lock(path, "the overlay x"):
        pass


def _wait_until(done: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < limit
        time.sleep(0.01)


# --- listing and collecting ------------------------------------------------------------------------------------


def test_entries_come_with_their_sizes_least_recently_used_first(store: Store) -> None:
    fill_entry(store, "young", age=1 * DAY)
    fill_entry(store, "old", age=3 * DAY)
    (store.root / "wheel" / ".part-half").mkdir()
    store.obtain("base", "now", fill)

    found = store.entries()

    assert [(entry.kind, entry.key, entry.size) for entry in found] == [
        ("wheel", "old", 8), ("wheel", "young", 8), ("base", "now", 8),
    ]  # fmt: skip
    assert found[0].path == store.root / "wheel" / "old"
    assert found[0].used == pytest.approx(time.time() - 3 * DAY, abs=60)


def test_a_store_that_is_not_there_has_no_entries_and_nothing_to_collect(store: Store) -> None:
    assert store.entries() == []
    assert store.collect(older_than=0) == 0
    assert not store.root.exists()


def test_collecting_removes_what_was_not_used_lately(store: Store) -> None:
    fill_entry(store, "old", age=3 * DAY)
    fill_entry(store, "young", age=1 * DAY)

    assert store.collect(older_than=2 * DAY) == 8
    assert [entry.key for entry in store.entries()] == ["young"]
    assert not any(".part-" in name for name in content(store))


def test_the_age_counts_from_the_clock_that_is_given(store: Store) -> None:
    fill_entry(store, "young")

    assert store.collect(older_than=2 * DAY, now=lambda: time.time() + 3 * DAY) == 8


def test_collecting_keeps_the_keys_that_are_named_whatever_their_age(store: Store) -> None:
    fill_entry(store, "kept", age=9 * DAY)
    fill_entry(store, "old", age=9 * DAY)

    assert store.collect(older_than=DAY, keep=iter(["kept"])) == 8
    assert [entry.key for entry in store.entries()] == ["kept"]


def test_finding_an_entry_counts_as_using_it(store: Store) -> None:
    fill_entry(store, "old", age=9 * DAY)

    store.find("wheel", "old")

    assert store.collect(older_than=DAY) == 0


def test_an_entry_that_is_used_just_before_its_turn_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(store_room, "WAIT_NOTICE", 0.05)
    fill_entry(store, "old", age=9 * DAY)
    freed: list[int] = []
    collecting = threading.Thread(target=lambda: freed.append(store.collect(older_than=DAY)))

    with store.locked("wheel-old"):
        collecting.start()
        _wait_until(lambda: bool(caplog.records))
        store.find("wheel", "old")
    collecting.join(PATIENCE)

    assert freed == [0]
    assert [entry.key for entry in store.entries()] == ["old"]


def test_collecting_sweeps_what_killed_runs_left(store: Store) -> None:
    leftover = store.root / "wheel" / ".part-dead"
    leftover.mkdir(parents=True)
    fill(leftover)

    assert store.collect(older_than=DAY) == 8
    assert content(store) == ["wheel"]


def test_collecting_leaves_alone_what_is_being_made(store: Store) -> None:
    def make(folder: Path) -> None:
        fill(folder)
        collecting = threading.Thread(target=lambda: freed.append(store.collect(older_than=0)))
        collecting.start()
        collecting.join(PATIENCE)

    freed: list[int] = []
    store.obtain("wheel", "k", make)

    assert freed == [0]
    assert content(store) == ["wheel", "wheel/k", "wheel/k/file", "wheel/k/sub", "wheel/k/sub/file"]


@pytest.mark.parametrize("leftover", [False, True], ids=["an old entry", "a leftover"])
def test_a_store_that_cannot_be_written_cannot_be_collected(open_folder: Path, leftover: bool) -> None:
    store = Store(open_folder / "store")
    fill_entry(store, ".part-dead" if leftover else "old", age=9 * DAY)
    for folder in (store.root, *store.root.iterdir()):
        folder.chmod(0o555)

    with ordinary_user(), pytest.raises(StoreError) as caught:
        store.collect(older_than=DAY)

    assert caught.value.message == f"the store at {store.root} cannot be written: Permission denied"


def test_two_collections_and_a_listing_at_once_do_not_disturb_each_other(store: Store) -> None:
    for number in range(60):
        fill_entry(store, f"{number:03}", age=9 * DAY)
    freed: list[int] = []
    faults: list[BaseException] = []

    def work(step: Callable[[], object]) -> None:
        try:
            step()
        except BaseException as fault:
            faults.append(fault)

    steps = [lambda: freed.append(store.collect(older_than=DAY))] * 2 + [lambda: [store.entries() for _ in range(10)]]
    workers = [threading.Thread(target=work, args=(step,)) for step in steps]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE)

    assert faults == []
    assert sum(freed) == 60 * 8
    assert content(store) == ["wheel"]


# --- damaged entries -------------------------------------------------------------------------------------------


def test_a_damaged_entry_can_be_discarded(store: Store) -> None:
    fill_entry(store, "k")

    store.discard("wheel", "k", unless=lambda path: False)

    assert content(store) == ["wheel"]


def test_an_entry_that_has_been_made_anew_is_not_discarded(store: Store) -> None:
    path = fill_entry(store, "k")
    looked_at: list[Path] = []

    store.discard("wheel", "k", unless=lambda entry: bool(looked_at.append(entry)) or True)

    assert looked_at == [path]
    assert store.find("wheel", "k") == path


def test_discarding_what_is_not_there_is_no_error(store: Store) -> None:
    store.discard("wheel", "k", unless=lambda path: refuse(path) is None)

    assert content(store) == []


def test_collecting_waits_for_those_who_work_with_entries(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store.obtain("wheel", "k", fill)
    freed: list[int] = []
    collecting = threading.Thread(target=lambda: freed.append(store.collect(older_than=0)))
    with store.in_use(), Store(store.root).in_use():
        collecting.start()
        collecting.join(0.3)
        assert collecting.is_alive()
        assert store.find("wheel", "k") is not None
    collecting.join(PATIENCE)
    assert freed == [8]
    assert caplog.messages == ["waiting for another toolkit process to end its work with the store"]


def test_a_store_that_cannot_be_written_can_be_in_use(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with Store(tmp_path / "file" / "store").in_use():
        pass
