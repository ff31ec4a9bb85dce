"""Where a repository is looked for, and which addresses git is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.errors import UsageError
from toolkit.mirrors import address_fault, addresses, repository_name, without_credentials

URLS = ("https://one.example/Ascend/pytorch.git", "https://two.example/Ascend/pytorch")


def settings(tmp_path: Path, text: str) -> dict[str, str]:
    path = tmp_path / "toolkit" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def test_without_mirrors_the_addresses_are_the_recipes() -> None:
    assert addresses("torch_npu", URLS, {}) == URLS


def test_a_mirror_goes_first_and_replaces_nothing() -> None:
    env = {"TOOLKIT_MIRROR_TORCH_NPU": "/mirrors/pytorch"}

    assert addresses("torch_npu", URLS, env) == ("/mirrors/pytorch", *URLS)


@pytest.mark.parametrize("separator", [" ", "\n", "  \n\t"])
def test_a_variable_may_hold_several_mirrors(separator: str) -> None:
    env = {"TOOLKIT_MIRROR_TORCH_NPU": separator.join(["/a", "ssh://git@b/c", "git@b:c/d"])}

    assert addresses("torch_npu", URLS, env)[:3] == ("/a", "ssh://git@b/c", "git@b:c/d")


@pytest.mark.parametrize(
    ("name", "urls", "variable"),
    [
        pytest.param("torch-npu.x", URLS, "TOOLKIT_MIRROR_TORCH_NPU_X", id="a component, with other letters"),
        pytest.param("torch_npu", URLS, "TOOLKIT_MIRROR_PYTORCH", id="its repository"),
        pytest.param("op-plugin", ["git@h:op-plugin.git"], "TOOLKIT_MIRROR_OP_PLUGIN", id="a submodule's repository"),
    ],
)
def test_a_mirror_is_given_for_a_component_or_a_repository(name: str, urls: list[str], variable: str) -> None:
    assert addresses(name, urls, {variable: "/mirror"}) == ("/mirror", *urls)


def test_a_path_in_a_variable_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert addresses("a", ["https://h/a"], {"TOOLKIT_MIRROR_A": "x/a ./b ../c d"}) == (
        str(tmp_path / "x" / "a"), str(tmp_path / "b"), str(tmp_path.parent / "c"), str(tmp_path / "d"), "https://h/a",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("-u/bin/sh", "it looks like an option"),
        ("--upload-pack=touch", "it looks like an option"),
        ("ssh://-oProxyCommand=x/y", "it looks like an option"),
        ("ssh://u@-oProxyCommand=x/y", "it looks like an option"),
        ("http://h/a", "expected https://, ssh://, user@host:path, file:// or the path of a folder"),
        ("git://h/a", "expected https://, ssh://, user@host:path, file:// or the path of a folder"),
        ("ext::sh", "expected https://, ssh://, user@host:path, file:// or the path of a folder"),
        ("u@h:-x", "expected https://, ssh://, user@host:path, file:// or the path of a folder"),
        ("https:/h/a", "expected https://, ssh://, user@host:path, file:// or the path of a folder"),
        ("https://", "it names no host and path"),
        ("https://host", "it names no host and path"),
        ("file://host/a", "it names no host and path"),
    ],
)
def test_what_is_no_address_is_refused(word: str, why: str) -> None:
    with pytest.raises(UsageError) as raised:
        addresses("a", ["https://h/a"], {"TOOLKIT_MIRROR_A": word})
    assert (
        raised.value.message
        == f"TOOLKIT_MIRROR_A holds {without_credentials(word)!r}, which is no address of a " + (f"repository: {why}")
    )


@pytest.mark.parametrize("address", ["", "/a b", "/a\nb", "https://h/a\0", "a/b", "./a"])
def test_an_address_of_others_has_no_blanks_and_is_not_relative(address: str) -> None:
    assert address_fault(address)


@pytest.mark.parametrize(
    "address", ["https://h/a", "https://u:p@h:8443/a.git", "ssh://g@h/a", "file:///a", "/a", "g@h:a/b.git", "h:a",
                "https://[::1]/a"],
)  # fmt: skip
def test_an_address_that_git_may_be_given(address: str) -> None:
    assert address_fault(address) == ""


def test_a_refused_mirror_does_not_show_its_password() -> None:
    with pytest.raises(UsageError) as raised:
        addresses("a", [], {"TOOLKIT_MIRROR_A": "http://me:secret@h/a"})
    assert "secret" not in raised.value.message


# --- the prefix map --------------------------------------------------------------------------------------------


def test_the_longest_prefix_wins_and_the_original_follows(tmp_path: Path) -> None:
    env = settings(
        tmp_path,
        '[mirrors]\n"https://one.example/" = "https://mirror/"\n"https://one.example/Ascend/" = "/mirrors/"\n',
    )

    assert addresses("torch_npu", URLS, env) == ("/mirrors/pytorch.git", URLS[0], URLS[1])
    assert addresses("x", ["https://one.example/x"], env) == ("https://mirror/x", "https://one.example/x")


def test_the_map_is_applied_to_a_mirror_too(tmp_path: Path) -> None:
    env = settings(tmp_path, '[mirrors]\n"https://m/" = "file:///m/"\n') | {"TOOLKIT_MIRROR_A": "https://m/a"}

    assert addresses("a", ["https://h/a"], env) == ("file:///m/a", "https://m/a", "https://h/a")


def test_the_map_is_read_from_the_home_folder(tmp_path: Path) -> None:
    settings(tmp_path / ".config", '[mirrors]\n"https://h/" = "/m/"\n')

    assert addresses("a", ["https://h/a"], {"HOME": str(tmp_path)}) == ("/m/a", "https://h/a")


def test_a_file_without_mirrors_is_as_none(tmp_path: Path) -> None:
    assert addresses("a", ["https://h/a"], settings(tmp_path, "")) == ("https://h/a",)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        pytest.param("[mirrors", "config.toml: invalid TOML: Expected ']' at the end of a table declaration",
                     id="no TOML"),
        pytest.param("[mirror]\n", "config.toml:1: mirror: unknown key; did you mean 'mirrors'?", id="another table"),
        pytest.param("[mirrors]\na = 1\n", "config.toml:2: mirrors.a: expected string, got integer", id="no string"),
        pytest.param('[mirrors]\n"https://h/" = "http://m/"\n',
                     "config.toml: mirrors: 'https://h/' = 'http://m/': expected https://, ssh://, user@host:path, "
                     "file:// or the path of a folder", id="another transport"),
        pytest.param('[mirrors]\n"https://h/" = "m/"\n',
                     "config.toml: mirrors: 'https://h/' = 'm/': expected https://, ssh://, user@host:path, "
                     "file:// or the path of a folder", id="a relative path"),
        pytest.param('[mirrors]\n"" = "/m/"\n', "config.toml: mirrors: '' = '/m/': an empty prefix fits every address",
                     id="an empty prefix"),
        pytest.param('[mirrors]\n"https://h/" = "https://u:secret@-m/"\n',
                     "config.toml: mirrors: 'https://h/' = 'https://-m/': it looks like an option", id="an option"),
    ],
)  # fmt: skip
def test_a_map_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, detail: str) -> None:
    monkeypatch.chdir(tmp_path)
    env = settings(tmp_path, text)
    with pytest.raises(UsageError) as raised:
        addresses("a", [], env)
    assert raised.value.message == "toolkit/config.toml cannot be used"
    assert raised.value.details == (f"toolkit/{detail}",)
    assert raised.value.hint == (
        'expected a table [mirrors] of lines such as "https://github.com/" = "https://mirror.example/"'
    )


# --- words -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://h/a/op-plugin.git", "op-plugin"),
        ("https://h/a/x/", "x"),
        ("g@h:x.git", "x"),
        ("/m/x.git", "x"),
    ],
)
def test_a_repository_is_named_by_its_last_part(address: str, name: str) -> None:
    assert repository_name(address) == name


def test_users_and_passwords_are_taken_out_of_every_address() -> None:
    text = "from https://u:p@h/a and https://t@h/b, not ssh://h/c@d or g@h:x"

    assert without_credentials(text) == "from https://h/a and https://h/b, not ssh://h/c@d or g@h:x"
    assert without_credentials("https://u:sec/ret@h/x and https://u:se@cret@h/y") == "https://h/x and https://h/y"
    assert without_credentials("fatal: 'https://h/x?token=secret' said no") == "fatal: 'https://h/x' said no"
