"""The content-addressed store: key from all inputs, look, lock, look again, make, publish.

Layout: `<root>/<kind>/<key>/` holds one finished entry, `<root>/locks/` the locks. An entry under its final name is
whole; what is being made stands beside it as `.part-<key>` and is swept by whoever next holds the key's lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from toolkit.errors import StoreError
from toolkit.files import PART_PREFIX, remove_tree, staged_directory

log = logging.getLogger(__name__)

LOCK_FOLDER = "locks"
IN_USE = "in-use"
WAIT_NOTICE = 1.0
WAIT_LIMIT = 48 * 3600.0
"""Seconds: a source build holds its lock for hours. Who dies gives it back at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreEntry:
    """One finished entry: its size in bytes and when it was last used (seconds since the epoch)."""

    kind: str
    key: str
    path: Path
    size: int
    used: float


class Store:
    """A folder of finished entries; safe for any number of processes at once."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find(self, kind: str, key: str) -> Path | None:
        """Return an entry's folder if it is there, and note that it was used."""
        path = self.root / kind / key
        if not path.is_dir():
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return path

    def obtain(self, kind: str, key: str, make: Callable[[Path], None]) -> Path:
        """Return an entry's folder, making it if need be with `make`, which fills the folder it is given.

        One process makes, others wait and use the result. Where `make` raises, nothing is kept. Raises StoreError
        where the store cannot be written.
        """
        found = self.find(kind, key)
        if found is not None:
            return found
        with self.locked(f"{kind}-{key}"):
            found = self.find(kind, key)
            if found is not None:
                return found
            final = self.root / kind / key
            with self._writing():
                final.parent.mkdir(parents=True, exist_ok=True)
            with staged_directory(final) as aside:
                make(aside)
            return final

    def discard(self, kind: str, key: str, *, unless: Callable[[Path], bool]) -> None:
        """Remove a damaged entry, but not one that another process has made anew: `unless` looks under the lock."""
        path = self.root / kind / key
        with self.locked(f"{kind}-{key}"):
            if path.is_dir() and not unless(path):
                _remove_entry(path)

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Hold a named lock of this store; StoreError where the store cannot be written."""
        with contextlib.ExitStack() as held:
            with self._writing():
                (self.root / LOCK_FOLDER).mkdir(parents=True, exist_ok=True)
                held.enter_context(hold_lock(self._lock(name), name))
            yield

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep every entry while the block works with them: `collect` waits for it, any number of blocks may run."""
        with contextlib.ExitStack() as held:
            with contextlib.suppress(StoreError):  # What cannot be written cannot be collected either.
                held.enter_context(self._guarded(fcntl.LOCK_SH, "a removal of old entries"))
            yield

    def entries(self) -> list[StoreEntry]:
        """List the finished entries, least recently used first."""
        found: list[StoreEntry] = []
        for path in self._folders_of_kinds():
            if path.name.startswith(PART_PREFIX):
                continue
            with contextlib.suppress(FileNotFoundError):  # Another process may be removing it.
                entry = StoreEntry(
                    kind=path.parent.name, key=path.name, path=path, size=_size(path), used=path.stat().st_mtime
                )
                found.append(entry)
        return sorted(found, key=lambda entry: entry.used)

    def collect(self, *, older_than: float, keep: Iterable[str] = (), now: Callable[[], float] = time.time) -> int:
        """Remove entries unused for `older_than` seconds, and leftovers of killed runs; return the bytes freed.

        `keep` names keys that stay whatever their age. Waits for those who have the store `in_use`.
        """
        if not self.root.is_dir():
            return 0
        kept = frozenset(keep)
        with self._guarded(fcntl.LOCK_EX, "its work with the store"):
            limit = now() - older_than
            old = [entry for entry in self.entries() if entry.key not in kept and entry.used <= limit]
            return sum(self._remove(entry, limit) for entry in old) + self._sweep()

    @contextlib.contextmanager
    def _guarded(self, mode: int, awaited: str) -> Iterator[None]:
        """Hold the lock between those who work with entries (shared) and one who removes them (exclusive)."""
        path = self.root / LOCK_FOLDER / IN_USE
        with self._writing():
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            try:
                fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
            except BlockingIOError:
                log.warning("waiting for another toolkit process to end %s", awaited)
                fcntl.flock(descriptor, mode)
            yield
        finally:
            os.close(descriptor)

    def _remove(self, entry: StoreEntry, limit: float) -> int:
        with self.locked(f"{entry.kind}-{entry.key}"):
            if not _is_unused_since(entry.path, limit):
                return 0
            _remove_entry(entry.path)
        return entry.size

    def _sweep(self) -> int:
        freed = 0
        for part in self._folders_of_kinds():
            if part.name.startswith(PART_PREFIX):
                freed += self._sweep_leftover(part)
        return freed

    def _sweep_leftover(self, part: Path) -> int:
        lock = FileLock(self._lock(f"{part.parent.name}-{part.name[len(PART_PREFIX) :]}"))
        try:
            with self._writing():
                lock.acquire(timeout=0)
        except Timeout:  # Somebody is making it.
            return 0
        try:
            size = _size(part)
            remove_tree(part)
        finally:
            lock.release()
        return size

    def _folders_of_kinds(self) -> list[Path]:
        return [path for kind in _folders(self.root) if kind.name != LOCK_FOLDER for path in _folders(kind)]

    def _lock(self, name: str) -> Path:
        return self.root / LOCK_FOLDER / f"{name}.lock"

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn the file system's refusal into the error that names the store."""
        try:
            yield
        except Timeout:
            raise
        except OSError as fault:
            raise StoreError(
                f"the store at {self.root} cannot be written: {fault.strerror}",
                hint="choose another with --store DIR or TOOLKIT_STORE",
            ) from fault


def default_store(environ: Mapping[str, str]) -> Path:
    """Return the store's place: TOOLKIT_STORE, else the user's cache folder."""
    if chosen := environ.get("TOOLKIT_STORE"):
        return Path(chosen).absolute()
    from platformdirs import user_cache_path

    return user_cache_path("toolkit", appauthor=False)


@contextlib.contextmanager
def hold_lock(path: Path, what: str) -> Iterator[None]:
    """Hold a lock file; says so when it has to wait for another process. A killed holder's lock is free at once."""
    lock = FileLock(path)
    _acquire(lock, what)
    try:
        yield
    finally:
        lock.release()


def _acquire(lock: FileLock, name: str) -> None:
    with contextlib.suppress(Timeout):
        lock.acquire(timeout=WAIT_NOTICE)
        return
    log.warning("another toolkit process is making %s; waiting for it", name)
    try:
        lock.acquire(timeout=WAIT_LIMIT)
    except Timeout as fault:
        raise StoreError(
            f"waited {WAIT_LIMIT:g} s for another process to finish {name}",
            hint=f"see who holds {lock.lock_file}",
        ) from fault


def _remove_entry(path: Path) -> None:
    """Take an entry's final name away before its files, so that nobody finds half of it."""
    doomed = path.with_name(PART_PREFIX + path.name)
    remove_tree(doomed)
    with contextlib.suppress(FileNotFoundError):
        os.rename(path, doomed)
    remove_tree(doomed)


def _is_unused_since(path: Path, limit: float) -> bool:
    try:
        return path.stat().st_mtime <= limit
    except FileNotFoundError:
        return False


def _folders(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []


def _size(root: Path) -> int:
    return sum(path.lstat().st_size for path in root.rglob("*") if not path.is_dir())
