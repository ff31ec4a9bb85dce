"""Judging a tree before any of it is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import SourceError
from toolkit.files import safe_relative_path
from toolkit.git.listing import (
    PLAIN,
    TreeEntry,
    _is_git_folder,
    gitlinks,
    judge_symlinks,
    parse_listing,
    path_fault,
    symlinks,
)

ID = "0" * 40


def listing(*paths: str, mode: str = "100644") -> bytes:
    return b"".join(f"{mode} blob {ID}\t{path}\0".encode("utf-8", "surrogateescape") for path in paths)


def test_entries_are_read_with_odd_names_and_old_modes() -> None:
    raw = listing("a b\n\t.py", "设计图.md") + listing("x.sh", mode="100755") + listing("old", mode="100664")

    assert parse_listing(raw, what="x") == {
        path: TreeEntry(path=path, mode=mode, id=ID)
        for path, mode in (("a b\n\t.py", "100644"), ("设计图.md", "100644"), ("x.sh", "100755"), ("old", "100644"))
    }


def test_submodules_and_symlinks_are_told_apart() -> None:
    entries = parse_listing(listing("l", mode="120000") + listing("s/m", mode="160000") + listing("f"), what="x")

    assert gitlinks(entries) == {"s/m": ID}
    assert [entry.path for entry in symlinks(entries)] == ["l"]


@pytest.mark.parametrize(
    ("paths", "why"),
    [
        pytest.param(["../a"], "'../a' leaves its folder through '..'", id="up"),
        pytest.param(["a/../../b"], "'a/../../b' leaves its folder through '..'", id="up from below"),
        pytest.param(["/etc/a"], "'/etc/a' is not a relative POSIX path", id="absolute"),
        pytest.param(["a//b"], "'a//b' is not in normal form", id="an empty part"),
        pytest.param([".git/config"], "'.git/config' reaches into a '.git' folder", id=".git"),
        pytest.param(["a/.GIT/hooks/x"], "'a/.GIT/hooks/x' reaches into a '.git' folder", id=".GIT below"),
        pytest.param(["git~1/x"], "'git~1/x' reaches into a '.git' folder", id="its short name"),
        pytest.param(["GIT~1"], "'GIT~1' reaches into a '.git' folder", id="its short name in capitals"),
        pytest.param([".git /x"], "'.git /x' reaches into a '.git' folder", id="a blank after it"),
        pytest.param([".git../x"], "'.git../x' reaches into a '.git' folder", id="dots after it"),
        pytest.param([".git::$INDEX_ALLOCATION/x"], "'.git::$INDEX_ALLOCATION/x' reaches into a '.git' folder",
                     id="a stream of it"),
        pytest.param([".g\u200cit/x"], "'.g\\u200cit/x' reaches into a '.git' folder", id="a letter that is ignored"),
        pytest.param(["a\\b"], "'a\\\\b' is not a relative POSIX path", id="a backslash"),
        pytest.param(["a\udcff"], "the path b'a\\xff' is not UTF-8", id="not UTF-8"),
        pytest.param(["Readme", "README"], "'README' and 'Readme' differ only in case", id="files that differ in case"),
        pytest.param(["src/a", "SRC/b"], "'SRC' and 'src' differ only in case", id="folders that differ in case"),
        pytest.param(["straße", "STRASSE"], "'STRASSE' and 'straße' differ only in case", id="case of other letters"),
        pytest.param(["a/b/c", "a/x", "A/b/d"], "'A/b' and 'a/b' differ only in case",
                     id="folders of a folder that differ in case"),
        pytest.param(["d/a", "d/a/b", "d/e"], "'d/a/b' lies below 'd/a', which is no folder", id="below a file below"),
        pytest.param(["a", "a/b"], "'a/b' lies below 'a', which is no folder", id="below a file"),
    ],
)  # fmt: skip
def test_a_tree_that_may_not_be_written(paths: list[str], why: str) -> None:
    with pytest.raises(SourceError) as raised:
        parse_listing(listing(*paths), what="x@1")
    assert raised.value.message == f"x@1 cannot be checked out: {why}"


def test_an_entry_below_a_symlink_is_refused() -> None:
    with pytest.raises(SourceError) as raised:
        parse_listing(listing("a", mode="120000") + listing("a/b"), what="x")
    assert raised.value.message == "x cannot be checked out: 'a/b' lies below 'a', which is no folder"


def test_a_mode_that_git_does_not_write_is_refused() -> None:
    with pytest.raises(SourceError) as raised:
        parse_listing(listing("a", mode="104755"), what="x")
    assert raised.value.message == "x cannot be checked out: 'a' has the mode 104755"


@pytest.mark.parametrize("path", ["a/", "a/b/", ""])
def test_a_folder_is_no_path_of_a_file(path: str) -> None:
    assert path_fault(path)


@pytest.mark.parametrize("path", ["a.git", "git~2", ".gitmodules", ".github/x", "a/.gitignore", "agit~1"])
def test_names_that_only_look_alike_are_taken(path: str) -> None:
    assert path_fault(path) == ""


# --- symlinks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("links", "why"),
    [
        pytest.param({"a": "/etc/passwd"}, "'a' to '/etc/passwd' is absolute or unreadable", id="absolute"),
        pytest.param({"a": ""}, "'a' to '' is absolute or unreadable", id="empty"),
        pytest.param({"a": ".."}, "'a' to '..' leaves the tree", id="the folder above"),
        pytest.param({"d/a": "../../x"}, "'d/a' to '../../x' leaves the tree", id="two up from one down"),
        pytest.param({"a": "b/../../x"}, "'a' to 'b/../../x' leaves the tree", id="down and up"),
        pytest.param({"d/up": "..", "x": "d/up/.."}, "'x' to 'd/up/..' leaves the tree", id="through another"),
        pytest.param({"a": "b", "b": "a"}, "'a' to 'b' leads in a circle", id="a circle"),
        pytest.param({"a": ".git/hooks"}, "'a' to '.git/hooks' reaches into a '.git' folder", id="into .git"),
        pytest.param({"a": "b/c", "b": "/etc"}, "'a' to 'b/c' leads to one that is absolute or unreadable",
                     id="through an absolute one"),
    ],
)  # fmt: skip
def test_a_symlink_that_leads_out_of_the_tree(links: dict[str, str], why: str) -> None:
    with pytest.raises(SourceError) as raised:
        judge_symlinks({}, {path: target.encode() for path, target in links.items()}, what="x")
    assert raised.value.message == f"x cannot be checked out: the symlink {why}"


@pytest.mark.parametrize(
    "links",
    [
        {"a": "b"},
        {"d/e/a": "../../b"},
        {"d/a": ".."},
        {"d/up": "..", "e/x": "../d/up/f"},
        {"a": "./b/./c/"},
    ],
)
def test_a_symlink_inside_the_tree_is_taken(links: dict[str, str]) -> None:
    judge_symlinks({}, {path: target.encode() for path, target in links.items()}, what="x")


@given(st.text(alphabet="aGgIiTt~1._-+/ :\\", min_size=1, max_size=8))
def test_a_path_that_is_taken_for_plain_is_one_that_nothing_is_wrong_with(path: str) -> None:
    if PLAIN.fullmatch(path):
        assert safe_relative_path(path).as_posix() == path
        assert not any(_is_git_folder(part) for part in path.split("/"))
