"""Where a repository can be fetched from: the user's mirrors first, then the addresses that a recipe names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from toolkit.errors import UsageError
from toolkit.schema import TomlError, describe_faults, describe_toml_error, find_faults, parse_toml, shown_path

VARIABLE = "TOOLKIT_MIRROR_"
SCHEMES = ("https", "ssh", "file")
EXPECTED = "expected https://, ssh://, user@host:path, file:// or the path of a folder"
CREDENTIALS = re.compile(r"(?<=https://)\S*@|(?<=://)[^/\s]*@")
QUERY = re.compile(r"(https://[^\s?'\"]+)\?[^\s'\"]*")
SCP_FORM = re.compile(r"([A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*(?<!https)(?<!ssh)(?<!file):(?![:-]).+")
WITH_HOST = re.compile(r"(https|ssh)://([^/@]+@)?[A-Za-z0-9\[][A-Za-z0-9.:\]-]*/.+")


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The user's `toolkit/config.toml`: `[mirrors]` maps the beginning of an address to what stands in for it."""

    mirrors: dict[str, str] = msgspec.field(default_factory=dict)


def addresses(name: str, urls: Sequence[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """List where to look for a repository, in order, each address once.

    First what TOOLKIT_MIRROR_<NAME> says (several separated by blanks), where NAME is `name` or the last part of one
    of the `urls`; then the `urls`. Where the user's prefix map fits an address, the mapped one goes before it.
    Raises UsageError for a variable or a map that holds something else than addresses.
    """
    prefixes = _read_prefixes(env)
    found = []
    for address in (*_from_variables(name, urls, env), *urls):
        found += [*_mapped(address, prefixes), address]
    return tuple(dict.fromkeys(found))


def repository_name(address: str) -> str:
    """Return the last part of an address, without `.git`."""
    return re.split(r"[/:]", address.rstrip("/"))[-1].removesuffix(".git")


def address_fault(address: str) -> str:
    """Say why git is not given an address, or nothing where it may be."""
    if not address or any(letter.isspace() or not letter.isprintable() for letter in address):
        return "it is empty or has blanks or control characters in it"
    if address.startswith("-") or re.match(r"\w+://([^/@]*@)?-", address):
        return "it looks like an option"
    if "://" in address:
        scheme = address.partition("://")[0]
        if scheme not in SCHEMES:
            return EXPECTED
        return "" if WITH_HOST.fullmatch(address) or address.startswith("file:///") else "it names no host and path"
    return "" if address.startswith("/") or SCP_FORM.fullmatch(address) else EXPECTED


def require_sound_addresses(urls: Sequence[str]) -> None:
    """Raise ValueError for an address that may stand in no file: one with credentials, or none at all."""
    for url in urls:
        if CREDENTIALS.search(url) and url.startswith("https:"):
            raise ValueError(f"{without_credentials(url)!r} was given with credentials; keep them out of files")
        if why := address_fault(url):
            raise ValueError(f"{url!r} is no address of a repository: {why}")


def without_credentials(text: str) -> str:
    """Take users, passwords and queries out of every address in a text."""
    return QUERY.sub(r"\1", CREDENTIALS.sub("", text))


def _from_variables(name: str, urls: Sequence[str], env: Mapping[str, str]) -> Iterator[str]:
    for variable in dict.fromkeys(variable_of(known) for known in (name, *map(repository_name, urls))):
        for word in env.get(variable, "").split():
            address = os.path.abspath(word) if _is_relative(word) else word
            if why := address_fault(address):
                raise UsageError(
                    f"{variable} holds {without_credentials(word)!r}, which is no address of a repository: {why}",
                    hint="say `--mirror NAME=URL`, or set the variable to addresses separated by blanks",
                )
            yield address


def variable_of(name: str) -> str:
    """Return the variable that holds a repository's mirrors: TOOLKIT_MIRROR_ and its name, in capitals."""
    return VARIABLE + re.sub(r"[^A-Z0-9]", "_", name.upper())


def _is_relative(word: str) -> bool:
    """Whether a word is a path from the current folder: as git has it, no colon stands before its first slash."""
    return not word.startswith(("/", "-")) and ":" not in word.partition("/")[0]


def _read_prefixes(env: Mapping[str, str]) -> Mapping[str, str]:
    path = _settings_path(env)
    if path is None or not path.is_file():
        return {}
    try:
        text, tables = parse_toml(path.read_bytes())
    except TomlError as fault:
        raise _unreadable(path, [describe_toml_error(fault, path)]) from fault
    if faults := find_faults(tables, Settings):
        raise _unreadable(path, describe_faults(faults, path, text))
    prefixes = msgspec.convert(tables, Settings).mirrors
    whys = [why for pair in prefixes.items() if (why := _prefix_fault(*pair))]
    if whys:
        raise _unreadable(path, [f"{shown_path(path)}: mirrors: {why}" for why in whys])
    return prefixes


def _settings_path(env: Mapping[str, str]) -> Path | None:
    if chosen := env.get("XDG_CONFIG_HOME"):
        return Path(chosen) / "toolkit" / "config.toml"
    home = env.get("HOME")
    return Path(home) / ".config" / "toolkit" / "config.toml" if home else None


def _prefix_fault(prefix: str, stand_in: str) -> str:
    shown = without_credentials(f"{prefix!r} = {stand_in!r}")
    if not prefix:
        return f"{shown}: an empty prefix fits every address"
    why = address_fault(f"{stand_in.rstrip('/')}/x")  # It begins an address, and need not be one.
    return f"{shown}: {why}" if why else ""


def _unreadable(path: Path, details: Sequence[str]) -> UsageError:
    return UsageError(
        f"{shown_path(path)} cannot be used",
        hint='expected a table [mirrors] of lines such as "https://github.com/" = "https://mirror.example/"',
        details=details,
    )


def _mapped(address: str, prefixes: Mapping[str, str]) -> list[str]:
    """Return what the longest prefix of an address makes of it, if one fits."""
    fitting = [prefix for prefix in prefixes if address.startswith(prefix)]
    if not fitting:
        return []
    longest = max(fitting, key=len)
    return [prefixes[longest] + address.removeprefix(longest)]
