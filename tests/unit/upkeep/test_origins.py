"""What a word names that is to be imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.errors import UsageError
from toolkit.upkeep.origins import FromCommit, FromFile, FromRequest, parse_origin

ID = "0123456789" * 4
PULLS = ("refs/pull/7/head", "refs/merge-requests/7/head", "refs/merge_requests/7/head")
MERGES = ("refs/merge-requests/7/head", "refs/merge_requests/7/head", "refs/pull/7/head")


@pytest.mark.parametrize(
    ("word", "url", "ref"),
    [
        (ID, "", ID),
        (f"https://host/a/b.git@{ID}", "https://host/a/b.git", ID),
        ("https://u:p@host/a/b.git@v1.2", "https://u:p@host/a/b.git", "v1.2"),
        ("git:https://host/a/b@refs/heads/x", "https://host/a/b", "refs/heads/x"),
        ("git@host:a/b.git@main", "git@host:a/b.git", "main"),
        ("/src/clone@main", "/src/clone", "main"),
    ],
)
def test_a_commit(word: str, url: str, ref: str) -> None:
    assert parse_origin(word) == FromCommit(url=url, ref=ref)


@pytest.mark.parametrize(
    ("word", "repository", "refs"),
    [
        ("https://host/a/b/pull/7", "https://host/a/b", PULLS),
        ("https://host/a/b/pulls/7", "https://host/a/b", PULLS),
        ("https://host/a/b/pull/7/files", "https://host/a/b", PULLS),
        ("https://host/a/b/pull/7/files?w=1", "https://host/a/b", PULLS),
        ("https://host/a/b/merge_requests/7", "https://host/a/b", MERGES),
        ("https://host/a/b/-/merge_requests/7/diffs", "https://host/a/b", MERGES),
        ("file:///srv/x/pull/7", "file:///srv/x", PULLS),
    ],
)
def test_a_request(word: str, repository: str, refs: tuple[str, ...]) -> None:
    found = parse_origin(word)

    assert isinstance(found, FromRequest)
    assert (found.repository, found.refs) == (repository, refs)


def test_the_address_of_a_request_is_kept_without_credentials() -> None:
    found = parse_origin("https://u:secret@host/a/b/pull/7")

    assert isinstance(found, FromRequest)
    assert found.repository == "https://u:secret@host/a/b"
    assert found.address == "https://host/a/b/pull/7"


def test_a_file_goes_before_all_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ID).touch()
    monkeypatch.chdir(tmp_path)

    assert parse_origin(ID) == FromFile(path=Path(ID))


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("main", "main"),
        ("fix.patch", "fix.patch"),
        ("https://u:secret@host/a/b", "https://host/a/b"),
        ("git@host:a/b", "git@host:a/b"),
        ("https://host/a/b@--upload-pack=x", "https://--upload-pack=x"),
    ],
)
def test_what_names_nothing_is_shown_without_credentials(word: str, shown: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_origin(word)

    assert caught.value.message == f"{shown!r} names nothing that can be imported"
    assert caught.value.hint == (
        "expected a file, a full commit id, URL@COMMIT or URL@REF, or the address of a pull request"
    )
