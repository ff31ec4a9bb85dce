"""Wheels that are pinned by hash, brought into the store once: bases, and what builds stand on."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from toolkit.errors import FetchError, HashMismatchError, SourceError, StoreError
from toolkit.files import copy_hashed, remove_tree, sha256_file
from toolkit.model import Progress, Requirement, Target
from toolkit.platforms import accepts_any
from toolkit.registry import PublishedWheel, download_wheel, require_pip
from toolkit.store import Store
from toolkit.wheels.archive import open_wheel

log = logging.getLogger(__name__)

STORE_KIND = "base"
MISNAMED = "the registry's file is misnamed: do not use it"


def obtain_wheel_file(
    pinned: Requirement, *, component: str, target: Target, store: Store, offline: bool, env: Mapping[str, str],
    progress: Progress | None = None,
) -> Path:  # fmt: skip
    """Return a pinned wheel in the store, downloaded if need be, its bytes hashed either way.

    A damaged entry is dropped and fetched again with a warning; offline it is a StoreError. Raises FetchError where
    the wheel cannot be had, HashMismatchError for other bytes, SourceError for a file that is not the pinned wheel.
    """
    entry = store.find(STORE_KIND, pinned.sha256)
    if entry is not None and not _is_whole(entry, pinned):
        _drop_damaged(entry, pinned, component, store, offline)
        entry = None
    if entry is None and offline:
        raise FetchError(
            f"{component}: {pinned.file} is not in the store at {store.root}, and offline nothing is downloaded",
            hint="bring it with `toolkit cache import FILE`, or run once without --offline",
        )
    if entry is None:
        entry = store.obtain(STORE_KIND, pinned.sha256, lambda folder: _download(pinned, target, folder, env, progress))
    return entry / pinned.file


def _is_whole(entry: Path, pinned: Requirement) -> bool:
    path = entry / pinned.file
    return path.is_file() and sha256_file(path) == pinned.sha256


def _drop_damaged(entry: Path, pinned: Requirement, component: str, store: Store, offline: bool) -> None:
    if offline:
        raise StoreError(
            f"{component}: store entry {entry} is damaged: {pinned.file} is missing or has other bytes",
            hint="remove that folder, then `toolkit cache import FILE`, or run once without --offline",
        )
    log.warning("%s: store entry %s is damaged; fetching it again", component, entry)
    store.discard(STORE_KIND, pinned.sha256, unless=lambda path: _is_whole(path, pinned))


def _download(
    pinned: Requirement, target: Target, folder: Path, env: Mapping[str, str], progress: Progress | None
) -> None:
    """Fill a store entry that is being made; what raises leaves no entry."""
    scratch = folder / "download"
    scratch.mkdir()
    arrived = download_wheel(
        pinned.distribution, pinned.version, PublishedWheel(file=pinned.file, sha256=pinned.sha256), target,
        pip=require_pip(env), into=scratch, env=env, progress=progress,
    )  # fmt: skip
    with arrived.open("rb") as stream:
        actual, _ = copy_hashed(stream, folder / pinned.file)
    if actual != pinned.sha256:
        raise HashMismatchError(
            what=pinned.file, expected=pinned.sha256, actual=actual, origin="the registry, through pip"
        )
    remove_tree(scratch)
    _require_pinned_wheel(folder / pinned.file, pinned, target)


def _require_pinned_wheel(path: Path, pinned: Requirement, target: Target) -> None:
    """Raise SourceError where a wheel's own metadata says something else than its name."""
    with open_wheel(path) as wheel:
        inside = wheel.metadata
    if canonicalize_name(inside.name) != canonicalize_name(pinned.distribution) or (
        Version(inside.version) != Version(pinned.version)
    ):
        expected = f"{pinned.distribution}=={pinned.version}"
        raise SourceError(f"{path.name} is {inside.name} {inside.version}, expected {expected}", hint=MISNAMED)
    if not accepts_any(inside.tags, python_tag=target.python_tag, platform=target.platform):
        tags = ", ".join(inside.tags) or "nothing"
        raise SourceError(f"{path.name} is for {tags} by its WHEEL file, expected {target}", hint=MISNAMED)
