"""The bare repository that the store keeps of each upstream, and how a commit gets into it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import FetchError, StoreError
from toolkit.git import Limits, Refusal, fetch_commit, is_marked, make_repository, missing_part
from toolkit.mirrors import addresses, repository_name, without_credentials
from toolkit.model import Progress, framed_digest
from toolkit.store import Store

log = logging.getLogger(__name__)

STORE_KIND = "git"


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How often an address is tried, with which waits between (in seconds), and how long one try may take."""

    waits: tuple[float, ...] = (2.0, 4.0)
    limits: Limits = Limits()  # noqa: RUF009 - frozen
    sleep: Callable[[float], None] = time.sleep


PATIENCE = Patience()


def obtain_commit(
    commit: str, urls: Sequence[str], *, upstream: str, name: str, what: str, store: Store, offline: bool,
    env: Mapping[str, str], progress: Progress | None = None, patience: Patience = PATIENCE,
) -> Path:  # fmt: skip
    """Return the bare repository in the store that has a commit whole, fetched if need be.

    `upstream` is the address that names the repository in the store, `urls` are where it is looked for after the
    mirrors for `name`; `what` stands before each message. `progress` is called once where something is fetched: how
    much will come, git does not say. Raises FetchError with one detail for each address.
    """
    key = framed_digest((upstream, str(len(commit))))
    found = store.find(STORE_KIND, key)
    if found is not None and _is_whole(found, commit, what, store, offline):
        return found
    places = addresses(name, urls, env)
    if offline:
        places = tuple(place for place in places if place.startswith(("/", "file://")))
        if not places:
            raise FetchError(
                f"{what}: commit {commit} is not in the store at {store.root}, and offline nothing is fetched",
                hint=f"run once without --offline, or name a folder with a clone: `--mirror {name}=DIR`",
            )
    folder = store.obtain(STORE_KIND, key, lambda aside: make_repository(aside, commit))
    with store.locked(f"{STORE_KIND}-{key}"):
        if not is_marked(folder, commit):  # Another process may have fetched it meanwhile.
            if progress is not None:
                progress(0, None)
            _fetch_from_any(folder, commit, places, name, what, env, patience)
    return folder


def _is_whole(folder: Path, commit: str, what: str, store: Store, offline: bool) -> bool:
    """Whether a commit is there; a repository that has lost a part of it is dropped with a warning."""
    if not is_marked(folder, commit):
        return False
    if not (why := missing_part(folder, commit)):
        return True
    if offline:
        raise StoreError(
            f"{what}: store entry {folder} is damaged: {why}",
            hint="remove that folder, and run once without --offline",
        )
    log.warning("%s: store entry %s is damaged (%s); fetching it again", what, folder, why)
    store.discard(STORE_KIND, folder.name, unless=lambda path: not missing_part(path, commit))
    return False


def _fetch_from_any(
    folder: Path, commit: str, places: Sequence[str], name: str, what: str, env: Mapping[str, str], patience: Patience
) -> None:
    reasons = []
    for address in places:
        shown = without_credentials(address)
        log.info("%s: fetching commit %s from %s", what, commit[:12], shown)
        refusal = _fetch_patiently(folder, commit, address, what, env, patience)
        if refusal is None:
            return
        reasons.append(f"{shown}: {_explain(refusal, commit)}")
        log.warning("%s: %s", what, reasons[-1])
    count = "its address" if len(places) == 1 else f"any of its {len(places)} addresses"
    raise FetchError(
        f"{what}: commit {commit} of {repository_name(places[-1])} cannot be had from {count}",
        hint=f"name another place with `--mirror {name}=URL`, a folder with a clone of it will do; or mend the commit",
        details=reasons,
    )


def _fetch_patiently(
    folder: Path, commit: str, address: str, what: str, env: Mapping[str, str], patience: Patience
) -> Refusal | None:
    for wait in patience.waits:
        refusal = fetch_commit(folder, commit, address, env=env, limits=patience.limits)
        if refusal is None or not refusal.passing:
            return refusal
        log.warning(
            "%s: %s: %s; trying again in %g s",
            what, without_credentials(address), without_credentials(refusal.why), wait,
        )  # fmt: skip
        patience.sleep(wait)
    return fetch_commit(folder, commit, address, env=env, limits=patience.limits)


def _explain(refusal: Refusal, commit: str) -> str:
    if "not our ref" in refusal.why:
        return f"commit {commit} is unknown there"
    if "did not send all necessary objects" in refusal.why:
        return f"what it sent under that name is not commit {commit}"
    return without_credentials(refusal.why)
