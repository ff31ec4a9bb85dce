"""The first real cause of a failed build, from logs as the tools write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.build import diagnose as module
from toolkit.build.diagnose import ASK_FEWER_JOBS, BRING_IT, REQUIRE_IT, STAY_INSIDE, Diagnosis, diagnose
from toolkit.errors import BuildError, SandboxError, StorageError

WORK = Path("/srv/room")
TREE = WORK / "tree"

CALLED_PROCESS = """Traceback (most recent call last):
  File "/srv/room/tree/setup.py", line 5, in <module>
    subprocess.check_call(["ninja"])
subprocess.CalledProcessError: Command '['ninja']' returned non-zero exit status 1.
"""

NINJA_STOP = f"ninja: build stopped: subcommand failed.\n{CALLED_PROCESS}"

COMPILE_ERROR = (
    "[7/9] Building CXX object a.o\nFAILED: a.o\n/usr/bin/c++ -o a.o -c /srv/room/tree/csrc/a.cpp\n"
    "/srv/room/tree/csrc/a.cpp: In function 'int a()':\n"
    "/srv/room/tree/csrc/a.cpp:12:5: error: 'b' was not declared in this scope\n"
    "/srv/room/tree/csrc/a.cpp:13:5: error: expected ';'\n"
)

NETWORK = "the build asked for the network, which a build does not have: "
OUTSIDE = "the build writes outside its folder: "


def find(tmp_path: Path, text: str, code: int = 1) -> Diagnosis:
    log = tmp_path / "build.log"
    log.write_text(f"$ python setup.py --because 'error: No space left on device'\n{text}", encoding="utf-8")
    return diagnose(log, code, work=WORK, tree_root=TREE)


@pytest.mark.parametrize(
    ("text", "cause", "hint"),
    [
        pytest.param(f"c++: fatal error: Killed signal terminated program cc1plus\nterminated.\n{NINJA_STOP}",
                     "a compiler ran out of memory: c++: fatal error: Killed signal terminated program cc1plus",
                     ASK_FEWER_JOBS, id="killed compiler"),
        pytest.param("c++: internal compiler error: Killed (program cc1plus)\n",
                     "a compiler ran out of memory: c++: internal compiler error: Killed (program cc1plus)",
                     ASK_FEWER_JOBS, id="killed older compiler"),
        pytest.param(f"sh: line 1: 77 Killed\nKilled\n{NINJA_STOP}", "a compiler ran out of memory: Killed",
                     ASK_FEWER_JOBS, id="killed by a shell's word"),
        pytest.param(COMPILE_ERROR + NINJA_STOP, "csrc/a.cpp:12:5: error: 'b' was not declared in this scope", "",
                     id="first error of a compiler"),
        pytest.param("a.c:1:10: fatal error: missing.h: No such file or directory\n",
                     "a.c:1:10: fatal error: missing.h: No such file or directory", "", id="missing header"),
        pytest.param("x86_64-linux-gnu-g++: error: unrecognized option '-fno-such'\n",
                     "x86_64-linux-gnu-g++: error: unrecognized option '-fno-such'", "", id="wrong option"),
        pytest.param("CMake Error at cmake/deps.cmake:5 (message):\n  The headers\n\n  are not there\n\n\n"
                     "Call Stack (most recent call first):\n  CMakeLists.txt:3 (include)\n\n\n"
                     f"-- Configuring incomplete, errors occurred!\n{CALLED_PROCESS}",
                     "CMake Error at cmake/deps.cmake:5 (message): The headers are not there", "", id="stop of CMake"),
        pytest.param('CMake Error: The source directory "/srv/room/tree/x" does not exist.\nSpecify --help.\n',
                     'CMake Error: The source directory "x" does not exist.', "", id="CMake cannot begin"),
        pytest.param("a.o: in function `f':\na.c:(.text+0x5): undefined reference to `g'\n"
                     "collect2: error: ld returned 1 exit status\n",
                     "a.c:(.text+0x5): undefined reference to `g'", "", id="linker"),
        pytest.param("ninja: error: 'gone.h', needed by 'a.o', missing and no known rule to make it\n" + CALLED_PROCESS,
                     "ninja: error: 'gone.h', needed by 'a.o', missing and no known rule to make it", "", id="ninja"),
        pytest.param("FAILED: gen.h\ncd /srv/room/tree && ./gen\ngen: no operators.yaml\n" + NINJA_STOP,
                     "gen: no operators.yaml", "", id="a step's own words"),
        pytest.param("FAILED: gen.h\ncd /x && python gen.py\nTraceback (most recent call last):\n"
                     '  File "gen.py", line 1, in <module>\n    import operators\nKeyError: \'add\'\n' + NINJA_STOP,
                     "KeyError: 'add'", "", id="a traceback in a step, not that of who called it"),
        pytest.param("Traceback (most recent call last):\n  File \"setup.py\", line 1, in <module>\n    import torch\n"
                     "ModuleNotFoundError: No module named 'torch'\n", "ModuleNotFoundError: No module named 'torch'",
                     f"if the build imports it from elsewhere, {REQUIRE_IT}", id="missing module"),
        pytest.param("* Getting build dependencies for wheel...\nERROR Missing dependencies:\n\tcython>=3\n\tnumpy\n",
                     "the build's environment lacks cython>=3 numpy", REQUIRE_IT, id="missing requirements"),
        pytest.param("make[1]: *** [Makefile:2: all] Error 2\n", "make[1]: *** [Makefile:2: all] Error 2", "",
                     id="make"),
        pytest.param("error: command 'gcc' failed: No such file or directory\n",
                     "error: command 'gcc' failed: No such file or directory", "", id="setuptools"),
        pytest.param(CALLED_PROCESS,
                     "subprocess.CalledProcessError: Command '['ninja']' returned non-zero exit status 1.", "",
                     id="nothing but the call"),
        pytest.param("fatal: unable to access 'https://x.invalid/': Could not resolve host: x.invalid\n"
                     "CMake Error at fetch.cmake:9 (message):\n  Failed to clone\n",
                     f"{NETWORK}fatal: unable to access 'https://x.invalid/': Could not resolve host: x.invalid",
                     BRING_IT, id="git asks the network"),
        pytest.param("urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>\n",
                     f"{NETWORK}urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
                     BRING_IT, id="urllib asks the network"),
        pytest.param("OSError: [Errno 101] Network is unreachable\n",
                     f"{NETWORK}OSError: [Errno 101] Network is unreachable", BRING_IT, id="a socket"),
        pytest.param("OSError: [Errno 30] Read-only file system: '/usr/lib/x'\n", f"{OUTSIDE}/usr/lib/x", STAY_INSIDE,
                     id="python writes outside"),
        pytest.param("PermissionError: [Errno 13] Permission denied: '/usr/lib/x'\n", f"{OUTSIDE}/usr/lib/x",
                     STAY_INSIDE, id="python may not write outside"),
        pytest.param("mkdir: cannot create directory \u2018/opt/x\u2019: Read-only file system\n", f"{OUTSIDE}/opt/x",
                     STAY_INSIDE, id="mkdir outside"),
        pytest.param("/bin/sh: 1: cannot create /opt/x: Read-only file system\n", f"{OUTSIDE}/opt/x", STAY_INSIDE,
                     id="shell outside"),
        pytest.param('CMake Error at cmake_install.cmake:5 (file):\n  file INSTALL cannot copy file\n'
                     '  "/srv/room/a" to\n  "/usr/local/lib/a": Read-only file system.\n',
                     f"{OUTSIDE}/usr/local/lib/a", STAY_INSIDE, id="CMake installs outside"),
        pytest.param("CMake Error at x.cmake:2 (file):\n  file failed to open for writing (Read-only file system):\n\n"
                     "    /opt/x\n", f"{OUTSIDE}/opt/x", STAY_INSIDE, id="CMake writes outside"),
        pytest.param("CMake Error at x.cmake:2 (file):\n  file cannot create directory: /usr/local/x.  Maybe need\n"
                     "  administrative privileges.\n", f"{OUTSIDE}/usr/local/x", STAY_INSIDE,
                     id="CMake makes a folder outside"),
        pytest.param("touch: cannot touch '../../x': Read-only file system\n",
                     f"{OUTSIDE}touch: cannot touch '../../x': Read-only file system", STAY_INSIDE,
                     id="outside by a relative path"),
    ],
)  # fmt: skip
def test_the_cause_is_found(tmp_path: Path, text: str, cause: str, hint: str) -> None:
    assert find(tmp_path, text) == Diagnosis(cause=cause, hint=hint, error=BuildError)


def test_a_full_disk_is_the_file_systems_fault(tmp_path: Path) -> None:
    found = find(tmp_path, f"a.c:1:1: fatal error: error writing to /srv/x.s: No space left on device\n{NINJA_STOP}")

    assert found.error is StorageError
    assert found.cause.startswith("the disk is full: a.c:1:1: fatal error:")


def test_a_sandbox_that_cannot_be_set_up_is_no_fault_of_the_tree(tmp_path: Path) -> None:
    found = find(tmp_path, "bwrap: Can't mount proc on /newroot/proc: Operation not permitted\n")

    assert (found.error, found.hint) == (SandboxError, "build with --sandbox off")


def test_a_request_that_the_build_got_over_is_a_remark(tmp_path: Path) -> None:
    found = find(tmp_path, f"curl: (6) Could not resolve host: x.invalid\n/opt/x: Permission denied\n{COMPILE_ERROR}")

    assert found.cause == "csrc/a.cpp:12:5: error: 'b' was not declared in this scope"
    assert found.remarks == (
        f"the log also shows that {OUTSIDE}/opt/x",
        f"the log also shows that {NETWORK}curl: (6) Could not resolve host: x.invalid",
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("all is well\nexcept that nothing was made\n", id="no rule"),
        pytest.param("", id="empty"),
        pytest.param("/bin/sh: 1: /srv/room/tree/gen.sh: Permission denied\n", id="a file of the build's own"),
        pytest.param('   12 |   throw("No space left on device, Read-only file system");\n      |   ^~~~~\n',
                     id="a source line that a compiler shows"),
        pytest.param("checking for error: none\nwarning: -Werror is not set\n", id="a word within a line"),
    ],
)  # fmt: skip
def test_what_no_rule_knows_is_not_guessed(tmp_path: Path, text: str) -> None:
    assert find(tmp_path, text) == Diagnosis(cause="its build ended with exit code 1")


@pytest.mark.parametrize(
    ("code", "end", "hint"),
    [
        pytest.param(3, "exit code 3", "", id="code"),
        pytest.param(-9, "signal SIGKILL", "where memory was short, use fewer jobs with --jobs", id="killed"),
        pytest.param(137, "signal SIGKILL", "where memory was short, use fewer jobs with --jobs", id="killed inside"),
        pytest.param(139, "signal SIGSEGV", "", id="crashed inside"),
    ],
)
def test_without_a_word_the_code_is_told(tmp_path: Path, code: int, end: str, hint: str) -> None:
    assert find(tmp_path, "", code) == Diagnosis(cause=f"its build ended with {end}", hint=hint)


def in_home(path: Path) -> Path | None:
    return Path("/home/user") if path.is_relative_to("/home/user") else None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("Traceback (most recent call last):\n  File\nFileNotFoundError: [Errno 2] No such file or "
                     "directory: '/home/user/.cache/x'\n", True, id="python"),
        pytest.param("a.c:1:1: fatal error: /home/user/x.h: No such file or directory\n", True, id="compiler"),
        pytest.param("a.c:1:1: fatal error: /opt/x.h: No such file or directory\n", False, id="in sight"),
        pytest.param("a.c:1:1: fatal error: x.h: No such file or directory\n", False, id="no path"),
        pytest.param("a.c:1:1: error: /home/user/x.h is too old\n", False, id="another fault"),
        pytest.param("cat: /home/user/x: No such file or directory\na.c:1:1: error: no\n", False, id="not the cause"),
    ],
)  # fmt: skip
def test_what_is_missing_where_the_sandbox_hides_it_is_told_to_be_hidden(tmp_path: Path, text: str, told: bool) -> None:
    log = tmp_path / "build.log"
    log.write_text(f"$ make\n{text}", encoding="utf-8")

    found = diagnose(log, 1, work=WORK, tree_root=TREE, hidden=in_home)

    assert found.hint == (
        "a build does not see the machine's /home/user: it may read there what `env` or `pass_env` names by its path, "
        "and write only in its own folder, HOME and TMPDIR" if told else ""
    )  # fmt: skip


def test_a_long_quote_is_cut(tmp_path: Path) -> None:
    found = find(tmp_path, f"a.cpp:1:1: error: {'x' * 1000}\n")

    assert len(found.cause) == module.QUOTE_LIMIT + 1
    assert found.cause.endswith("x…")


def test_bytes_that_are_no_text_do_not_hide_the_cause(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    log.write_bytes(b"$ make\n\xff\xfe\na.c:1:1: error: \xff\n")

    found = diagnose(log, 1, work=WORK, tree_root=TREE)

    assert found.cause == "a.c:1:1: error: \ufffd"


@pytest.mark.parametrize("where", ["beginning", "end"])
def test_of_a_very_long_log_both_ends_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.setattr(module, "READ_LIMIT", 1000)
    filler, error = "fine\n" * 1000, "a.c:1:1: error: no\n"

    found = find(tmp_path, f"{error}{filler}" if where == "beginning" else f"{filler}{error}")

    assert found.cause == "a.c:1:1: error: no"
