"""Where a stand-in for torch puts its extensions, against where the overlay's real env file wants them."""

import os
import re
import shlex
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.jit_cases import STAND_IN
from tests.verify_cases import write_files
from toolkit.envfile import Activation, render
from verify.checks.jit_extensions import PREFIX, compose_env, find_cann, missing_tools
from verify.jit_probe import flags
from verify.processes import run_limited

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def overlay(tmp_path: Path, site: Path) -> Path:
    """Make the rest of an overlay, with a user's own extension in it."""
    root = site.parent
    write_files(root / "torch_extensions" / "user's", {"lock": "", "it.o": ""})
    write_env_file(root, root / "torch_extensions")
    return root


@pytest.fixture
def check_extensions(tmp_path: Path, overlay: Path, run_check: Run) -> Run:
    """Return a function that runs the check with the stand-in for torch behaving in one way."""
    torch = write_files(tmp_path / "stand-in", STAND_IN)

    def run_one(way: str = "", **changed: Any) -> dict[str, Any]:
        environ = {"STAND_IN_WAY": way, "HOME": str(tmp_path), "TORCH_EXTENSIONS_DIR": str(tmp_path / "proof's own")}
        return run_check("jit-extensions", before=[torch], environ=environ, **{"overlay": str(overlay), **changed})

    return run_one


def write_env_file(root: Path, folder: Path | str | None) -> None:
    """Write the env file that an overlay has, but for the folder of extensions that it names."""
    variables = {"TOOLKIT_OVERLAY": str(root)} | ({} if folder is None else {"TORCH_EXTENSIONS_DIR": str(folder)})
    activation = Activation(recipe="sample", key="0" * 16, versions="1", root=root, variables=variables)
    (root / "env.sh").write_text(render("sh", activation))


def of_the_user(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in (root / "torch_extensions").rglob("*"))


USERS = ["torch_extensions/user's", "torch_extensions/user's/it.o", "torch_extensions/user's/lock"]


def test_an_extension_that_is_compiled_kept_apart_and_found_again_passes(check_extensions: Run, overlay: Path) -> None:
    record = check_extensions()

    assert record["status"] == "pass", record
    assert re.sub(r"\d\.\d s", "0.0 s", record["detail"]) == (
        f"compiled into {overlay}/torch_extensions in 0.0 s, found again in 0.0 s, not found from another folder"
    )
    evidence = record["evidence"]
    assert (evidence["folder"], evidence["cann"]) == (f"{overlay}/torch_extensions", "")
    assert Path(evidence["file"]).parts[-3:-1] == ("torch_extensions", Path(evidence["file"]).stem)
    assert set(evidence["seconds"]) == {"first", "other", "again"}


def test_nothing_of_it_stays_and_what_a_killed_run_left_goes(check_extensions: Run, overlay: Path) -> None:
    write_files(overlay / "torch_extensions" / f"{PREFIX}0123", {"lock": "", "it.o": ""})

    assert check_extensions()["status"] == "pass"

    assert of_the_user(overlay) == USERS


def test_a_folder_that_the_user_has_removed_is_made_again_by_torch(check_extensions: Run, overlay: Path) -> None:
    (overlay / "torch_extensions").rename(overlay / "gone")

    assert check_extensions()["status"] == "pass"


@pytest.mark.parametrize(
    ("way", "fault"),
    [
        pytest.param(
            "ignores the folder",
            "env.sh sets TORCH_EXTENSIONS_DIR to {folder}, torch compiled {home}/.cache/torch_extensions/{name}",
            id="folder ignored",
        ),
        pytest.param(
            "ignores the folder",
            "with TORCH_EXTENSIONS_DIR={other} torch loaded {home}/.cache/torch_extensions/{name}, made for the first",
            id="shared with another overlay",
        ),
        pytest.param("compiles each time", "a second process compiled {folder}/{name} again", id="compiled again"),
    ],
)
def test_a_torch_that_does_not_keep_to_the_folders_fails(
    check_extensions: Run, overlay: Path, tmp_path: Path, way: str, fault: str
) -> None:
    record = check_extensions(way)

    assert record["status"] == "fail", record
    name = "/".join(Path(record["evidence"]["file"]).parts[-2:])
    other = tmp_path / "jit/other/torch_extensions"
    assert fault.format(folder=overlay / "torch_extensions", home=tmp_path, other=other, name=name) in record[
        "evidence"
    ]["faults"]  # fmt: skip
    assert of_the_user(overlay) == USERS


