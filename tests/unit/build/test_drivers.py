"""What a build would compile with is told by the programs themselves, and none of them is run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from toolkit.build import compiler_digest, compiler_drivers, compiler_links
from toolkit.errors import UsageError
from toolkit.files import sha256_bytes
from toolkit.model import BuildSpec

PASSING = BuildSpec(backend="pep517", requirements=(), env={}, pass_env=("CC", "CXX", "PATH"))


def put(folder: Path, name: str, content: str = "#!/bin/sh\nexit 1\n") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(content)
    (folder / name).chmod(0o755)
    return folder / name


def test_the_programs_are_those_of_the_path_and_named_by_their_bytes(tmp_path: Path) -> None:
    compiler = put(tmp_path / "bin", "c++")
    caller = {"PATH": str(tmp_path / "bin")}
    assert compiler_drivers(PASSING, caller) == {"CXX": compiler}
    assert compiler_digest(PASSING, caller) == f"CXX={sha256_bytes(compiler.read_bytes())}"

    before = compiler_digest(PASSING, caller)
    put(tmp_path / "bin", "c++", "#!/bin/sh\nexit 2\n")
    assert compiler_digest(PASSING, caller) != before


@pytest.mark.parametrize("asked", ["{other}", "launcher {other} -m64"])
def test_what_the_recipe_passes_on_takes_the_place_of_the_usual(tmp_path: Path, asked: str) -> None:
    put(tmp_path / "bin", "c++")
    put(tmp_path / "bin", "launcher")
    other = put(tmp_path / "other", "clang++")
    caller = {"PATH": str(tmp_path / "bin"), "CXX": asked.format(other=other)}
    assert compiler_drivers(PASSING, caller) == {"CXX": other}
    kept = BuildSpec(backend="pep517", requirements=(), env={}, pass_env=("PATH",))
    assert compiler_drivers(kept, caller) == {"CXX": tmp_path / "bin/c++"}


def test_a_compiler_cache_counts(tmp_path: Path) -> None:
    put(tmp_path / "bin", "c++")
    caller = {"PATH": str(tmp_path / "bin")}
    before = compiler_digest(PASSING, caller)
    put(tmp_path / "bin", "ccache")
    assert compiler_digest(PASSING, caller) == f"{before} through ccache"


@pytest.mark.parametrize("cache", ["ccache", "sccache"])
@pytest.mark.parametrize("asked", ["", "c++", "ccache c++ -m64", "{links}/c++"])
def test_behind_a_link_to_a_compiler_cache_is_the_compiler_itself(tmp_path: Path, cache: str, asked: str) -> None:
    put(tmp_path / "links", cache)
    (tmp_path / "links" / "c++").symlink_to(cache)
    compiler = put(tmp_path / "bin", "g++-12")
    (tmp_path / "bin" / "c++").symlink_to("g++-12")
    caller = {"PATH": f"{tmp_path}/links:{tmp_path}/bin", "CXX": asked.format(links=tmp_path / "links")}

    assert compiler_drivers(PASSING, caller) == {"CXX": compiler}

    before = compiler_digest(PASSING, caller)
    put(tmp_path / "bin", "g++-12", "#!/bin/sh\nexit 2\n")
    assert compiler_digest(PASSING, caller) != before


def test_a_compiler_cache_with_nothing_behind_it_is_no_compiler(tmp_path: Path) -> None:
    put(tmp_path / "bin", "ccache")
    (tmp_path / "bin" / "c++").symlink_to("ccache")

    assert compiler_drivers(PASSING, {"PATH": str(tmp_path / "bin")}) == {}


def test_every_place_where_a_compiler_could_appear_before_the_found_one_is_told(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    put(second, "c++")
    put(third, "c++")
    caller = {"PATH": f"{first}:{second}::{third}"}

    assert compiler_links(PASSING, caller) == (
        first / "cc", second / "cc", third / "cc", first / "c++", second / "c++",
        first / "ccache", second / "ccache", third / "ccache",
    )  # fmt: skip


def test_the_places_behind_a_compiler_cache_are_told_too(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    put(first, "ccache")
    for name in ("cc", "c++"):
        (first / name).symlink_to("ccache")
        put(second, name)
    caller = {"PATH": f"{first}:{second}:{third}"}

    assert compiler_links(PASSING, caller) == (
        first / "cc", second / "cc", first / "c++", second / "c++", first / "ccache",
    )  # fmt: skip


def test_the_places_of_what_the_recipe_passes_on_are_told(tmp_path: Path) -> None:
    caller = {"PATH": str(tmp_path), "CC": "launcher /opt/bin/gcc -m64", "CXX": "./wrapper tools/clang++"}

    assert compiler_links(PASSING, caller) == (
        *(tmp_path / name for name in ("cc", "c++", "ccache", "launcher")), Path("/opt/bin/gcc"),
    )  # fmt: skip


def test_a_machine_without_compilers_has_none(tmp_path: Path) -> None:
    assert compiler_digest(PASSING, {"PATH": str(tmp_path)}) == "none"


@pytest.mark.parametrize("ask", [compiler_drivers, compiler_digest, compiler_links])
@pytest.mark.parametrize("name", ["CC", "CXX"])
def test_a_command_whose_quotes_do_not_match_is_told(ask: Callable[..., object], name: str) -> None:
    with pytest.raises(UsageError, match=f"^{name}='\"unbalanced' cannot be read as a command: No closing quotation$"):
        ask(PASSING, {"PATH": "", name: '"unbalanced'})
