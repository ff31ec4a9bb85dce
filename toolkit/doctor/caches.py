"""The caches of compiled code: JIT extensions, Inductor and Triton; shared, stale, broken, foreign, or out of reach."""

from __future__ import annotations

import os
import pwd
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from toolkit.doctor.asked import Asked
from toolkit.doctor.foreign import examine_built
from toolkit.doctor.observed import bad, doubtful, good
from toolkit.doctor.places import how_to_activate, nearest_folder, real_path
from toolkit.extensions import examine_extensions
from toolkit.model import Observation

LOOKED_AT = 2000
"""How many files of a cache are looked at for their age."""

NETWORK = re.compile(
    r"nfs\d*|cifs|smb\d*|smbfs|lustre|gpfs|ceph|beegfs\w*|glusterfs|afs|fuse\.(sshfs|glusterfs|ceph|s3fs|juicefs)"
)
"""File systems whose locks, times and renames reach over a network."""

MARK = "manifest.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cache:
    """One cache: its variable, what goes there in words, its place; `is_default` where no variable names it."""

    name: str
    variable: str
    holds: str
    place: Path
    is_default: bool


def examine_caches(asked: Asked) -> list[Observation]:
    """Look at each cache: whose it is, where it lies, whether it can be written, how old it is, and what is broken."""
    return [seen for cache in _caches(asked) for seen in _examine(asked, cache)]


def _caches(asked: Asked) -> list[Cache]:
    """List the caches where torch and Triton would have them."""
    environ = asked.environ
    home = Path(environ.get("HOME") or "/")
    temporary = Path(environ.get("TMPDIR") or "/tmp")
    tag = asked.interpreter.python_tag[2:] if asked.interpreter else "3"
    build = f"py{tag}_{_accelerator(asked)}"
    shared = Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "torch_extensions" / build
    user = environ.get("LOGNAME") or environ.get("USER") or pwd.getpwuid(os.geteuid()).pw_name
    inductor = _cache("cache.inductor", "TORCHINDUCTOR_CACHE_DIR", "generated code goes", environ,
                      temporary / f"torchinductor_{user}")  # fmt: skip
    found = [
        _cache("cache.extensions", "TORCH_EXTENSIONS_DIR", "compiled extensions go", environ, shared),
        inductor,
        _cache("cache.triton", "TRITON_CACHE_DIR", "Triton kernels go", environ,
               Path(environ.get("TRITON_HOME") or home) / ".triton/cache"),
    ]  # fmt: skip
    # Inductor puts Triton's cache into its own where nothing else is said.
    return [one for one in found if one.name != "cache.triton" or not one.is_default or inductor.is_default]


def _accelerator(asked: Asked) -> str:
    """Return what torch calls its build in the name of the shared folder: `cpu`, `cu130`."""
    torch = asked.packages.get("torch")
    try:
        told = (torch / "version.py").read_text(encoding="utf-8", errors="replace") if torch else ""
    except OSError:
        told = ""
    match = re.search(r"^cuda\b[^=]*= '([\d.]+)'", told, re.MULTILINE)
    return f"cu{match[1].replace('.', '')}" if match else "cpu"


def _cache(name: str, variable: str, holds: str, environ: Mapping[str, str], default: Path) -> Cache:
    named = environ.get(variable)
    place = default if named is None else Path(named)
    return Cache(name=name, variable=variable, holds=holds, place=place, is_default=named is None)


def _examine(asked: Asked, cache: Cache) -> Iterator[Observation]:
    faults = [*_examine_place(asked, cache)]
    if cache.name == "cache.extensions":
        faults += _examine_contents(asked, cache)
    else:
        faults += _examine_age(asked, cache)
    yield from faults or [good(cache.name, f"{cache.variable} is {cache.place}")]


# --- places ----------------------------------------------------------------------------------------------------


