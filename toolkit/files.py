"""Files, written so that nothing half-made ever has a final name and nothing leaves its root.

Kept light: what a no-op run needs imports nothing heavy.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO

from toolkit.errors import StorageError

CHUNK = 1 << 20
PART_PREFIX = ".part-"

AT_FDCWD = -100
RENAME_EXCHANGE = 2
"""renameat2(2): `linux/fcntl.h` and `linux/fs.h`."""

STORAGE_ERRNOS = {
    errno.ENOSPC: "cannot write: {} is full",
    errno.EDQUOT: "cannot write: {} is over its quota",
    errno.EROFS: "cannot write: {} is read-only",
    errno.EFBIG: "cannot write: {} would be larger than a file may be here",
    errno.EACCES: "cannot use {}: that is not permitted",
    errno.EPERM: "cannot use {}: that is not permitted",
    errno.ENOTDIR: "cannot use {}: it is not a folder",
    errno.EISDIR: "cannot use {}: it is a folder",
    errno.EEXIST: "cannot make {}: something else has that name",
    errno.ENAMETOOLONG: "cannot use {}: the name is too long",
    errno.ELOOP: "cannot use {}: its links lead nowhere",
    errno.EIO: "cannot read or write {}: the disk has a fault",
    errno.EXDEV: "cannot move {}: what is to take its place lies on another file system",
}

FileSignature = tuple[int, int, int, int]
"""Size in bytes, mtime and ctime in nanoseconds, inode number: equal as long as nobody wrote to the file."""


def sha256_bytes(raw: bytes) -> str:
    """Return the sha256 of some bytes, in hex."""
    return hashlib.sha256(raw).hexdigest()


def sha256_file(path: Path | str) -> str:
    """Return the sha256 of a file's bytes, in hex, in constant memory."""
    digest = hashlib.sha256()
    buffer = bytearray(CHUNK)
    view = memoryview(buffer)
    with open(path, "rb", buffering=0) as stream:
        while count := stream.readinto(buffer):
            digest.update(view[:count])
    return digest.hexdigest()


def sha256_files(root: Path, paths: Iterable[str], *, threads: int | None = None) -> dict[str, str]:
    """Hash many files below `root`, side by side; raise FileNotFoundError for one that is missing.

    Threads suffice: hashing releases the interpreter's lock. The files are dealt out largest first, so that one
    large library does not finish last.
    """
    names = sorted(paths, key=lambda name: -os.stat(root / name).st_size)
    count = threads or available_cores()
    if count < 2 or len(names) < 2:
        return {name: sha256_file(root / name) for name in names}
    from concurrent.futures import ThreadPoolExecutor

    def hash_share(share: list[str]) -> list[tuple[str, str]]:
        base = str(root)
        return [(name, sha256_file(f"{base}/{name}")) for name in share]

    shares = _balance(root, names, count)
    with ThreadPoolExecutor(len(shares)) as pool:
        return dict(pair for done in pool.map(hash_share, shares) for pair in done)


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def copy_hashed(source: IO[bytes], target: Path, *, mode: int = 0o644) -> tuple[str, int]:
    """Copy a stream into a new file and return the sha256 and size of what was written."""
    digest = hashlib.sha256()
    size = 0
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
        while chunk := source.read(CHUNK):
            digest.update(chunk)
            size += len(chunk)
            stream.write(chunk)
    return digest.hexdigest(), size


def write_atomic(path: Path, content: str | bytes, *, mode: int = 0o644) -> None:
    """Write a file aside and move it into place; on failure the old one stays as it was."""
    raw = content.encode("utf-8") if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    import tempfile

    descriptor, aside = tempfile.mkstemp(prefix=PART_PREFIX, dir=path.parent)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(raw)
        os.chmod(aside, mode)
        os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(aside)
        raise


def write_output(path: Path, content: str) -> None:
    """Write what was asked for by name: into a device or a pipe itself, which no file may replace, else as a file."""
    if path.exists() and not path.is_file():
        path.write_text(content, encoding="utf-8")
    else:
        write_atomic(path, content)


def swap_symlink(link: Path, target: str) -> None:
    """Point a symlink at a relative target in one step; readers see the old one or the new one."""
    aside = link.with_name(f"{PART_PREFIX}{link.name}-{os.getpid()}")
    aside.unlink(missing_ok=True)
    try:
        os.symlink(target, aside)
        os.replace(aside, link)
    finally:
        aside.unlink(missing_ok=True)


@contextlib.contextmanager
def staged_directory(final: Path) -> Iterator[Path]:
    """Yield a folder beside `final` that becomes it when the block ends well, and is removed when it does not.

    The caller holds a lock on `final`: the aside name is fixed, so that what a killed run left there is found and
    removed by the next.
    """
    aside = final.with_name(PART_PREFIX + final.name)
    remove_tree(aside)
    aside.mkdir(parents=True)
    try:
        yield aside
        os.rename(aside, final)
    except BaseException:
        remove_tree(aside)
        raise


