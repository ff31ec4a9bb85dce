"""Reading the words for a base."""

from __future__ import annotations

import pytest

from toolkit.errors import UsageError
from toolkit.upkeep.words import EXPECTED, Commit, Installed, Ref, Release, Word, parse_against

ID = "f38033913dbefc3a74dbdc4d4838794790d834f8"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("torch_npu==2.14.0", Release(distribution="torch_npu", version="2.14.0")),
        ("torch_npu==2.12.0.post3", Release(distribution="torch_npu", version="2.12.0.post3")),
        (f"git:{ID}", Commit(id=ID)),
        ("git:https://host/x.git@v2.12.0", Ref(url="https://host/x.git", ref="v2.12.0")),
        (f"git:https://host/x.git@{ID}", Ref(url="https://host/x.git", ref=ID)),
        ("git:git@host:a/x.git@refs/pull/7/head", Ref(url="git@host:a/x.git", ref="refs/pull/7/head")),
        ("git:ssh://host/x@main", Ref(url="ssh://host/x", ref="main")),
        ("git:../clone@feature/a", Ref(url="../clone", ref="feature/a")),
        ("git:/a@b/clone@main", Ref(url="/a@b/clone", ref="main")),
        ("installed:cann_ops_transformer==9.1", Installed(package="cann_ops_transformer", version="9.1")),
    ],
    ids=["release", "post", "commit", "branch", "id", "scp", "ssh", "folder", "folder-with-at", "installed"],
)
def test_a_word_is_read_and_written_again(text: str, word: Word) -> None:
    assert parse_against(text) == word
    assert str(word) == text


def test_the_last_at_sign_ends_the_address() -> None:
    assert parse_against("git:ssh://git@host/x@main") == Ref(url="ssh://git@host/x", ref="main")


def test_credentials_of_an_address_are_not_written() -> None:
    assert str(parse_against("git:https://me:secret@host/x.git@main")) == "git:https://host/x.git@main"


@pytest.mark.parametrize(
    "text", ["torch_npu", "torch_npu=2.14.0", "torch_npu>=2.14", "", "svn:x==1", "installed:a-b==1", "-r==1"]
)
def test_what_names_no_base_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_against(text)
    assert caught.value.message == f"{text!r} names no base"
    assert caught.value.hint == EXPECTED


def test_a_release_without_a_version_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        parse_against("torch_npu==newest")
    assert caught.value.message == "'torch_npu==newest' names no base: 'newest' is no version"


@pytest.mark.parametrize(
    "text",
    ["git:https://host/x.git", "git:git@host:a/x.git", "git:@main", "git:/clone@", "git:/clone@--upload-pack=x"],
    ids=["none", "scp", "no-address", "empty", "option"],
)
def test_an_address_without_a_ref_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_against(text)
    assert caught.value.message == f"{text!r} names no base: it has no @REF behind the address"
