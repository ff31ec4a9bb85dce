"""A release wheel with its patches in it: everything else as it was, and true about itself.

Untouched members keep their compressed bytes. What changes: the patched files, the version (METADATA, the names of
dist-info and wheel, the package's own version file), and RECORD, which is written anew from what is there.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from toolkit.errors import RepackError
from toolkit.files import PART_PREFIX, sha256_bytes, sha256_file
from toolkit.model import ChangedFile, Key, PatchedTree, Wheel
from toolkit.wheels.archive import WheelArchive, open_wheel
from toolkit.wheels.record import RECORD, SIGNATURES, FileDigest, format_record, record_problems
from toolkit.wheels.stored import StoredWheel
from toolkit.wheels.versions import patched_version
from toolkit.wheels.zipwrite import ZipWriter

LOGIC_VERSION = "2"
"""Part of every wheel's key: raise it when the same inputs would give other bytes."""

VERSION_LINE = re.compile(rb"(?m)^(__version__\s*=\s*)(['\"])([^'\"\r\n]*)\2")
METADATA_VERSION = re.compile(rb"(?mi)^Version:[^\r\n]*")
VERSION_FILES = ("version.py", "__init__.py")
"""Where a package says its version as a literal."""

OWN_FILES = ("WHEEL", RECORD)
"""What no patch may change: the one names the tags that the file name has too, the other is written here."""


COMPILED_SUFFIXES = (".so", ".a", ".o")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Item:
    """One member of the new wheel, taken over from the member `old`, or new where there is `content`."""

    name: str
    old: str
    mode: int
    content: bytes | None = None


def repack_wheel(patched: PatchedTree, *, key: Key, import_name: str, into: Path) -> StoredWheel:
    """Write the patched wheel into `into` and return it; the same inputs give the same bytes.

    A base that no patch went into is copied as it is, version and all; one whose patches are in it already (they were
    built in) gets their version. `findings` tells where upstream's RECORD was
    wrong: pip does not check it and the base is pinned by its own hash, so that is put right and no reason to refuse.
    Raises RepackError for a change that a release wheel cannot take; nothing is left in `into` then.
    """
    base = patched.source.base
    patches = tuple(applied.name for applied in patched.applied if applied.status != "upstream")
    with open_wheel(base.path) as archive:
        if patched.changed or patches:
            require_repackable(patched, archive)
            version = patched_version(archive.metadata.version, len(patches), key.short)
            path = into / wheel_file_name(base.file, version)
            items, findings = _plan_items(archive, patched, version, import_name)
            sha256, problems = _write_wheel(path, archive, items, _dist_info(archive, version))
            findings += [f"upstream's RECORD was put right: {problem}" for problem in problems]
        else:
            version, path = archive.metadata.version, into / base.file
            sha256 = _copy_wheel(base.path, path)
            findings = [f"upstream's RECORD is wrong, and kept: {problem}" for problem in archive.verify_record()]
    wheel = Wheel(
        component=base.component,
        distribution=base.distribution,
        import_name=import_name,
        version=version,
        path=path,
        sha256=sha256,
        key=key.digest,
        patches=patches,
    )
    return StoredWheel(wheel=wheel, key=key, applied=patched.applied, findings=tuple(findings))


def require_repackable(patched: PatchedTree, archive: WheelArchive) -> None:
    """Raise RepackError naming every change that a release wheel cannot take.

    A source file that the wheel carries may change where nothing in the wheel was compiled: it is compiled when used.
    """
    own = {f"{archive.dist_info}/{name}" for name in OWN_FILES}
    sources: frozenset[str] = frozenset() if has_compiled(archive.members) else frozenset(archive.members)
    native = [one.path for one in patched.changed if one.part == "native" and one.path not in sources]
    reasons = [f"{_patch_of(patched, path)} changes native file {path!r}" for path in native]
    if reasons:
        raise RepackError(
            f"{reasons[0]}; a release wheel cannot take it",
            hint="use a recipe with a git base, which builds from source",
            details=reasons,
        )
    for path in (changed.path for changed in patched.changed if changed.path in own):
        raise RepackError(
            f"{_patch_of(patched, path)} changes {path!r}, which the wheel keeps about itself",
            hint="leave that file out of the patch",
        )


def has_compiled(members: Iterable[str]) -> bool:
    """Whether a wheel holds anything compiled; in one that does not, C++ files are data that is shipped."""
    return any(name.endswith(COMPILED_SUFFIXES) or ".so." in name for name in members)


def wheel_file_name(file: str, version: str) -> str:
    """Return a wheel's file name with another version in it; its tags stay."""
    parts = file.removesuffix(".whl").split("-")
    if not file.endswith(".whl") or len(parts) not in (5, 6):
        raise RepackError(f"{file!r} is no wheel's file name", hint="expected name-version-python-abi-platform.whl")
    return "-".join([parts[0], version, *parts[2:]]) + ".whl"


