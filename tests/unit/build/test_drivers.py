"""What a build would compile with is told by the programs themselves, and none of them is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.build import compiler_digest, compiler_drivers
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


def test_a_machine_without_compilers_has_none(tmp_path: Path) -> None:
    assert compiler_digest(PASSING, {"PATH": str(tmp_path)}) == "none"
