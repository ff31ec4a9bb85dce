"""What an installed package consists of: its files, hashed, and what is known of its name and version."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from toolkit.errors import SourceError
from toolkit.files import FileSignature, file_signature, safe_relative_path, sha256_files
from toolkit.model import Interpreter, Target
from toolkit.sources.installed.identity import Identity, identify
from toolkit.sources.installed.search import Copy
from toolkit.wheels.pack import (
    PURE_TAG,
    PackFile,
    WheelContents,
    changed_while_read,
    escape_name,
    reading_files,
    wheel_stem,
)

NATIVE = re.compile(r"\.so(\.[0-9]+)*\Z")
BYTECODE = "__pycache__"


def read_contents(copy: Copy, *, target: Target, interpreter: Interpreter) -> tuple[WheelContents, Identity]:
    """Read and hash a copy's files; what Python compiled is left out.

    Links are followed inside the package, and refused where they leave it. A package with native parts is one for the
    target, which the interpreter must be then. Raises SourceError for what cannot be packed, or changed meanwhile.
    """
    with reading_files():
        identity = identify(copy)
        found = _list_all(copy, identity)
        hashes = sha256_files(copy.place, found)
        if _list_all(copy, identity) != found or identify(copy) != identity:
            raise changed_while_read(str(copy.root))
    files = tuple(
        PackFile(name=_packed_name(name, identity), path=copy.place / name, mode=mode, sha256=hashes[name])
        for name, (_, mode) in sorted(found.items())
    )
    contents = WheelContents(
        distribution=identity.distribution,
        version=identity.version,
        tag=_tag(copy, found, target, interpreter),
        metadata=identity.metadata,
        files=files,
    )
    return contents, identity


def watched_files(copy: Copy) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the files and the folders whose change, or whose change of names, would make other contents."""
    with reading_files():
        identity = identify(copy)
        found = _list_all(copy, identity)
    files = {copy.place / name for name in found} | set(identity.files)
    folders = {folder for file in files for folder in file.parents if copy.place in folder.parents}
    return tuple(sorted(files)), (copy.place, *sorted(folders))


def _list_all(copy: Copy, identity: Identity) -> dict[str, tuple[FileSignature, int]]:
    """List what is packed by its path from the copy's place: the package, libraries bundled beside it, dist-info."""
    bundled = {copy.place / f"{name}.libs" for name in (copy.package, escape_name(identity.distribution))}
    roots = [copy.root, *(path for path in bundled if path.is_dir())]
    found = {name: _state(copy.place, name) for root in roots for name in _walk(root)}
    return found | {name: _state(copy.place, name) for name in identity.kept}


def _walk(root: Path) -> Iterator[str]:
    """Yield the files below a folder by their paths from where it lies, links followed inside it."""
    home = os.path.realpath(root)
    cut = len(str(root.parent).rstrip("/")) + 1
    pending = [(str(root), home)]
    while pending:
        folder, real = pending.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                target = _follow(entry.path, real, home) if entry.is_symlink() else f"{real}/{entry.name}"
                if not entry.is_dir():
                    yield entry.path[cut:]
                elif entry.name != BYTECODE:
                    pending.append((entry.path, target))


def _follow(link: str, folder: str, home: str) -> str:
    """Return where a link leads to, which must be inside its package, and no folder around the one it lies in."""
    target = os.path.realpath(link)
    if not os.path.exists(target):
        why = "leads nowhere"
    elif not _is_within(target, home):
        why = f"leaves the package, to {target}"
    elif _is_within(folder, target):
        why = "leads back to a folder that it lies in"
    else:
        return target
    raise SourceError(f"{link} is a link that {why}", hint="put what belongs there in its place")


def _state(place: Path, name: str) -> tuple[FileSignature, int]:
    """Return what is compared to see a change, and the mode in a wheel."""
    status = os.stat(place / name)
    if not stat.S_ISREG(status.st_mode):
        raise SourceError(f"{place / name} is no regular file", hint="remove it from the package")
    try:
        safe_relative_path(name).as_posix().encode("utf-8")
    except ValueError as fault:  # A name that is not UTF-8 among them.
        raise SourceError(f"{place} has a file that no wheel can hold: {name!r}", hint="rename it") from fault
    return file_signature(status), 0o755 if status.st_mode & 0o111 else 0o644


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _packed_name(name: str, identity: Identity) -> str:
    """Return a file's path in the wheel, whose dist-info may have another name than the one installed."""
    if name not in identity.kept:
        return name
    return f"{wheel_stem(identity.distribution, identity.version)}.dist-info/{name.partition('/')[2]}"


def _tag(copy: Copy, found: Mapping[str, object], target: Target, interpreter: Interpreter) -> str:
    """Return the wheel's tag. That a library here runs on the whole of the target's platform is not looked at."""
    native = min((name for name in found if NATIVE.search(name)), default=None)
    if native is None:
        return PURE_TAG
    if interpreter.python_tag != target.python_tag or target.platform not in interpreter.platforms:
        raise SourceError(
            f"{copy.root} has native parts ({native}), which are for {interpreter.executable}, not for {target}",
            hint="build on a machine that is the target",
        )
    return f"{target.python_tag}-{target.python_tag}-{target.platform}"
