"""Compilers behind a compiler cache: which one, how they are called, and what is counted."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from toolkit.build.cache import CompilerCache, counted_command, find_cache, put_behind_cache, read_cache_facts
from toolkit.build.workroom import Workroom, open_workroom
from toolkit.errors import UsageError


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Return a folder of stand-in compilers, and a ccache that says what it was asked to run."""
    folder = tmp_path / "tools"
    folder.mkdir()
    program(folder, "ccache", 'echo "cached $*"')
    for name in ("cc", "g++", "clang-99"):
        program(folder, name, f"echo {name}")
    return folder


@pytest.fixture
def room(tmp_path: Path) -> Workroom:
    return open_workroom(tmp_path / "work")


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def put_behind(
    room: Workroom, tools: Path, *, variables: Mapping[str, str] | None = None,
    commands: Mapping[str, str] | None = None,
) -> dict[str, str]:  # fmt: skip
    cache = find_cache(room.root / "cache", path=str(tools), contained=True)
    assert cache is not None
    own = {"PATH": f"/env/bin:{tools}", **(variables or {})}
    return put_behind_cache(cache, room, own, Path("/srv/tree"), commands=commands or {})


def sccache(room: Workroom) -> CompilerCache:
    return CompilerCache(kind="sccache", program="/opt/sccache", folder=room.root / "cache")


@pytest.mark.parametrize(
    ("programs", "contained", "found"),
    [
        pytest.param(("ccache", "sccache"), True, "ccache", id="ccache first"),
        pytest.param(("sccache",), True, "sccache", id="sccache where its server ends with the build"),
        pytest.param(("sccache",), False, None, id="but not where it would stay"),
        pytest.param((), True, None, id="none"),
    ],
)
def test_which_cache_is_used(tmp_path: Path, programs: tuple[str, ...], contained: bool, found: str | None) -> None:
    for name in programs:
        program(tmp_path, name, "exit 0")

    cache = find_cache(tmp_path / "cache", path=str(tmp_path), contained=contained)

    assert (cache.kind if cache else None) == found
    if cache is not None:
        assert cache.folder == (tmp_path / "cache" / cache.kind).resolve()
        assert cache.folder.is_dir()


def test_without_a_folder_there_is_no_cache(tools: Path) -> None:
    assert find_cache(None, path=str(tools), contained=True) is None


def test_compilers_are_called_through_the_cache_under_their_own_names(tools: Path, room: Workroom) -> None:
    variables = put_behind(room, tools)

    assert sorted(path.name for path in room.compilers.iterdir()) == ["cc", "g++"]
    assert run_script(room.compilers / "cc", "-c", "a b.c") == f"cached {tools}/cc -c a b.c\n"
    assert variables == {
        "PATH": f"/env/bin:{room.compilers}:{tools}",
        "CCACHE_DIR": str(room.root / "cache" / "ccache"),
        "CCACHE_BASEDIR": "/srv/tree",
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_COMPILERCHECK": "content",
        "CCACHE_STATSLOG": str(room.cache_log),
    }


def test_a_compiler_that_the_recipe_names_stays_the_one(tools: Path, room: Workroom, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    program(other, "cc", "echo other")

    variables = put_behind(room, tools, variables={"CC": f"{other}/cc -m64", "CXX": "clang-99"})

    assert (variables["CC"], variables["CXX"]) == (f"{room.compilers}/cc -m64", f"{room.compilers}/clang-99")
    assert run_script(room.compilers / "cc") == f"cached {other}/cc\n"


def test_the_compiler_that_the_interpreter_was_built_with_is_one_too(tools: Path, room: Workroom) -> None:
    put_behind(room, tools, commands={"CC": "clang-99 -pthread", "LDSHARED": "ccache x"})

    assert run_script(room.compilers / "clang-99") == f"cached {tools}/clang-99\n"
    assert not (room.compilers / "ccache").exists()


def test_a_compiler_that_is_not_there_stays_as_it_is_named(tools: Path, room: Workroom) -> None:
    assert put_behind(room, tools, variables={"CC": "/no/icc"})["CC"] == "/no/icc"


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        pytest.param(None, {}, id="nothing noted"),
        pytest.param("", {"hits": 0, "misses": 0}, id="nothing compiled"),
        pytest.param("# a.c\ncache_miss\ndirect_cache_miss\nlocal_storage_miss\n# b.c\ndirect_cache_hit\n# c.c\n"
                     "direct_cache_miss\npreprocessed_cache_hit\n# d.o\ncalled_for_link\n", {"hits": 2, "misses": 1},
                     id="each compilation once"),
    ],
)  # fmt: skip
def test_the_caches_log_is_counted(room: Workroom, text: str | None, facts: dict[str, int]) -> None:
    if text is not None:
        room.cache_log.write_text(text)

    assert read_cache_facts(CompilerCache(kind="ccache", program="ccache", folder=room.root), room) == facts


def run_script(path: Path, *words: str) -> str:
    return subprocess.run([path, *words], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        pytest.param('{"stats": {"cache_hits": {"counts": {"C/C++": 2, "Rust": 1}}, "cache_misses": {"counts": {}}}}',
                     {"hits": 3, "misses": 0}, id="by language"),
        pytest.param("", {}, id="nothing said"),
    ],
)  # fmt: skip
def test_the_servers_counters_are_read(room: Workroom, text: str, facts: dict[str, int]) -> None:
    room.cache_log.write_text(text)

    assert read_cache_facts(sccache(room), room) == facts


def test_without_a_cache_nothing_is_counted(room: Workroom) -> None:
    assert read_cache_facts(None, room) == {}
    assert counted_command(None, ["build"], room) == ["build"]


def test_the_server_is_asked_and_stopped_after_the_command_whose_code_stays(tools: Path, room: Workroom) -> None:
    program(tools, "sccache", f'echo "$*" >> {tools}/calls; echo counters')
    cache = CompilerCache(kind="sccache", program=str(tools / "sccache"), folder=room.root)

    argv = counted_command(cache, ["sh", "-c", "echo built $1; exit 7", "sh", "a b"], room)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (7, "built a b\n")
    assert (tools / "calls").read_text() == "--show-stats --stats-format=json\n--stop-server\n"
    assert room.cache_log.read_text() == "counters\n"


def test_a_command_whose_quotes_do_not_match_is_told(tools: Path, room: Workroom) -> None:
    with pytest.raises(UsageError, match=r"^CXX='\"c' cannot be read as a command: No closing quotation$"):
        put_behind(room, tools, variables={"CXX": '"c'})


@pytest.mark.parametrize("value", [" ", "''"])
def test_a_command_without_a_word_stays_as_it_is(tools: Path, room: Workroom, value: str) -> None:
    assert "CC" not in put_behind(room, tools, variables={"CC": value})


@pytest.mark.parametrize("text", ["7", "{}", '{"stats": {"cache_hits": 1}}', '{"stats": []}'])
def test_what_is_no_text_of_the_server_is_not_counted(room: Workroom, text: str) -> None:
    room.cache_log.write_text(text)

    assert read_cache_facts(sccache(room), room) == {}


def test_counters_behind_a_symlink_are_not_read(room: Workroom, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("cache_miss\n")
    room.cache_log.symlink_to(tmp_path / "other")

    assert read_cache_facts(CompilerCache(kind="ccache", program="ccache", folder=room.root), room) == {}
