"""Submodules of a patched tree: found, fetched, and refused by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.git_cases import Upstream, is_native, patch
from tests.repositories import add_submodule, commit_files, commit_tree, git, make_upstream, snapshot
from toolkit.errors import FetchError, SourceError
from toolkit.sources import git as source
from toolkit.sources.git.submodules import resolve_address


def test_nested_submodules_are_fetched_parents_first(family: Upstream, tmp_path: Path) -> None:
    found = family.submodules(family.fetch())

    assert [(module.path, module.commit) for module in found] == [
        ("third_party/inner", git(tmp_path / "inner", "rev-parse", "HEAD")),
        ("third_party/inner/deep/leaf", git(tmp_path / "leaf", "rev-parse", "HEAD")),
    ]
    assert len({module.repository for module in found}) == 2


def test_a_recipe_without_submodules_fetches_none(family: Upstream) -> None:
    assert family.submodules(family.fetch(submodules=False)) == ()


def test_a_patch_moves_a_submodule_adds_one_and_takes_one_away(family: Upstream, tmp_path: Path) -> None:
    base = family.fetch()
    newer = commit_files(tmp_path / "leaf", {"leaf.h": "newer\n"})
    section = f'[submodule "leaf"]\n\tpath = ext/leaf\n\turl = file://{tmp_path}/leaf\n'
    patched = patch(base, {".gitmodules": section}, tmp_path / "p",
                    {"ext/leaf": newer, "third_party/inner": None, "never": None})  # fmt: skip

    modules = family.submodules(base, patched)
    tree = source.check_out(base, modules, [patched], tmp_path / "tree", is_native=is_native)

    assert [(module.path, module.commit) for module in modules] == [("ext/leaf", newer)]
    assert (tree.root / "ext" / "leaf" / "leaf.h").read_text(encoding="utf-8") == "newer\n"
    assert not (tree.root / "third_party").exists()


def test_a_patch_puts_a_folder_where_a_submodule_was(family: Upstream, tmp_path: Path) -> None:
    base = family.fetch()
    section = '[submodule "never"]\n\tpath = never\n\turl = https://127.0.0.1:1/never\n\tupdate = none\n'
    files = {".gitmodules": section, "third_party/inner/inner.h": "ours\n"}
    patched = patch(base, files, tmp_path / "p", {"third_party/inner": None})

    modules = family.submodules(base, patched)
    tree = source.check_out(base, modules, [patched], tmp_path / "tree", is_native=is_native)

    assert modules == ()
    assert (tree.root / "third_party" / "inner" / "inner.h").read_text(encoding="utf-8") == "ours\n"
    assert (tree.digest, tree.native_digest) == source.digest_tree(base, [patched], is_native=is_native)
    assert tree.digest == git(tree.root, "write-tree")


def test_submodules_are_checked_out_with_patches_in_them(family: Upstream, tmp_path: Path) -> None:
    base = family.fetch()
    modules = family.submodules(base)
    paths = ["third_party/inner/inner.h", "third_party/inner/deep/leaf/leaf.h", "setup.py"]
    laid = source.lay_out_submodules(base, modules, paths, tmp_path / "laid")
    main = patch(base, {"pkg/a.py": "11\n"}, tmp_path / "p")
    below = patch(base, {"third_party/inner/deep/leaf/leaf.h": "ll\n"}, tmp_path / "q")

    tree = source.check_out(base, modules, [main, below], tmp_path / "tree", is_native=is_native)

    assert snapshot(tmp_path / "laid") == {paths[0]: b"i\n", paths[1]: b"l\n"}
    assert laid.members == {*paths[:2], "third_party/inner/.gitmodules"}
    root = tree.root
    assert (root / paths[0]).read_text(encoding="utf-8") == "i\n"
    assert (root / paths[1]).read_text(encoding="utf-8") == "ll\n"
    assert (root / "pkg" / "a.py").read_text(encoding="utf-8") == "11\n"
    assert list((root / "never").iterdir()) == []
    for module in modules:
        assert git(root / module.path, "rev-parse", "HEAD") == module.commit
        assert (root / module.path / ".git").is_dir()
    digests = source.digest_tree(base, [main, below], is_native=is_native)
    assert (tree.digest, tree.native_digest) == digests
    alone = source.digest_tree(base, [main], is_native=is_native)
    assert alone[0] != digests[0]
    assert alone[1] != digests[1]


def test_a_file_put_below_a_submodule_that_was_not_fetched(family: Upstream, tmp_path: Path) -> None:
    base = family.fetch()
    below = patch(base, {"never/x.h": "x\n"}, tmp_path / "p")
    with pytest.raises(SourceError) as raised:
        source.check_out(base, family.submodules(base), [below], tmp_path / "tree", is_native=is_native)
    assert raised.value.message == f"{base.file}: a patch puts a file into the submodule 'never', which was not fetched"


def test_a_mirror_is_used_for_a_submodule_by_its_repositorys_name(family: Upstream, tmp_path: Path) -> None:
    base = family.fetch()
    (tmp_path / "leaf").rename(tmp_path / "moved leaf")
    (tmp_path / "moved leaf").rename(tmp_path / "moved")
    family.env["TOOLKIT_MIRROR_LEAF"] = str(tmp_path / "moved")

    assert len(family.submodules(base)) == 2


def test_a_relative_address_is_looked_for_beside_a_mirror_of_its_parent_too(family: Upstream, tmp_path: Path) -> None:
    base = family.fetch()
    (tmp_path / "mirrors").mkdir()
    for name in ("inner", "leaf"):
        (tmp_path / name).rename(tmp_path / "mirrors" / name)
    family.env |= {"TOOLKIT_MIRROR_X": str(tmp_path / "mirrors" / "x")}

    assert len(family.submodules(base)) == 2


def test_a_submodule_that_cannot_be_had_is_named(family: Upstream, tmp_path: Path) -> None:
    base = family.fetch()
    (tmp_path / "leaf").rename(tmp_path / "gone")
    with pytest.raises(FetchError) as raised:
        family.submodules(base)
    assert raised.value.message.startswith("x: submodule 'third_party/inner/deep/leaf': commit ")
    assert raised.value.details == (f"file://{tmp_path}/leaf: there is no git repository there",)
    assert (
        raised.value.hint
        == "name another place with `--mirror leaf=URL`, a folder with a clone of it will do; or mend the commit"
    )


def test_a_submodule_whose_commit_is_gone_is_named(upstream: Upstream, tmp_path: Path) -> None:
    make_upstream(tmp_path / "inner", {"a": "1"})
    upstream.commit = add_submodule(upstream.folder, "m", "../inner", "4" * 40)
    base = upstream.fetch()
    with pytest.raises(FetchError) as raised:
        upstream.submodules(base)
    assert raised.value.message == f"x: submodule 'm': commit {'4' * 40} of inner cannot be had from its address"
    assert raised.value.details == (f"file://{tmp_path}/inner: commit {'4' * 40} is unknown there",)


def change_section(folder: Path, text: str) -> str:
    (folder / ".gitmodules").write_text(text, encoding="utf-8")
    git(folder, "add", ".gitmodules")
    git(folder, "commit", "--quiet", "-m", "x")
    return git(folder, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        pytest.param("path = ../m\n\turl = https://h/m", "has the path '../m': '../m' leaves its folder through '..'",
                     id="a path that leaves"),
        pytest.param("path = -u\n\turl = https://h/m", "has the path '-u': it looks like an option",
                     id="an option as path"),
        pytest.param("path = .git/m\n\turl = https://h/m",
                     "has the path '.git/m': '.git/m' reaches into a '.git' folder",
                     id="a path into .git"),
        pytest.param("url = https://h/m", "has the path '': '' is not a path", id="no path"),
        pytest.param("path = m\n\turl = -u./payload", "has the url '-u./payload': it looks like an option", id="-u"),
        pytest.param("path = m\n\turl = --upload-pack=touch x",
                     "has the url '--upload-pack=touch x': it is empty or has blanks or control characters in it",
                     id="--upload-pack with a blank"),
        pytest.param("path = m\n\turl = --upload-pack=x", "has the url '--upload-pack=x': it looks like an option",
                     id="--upload-pack"),
        pytest.param("path = m\n\turl = ssh://-oProxyCommand=x/y",
                     "has the url 'ssh://-oProxyCommand=x/y': it looks like an option", id="an option for ssh"),
        pytest.param("path = m\n\turl = ext::sh", "has the url 'ext::sh': expected https://, ssh://, user@host:path, "
                     "file:// or the path of a folder", id="ext"),
        pytest.param("path = m\n\turl = http://u:p@h/m", "has the url 'http://h/m': expected https://, ssh://, "
                     "user@host:path, file:// or the path of a folder", id="http, with a password"),
        pytest.param("path = m", "has the url '': it is empty or has blanks or control characters in it", id="no url"),
        pytest.param("path = m\n\turl = https://h/m\n\tupdate = !touch x",
                     "has `update = !touch x`, which is none of checkout, merge, rebase, none", id="a command"),
    ],
)  # fmt: skip
def test_a_section_that_git_must_not_be_given(upstream: Upstream, section: str, fault: str) -> None:
    add_submodule(upstream.folder, "m", "https://h/m", "4" * 40)
    upstream.commit = change_section(upstream.folder, f'[submodule "evil"]\n\t{section}\n')
    base = upstream.fetch()
    with pytest.raises(SourceError) as raised:
        upstream.submodules(base)
    assert raised.value.message == f"x: .gitmodules: submodule 'evil' {fault}"
    assert raised.value.hint == (
        "patch .gitmodules, or say `submodules = false` in the recipe if the build needs none"
    )  # fmt: skip


@pytest.mark.parametrize("url", ["../../../../../../../../../../m", "../../..//m", "../../../evil/m"])
def test_a_relative_address_does_not_leave_its_host(upstream: Upstream, url: str) -> None:
    upstream.commit = add_submodule(upstream.folder, "m", url, "4" * 40)
    base = replace(upstream.fetch(), addresses=("https://h/a/x.git",))
    with pytest.raises(SourceError) as raised:
        upstream.submodules(base)
    assert raised.value.message == (
        f"x: .gitmodules: submodule 'm' has the url {url!r}, which leads out of https://h/a/x.git"
    )


def test_a_submodule_without_a_section_is_named(upstream: Upstream) -> None:
    git(upstream.folder, "update-index", "--add", "--cacheinfo", f"160000,{'4' * 40},lib/m")
    upstream.commit = change_section(upstream.folder, "")
    base = upstream.fetch()
    with pytest.raises(SourceError) as raised:
        upstream.submodules(base)
    assert raised.value.message == (
        "x: the tree has a submodule at 'lib/m', but .gitmodules does not say from where"
    )  # fmt: skip


def test_a_section_without_a_submodule_is_named(upstream: Upstream) -> None:
    upstream.commit = change_section(upstream.folder, '[submodule "s"]\n\tpath = lib/m\n\turl = https://h/m\n')
    base = upstream.fetch()
    with pytest.raises(SourceError) as raised:
        upstream.submodules(base)
    assert raised.value.message == "x: .gitmodules has submodule 's' at 'lib/m', where the tree has none"


def test_a_gitmodules_file_that_is_a_symlink_or_unreadable(upstream: Upstream) -> None:
    upstream.commit = commit_tree(upstream.folder, [("120000", ".gitmodules", b"b"), ("100644", "b", b"")])
    with pytest.raises(SourceError) as raised:
        upstream.submodules(upstream.fetch())
    assert raised.value.message == f"x@{upstream.commit[:12]}: its .gitmodules is a symlink"

    upstream.commit = commit_tree(upstream.folder, [("100644", ".gitmodules", b"[submodule\n")])
    with pytest.raises(SourceError) as raised:
        upstream.submodules(upstream.fetch())
    assert raised.value.message == "x: .gitmodules cannot be read"


@pytest.mark.parametrize(
    ("parent", "url", "address"),
    [
        ("https://h/a/x.git", "../m.git", "https://h/a/m.git"),
        ("https://h/a/x.git/", "../../b/m", "https://h/b/m"),
        ("https://h/a/x", "./m", "https://h/a/x/m"),
        ("git@h:a/x.git", "../m.git", "git@h:a/m.git"),
        ("git@h:x.git", "../m.git", "git@h:m.git"),
        ("git@h:x.git", "../../m.git", None),
        ("/x", "../../m", None),
        ("https://h:8443/x", "../m", "https://h:8443/m"),
        ("https://h:8443/x", "../../m", None),
        ("ssh://git@h/a/x", "../m/", "ssh://git@h/a/m"),
        ("/m/x", "../m", "/m/m"),
    ],
)
def test_a_relative_address_is_resolved_as_git_does(parent: str, url: str, address: str | None) -> None:
    assert resolve_address(parent, url) == address
