"""The machine's compilers: who they are, and what the interpreter's own would leave in a wheel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from toolkit.build.compilers import compiler_identity, plain_linkers
from toolkit.errors import UsageError
from toolkit.model import BuildSpec


@pytest.mark.parametrize(
    ("env", "identity"),
    [
        pytest.param({}, "none", id="no such compiler"),
        pytest.param({"CXX": "g++ -m64"}, "g++ -m64 --version for g++ -m64 -dumpmachine", id="the recipe's"),
    ],
)
def test_a_compiler_says_who_it_is(tmp_path: Path, env: dict[str, str], identity: str) -> None:
    (tmp_path / "g++").write_text('#!/bin/sh\necho "g++ $*"\necho more\n')
    (tmp_path / "g++").chmod(0o755)
    spec = BuildSpec(backend="pep517", requirements=(), env={"PATH": str(tmp_path), **env})

    assert compiler_identity(spec, {"CXX": "not-passed"}) == identity


def test_ccache_is_part_of_who_compiles_because_it_changes_paths(tmp_path: Path) -> None:
    for name in ("c++", "ccache"):
        (tmp_path / name).write_text("#!/bin/sh\necho mine\n")
        (tmp_path / name).chmod(0o755)
    spec = BuildSpec(backend="pep517", requirements=(), env={"PATH": str(tmp_path)})

    assert compiler_identity(spec, {}) == "mine for mine, through ccache"
    assert compiler_identity(spec, {}, cached=False) == "mine for mine"


PYENV = {
    "CC": "gcc -pthread",
    "CXX": "g++ -pthread",
    "LDSHARED": "gcc -pthread -shared -L/opt/python/lib -Wl,-rpath,/opt/python/lib -Wl,-O1",
    "LDCXXSHARED": "g++ -pthread -shared -Wl,-rpath=/opt/python/lib",
}


@pytest.mark.parametrize(
    ("variables", "linkers"),
    [
        pytest.param({}, {"LDSHARED": "gcc -pthread -shared -L/opt/python/lib -Wl,-O1",
                          "LDCXXSHARED": "g++ -pthread -shared"}, id="without the interpreter's place"),
        pytest.param({"CC": "/room/bin/cc -m64", "LDCXXSHARED": "mine"},
                     {"LDSHARED": "/room/bin/cc -m64 -shared -L/opt/python/lib -Wl,-O1"}, id="the recipe's stay"),
    ],
)  # fmt: skip
def test_extensions_are_linked_without_a_run_path_to_the_interpreter(
    variables: dict[str, str], linkers: dict[str, str]
) -> None:
    assert plain_linkers(variables, PYENV) == linkers


def test_a_linking_command_without_run_path_is_left_to_setuptools() -> None:
    assert plain_linkers({}, {"CC": "cc", "LDSHARED": "cc -shared -Wl,-Bsymbolic-functions"}) == {}


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(
            lambda value: compiler_identity(BuildSpec(backend="pep517", requirements=(), env={"CXX": value}), {}),
            id="identity",
        ),
        pytest.param(lambda value: plain_linkers({"CXX": value}, PYENV), id="linkers"),
    ],
)
def test_a_command_whose_quotes_do_not_match_is_told(ask: Callable[[str], object]) -> None:
    with pytest.raises(UsageError, match=r"^CXX='\"unbalanced' cannot be read as a command: No closing quotation$"):
        ask('"unbalanced')
