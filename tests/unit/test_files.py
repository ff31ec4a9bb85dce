"""Files: nothing half-made has a final name, nothing leaves its root."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import toolkit
from tests.limits import file_size_limit, ordinary_user
from toolkit.errors import StorageError
from toolkit.files import (
    CHUNK,
    copy_hashed,
    file_signature,
    remove_tree,
    safe_relative_path,
    sha256_bytes,
    sha256_file,
    sha256_files,
    staged_directory,
    storage_error,
    swap_symlink,
    temporary_directory,
    tree_signatures,
    write_atomic,
    write_output,
)
from toolkit.process import run

# --- paths -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["a", "a/b.py", "a/", "..a/b..", "a/...", ".gitignore", "a/.github/b", "a.git/b", "git/b", "with space/ö"],
)  # fmt: skip
def test_a_path_that_stays_below_its_root_is_taken(name: str) -> None:
    assert str(safe_relative_path(name)) == name.rstrip("/")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        pytest.param("", "'' is not a path", id="empty"),
        pytest.param("a\0b", "'a\\x00b' is not a path", id="nul"),
        pytest.param("/etc/passwd", "'/etc/passwd' is not a relative POSIX path", id="absolute"),
        pytest.param("//a", "'//a' is not a relative POSIX path", id="double slash"),
        pytest.param("a\\b", "'a\\\\b' is not a relative POSIX path", id="backslash"),
        pytest.param("..\\a", "'..\\\\a' is not a relative POSIX path", id="backslash after dots"),
        pytest.param("C:a", "'C:a' is not a relative POSIX path", id="drive"),
        pytest.param("..", "'..' leaves its folder through '..'", id="parent"),
        pytest.param("../a", "'../a' leaves its folder through '..'", id="parent first"),
        pytest.param("a/../../b", "'a/../../b' leaves its folder through '..'", id="parent inside"),
        pytest.param("a/..", "'a/..' leaves its folder through '..'", id="parent last"),
        pytest.param(".", "'.' is not in normal form", id="dot"),
        pytest.param("./a", "'./a' is not in normal form", id="dot first"),
        pytest.param("a/./b", "'a/./b' is not in normal form", id="dot inside"),
        pytest.param("a//b", "'a//b' is not in normal form", id="empty part"),
        pytest.param(".git", "'.git' reaches into a '.git' folder", id="git"),
        pytest.param(".git/hooks/x", "'.git/hooks/x' reaches into a '.git' folder", id="below git"),
        pytest.param("a/.GIT/config", "'a/.GIT/config' reaches into a '.git' folder", id="git in capitals inside"),
    ],
)
def test_a_path_that_could_leave_its_root_is_refused(name: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}$"):
        safe_relative_path(name)


# --- hashes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 7])
def test_a_file_has_the_hash_of_all_its_bytes(tmp_path: Path, size: int) -> None:
    raw = bytes(range(256)) * (size // 256 + 1)
    (tmp_path / "file").write_bytes(raw[:size])

    assert sha256_file(tmp_path / "file") == sha256_bytes(raw[:size]) == hashlib.sha256(raw[:size]).hexdigest()


@pytest.mark.parametrize("threads", [None, 1, 2, 3, 8, 100])
def test_many_files_have_the_same_hashes_for_any_number_of_threads(tmp_path: Path, threads: int | None) -> None:
    contents = {f"d{number % 3}/f{number}": os.urandom(number * 997 % 5000) for number in range(40)}
    contents |= {"large": os.urandom(CHUNK + 1), "empty": b""}
    for name, raw in contents.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(raw)

    found = sha256_files(tmp_path, iter(contents), threads=threads)

    assert found == {name: hashlib.sha256(raw).hexdigest() for name, raw in contents.items()}


def test_no_files_have_no_hashes(tmp_path: Path) -> None:
    assert sha256_files(tmp_path, []) == {}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "there").touch()

    with pytest.raises(FileNotFoundError, match="gone"):
        sha256_files(tmp_path, ["there", "gone"], threads=2)


def test_a_copy_has_the_hash_and_size_of_what_was_written(tmp_path: Path) -> None:
    raw = os.urandom(CHUNK + 3)

    digest, size = copy_hashed(io.BytesIO(raw), tmp_path / "copy", mode=0o755)

    assert (tmp_path / "copy").read_bytes() == raw
    assert (digest, size) == (hashlib.sha256(raw).hexdigest(), len(raw))
    assert (tmp_path / "copy").stat().st_mode & 0o700 == 0o700


@pytest.mark.parametrize("make", [Path.touch, lambda path: path.symlink_to("elsewhere")], ids=["file", "dangling link"])
def test_a_copy_never_goes_over_or_through_what_is_there(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "copy")

    with pytest.raises(FileExistsError):
        copy_hashed(io.BytesIO(b"x"), tmp_path / "copy")

    assert [path.name for path in tmp_path.iterdir()] == ["copy"]


# --- writing in one step ---------------------------------------------------------------------------------------


def test_write_atomic_makes_the_folder_and_sets_the_mode(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a" / "b" / "file", "µ\n", mode=0o600)

    assert (tmp_path / "a" / "b" / "file").read_bytes() == b"\xc2\xb5\n"
    assert (tmp_path / "a" / "b" / "file").stat().st_mode & 0o777 == 0o600


def test_write_atomic_replaces_the_file_and_not_what_a_link_points_to(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("other")
    (tmp_path / "file").symlink_to("other")

    write_atomic(tmp_path / "file", b"new")

    assert (tmp_path / "other").read_text() == "other"
    assert (tmp_path / "file").read_text() == "new"


def test_write_output_replaces_a_file_but_no_pipe(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        for name in ("file", "pipe", "link"):
            write_output(tmp_path / name, f"µ {name}\n")
        assert os.read(reader, 100).decode() == "µ pipe\nµ link\n"
    finally:
        os.close(reader)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "µ file\n"
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()


def test_write_atomic_leaves_the_old_file_when_the_disk_refuses(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")

    with file_size_limit(1000), pytest.raises(OSError, match="File too large"):
        write_atomic(tmp_path / "file", b"n" * 2000)

    assert (tmp_path / "file").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_write_atomic_leaves_nothing_when_the_name_is_taken_by_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()

    with pytest.raises(IsADirectoryError):
        write_atomic(tmp_path / "file", "new")

    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_swap_symlink_is_never_seen_absent(tmp_path: Path) -> None:
    link, seen, stop = tmp_path / "current", set[str](), threading.Event()
    swap_symlink(link, "a")

    def read() -> None:
        while not stop.is_set():
            try:
                seen.add(os.readlink(link))
            except OSError as fault:
                seen.add(type(fault).__name__)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(300):
        swap_symlink(link, "ab"[number % 2])
    stop.set()
    reader.join()

    assert seen
    assert seen <= {"a", "b"}
    assert [path.name for path in tmp_path.iterdir()] == ["current"]


def test_swap_symlink_is_there_before_each_of_its_steps(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from toolkit.files import swap_symlink\n"
        "link = Path(sys.argv[1])\n"
        "swap_symlink(link, 'a')\n"
        "sys.addaudithook(lambda event, _: event.startswith('os.') and print(event, os.readlink(link)))\n"
        "swap_symlink(link, 'b')\n"
    )
    env = {"PYTHONPATH": str(Path(toolkit.__file__).parents[1])}

    done = run([sys.executable, "-c", code, tmp_path / "current"], cwd=tmp_path, env=env)

    assert {line.split()[1] for line in done.stdout.splitlines()} == {"a", "b"}
    assert "os.rename a" in done.stdout.splitlines()


def test_swap_symlink_leaves_nothing_when_the_name_is_taken_by_a_folder(tmp_path: Path) -> None:
    (tmp_path / "current").mkdir()

    with pytest.raises(IsADirectoryError):
        swap_symlink(tmp_path / "current", "a")

    assert [path.name for path in tmp_path.iterdir()] == ["current"]


# --- folders made aside ----------------------------------------------------------------------------------------


def test_a_staged_folder_gets_its_name_when_it_is_whole(tmp_path: Path) -> None:
    final = tmp_path / "kinds" / "final"

    with staged_directory(final) as aside:
        (aside / "file").write_text("x")
        assert not final.exists()

    assert [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*"))] == [
        "kinds", "kinds/final", "kinds/final/file",
    ]  # fmt: skip


@pytest.mark.parametrize("fault", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_staged_folder_is_gone_when_the_work_fails(tmp_path: Path, fault: BaseException) -> None:
    def work() -> None:
        with staged_directory(tmp_path / "final") as aside:
            (aside / "file").write_text("x")
            raise fault

    with pytest.raises(type(fault)):
        work()

    assert list(tmp_path.iterdir()) == []


def test_a_staged_folder_begins_empty_after_a_killed_run(tmp_path: Path) -> None:
    (tmp_path / ".part-final").mkdir()
    (tmp_path / ".part-final" / "leftover").touch()

    with staged_directory(tmp_path / "final") as aside:
        assert list(aside.iterdir()) == []

    assert [path.name for path in tmp_path.iterdir()] == ["final"]


def test_a_staged_folder_does_not_replace_another(tmp_path: Path) -> None:
    (tmp_path / "final").mkdir()
    (tmp_path / "final" / "old").touch()

    with pytest.raises(OSError, match="not empty"), staged_directory(tmp_path / "final") as aside:
        (aside / "new").touch()

    assert [path.name for path in tmp_path.iterdir()] == ["final"]
    assert [path.name for path in (tmp_path / "final").iterdir()] == ["old"]


def test_a_temporary_folder_is_private_and_removed_whatever_happens() -> None:
    def work() -> None:
        with temporary_directory("toolkit-test-") as folder:
            found.append(folder)
            assert folder.stat().st_mode & 0o777 == 0o700
            (folder / "file").touch()
            raise RuntimeError

    found: list[Path] = []
    with pytest.raises(RuntimeError):
        work()

    assert not found[0].exists()


# --- removing --------------------------------------------------------------------------------------------------


def test_removing_nothing_is_no_error(tmp_path: Path) -> None:
    remove_tree(tmp_path / "none")


def test_a_file_is_removed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    remove_tree(tmp_path / "file")

    assert list(tmp_path.iterdir()) == []


def test_a_link_is_removed_and_not_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "link").symlink_to("kept")
    (tmp_path / "dangling").symlink_to("none")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "kept")

    for name in ("link", "dangling", "tree"):
        remove_tree(tmp_path / name)

    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "file"]


def test_read_only_and_unreadable_folders_are_removed(open_folder: Path) -> None:
    with ordinary_user():
        tree = open_folder / "tree"
        (tree / "a" / "b").mkdir(parents=True)
        (tree / "a" / "b" / "file").touch()
        (tree / "a" / "b").chmod(0o555)
        (tree / "a").chmod(0o000)
        tree.chmod(0o500)

        remove_tree(tree)

    assert list(open_folder.iterdir()) == []


def test_modes_outside_the_tree_stay_as_they_are(open_folder: Path) -> None:
    with ordinary_user():
        parent, outside = open_folder / "parent", open_folder / "outside"
        (parent / "tree").mkdir(parents=True)
        outside.mkdir()
        outside.chmod(0o555)
        (parent / "tree" / "link").symlink_to(outside)
        (parent / "tree").chmod(0o555)
        parent.chmod(0o555)

        with pytest.raises(PermissionError):
            remove_tree(parent / "tree")

        assert [path.stat().st_mode & 0o777 for path in (parent, outside)] == [0o555, 0o555]


# --- signatures ------------------------------------------------------------------------------------------------


def test_the_signatures_of_a_tree_name_every_file_and_follow_no_link(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").touch()
    (root / "file").write_text("four")
    (root / "sub" / "file").touch()
    (root / "link").symlink_to("../outside")

    found = tree_signatures(f"{root}/")

    assert set(found) == {"file", "sub/file", "link"}
    assert found["file"] == file_signature((root / "file").stat())
    assert found["file"][0] == 4


def _write(path: Path) -> None:
    path.write_text("new!")


def _replace(path: Path) -> None:
    path.with_name("other").write_text("same")
    os.utime(path.with_name("other"), ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    os.replace(path.with_name("other"), path)


def _write_and_set_the_time_back(path: Path) -> None:
    before = path.stat()
    path.write_text("evil")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    "change", [_write, _replace, _write_and_set_the_time_back], ids=lambda change: change.__name__.strip("_")
)
def test_a_signature_changes_when_a_file_is_changed(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = tmp_path / "file"
    path.write_text("same")
    os.utime(path, ns=(1, 1))
    before = file_signature(path.stat())

    change(path)

    assert file_signature(path.stat()) != before


# --- refusals of the file system -------------------------------------------------------------------------------

HINT = "free or choose another place with --store and --overlays; nothing half-made was left under a final name"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        pytest.param(OSError(errno.ENOSPC, "No space left on device"),
                     "cannot write: the file system is full (No space left on device)", id="full"),
        pytest.param(OSError(errno.EDQUOT, "Disk quota exceeded", "/store/x"),
                     "cannot write: /store/x is over its quota (Disk quota exceeded)", id="quota"),
        pytest.param(OSError(errno.EROFS, "Read-only file system", "/store"),
                     "cannot write: /store is read-only (Read-only file system)", id="read-only"),
        pytest.param(OSError(errno.EACCES, "Permission denied", "/a", None, "/b"),
                     "cannot use /b: that is not permitted (Permission denied)", id="the second name of a rename"),
        pytest.param(OSError(errno.EFBIG, "File too large", "/store/x"),
                     "cannot write: /store/x would be larger than a file may be here (File too large)", id="too large"),
        pytest.param(OSError(errno.ENOTDIR, "Not a directory", "/file/x"),
                     "cannot use /file/x: it is not a folder (Not a directory)", id="below a file"),
        pytest.param(OSError(errno.EISDIR, "Is a directory", "/x"),
                     "cannot use /x: it is a folder (Is a directory)", id="a folder in a file's place"),
        pytest.param(OSError(errno.EEXIST, "File exists", "/x"),
                     "cannot make /x: something else has that name (File exists)", id="a file in a folder's place"),
        pytest.param(OSError(errno.ENAMETOOLONG, "File name too long", "/xx"),
                     "cannot use /xx: the name is too long (File name too long)", id="long name"),
    ],
)  # fmt: skip
def test_a_refusal_becomes_an_error_that_names_the_place(fault: OSError, message: str) -> None:
    found = storage_error(fault)

    assert isinstance(found, StorageError)
    assert (found.message, found.hint) == (message, HINT)


@pytest.mark.parametrize("fault", [FileNotFoundError(errno.ENOENT, "gone", "x"), OSError("odd")], ids=["other", "none"])
def test_another_fault_is_no_refusal(fault: OSError) -> None:
    assert storage_error(fault) is None


def test_a_machine_without_a_temporary_folder_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(StorageError) as raised, temporary_directory("toolkit-"):
        pass
    assert raised.value.message == "there is no temporary folder: No such file or directory"
    assert raised.value.hint == "set TMPDIR to a folder that can be written"
