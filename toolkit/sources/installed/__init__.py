"""Bases that the target has already: a package of CANN's, or one that pip installed, packed into a wheel as it is.

An installed package is the machine's state, which no lock can pin: the lock repeats the recipe, and the digest is
over the files. They are read, never imported and never written to.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from toolkit.errors import SourceError
from toolkit.model import Contract, FetchedBase, Form, Interpreter, Progress, SourceTree, Target
from toolkit.sources import ABSENT
from toolkit.sources.installed.contents import read_contents, watched_files
from toolkit.sources.installed.identity import has_release
from toolkit.sources.installed.search import HOMES, Copy, Finding, find_package
from toolkit.store import Store
from toolkit.wheels.layout import lay_out_wheel
from toolkit.wheels.pack import WheelContents, is_packed, pack_wheel

log = logging.getLogger(__name__)

KIND = "installed"
FORM: Form = "wheel"
STORE_KIND = "base"

Package = Annotated[
    str,
    Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\Z", title="a top-level package's name", examples=["cann_ops_transformer"]),
]
Release = Annotated[str, Meta(pattern=r"^(\d+(\.\d+)*)?\Z", title="the first numbers of a version", examples=["9.1"])]


class Base(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[component.base]` with `kind = "installed"`."""

    kind: Annotated[
        Literal["installed"], Meta(description="a package that the target has already", examples=["installed"])
    ]
    package: Annotated[Package, Meta(description="the folder that Python imports")]
    version: Annotated[
        Release,
        Meta(description="what its version must begin with: CANN's for a package that CANN ships, else its own"),
    ] = ""
    optional: Annotated[bool, Meta(description="whether a target without it gets an overlay without it")] = False

    @property
    def identity(self) -> str:
        """The package as it is asked for."""
        return _identity(self.package, self.version, self.optional)

    @property
    def coverage(self) -> str:
        """The package, whichever machine has it."""
        return f"installed:{self.package}" + (f"=={self.version}" if self.version else "")


class Locked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same as in the recipe: nothing is resolved."""

    kind: Literal["installed"] = "installed"
    package: Package
    version: Release
    optional: bool

    @property
    def identity(self) -> str:
        """The package as the recipe asked for it."""
        return _identity(self.package, self.version, self.optional)

    def covers(self, target: Target) -> bool:
        """Whether there may be one for that target; only the target itself knows."""
        return True


def resolve(
    base: Base, contract: Contract, *, component: str, env: Mapping[str, str], progress: Progress | None = None
) -> Locked:
    """Repeat what the recipe asks for: what is installed is looked for where and when an overlay is built."""
    return Locked(package=base.package, version=base.version, optional=base.optional)


def artifact_digest(locked: Locked, target: Target, *, interpreter: Interpreter, env: Mapping[str, str]) -> str:
    """Return the digest over the installed files, or `ABSENT` for an optional package that is not there.

    Raises SourceError for one that is not there, is of another release, or cannot be packed.
    """
    finding = find_package(locked.package, interpreter=interpreter, env=env)
    if not finding.copies and locked.optional:
        return ABSENT
    return _read_first(locked, finding, target, interpreter, env).digest


def watched_paths(
    locked: Locked, *, interpreter: Interpreter, env: Mapping[str, str]
) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return the files whose content, and the folders whose names, decide the digest.

    Every place that is looked in is among the folders, as a copy that appears there may be the one that Python takes.
    """
    finding = find_package(locked.package, interpreter=interpreter, env=env)
    files, folders = watched_files(finding.copies[0]) if finding.copies else ((), ())
    return files, (*finding.places, *folders)


def fetch(
    locked: Locked, *, component: str, target: Target, store: Store, offline: bool, interpreter: Interpreter,
    env: Mapping[str, str], progress: Progress | None = None,
) -> FetchedBase:  # fmt: skip
    """Pack the installed package into a wheel in the store, unless the store has it already.

    Must not be called where the digest is `ABSENT`. Raises SourceError as `artifact_digest` does, and for files that
    change while they are packed; nothing is kept then.
    """
    finding = find_package(locked.package, interpreter=interpreter, env=env)
    contents = _read_first(locked, finding, target, interpreter, env)
    _tell_others(component, finding.copies)
    return FetchedBase(
        component=component,
        kind=KIND,
        digest=contents.digest,
        path=_obtain(contents, component, store) / contents.file,
        file=contents.file,
        distribution=contents.distribution,
        version=contents.version,
        target=target,
    )


def lay_out(base: FetchedBase, paths: Collection[str], into: Path) -> SourceTree:
    """Write those of `paths` that the packed wheel has below `into`."""
    return lay_out_wheel(base, paths, into)


def _identity(package: str, version: str, optional: bool) -> str:
    return f"installed {package}{f' {version}' if version else ''}{' (optional)' if optional else ''}"


def _read_first(
    locked: Locked, finding: Finding, target: Target, interpreter: Interpreter, env: Mapping[str, str]
) -> WheelContents:
    if not finding.copies:
        raise _not_installed(locked, finding, interpreter, env)
    first = finding.copies[0]
    contents, identity = read_contents(first, target=target, interpreter=interpreter)
    if locked.version and not has_release(identity, locked.version):
        raise SourceError(
            f"{first.root} is of release {identity.release}, expected {locked.version}",
            hint="source the set_env.sh of the CANN that has it, or change `version` in the recipe",
        )
    return contents


def _not_installed(locked: Locked, finding: Finding, interpreter: Interpreter, env: Mapping[str, str]) -> SourceError:
    unset = [f"{name} is not set" for name in HOMES if not env.get(name)]
    return SourceError(
        f"{locked.package!r} is not installed: neither a CANN home nor {interpreter.executable} has it",
        hint="source CANN's set_env.sh, or name the interpreter that has it with --python",
        details=[*unset, *(f"it is not in {place}" for place in finding.places)],
    )


def _tell_others(component: str, copies: tuple[Copy, ...]) -> None:
    for other in copies[1:]:
        log.warning(
            "%s: %s is taken, as Python would; there is another copy at %s", component, copies[0].root, other.root
        )


def _obtain(contents: WheelContents, component: str, store: Store) -> Path:
    def is_whole(entry: Path) -> bool:
        return is_packed(contents, entry / contents.file)

    def pack(folder: Path) -> None:
        pack_wheel(contents, folder)

    entry = store.find(STORE_KIND, contents.digest)
    if entry is not None and not is_whole(entry):
        log.warning("%s: store entry %s is damaged; packing it again", component, entry)
        store.discard(STORE_KIND, contents.digest, unless=is_whole)
    return store.obtain(STORE_KIND, contents.digest, pack)
