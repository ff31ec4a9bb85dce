"""What killed builds leave behind: told from what live processes are at, by real processes and real files."""

import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.jit_cases import HEADER_SIZE, hold_lock, make_build, make_library, start_as_ninja
from toolkit.extensions import Finding, examine_extensions

STALE = "a lock, 2 h old, that no live process holds: whoever needs the extension waits for ever"
UNSEEN = "" if os.geteuid() == 0 else "; processes of other users cannot be seen"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of extensions whose path a shell would split."""
    place = tmp_path / "torch extensions"
    place.mkdir()
    return place


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return what starts a process that is killed when the test is over, and waits for its first line."""
    running: list[subprocess.Popen[str]] = []

    def begin(argv: list[str], **options: object) -> subprocess.Popen[str]:
        running.append(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, **options))  # type: ignore[call-overload]
        stream = running[-1].stdout
        assert stream is not None
        assert stream.readline() == "ready\n"
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def age(path: Path, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(path, (moment, moment))


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert examine_extensions(tmp_path / "nowhere") == ()


def test_whole_builds_are_not_reported(folder: Path) -> None:
    make_library(make_build(folder, "first") / "first.so")
    make_library(make_build(folder, "second") / "second.so")

    assert examine_extensions(folder) == ()


# --- locks -----------------------------------------------------------------------------------------------------


def test_a_lock_that_nobody_holds_is_reported_with_the_command_that_removes_it(folder: Path) -> None:
    lock = make_build(folder, "killed") / "lock"
    lock.touch()
    age(lock, 2 * 3600 + 60)

    (finding,) = examine_extensions(folder)

    assert finding == Finding(path=lock, what=STALE + UNSEEN, remedy=f"rm {shlex.quote(str(lock))}")
    subprocess.run(["sh", "-c", finding.remedy], check=True)
    assert [found.path for found in examine_extensions(folder)] == [lock.parent]  # Unfinished, and no longer locked.


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, r"\d s"),
        (100, r"10\d s"),
        (150, "2 min"),
        (7030, "117 min"),
        (7300, "2 h"),
        (200000, "2 days"),
        (-50, "0 s"),
    ],
)  # fmt: skip
def test_the_age_of_a_lock_is_told_in_a_unit_that_fits(folder: Path, seconds: float, words: str) -> None:
    lock = make_build(folder, "killed") / "lock"
    lock.touch()
    age(lock, seconds)

    (finding,) = examine_extensions(folder)

    assert re.match(f"a lock, {words} old, ", finding.what)


