"""Applying a series on machines that are set up against it, and after runs that were killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.series_cases import make_series, make_source, read_tree, run_git, write_tree
from toolkit.errors import ApplyError
from toolkit.series import apply_series

LINES = b"".join(b"line %d\n" % number for number in range(40))
BEFORE = {"p/a.py": LINES}
AFTER = {"p/a.py": LINES.replace(b"line 7\n", b"seven  \n\t \n")}

USER_CONFIG = """\
[core]
    autocrlf = true
    hooksPath = /nonexistent
    attributesFile = ~/attributes
[commit]
    gpgSign = true
[apply]
    whitespace = error
    ignoreWhitespace = change
[user]
    useConfigOnly = true
"""


def apply_in(tmp_path: Path) -> dict[str, bytes]:
    source = make_source(tmp_path, BEFORE)
    done = apply_series(
        make_series(tmp_path, BEFORE, AFTER), source, into=tmp_path / "out", scratch=tmp_path / "scratch"
    )
    return read_tree(done.root)


def require_exact_context(tmp_path: Path) -> None:
    source = make_source(tmp_path, {"p/a.py": LINES.replace(b"line 6\n", b"line   6\n")})
    with pytest.raises(ApplyError, match=r"conflicts at p/a\.py:7$"):
        apply_series(make_series(tmp_path, BEFORE, AFTER), source, into=tmp_path / "out", scratch=tmp_path / "scratch")


def test_a_series_is_applied_inside_another_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git would skip the files as lying outside its repository, change nothing, and end with 0."""
    outer = write_tree(tmp_path / "outer", {"sub/keep": b"", "p/a.py": LINES})
    run_git(outer, "init", "--quiet")
    run_git(outer, "add", "--all")
    monkeypatch.chdir(outer / "sub")
    inner = outer / "sub" / "inner"
    inner.mkdir()
    assert apply_in(inner) == AFTER
    assert run_git(outer, "diff", "--name-only") == b""


def put_before_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Make `git` a program that may do something else when it is to apply for good."""
    shim = tmp_path / "bin" / "git"
    shim.parent.mkdir()
    text = (
        f'#!/bin/sh\ngit={shutil.which("git")}\ncase "$*" in *--check*) ;; apply*) {script} ;; esac\nexec $git "$@"\n'
    )
    shim.write_text(text, encoding="utf-8")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        pytest.param("exit 0", "patch 0001-change names p/a.py, which did not change", id="nothing changed"),
        pytest.param(
            "echo >p/b.py", "patch 0001-change changed p/b.py, which it does not name", id="another file changed"
        ),
        pytest.param("exit 1", "patch 0001-change fitted, but git could not apply it", id="failed late"),
    ],
)
def test_gits_word_is_checked_against_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    series, source = make_series(tmp_path, BEFORE, AFTER), make_source(tmp_path, BEFORE)
    put_before_git(tmp_path, monkeypatch, script)
    with pytest.raises(ApplyError) as raised:
        apply_series(series, source, into=tmp_path / "out", scratch=tmp_path / "scratch")
    assert raised.value.message == message
    assert not (tmp_path / "out").exists()


@pytest.fixture
def hostile_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = write_tree(tmp_path / "home", {".gitconfig": USER_CONFIG.encode(), "attributes": b"* text eol=crlf ident\n"})
    write_tree(home / "xdg", {"git/config": USER_CONFIG.encode(), "git/attributes": b"* text eol=crlf\n"})
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "xdg"))


@pytest.mark.usefixtures("hostile_home")
def test_the_users_configuration_changes_nothing(tmp_path: Path) -> None:
    assert apply_in(tmp_path) == AFTER


@pytest.mark.usefixtures("hostile_home")
def test_the_users_configuration_does_not_loosen_the_context(tmp_path: Path) -> None:
    require_exact_context(tmp_path)


@pytest.mark.parametrize("home", ["", None, "/nonexistent"], ids=["empty", "unset", "missing"])
def test_no_home_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str | None) -> None:
    if home is None:
        monkeypatch.delenv("HOME", raising=False)
    else:
        monkeypatch.setenv("HOME", home)
    assert apply_in(tmp_path) == AFTER


@pytest.fixture
def hostile_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set GIT_* variables that lead to another repository, which is returned."""
    elsewhere = write_tree(tmp_path / "elsewhere", {"p/a.py": LINES})
    run_git(elsewhere, "init", "--quiet")
    for name, value in {
        "GIT_DIR": str(elsewhere / ".git"),
        "GIT_WORK_TREE": str(elsewhere),
        "GIT_INDEX_FILE": str(elsewhere / "index"),
        "GIT_OBJECT_DIRECTORY": str(elsewhere / "objects"),
        "GIT_PREFIX": "p/",
        "GIT_CONFIG": str(elsewhere / "config"),
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_0": "core.autocrlf",
        "GIT_CONFIG_VALUE_0": "true",
        "GIT_CONFIG_KEY_1": "apply.whitespace",
        "GIT_CONFIG_VALUE_1": "error",
        "GIT_CONFIG_KEY_2": "apply.ignoreWhitespace",
        "GIT_CONFIG_VALUE_2": "change",
        "GIT_CONFIG_PARAMETERS": "'core.autocrlf=true'",
        "GIT_TEMPLATE_DIR": str(elsewhere),
        "GIT_TRACE": "1",
        "LC_ALL": "de_DE.UTF-8",
        "LANGUAGE": "de",
    }.items():
        monkeypatch.setenv(name, value)
    return elsewhere