def exchange_directories(new: Path, current: Path) -> None:
    """Put the folder `new` in the place of `current`, and the old one where `new` was, in one step.

    Whoever looks sees the old folder or the new one, and a process that is killed leaves one of the two. Where the
    kernel or the file system cannot exchange (an NFS of old), the old one is moved away first: `recover_directory`
    puts it back if that is where the process was killed.
    """
    if _exchange(new, current):
        return
    leftover = _displaced(current)
    remove_tree(leftover)
    os.rename(current, leftover)
    os.rename(new, current)
    os.rename(leftover, new)


def recover_directory(current: Path) -> bool:
    """Put back a folder that an exchange was killed over; return whether that was needed. The caller holds its lock."""
    leftover = _displaced(current)
    if not leftover.exists():
        return False
    if os.path.lexists(current):  # The new one has its place: only the tidying was left to do.
        remove_tree(leftover)
        return False
    os.rename(leftover, current)
    return True


def _displaced(current: Path) -> Path:
    return current.with_name(f"{PART_PREFIX}{current.name}")


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two names with renameat2(2); False where this system cannot."""
    import ctypes

    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(AT_FDCWD, os.fsencode(first), AT_FDCWD, os.fsencode(second), RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), str(first), None, str(second))


@contextlib.contextmanager
def temporary_directory(prefix: str) -> Iterator[Path]:
    """Yield a private folder under the system's temporary one, removed afterwards; StorageError where there is none."""
    import tempfile

    try:
        path = Path(tempfile.mkdtemp(prefix=prefix))
    except FileNotFoundError as fault:  # What tempfile raises where no candidate can be written.
        raise StorageError(
            f"there is no temporary folder: {fault.strerror}", hint="set TMPDIR to a folder that can be written"
        ) from fault
    try:
        yield path
    finally:
        remove_tree(path)


def remove_tree(path: Path) -> None:
    """Remove a folder with all below it, read-only folders included; nothing there is no error."""
    import shutil

    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        try:
            shutil.rmtree(path)
        except PermissionError:
            _make_removable(path)
            shutil.rmtree(path)


def safe_relative_path(name: str) -> PurePosixPath:
    """Return an archive member's or patch's path, or raise ValueError saying why it could leave its root."""
    parts = name.split("/")
    if not name or "\0" in name:
        raise ValueError(f"{name!r} is not a path")
    if name.startswith("/") or "\\" in name or (len(name) > 1 and name[1] == ":"):
        raise ValueError(f"{name!r} is not a relative POSIX path")
    if ".." in parts:
        raise ValueError(f"{name!r} leaves its folder through '..'")
    if "." in parts or "" in parts[:-1]:
        raise ValueError(f"{name!r} is not in normal form")
    if any(part.lower() == ".git" for part in parts):
        raise ValueError(f"{name!r} reaches into a '.git' folder")
    return PurePosixPath(name)


def file_signature(status: os.stat_result) -> FileSignature:
    """Return what changes when anybody writes to the file, renames over it, or sets its times."""
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def tree_signatures(root: str) -> dict[str, FileSignature]:
    """Return the signature of every file below `root` by its path from there; symlinks are not followed."""
    found: dict[str, FileSignature] = {}
    cut = len(root.rstrip("/")) + 1
    pending = [root.rstrip("/")]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    found[entry.path[cut:]] = file_signature(entry.stat(follow_symlinks=False))
    return found


def storage_error(fault: OSError) -> StorageError | None:
    """Turn a refusal of the file system into the error that names the place; None for any other fault."""
    why = STORAGE_ERRNOS.get(fault.errno or 0)
    if why is None:
        return None
    place = fault.filename2 or fault.filename or "the file system"
    return StorageError(
        f"{why.format(place)} ({fault.strerror})",
        hint="free or choose another place with --store and --overlays; nothing half-made was left under a final name",
    )


def _make_removable(root: Path) -> None:
    """Let the folders of a tree be listed and emptied; what lies outside is left alone, behind a symlink too."""
    os.chmod(root, stat.S_IRWXU)
    for folder, names, _ in os.walk(root):
        for path in (os.path.join(folder, name) for name in names):
            if not os.path.islink(path):
                os.chmod(path, stat.S_IRWXU)


def _balance(root: Path, names: list[str], count: int) -> list[list[str]]:
    """Deal files to `count` shares of about equal bytes; a file also costs about 64 KiB of opening."""
    shares: list[list[str]] = [[] for _ in range(min(count, len(names)))]
    loads = [0] * len(shares)
    sizes: Mapping[str, int] = {name: os.stat(root / name).st_size for name in names}
    for name in names:
        least = loads.index(min(loads))
        shares[least].append(name)
        loads[least] += sizes[name] + (64 << 10)
    return shares
