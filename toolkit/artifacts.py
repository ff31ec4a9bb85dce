"""Files that are pinned by hash, brought into the store once: bases, and what builds stand on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from toolkit.errors import FetchError, HashMismatchError, SourceError, StoreError
from toolkit.files import copy_hashed, remove_tree, sha256_file
from toolkit.model import Progress, Requirement, Target
from toolkit.platforms import accepts_any
from toolkit.registry import PublishedFile, download_wheel, require_pip
from toolkit.store import Store
from toolkit.wheels.archive import open_wheel

log = logging.getLogger(__name__)

STORE_KIND = "base"
MISNAMED = "the registry's file is misnamed: do not use it"


def obtain_wheel_file(
    pinned: Requirement, *, component: str, target: Target, store: Store, offline: bool, env: Mapping[str, str],
    progress: Progress | None = None,
) -> Path:  # fmt: skip
    """Return a pinned wheel in the store; see `obtain_file`.

    Raises FetchError where the wheel cannot be had, SourceError for a file that is not the pinned wheel.
    """
    return obtain_file(
        pinned.file, pinned.sha256, component=component, store=store, offline=offline,
        download=lambda folder: _download(pinned, target, folder, env, progress),
        check=lambda path: _require_pinned_wheel(path, pinned, target),
    )  # fmt: skip


def obtain_file(
    file: str, sha256: str, *, component: str, store: Store, offline: bool, download: Callable[[Path], Path],
    check: Callable[[Path], None],
) -> Path:  # fmt: skip
    """Return a file of that hash in the store, downloaded if need be, its bytes hashed either way.

    `download` brings it into the empty folder that it gets, and returns where it is; `check` raises for one that is
    not what its name says. A damaged entry is dropped and fetched again with a warning; offline it is a StoreError.
    Raises FetchError offline where the store lacks it, HashMismatchError for other bytes, and what the two raise.
    """
    entry = store.find(STORE_KIND, sha256)
    if entry is not None and not _is_whole(entry / file, sha256):
        _drop_damaged(entry, file, sha256, component, store, offline)
        entry = None
    if entry is None and offline:
        raise FetchError(
            f"{component}: {file} is not in the store at {store.root}, and offline nothing is downloaded",
            hint="bring it with `toolkit cache import FILE`, or run once without --offline",
        )
    if entry is None:
        entry = store.obtain(STORE_KIND, sha256, lambda folder: _fill_entry(folder, file, sha256, download, check))
    return entry / file


def _is_whole(path: Path, sha256: str) -> bool:
    return path.is_file() and sha256_file(path) == sha256


def _drop_damaged(entry: Path, file: str, sha256: str, component: str, store: Store, offline: bool) -> None:
    if offline:
        raise StoreError(
            f"{component}: store entry {entry} is damaged: {file} is missing or has other bytes",
            hint="remove that folder, then `toolkit cache import FILE`, or run once without --offline",
        )
    log.warning("%s: store entry %s is damaged; fetching it again", component, entry)
    store.discard(STORE_KIND, sha256, unless=lambda path: _is_whole(path / file, sha256))


def _fill_entry(
    folder: Path, file: str, sha256: str, download: Callable[[Path], Path], check: Callable[[Path], None]
) -> None:
    """Fill a store entry that is being made; what raises leaves no entry."""
    scratch = folder / "download"
    scratch.mkdir()
    with download(scratch).open("rb") as stream:
        actual, _ = copy_hashed(stream, folder / file)
    if actual != sha256:
        raise HashMismatchError(what=file, expected=sha256, actual=actual, origin="the registry, through pip")
    remove_tree(scratch)
    check(folder / file)


def _download(
    pinned: Requirement, target: Target, into: Path, env: Mapping[str, str], progress: Progress | None
) -> Path:
    return download_wheel(
        pinned.distribution, pinned.version, PublishedFile(file=pinned.file, sha256=pinned.sha256), target,
        pip=require_pip(env), into=into, env=env, progress=progress,
    )  # fmt: skip


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
