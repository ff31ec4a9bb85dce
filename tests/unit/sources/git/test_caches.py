"""Getting a commit into the store: from any of its addresses, whole, and once."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.git_cases import TARGET, Upstream
from tests.repositories import make_upstream
from toolkit.errors import FetchError, SourceError, StoreError
from toolkit.model import FetchedBase
from toolkit.sources.git.caches import Patience
from toolkit.store import Store


def test_a_fetched_base_is_the_commit(upstream: Upstream, store: Store) -> None:
    base = upstream.fetch()

    assert base == FetchedBase(
        component="x", kind="git", digest=upstream.commit, path=base.path, file=f"x@{upstream.commit[:12]}",
        distribution="", version=upstream.commit[:12], target=TARGET, epoch=1700000000,
        addresses=(f"file://{upstream.folder}",), submodules=True,
    )  # fmt: skip
    assert base.path.parent == store.root / "git"


def test_a_commit_in_the_store_needs_no_upstream(upstream: Upstream) -> None:
    base = upstream.fetch()
    upstream.folder.rename(upstream.folder.with_name("gone"))

    assert upstream.fetch() == base
    assert upstream.fetch(offline=True) == base


def test_offline_only_folders_of_this_machine_are_asked(upstream: Upstream, store: Store) -> None:
    upstream.url, near = "https://git.example.invalid/x.git", upstream.url
    with pytest.raises(FetchError) as raised:
        upstream.fetch(offline=True)
    assert raised.value.message == (
        f"x: commit {upstream.commit} is not in the store at {store.root}, and offline nothing is fetched"
    )
    assert raised.value.hint == "run once without --offline, or name a folder with a clone: `--mirror x=DIR`"
    assert not (store.root / "git").exists()

    upstream.env["TOOLKIT_MIRROR_X"] = near
    assert upstream.fetch(offline=True).digest == upstream.commit


def test_the_next_address_is_tried_and_each_failure_is_told(
    upstream: Upstream, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_upstream(tmp_path / "other", {"a": "1"})
    upstream.env["TOOLKIT_MIRROR_X"] = f"{tmp_path}/none {tmp_path}/other"

    with caplog.at_level(logging.INFO):
        upstream.fetch()

    assert [record.message for record in caplog.records] == [
        f"x: fetching commit {upstream.commit[:12]} from {tmp_path}/none",
        f"x: {tmp_path}/none: there is no git repository there",
        f"x: fetching commit {upstream.commit[:12]} from {tmp_path}/other",
        f"x: {tmp_path}/other: commit {upstream.commit} is unknown there",
        f"x: fetching commit {upstream.commit[:12]} from file://{upstream.folder}",
    ]


def test_a_commit_that_is_nowhere_names_every_address(upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit = "1" * 40
    upstream.env["TOOLKIT_MIRROR_X"] = f"{tmp_path}/none"
    with pytest.raises(FetchError) as raised:
        upstream.fetch()
    assert raised.value.message == f"x: commit {'1' * 40} of x cannot be had from any of its 2 addresses"
    assert raised.value.hint == (
        "name another place with `--mirror x=URL`, a folder with a clone of it will do; or mend the commit"
    )  # fmt: skip
    assert raised.value.details == (
        f"{tmp_path}/none: there is no git repository there",
        f"file://{upstream.folder}: commit {'1' * 40} is unknown there",
    )


def test_a_passing_fault_is_tried_three_times_with_waits(upstream: Upstream, caplog: pytest.LogCaptureFixture) -> None:
    waits: list[float] = []
    upstream.env["TOOLKIT_MIRROR_X"] = "https://me:secret@127.0.0.1:1/x"

    upstream.fetch(patience=Patience(sleep=waits.append))

    assert waits == [2.0, 4.0]
    assert "secret" not in caplog.text
    assert caplog.text.count("https://127.0.0.1:1/x: ") == 3
    assert caplog.text.count("trying again in") == 2


def test_a_lasting_fault_is_not_tried_again(upstream: Upstream, tmp_path: Path) -> None:
    waits: list[float] = []
    make_upstream(tmp_path / "other", {"a": "1"})
    upstream.env["TOOLKIT_MIRROR_X"] = f"{tmp_path}/none {tmp_path}/other"

    upstream.fetch(patience=Patience(sleep=waits.append))

    assert waits == []


def test_a_damaged_repository_in_the_store_is_fetched_again(
    upstream: Upstream, caplog: pytest.LogCaptureFixture
) -> None:
    base = upstream.fetch()
    for pack in (base.path / "objects" / "pack").iterdir():
        pack.unlink()
    with pytest.raises(StoreError) as raised:
        upstream.fetch(offline=True)
    assert raised.value.message == f"x: store entry {base.path} is damaged: there is no commit {upstream.commit}"

    assert upstream.fetch() == base
    assert (
        f"store entry {base.path} is damaged (there is no commit {upstream.commit}); fetching it again" in caplog.text
    )


def test_a_subfolder_that_is_not_there_is_refused(upstream: Upstream) -> None:
    with pytest.raises(SourceError) as raised:
        upstream.fetch(subfolder="pkg/a.py")
    assert raised.value.message == f"x@{upstream.commit[:12]} has no folder 'pkg/a.py'"