def _plan_items(
    archive: WheelArchive, patched: PatchedTree, version: str, import_name: str
) -> tuple[list[_Item], list[str]]:
    """Decide every member but RECORD, in order: by name, dist-info last."""
    info = archive.dist_info
    changed = {file.path: file for file in patched.changed}
    unsigned = {f"{info}/{name}" for name in (RECORD, *SIGNATURES)}
    names = [name for name in {*archive.members, *changed} - unsigned if name not in changed or changed[name].sha256]
    contents = {name: _changed_content(patched.root, changed[name]) for name in names if name in changed}
    metadata = f"{info}/METADATA"
    contents[metadata] = _with_metadata_version(contents.get(metadata) or archive.read(metadata), version)
    package = import_name.replace(".", "/")
    findings = [
        finding
        for name in VERSION_FILES
        for finding in _set_own_version(archive, contents, names, f"{package}/{name}", version)
    ]
    findings += [
        f"{name} was dropped: it signs upstream's RECORD"
        for name in (f"{info}/{signature}" for signature in SIGNATURES)
        if name in archive.members
    ]
    items = [
        _Item(
            name=_renamed(archive, name, version),
            old=name,
            mode=_mode(patched.root / name) if name in changed else archive.members[name].mode,
            content=contents.get(name),
        )
        for name in names
    ]
    new_info = _dist_info(archive, version) + "/"
    return sorted(items, key=lambda item: (item.name.startswith(new_info), item.name)), findings


def _write_wheel(path: Path, archive: WheelArchive, items: Sequence[_Item], dist_info: str) -> tuple[str, list[str]]:
    """Write the members and a true RECORD; return the wheel's sha256 and what the old RECORD had wrong.

    RECORD comes last, so every member is hashed on other threads while the bytes are taken over.
    """
    with _made_aside(path) as aside, open(aside, "wb", buffering=1 << 20) as stream, ThreadPoolExecutor(1) as pool:
        hashing = pool.submit(archive.digests, archive.members)
        writer = ZipWriter(stream)
        for item in items:
            _add(writer, archive, item)
        old = hashing.result()
        own = f"{dist_info}/{RECORD}"
        writer.add_stored(own, format_record(_digests(items, old), own).encode("utf-8"), mode=0o644)
        return writer.finish(), record_problems(archive.record, old, archive.dist_info)


def _add(writer: ZipWriter, archive: WheelArchive, item: _Item) -> None:
    if item.content is not None:
        writer.add_stored(item.name, item.content, mode=item.mode)
        return
    member = archive.members[item.old]
    writer.add_raw(
        item.name,
        archive.raw_pieces(item.old),
        crc=member.crc,
        size=member.size,
        compressed_size=member.compressed_size,
        method=member.method,
        mode=item.mode,
    )


def _digests(items: Sequence[_Item], old: Mapping[str, FileDigest]) -> dict[str, FileDigest]:
    return {
        item.name: old[item.old] if item.content is None else (sha256_bytes(item.content), len(item.content))
        for item in items
    }


def _copy_wheel(source: Path, path: Path) -> str:
    with _made_aside(path) as aside:
        shutil.copyfile(source, aside)
        return sha256_file(aside)


@contextlib.contextmanager
def _made_aside(path: Path) -> Iterator[Path]:
    """Yield a name that is moved to `path` when the block ends well, and removed when it does not."""
    aside = path.with_name(PART_PREFIX + path.name)
    try:
        yield aside
        aside.replace(path)
    except OSError as fault:
        fault.filename = fault.filename or str(path)
        raise
    finally:
        aside.unlink(missing_ok=True)


def _changed_content(root: Path, changed: ChangedFile) -> bytes:
    content = (root / changed.path).read_bytes()
    if sha256_bytes(content) != changed.sha256:
        raise RepackError(
            f"{changed.path!r} is not what the series made of it", hint="something else writes to the tree"
        )
    return content


def _with_metadata_version(metadata: bytes, version: str) -> bytes:
    """Set the version in METADATA's headers; whatever follows the first empty line is the description."""
    return METADATA_VERSION.sub(b"Version: " + version.encode("ascii"), metadata, count=1)


def _set_own_version(
    archive: WheelArchive, contents: dict[str, bytes], names: Sequence[str], path: str, version: str
) -> list[str]:
    """Put the new version into the package's own version file if that has the base's; tell if it has another."""
    if path not in names:
        return []
    content = contents.get(path) or archive.read(path)
    found = VERSION_LINE.search(content)
    if found is None:
        return []
    own = found[3].decode("utf-8", "replace")
    if not _is_same_version(own, archive.metadata.version):
        return [f"{path} says {own!r} where METADATA says {archive.metadata.version!r}; it was left so"]
    start, end = found.span(3)
    contents[path] = content[:start] + version.encode("ascii") + content[end:]
    return []


def _is_same_version(one: str, other: str) -> bool:
    try:
        return Version(one) == Version(other)
    except InvalidVersion:
        return False


def _renamed(archive: WheelArchive, name: str, version: str) -> str:
    """Return a member's name in the new wheel: the folders that carry the version get the new one."""
    top, slash, rest = name.partition("/")
    stem = archive.dist_info.removesuffix(".dist-info")
    if slash and top in (f"{stem}.dist-info", f"{stem}.data"):
        return f"{_stem(archive, version)}{top.removeprefix(stem)}/{rest}"
    return name


def _dist_info(archive: WheelArchive, version: str) -> str:
    return f"{_stem(archive, version)}.dist-info"


def _stem(archive: WheelArchive, version: str) -> str:
    return f"{archive.dist_info.removesuffix('.dist-info').rpartition('-')[0]}-{version}"


def _mode(path: Path) -> int:
    return 0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644


def _patch_of(patched: PatchedTree, path: str) -> str:
    for patch in patched.series.patches:
        if any(path in (change.path, change.old_path) for change in patch.changes):
            return f"patch {patch.name}"
    return "a patch"