def test_a_lock_that_a_live_process_keeps_open_is_not_reported_until_that_is_killed(
    folder: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    lock = make_build(folder, "building") / "lock"
    holder = start(hold_lock(lock))
    assert examine_extensions(folder) == ()

    holder.kill()
    holder.wait()

    assert [finding.path for finding in examine_extensions(folder)] == [lock]


def test_a_lock_is_held_by_whatever_way_its_holder_came_to_it(
    folder: Path, tmp_path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    (tmp_path / "link").symlink_to(folder)
    start(hold_lock(tmp_path / "link" / make_build(folder, "building").name / "lock"))

    assert examine_extensions(folder) == examine_extensions(tmp_path / "link") == ()


def test_a_build_that_ends_while_it_is_looked_at_is_not_reported(folder: Path) -> None:
    build = make_build(folder, "ending")
    (build / "lock").touch()
    os.mkfifo(build / "it.so")  # Whoever examines it waits here until it is written.

    def end() -> None:
        with (build / "it.so").open("wb") as library:
            (build / "lock").unlink()
            library.write(b"part")

    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(end)
        assert examine_extensions(folder) == ()
        ended.result()


def test_the_lock_of_one_build_does_not_excuse_another(
    folder: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    start(hold_lock(make_build(folder, "building") / "lock"))
    stale = make_build(folder, "killed") / "lock"
    stale.touch()

    assert [finding.path for finding in examine_extensions(folder)] == [stale]


def test_a_build_that_ninja_is_still_at_is_not_reported_though_its_lock_is_nobodys(
    folder: Path, tmp_path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    build = make_build(folder, "orphaned")
    (build / "lock").touch()
    ninja = start(start_as_ninja(tmp_path), cwd=build, stdin=subprocess.PIPE)
    assert examine_extensions(folder) == ()

    ninja.kill()
    ninja.wait()

    assert [finding.path for finding in examine_extensions(folder)] == [build / "lock"]


def test_a_shell_that_stands_in_a_build_excuses_nothing(
    folder: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    build = make_build(folder, "killed")
    (build / "lock").touch()
    start(["sh", "-c", "echo ready; read line"], cwd=build, stdin=subprocess.PIPE)

    assert [finding.path for finding in examine_extensions(folder)] == [build / "lock"]


# --- libraries -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keep", "what"),
    [
        pytest.param(0, "an empty library", id="nothing"),
        pytest.param(3, "a library cut short: it has 3 bytes, its header alone 64", id="part of the mark"),
        pytest.param(
            HEADER_SIZE - 1, "a library cut short: it has 63 bytes, its header alone 64", id="part of the header"
        ),
        pytest.param(HEADER_SIZE, "a library cut short: it has 64 of {size} bytes", id="the header"),
        pytest.param(4096, "a library cut short: it has 4096 of {size} bytes", id="a page"),
        pytest.param(-1, "a library cut short: it has {cut} of {size} bytes", id="all but a byte"),
    ],
)
def test_a_library_cut_short_is_reported_by_its_sizes(folder: Path, keep: int, what: str) -> None:
    library = make_build(folder, "cut short") / "it.so"
    whole = make_library(library).read_bytes()
    library.write_bytes(whole[:keep])

    (finding,) = examine_extensions(folder)

    assert finding == Finding(
        path=library,
        what=what.format(size=len(whole), cut=len(whole) - 1),
        remedy=f"rm -r {shlex.quote(str(library.parent))} (the next use compiles it again)",
    )


@pytest.mark.parametrize("content", [b"\0" * 4096, b"rubbish", b"\x7fELF\x01\x01" + b"\0" * 90], ids=repr)
def test_a_file_that_is_no_library_is_reported(folder: Path, content: bytes) -> None:
    library = folder / "stray.so"
    library.write_bytes(content)

    assert examine_extensions(folder) == (
        Finding(
            path=library,
            what="a library that is none: it does not begin as a 64-bit ELF file does",
            remedy=f"rm {shlex.quote(str(library))} (the next use compiles it again)",
        ),
    )


def test_a_library_without_a_table_of_sections_is_measured_by_its_segments(folder: Path) -> None:
    library = make_library(make_build(folder, "stripped") / "it.so")
    raw = bytearray(library.read_bytes())
    raw[40:48] = bytes(8)  # e_shoff
    raw[60:62] = bytes(2)  # e_shnum
    library.write_bytes(raw)
    assert examine_extensions(folder) == ()

    library.write_bytes(raw[:2048])

    (finding,) = examine_extensions(folder)
    assert re.fullmatch(r"a library cut short: it has 2048 of \d+ bytes", finding.what)


def test_a_library_that_is_being_linked_is_not_reported(
    folder: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    build = make_build(folder, "building")
    (build / "it.so").touch()
    start(hold_lock(build / "lock"))

    assert examine_extensions(folder) == ()


def test_all_that_is_wrong_is_reported_in_the_order_of_paths(folder: Path) -> None:
    build = make_build(folder, "killed")
    for name in ("z.so", "a.so", "lock"):
        (build / name).touch()
    nested = make_build(folder, "group/deeper") / "lock"
    nested.touch()

    assert [finding.path for finding in examine_extensions(folder)] == [
        nested, build / "lock", build / "a.so", build / "z.so",
    ]  # fmt: skip


# --- what is there in part -------------------------------------------------------------------------------------


def test_objects_without_a_library_are_an_unfinished_build(folder: Path) -> None:
    build = make_build(folder, "failed")

    (finding,) = examine_extensions(folder)

    assert finding == Finding(
        path=build,
        what="an unfinished build: objects and no library; compiling failed or was killed",
        remedy=f"nothing: the next use goes on with it; to start afresh: rm -r {shlex.quote(str(build))}",
    )


def test_a_build_that_has_compiled_nothing_yet_is_not_reported(folder: Path) -> None:
    (make_build(folder, "begun") / "it.o").unlink()

    assert examine_extensions(folder) == ()


def test_what_cannot_be_read_is_reported_as_that(folder: Path) -> None:
    library = make_build(folder, "looped") / "it.so"
    library.symlink_to(library)

    (finding,) = examine_extensions(folder)

    assert (finding.path, finding.what) == (library, "cannot be read: Too many levels of symbolic links")
    assert finding.remedy == f"make it readable: chmod u+rwX {shlex.quote(str(library))}"


def test_a_folder_that_cannot_be_listed_is_reported_as_that(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    (finding,) = examine_extensions(tmp_path / "file")

    assert (finding.path, finding.what) == (tmp_path / "file", "cannot be read: Not a directory")


def test_nothing_is_changed(folder: Path) -> None:
    build = make_build(folder, "killed")
    (build / "lock").touch()
    (build / "it.so").touch()
    before = sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*"))

    examine_extensions(folder)

    assert sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*")) == before
