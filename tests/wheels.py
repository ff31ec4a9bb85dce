"""Small wheels for tests: well-formed by default, wrong in exactly the way that a test asks for."""

from __future__ import annotations

import base64
import hashlib
import stat
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from toolkit.files import sha256_file
from toolkit.model import (
    ChangedFile,
    ChangeKind,
    FetchedBase,
    FileChange,
    Part,
    Patch,
    PatchedTree,
    Series,
    SourceTree,
    Target,
    Wheel,
)

Content = str | bytes

CP311 = Target(python_tag="cp311", platform="manylinux_2_28_x86_64")


def make_wheel(
    folder: Path,
    name: str = "sample",
    version: str = "1.0",
    files: Mapping[str, Content] | None = None,
    *,
    tag: str = "py3-none-any",
    record_lines: Mapping[str, str | None] | None = None,
    modes: Mapping[str, int] | None = None,
    dist_info: Mapping[str, Content] | None = None,
    metadata: str = "",
    date_time: tuple[int, int, int, int, int, int] = (2026, 5, 4, 3, 2, 2),
    folders: Iterable[str] = (),
    compression: int = zipfile.ZIP_DEFLATED,
) -> Path:
    """Write `<name>-<version>-<tag>.whl` into `folder` and return its path.

    `files` defaults to a package with a version file. `record_lines` replaces a member's whole RECORD line, drops
    it (None), or adds one for a path that is no member. `dist_info` adds to or replaces what stands in dist-info;
    `metadata` is put after METADATA's version line. Members are written in the order given, RECORD last.
    """
    info = f"{name}-{version}.dist-info"
    purelib = "true" if tag.endswith("-none-any") else "false"
    members = dict(default_files(name, version) if files is None else files)
    extra = {f"{info}/{key}": value for key, value in (dist_info or {}).items()}
    members |= {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}\nWhat it is for.\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: {purelib}\nTag: {tag}\n",
    } | extra
    members.setdefault(f"{info}/RECORD", _record(members, f"{info}/RECORD", record_lines or {}))
    path = folder / f"{name}-{version}-{tag}.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", compression) as archive:
        for member in folders:
            archive.writestr(_info(member.rstrip("/") + "/", stat.S_IFDIR | 0o755, date_time), b"")
        for member, content in members.items():
            entry = _info(member, stat.S_IFREG | (modes or {}).get(member, 0o644), date_time)
            archive.writestr(entry, content, compression)
    return path


def default_files(name: str, version: str) -> dict[str, Content]:
    """Return a package of three files: `__init__.py`, `core.py` and `version.py`."""
    return {
        f"{name}/__init__.py": "from .core import answer\n",
        f"{name}/core.py": "def answer():\n    return 41\n",
        f"{name}/version.py": f"__version__ = '{version}'\ngit_version = 'c0ffee'\n",
    }


def write_members(path: Path, members: Iterable[tuple[str | zipfile.ZipInfo, Content]]) -> Path:
    """Write a zip file with these members as they are: duplicates, odd names, odd modes."""
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for name, content in members:
            archive.writestr(name, content)
    return path


def add_members(wheel: Path, members: Iterable[tuple[str | zipfile.ZipInfo, Content]]) -> Path:
    """Append members to a wheel as they are."""
    with zipfile.ZipFile(wheel, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for name, content in members:
            archive.writestr(name, content)
    return wheel


def record_hash(content: Content) -> str:
    """Return a hash as RECORD writes it."""
    raw = content.encode() if isinstance(content, str) else content
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).rstrip(b"=").decode()


def fetched(wheel: Path, *, component: str = "sample", target: Target = CP311) -> FetchedBase:
    """Return a wheel as the store would hand it out."""
    distribution, version = wheel.name.split("-")[:2]
    return FetchedBase(
        component=component,
        kind="wheel",
        digest=sha256_file(wheel),
        path=wheel,
        file=wheel.name,
        distribution=distribution,
        version=version,
        target=target,
    )


def patched_tree(
    wheel: Path, root: Path, changes: Mapping[str, Content | None], *, part: Part = "python", target: Target = CP311
) -> PatchedTree:
    """Lay out changed files (None: deleted) below `root` as the series room would, one patch per file."""
    members = frozenset(zipfile.ZipFile(wheel).namelist())
    changed = tuple(_changed(root, members, path, content, part) for path, content in changes.items())
    patches = tuple(_patch(number, entry) for number, entry in enumerate(changed, 1))
    base = fetched(wheel, target=target)
    return PatchedTree(
        source=SourceTree(base=base, root=root, members=members),
        series=Series(name="sample/1.0", patches=patches),
        root=root,
        applied=(),
        changed=changed,
    )


def as_wheel(path: Path, *, component: str = "sample", patches: tuple[str, ...] = ()) -> Wheel:
    """Return a wheel file as the value that the overlay takes."""
    distribution, version = path.name.split("-")[:2]
    return Wheel(
        component=component,
        distribution=distribution,
        import_name=distribution,
        version=version,
        path=path,
        sha256=sha256_file(path),
        key="0" * 64,
        patches=patches,
    )


def _record(members: Mapping[str, Content], own: str, changes: Mapping[str, str | None]) -> str:
    lines: dict[str, str | None] = {
        name: f"{name},{record_hash(content)},{len(content.encode() if isinstance(content, str) else content)}"
        for name, content in members.items()
    }
    lines |= changes
    return "".join(f"{line}\n" for line in lines.values() if line is not None) + f"{own},,\n"


def _info(name: str, mode: int, date_time: tuple[int, int, int, int, int, int]) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, date_time)
    entry.external_attr = mode << 16
    return entry


def _changed(root: Path, members: frozenset[str], path: str, content: Content | None, part: Part) -> ChangedFile:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    if content is None:
        return ChangedFile(path=path, kind="deleted", part=part, sha256=None)
    place.write_bytes(content.encode() if isinstance(content, str) else content)
    kind: ChangeKind = "modified" if path in members else "added"
    return ChangedFile(path=path, kind=kind, part=part, sha256=sha256_file(place))


def _patch(number: int, changed: ChangedFile) -> Patch:
    name = f"{number:04}-change"
    change = FileChange(path=changed.path, old_path=changed.path, kind=changed.kind, part=changed.part)
    return Patch(
        number=number,
        name=name,
        path=Path(f"{name}.patch"),
        sha256="0" * 64,
        subject="change",
        body="",
        upstream_status="Pending",
        witness="none",
        fixes=(),
        changes=(change,),
    )
