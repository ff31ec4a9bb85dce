"""Wheels in the store, as they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from toolkit.wheels.stored import StoredWheel, read_wheel_record
from toolkit.work import Means


def obtain_stored(kind: str, key: str, make: Callable[[Path], None], means: Means) -> StoredWheel:
    """Return a wheel from the store, made there if need be.

    Where a sandbox is required, one that was built without is made anew.
    """
    found = read_wheel_record(means.store.obtain(kind, key, make))
    if means.sandbox != "require" or _was_shut_off(found):
        return found
    means.store.discard(kind, key, unless=lambda folder: _was_shut_off(read_wheel_record(folder)))
    return read_wheel_record(means.store.obtain(kind, key, make))


def _was_shut_off(stored: StoredWheel) -> bool:
    return stored.wheel.built is None or stored.wheel.built.sandbox != "none"
