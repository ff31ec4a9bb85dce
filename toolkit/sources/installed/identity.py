"""Which release an installed package is: by its own metadata, or by what its files say."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.parser import BytesHeaderParser
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from toolkit.errors import SourceError
from toolkit.sources.installed.search import Copy
from toolkit.wheels.pack import OURS
from toolkit.wheels.record import SIGNATURES

NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
VERSION_HEADER = re.compile(rb"(?mi)^Version:[^\r\n]*")
ABOUT_INSTALLING = ("INSTALLER", "REQUESTED", "direct_url.json")
"""What tells about this installation and not about the package."""

SUFFIXES = (".dist-info", ".egg-info")
PIPS_LEFTOVER = "~"
"""What pip renames a package to while it uninstalls it."""

OF_EGG_INFO = ("entry_points.txt", "top_level.txt")
VERSION_MODULES = ("version.py", "_version.py", "__init__.py")
VERSION_INFO = "version.info"
VERSION_LINE = re.compile(r"(?mi)^version=(\S+)$")
CANN_VERSION_FILES = ("ascend_*_install.info", "*/ascend_*_install.info", VERSION_INFO, "opp/version.info",
                      "share/info/*/version.info")  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """A package's distribution and its version in PEP 440's form; `metadata` is the METADATA that says so.

    `release` is what a recipe's version is compared with: CANN's for a package that CANN ships, as CANN gives its
    packages one version for ever, the package's own otherwise. `kept` are the metadata's other files, from the
    copy's place; `files` are all that this was read from.
    """

    distribution: str
    version: str
    release: str
    metadata: bytes
    kept: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()


def identify(copy: Copy) -> Identity:
    """Say which release a copy is; SourceError where two distributions lay claim to it.

    Without metadata the distribution has the package's name, and the version that its `version.info`, a literal
    `__version__` or else CANN says, or "0".
    """
    cann, cann_files = _cann_version(copy)
    path = _find_metadata(copy)
    if path is None:
        said, files = _own_version(copy)
        distribution, version = copy.package, normal_version(said or cann or "0")
        metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n".encode("ascii")
        kept: tuple[str, ...] = ()
    else:
        file = _metadata_file(path)
        distribution, version, metadata = _read_metadata(file)
        kept, files = tuple(_kept_files(copy.place, path)), [file]
    return Identity(
        distribution=distribution,
        version=version,
        release=normal_version(cann) if cann else version,
        metadata=metadata,
        kept=kept,
        files=(*files, *cann_files),
    )


def normal_version(said: str) -> str:
    """Return a version in PEP 440's normal form; what does not fit in becomes its local part.

    >>> normal_version("8.0.RC3.alpha001")
    '8.0rc3+alpha001'
    """
    parts = re.split(r"[.+]", said)
    attempts = [said, *(_with_local(parts[:count], parts[count:]) for count in range(len(parts) - 1, 0, -1))]
    for attempt in attempts:
        with contextlib.suppress(InvalidVersion):
            return str(Version(attempt))
    return str(Version(_with_local(["0"], parts)))


def has_release(identity: Identity, prefix: str) -> bool:
    """Whether a release begins with the numbers of another: 9.1.0 and 9.1rc1 with 9.1, but 9.10 does not."""
    wanted = tuple(map(int, prefix.split(".")))
    found = Version(identity.release).release
    return (found + (0,) * len(wanted))[: len(wanted)] == wanted


def _with_local(public: Sequence[str], rest: Sequence[str]) -> str:
    local = re.sub(r"[^a-z0-9]+", ".", ".".join(rest).lower()).strip(".")
    return ".".join(public) + (f"+{local}" if local else "")


def _find_metadata(copy: Copy) -> Path | None:
    """Return the dist-info or egg-info beside a package that is about it."""
    beside = sorted(path for path in copy.place.iterdir() if path.suffix in SUFFIXES and path.name[0] != PIPS_LEFTOVER)
    namesakes = [path for path in beside if _name_of(path) == canonicalize_name(copy.package)]
    owners = namesakes or [path for path in beside if _lists(path, copy.package)]
    if len(owners) > 1:
        raise SourceError(
            f"{copy.root} is of {' and of '.join(path.name for path in owners)}, expected one",
            hint="remove the one that is out of date",
        )
    return owners[0] if owners else None


def _name_of(path: Path) -> str:
    return canonicalize_name(path.stem.partition("-")[0])


def _lists(path: Path, package: str) -> bool:
    """Whether metadata names a package as its own."""
    top_level, record = path / "top_level.txt", path / "RECORD"
    if top_level.is_file() and package in top_level.read_text(encoding="utf-8", errors="replace").split():
        return True
    if not record.is_file():
        return False
    lines = record.read_text(encoding="utf-8", errors="replace").splitlines()
    return any(line.startswith(f"{package}/") for line in lines)


def _metadata_file(path: Path) -> Path:
    """Return where the headers stand; an egg-info may be a file itself."""
    if path.suffix == ".dist-info":
        return path / "METADATA"
    return path / "PKG-INFO" if path.is_dir() else path


def _read_metadata(file: Path) -> tuple[str, str, bytes]:
    """Return name, version and what METADATA becomes: the same, the version in its normal form."""
    raw = file.read_bytes()
    headers = BytesHeaderParser().parsebytes(raw)
    name, said = str(headers.get("Name", "")), str(headers.get("Version", ""))
    if NAME.fullmatch(name) is None or not said:
        raise SourceError(
            f"{file} has the name {name!r} and the version {said!r}, expected those of a distribution",
            hint="install the package again",
        )
    version = normal_version(said)
    if version == said:
        return name, version, raw
    return name, version, VERSION_HEADER.sub(b"Version: " + version.encode("ascii"), raw, count=1)


def _kept_files(place: Path, path: Path) -> Iterator[str]:
    """Yield the metadata's files that stay true in a wheel, entry points among them."""
    own = {path / name for name in (*OURS, *SIGNATURES, *ABOUT_INSTALLING)}
    if path.suffix == ".dist-info":
        found = [file for file in path.rglob("*") if not file.is_dir() and file not in own]
    else:
        found = [path / name for name in OF_EGG_INFO if (path / name).is_file()]
    yield from sorted(file.relative_to(place).as_posix() for file in found if "__pycache__" not in file.parts)


def _own_version(copy: Copy) -> tuple[str | None, list[Path]]:
    """Return the version that a package's files say, and where it stands."""
    info = copy.root / VERSION_INFO
    if info.is_file() and (line := VERSION_LINE.search(info.read_text(encoding="utf-8", errors="replace"))):
        return line[1], [info]
    for file in (copy.root / name for name in VERSION_MODULES):
        if file.is_file() and (said := _literal_version(file)):
            return said, [file]
    return None, []


def _literal_version(file: Path) -> str | None:
    """Return what `__version__` is set to at a module's top, where that is a plain string."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return None
    for node in tree.body:
        names = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(name, ast.Name) and name.id == "__version__" for name in names):
            value = node.value  # type: ignore[attr-defined]
            return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
    return None


def _cann_version(copy: Copy) -> tuple[str | None, list[Path]]:
    """Return the version of the CANN that ships a copy, and the file that says it."""
    home = copy.cann_home
    if home is None:
        return None, []
    for file in (file for pattern in CANN_VERSION_FILES for file in sorted(home.glob(pattern))):
        if line := VERSION_LINE.search(file.read_text(encoding="utf-8", errors="replace")):
            return line[1], [file]
    return None, []