@pytest.mark.parametrize(
    ("folder", "fault"),
    [
        pytest.param(None, "env.sh does not set TORCH_EXTENSIONS_DIR", id="not set"),
        pytest.param(
            "{tmp}/.cache/torch_extensions",
            "env.sh sets TORCH_EXTENSIONS_DIR to {tmp}/.cache/torch_extensions, which is not the overlay's own "
            "below {tmp}/overlay",
            id="the user's cache",
        ),
        pytest.param(
            "torch_extensions",
            "env.sh sets TORCH_EXTENSIONS_DIR to torch_extensions, which is not the overlay's own below {tmp}/overlay",
            id="relative",
        ),
        pytest.param(
            "{tmp}/overlay/site/ext",
            "env.sh sets TORCH_EXTENSIONS_DIR to {tmp}/overlay/site/ext, which is not the overlay's own "
            "below {tmp}/overlay",
            id="among the listed files",
        ),
        pytest.param(
            "{tmp}/overlay/link",
            "env.sh sets TORCH_EXTENSIONS_DIR to {tmp}/overlay/link, which is not the overlay's own "
            "below {tmp}/overlay",
            id="a link that leads out",
        ),
        pytest.param(
            "{tmp}/overlay/env.sh/ext",
            "{tmp}/overlay/env.sh is no folder that this user may write into: no extension could be compiled there",
            id="not writable",
        ),
    ],
)
def test_an_env_file_that_names_another_folder_fails_before_anything_is_compiled(
    check_extensions: Run, overlay: Path, tmp_path: Path, folder: str | None, fault: str
) -> None:
    (overlay / "link").symlink_to(tmp_path)
    write_env_file(overlay, folder and folder.format(tmp=tmp_path))

    record = check_extensions(cwd=overlay)

    assert (record["status"], record["detail"]) == ("fail", fault.format(tmp=tmp_path))
    assert not list((tmp_path / "jit").glob("*.log"))
    assert not list(tmp_path.rglob(f"{PREFIX}*"))


@pytest.mark.parametrize(
    ("way", "detail"),
    [
        pytest.param(
            "cannot compile",
            "the process 'first' ended with code 1: /usr/include/x.h:1:2: error: no such thing",
            id="the compiler's own words",
        ),
        pytest.param("is killed", "the process 'first' ended with code -9: it printed nothing", id="killed"),
    ],
)
def test_a_process_that_fails_says_nothing_about_the_folder(
    check_extensions: Run, overlay: Path, way: str, detail: str
) -> None:
    record = check_extensions(way)

    assert (record["status"], record["detail"]) == ("error", detail)
    assert (Path(record["evidence"]["logs"]) / "first.log").is_file()
    assert of_the_user(overlay) == USERS


def test_a_build_that_hangs_is_ended_with_all_that_it_started(
    check_extensions: Run, overlay: Path, tmp_path: Path
) -> None:
    record = check_extensions("hangs", time_limit=2.5)

    assert record["status"] == "error"
    assert re.fullmatch(r"the process 'first' did not end within \d s: it printed nothing", record["detail"])
    assert of_the_user(overlay) == USERS
    assert not is_running(int((tmp_path / "hanging").read_text()))


def test_a_side_without_an_env_file_cannot_be_judged(check_extensions: Run) -> None:
    record = check_extensions(side="base", overlay=None)

    assert (record["status"], record["detail"]) == ("error", "the base has no env.sh to source (looked in None)")


def test_an_env_file_that_does_not_activate_cannot_be_judged(check_extensions: Run, overlay: Path) -> None:
    (overlay / "env.sh").write_text("echo 'there is no overlay' >&2; return 1\n")

    record = check_extensions()

    assert (record["status"], record["detail"]) == (
        "error", f"{overlay}/env.sh cannot be sourced: there is no overlay",
    )  # fmt: skip


def test_what_compiling_needs_is_named_all_at_once_with_where_to_get_it(tmp_path: Path) -> None:
    assert list(missing_tools({"PATH": str(tmp_path), "CXX": "g++-99 -m64"})) == [
        "there is no ninja: install the Python package ninja into the target",
        "there is no C++ compiler g++-99 -m64: install g++ or clang++",
    ]


def test_the_targets_own_ninja_is_found_and_no_folder_or_cache_but_the_env_files_is_used() -> None:
    env = compose_env({"PATH": "/usr/bin", "TORCH_EXTENSIONS_DIR": "/proof", "LANG": "C"})

    assert env == {
        "PATH": f"{sysconfig.get_path('scripts')}:/usr/bin", "LANG": "C", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        "TORCH_NO_COMPILER_WRAPPER": "1", "CCACHE_DISABLE": "1",
    }  # fmt: skip


def test_cann_is_compiled_against_where_its_headers_and_its_runtime_are(tmp_path: Path) -> None:
    home = tmp_path / "a home"
    assert find_cann({}) == find_cann({"ASCEND_HOME_PATH": str(home)}) == ""

    write_files(home, {"include/acl/acl.h": "", "lib64/libascendcl.so": ""})

    assert find_cann({"ASCEND_HOME_PATH": str(home)}) == str(home)
    assert flags(str(home)) == {
        "extra_include_paths": [f"{home}/include"],
        "extra_ldflags": [shlex.quote(f"-L{home}/lib64"), "-lascendcl"],
    }
    assert flags("") == {}


def test_a_process_in_time_gives_its_code_and_its_output(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "import sys; print('said'); print('and', file=sys.stderr, flush=True); sys.exit(3)"]

    assert run_limited(argv, cwd=tmp_path, env=os.environ, log=tmp_path / "log", seconds=20) == 3
    assert sorted((tmp_path / "log").read_text().split()) == ["and", "said"]


def is_running(pid: int) -> bool:
    """Tell whether a process is still there a moment later; one that nobody has waited for yet is not."""
    for _ in range(50):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        if state == "Z":
            return False
        time.sleep(0.02)
    return True
