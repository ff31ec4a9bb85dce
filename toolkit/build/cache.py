"""Put a build's compilers behind ccache or sccache, whichever the machine has, and count how that went."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from toolkit.build.variables import split_command
from toolkit.build.workroom import Workroom, is_plain_file

NAMES = ("cc", "c++", "gcc", "g++", "clang", "clang++")

COUNTED = {"direct_cache_hit": "hits", "preprocessed_cache_hit": "hits", "cache_miss": "misses"}
"""The counters of ccache that say how a compilation went; each writes one."""

# $0 is sccache, the rest the command. Its server counts only as long as it lives.
COUNTED_BY_SERVER = (
    '"$@"; code=$?; "$0" --show-stats --stats-format=json > {log}; "$0" --stop-server > {log}.end 2>&1; exit $code'
)


@dataclass(frozen=True, kw_only=True, slots=True)
class CompilerCache:
    """A program that answers for compilers, and the folder of what it knows."""

    kind: Literal["ccache", "sccache"]
    program: str
    folder: Path


def find_cache(folder: Path | None, *, path: str, contained: bool) -> CompilerCache | None:
    """Return the compiler cache of this machine, its part of `folder` made; None where there is none to use.

    sccache starts a server that outlives who asked it. It is taken only where all processes of the build end with it
    and none outside can answer: `contained`.
    """
    if folder is None:
        return None
    for kind in ("ccache", *(("sccache",) if contained else ())):
        program = shutil.which(kind, path=path)
        if program is not None:
            (folder / kind).mkdir(parents=True, exist_ok=True)
            return CompilerCache(
                kind="ccache" if kind == "ccache" else "sccache", program=program, folder=(folder / kind).resolve()
            )
    return None


def put_behind_cache(
    cache: CompilerCache, room: Workroom, variables: Mapping[str, str], tree_root: Path, *, commands: Mapping[str, str]
) -> dict[str, str]:
    """Put every compiler of a build behind the cache and return the variables to set.

    Each is a small script of its own name in front of PATH, so that CMake, setuptools and torch's extensions find it
    alike. `commands` are those that the interpreter was compiled with.
    """
    own, _, path = variables["PATH"].partition(os.pathsep)
    commands_asked = {name: split_command(name, variables.get(name, "")) for name in ("CC", "CXX")}
    asked = {name: words for name, words in commands_asked.items() if words and words[0]}
    built_with = [shlex.split(command)[0] for command in commands.values()]
    for name, real in _find_compilers([*(words[0] for words in asked.values()), *built_with, *NAMES], path):
        script = room.compilers / name
        script.write_text(f'#!/bin/sh\nexec {shlex.quote(cache.program)} {shlex.quote(real)} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    return {
        **{name: shlex.join([_behind_cache(words[0], room), *words[1:]]) for name, words in asked.items()},
        "PATH": os.pathsep.join([own, str(room.compilers), path]),
        **_settings(cache, room, tree_root),
    }


def counted_command(cache: CompilerCache | None, command: Sequence[str], room: Workroom) -> list[str]:
    """Return a command that leaves the cache's counters behind; ccache writes them as it goes."""
    if cache is None or cache.kind == "ccache":
        return list(command)
    return ["sh", "-c", COUNTED_BY_SERVER.format(log=shlex.quote(str(room.cache_log))), cache.program, *command]


def read_cache_facts(cache: CompilerCache | None, room: Workroom) -> dict[str, int]:
    """Count how the compilations of a build went: `hits` and `misses`; empty where no cache was used.

    The build could write anything there.
    """
    if cache is None or not is_plain_file(room.cache_log) or room.cache_log.resolve() != room.cache_log:
        return {}
    text = room.cache_log.read_text(encoding="utf-8", errors="replace")
    if cache.kind == "sccache":
        try:
            stats = json.loads(text)["stats"]
            return {short: sum(stats[f"cache_{short}"]["counts"].values()) for short in ("hits", "misses")}
        except (ValueError, LookupError, TypeError, AttributeError):  # The server had died, or it is not its text.
            return {}
    counts = Counter(COUNTED[line] for line in text.splitlines() if line in COUNTED)
    return {"hits": counts["hits"], "misses": counts["misses"]}


def _settings(cache: CompilerCache, room: Workroom, tree_root: Path) -> dict[str, str]:
    """Return what makes one folder's results good for another's, and tells equal compilers by their content.

    sccache hashes the flag that maps the folder's name away, and answers only in a folder of the same name.
    """
    if cache.kind == "sccache":
        return {"SCCACHE_DIR": str(cache.folder), "SCCACHE_BASEDIRS": str(tree_root)}
    return {
        "CCACHE_DIR": str(cache.folder),
        "CCACHE_BASEDIR": str(tree_root),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_COMPILERCHECK": "content",
        "CCACHE_STATSLOG": str(room.cache_log),
    }


def _find_compilers(names: Sequence[str], path: str) -> Iterator[tuple[str, str]]:
    """Yield the name and place of each compiler that is there; of two with one name the first."""
    seen = {"ccache", "sccache", ""}
    for name in names:
        real = shutil.which(name, path=path)
        if real and os.path.basename(name) not in seen:
            seen.add(os.path.basename(name))
            yield os.path.basename(name), real


def _behind_cache(compiler: str, room: Workroom) -> str:
    script = room.compilers / os.path.basename(compiler)
    return str(script) if script.exists() else compiler