def _examine_place(asked: Asked, cache: Cache) -> Iterator[Observation]:
    if cache.is_default:
        yield doubtful(
            f"{cache.name}.shared",
            f"{cache.variable} is not set: {cache.holds} to {cache.place}, which all torch_npu of this user share",
            f"{how_to_activate(asked)}, or: export {cache.variable}=<a fresh folder>",
        )
    elif other := _other_overlay(asked, cache.place):
        yield bad(
            f"{cache.name}.shared",
            f"{cache.variable} is {cache.place}, of the overlay {other}, which is not the one that is active",
            "activate the overlay that is wanted again: toolkit env",
        )
    elif not cache.place.is_absolute():
        yield doubtful(
            f"{cache.name}.place",
            f"{cache.variable} is {str(cache.place)!r}, another folder for every working directory",
            f"give it in full: export {cache.variable}={shlex.quote(str(asked.cwd / cache.place))}",
        )
    place = asked.cwd / cache.place
    nearest = nearest_folder(place)
    if not os.path.isdir(nearest) or not os.access(nearest, os.W_OK | os.X_OK, effective_ids=True):
        what = "is no folder" if not os.path.isdir(nearest) else "cannot be written by this user"
        yield bad(
            f"{cache.name}.writable",
            f"{cache.variable} is {place}, and {nearest} {what}",
            f"choose another: export {cache.variable}=<a folder of your own>",
        )
    if kind := _network_kind(asked, nearest):
        yield doubtful(
            f"{cache.name}.network",
            f"{place} is on a network disk ({kind}): its locks are slow or do not hold",
            f"choose a local disk: export {cache.variable}=<a folder there>",
        )


def _other_overlay(asked: Asked, place: Path) -> Path | None:
    """Return the overlay that a cache belongs to where that is not the active one."""
    active = asked.environ.get("TOOLKIT_OVERLAY")
    owners = (above for above in place.parents if os.path.isfile(above / MARK) and os.path.isdir(above / "site"))
    owner = next(owners, None)
    if owner is None or (active and real_path(owner) == real_path(Path(active))):
        return None
    # `toolkit run --base` has caches of its own there, and no active overlay.
    return None if not active and place.is_relative_to(owner / "cache/base") else owner


def _network_kind(asked: Asked, place: Path) -> str:
    """Return the type of the file system that a folder is on where that is a network's, else nothing."""
    best, kind = "", ""
    try:
        mounts = (asked.root / "proc/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    real = os.path.realpath(place)
    for line in mounts.splitlines():
        words = line.split(" ")
        if len(words) < 3:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), words[1])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, words[2]
    return kind if NETWORK.fullmatch(kind) else ""


# --- contents --------------------------------------------------------------------------------------------------


def _examine_contents(asked: Asked, cache: Cache) -> Iterator[Observation]:
    """Yield locks that nobody holds, libraries cut short, and libraries built for another torch or Python."""
    place = asked.cwd / cache.place
    if not cache.place.is_absolute() or place in (*asked.cwd.parents, asked.cwd):  # Far more than extensions is there.
        return
    broken = examine_extensions(place)
    for one in broken:
        mark = doubtful if os.path.isdir(one.path) and os.access(one.path, os.R_OK | os.X_OK) else bad
        name = "lock" if one.path.name == "lock" else "library" if one.path.suffix == ".so" else "build"
        yield mark(f"{cache.name}.{name}", f"{one.path}: {one.what}", one.remedy)
    yield from examine_built(asked, place, skipped={one.path for one in broken})


def _examine_age(asked: Asked, cache: Cache) -> Iterator[Observation]:
    """Yield whether a cache has code that is older than the torch_npu that would use it.

    Inductor's keys do not count torch_npu in: after another one was installed, the old one's code is found again.
    """
    package = asked.packages.get("torch_npu")
    if package is None:
        return
    since = _arrival(package)
    place = asked.cwd / cache.place
    if place in (*asked.cwd.parents, asked.cwd):
        return
    older = [time for time in _times(place) if time < since]
    if older:
        count = f"{len(older)} file{'' if len(older) == 1 else 's'}"
        yield doubtful(
            f"{cache.name}.stale",
            f"{place} has {count} from before the torch_npu in {package} was there: code of another one is found again",
            f"rm -r {shlex.quote(str(place))}",
        )


def _arrival(package: Path) -> float:
    """Return when a package came to where it is: an overlay's manifest is written last, else its own files' change."""
    overlay = package.parent.parent
    if package.parent.name == "site" and os.path.isfile(overlay / MARK):
        return (overlay / MARK).stat().st_mtime
    own = package / "__init__.py"
    return own.stat().st_ctime if os.path.isfile(own) else 0.0


def _times(place: Path) -> Iterator[float]:
    files = (Path(folder) / name for folder, _, names in os.walk(place) for name in names)
    for file in islice(files, LOOKED_AT):
        try:
            yield file.lstat().st_mtime
        except OSError:
            continue