def test_git_variables_of_the_caller_lead_nowhere(tmp_path: Path, hostile_variables: Path) -> None:
    before = read_tree(hostile_variables)
    assert apply_in(tmp_path) == AFTER
    assert read_tree(hostile_variables) == before
    assert not (hostile_variables / "objects").exists()


@pytest.mark.usefixtures("hostile_variables")
def test_git_variables_of_the_caller_do_not_loosen_the_context(tmp_path: Path) -> None:
    require_exact_context(tmp_path)


def test_what_a_killed_run_left_is_no_obstacle(tmp_path: Path) -> None:
    write_tree(tmp_path / "scratch" / "apply", {"git/index.lock": b"", "git/HEAD": b"rubbish", "tree/p/a.py": b"half"})
    write_tree(tmp_path / ".part-out", {"p/a.py": b"half", "p/other.py": b"half"})
    (tmp_path / ".part-out" / "p").chmod(0o500)
    assert apply_in(tmp_path) == AFTER
    assert not (tmp_path / ".part-out").exists()


def test_a_run_killed_at_any_moment_leaves_nothing_half_made(tmp_path: Path) -> None:
    before = {f"p/{number}.py": LINES for number in range(20)}
    after = {path: b"new\n" + raw for path, raw in before.items()}
    series = make_series(tmp_path, before, after)
    source = make_source(tmp_path, before)
    program = (
        "import sys; from pathlib import Path; top = Path(sys.argv[1])\n"
        "from tests.series_cases import make_source\n"
        "from toolkit.series import apply_series, load_series; import git\n"
        "series = load_series(top / 'patches', name='s'); source = make_source(top, {})\n"
        "source = type(source)(base=source.base, root=source.root, members=frozenset(series.paths))\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "apply_series(series, source, into=top / 'out', scratch=top / 'scratch')\n"
    ).replace("make_source(top, {})", f"make_source(top, {before!r})")
    ends = []
    for delay in (0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04):
        child = subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)],
            cwd=Path.cwd(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        with child:
            assert child.stdin is not None
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            child.stdin.write(b"\n")
            child.stdin.flush()
            time.sleep(delay)
            os.killpg(child.pid, signal.SIGKILL)
        if (tmp_path / "out").exists():
            ends.append(read_tree(tmp_path / "out"))
            (tmp_path / "out").rename(tmp_path / f"whole-{len(ends)}")
    assert all(end == after for end in ends)
    done = apply_series(series, source, into=tmp_path / "out", scratch=tmp_path / "scratch")
    assert read_tree(done.root) == after
    assert not (tmp_path / "scratch" / "apply").exists()
