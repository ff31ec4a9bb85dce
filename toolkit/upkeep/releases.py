"""Which wheel serves to read a release: one that a lock of the project pins, that the store has, or the registry's.

What is read in it are Python files, which are the same in every wheel of a release; so where there is none for the
interpreter at hand, another target's will do.
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from toolkit import lock, registry, sources
from toolkit.artifacts import STORE_KIND
from toolkit.errors import FetchError, LockError, ToolkitError
from toolkit.model import Interpreter, Target
from toolkit.platforms import MACHINES, accepts_wheel
from toolkit.registry import NoWheel, PublishedFile
from toolkit.sources import wheel
from toolkit.upkeep.words import Release
from toolkit.work import Means

PYTHON_TAGS = ("cp311", "cp310", "cp312", "cp313", "cp314")
GLIBC = 50
"""Newer than any: what is only read need not run here."""


def find_release(
    wanted: Release, *, component: str, means: Means, interpreter: Interpreter
) -> tuple[wheel.Locked, Target, str]:
    """Return a release resolved to one wheel, the target that it is for, and what to say if that is another.

    A lock of the project is believed without asking anybody, as a build believes it. Offline the store is looked
    through for a wheel of that name. Raises LockError for a release that the registry does not have, or that was
    yanked: pip itself would take a yanked one that is pinned, with a warning. FetchError where there is none offline.
    """
    targets = list(_targets(interpreter))
    found = _pinned(wanted, targets, means) or (
        _stored(wanted, targets, means) if means.offline else _published(wanted, targets, means)
    )
    if found is None:
        raise FetchError(
            f"{component}: no wheel of {wanted} is in the store at {means.store.root}, and offline nobody is asked",
            hint="run once without --offline",
        )
    locked, chosen = found
    file = locked.artifact[0].file
    return locked, chosen, "" if chosen == targets[0] else f"read from {file}, as there is none for {targets[0]}"


def _targets(interpreter: Interpreter) -> Iterator[Target]:
    """Yield the interpreter's own target, then other interpreters on its machine, then it on the other machine."""
    own = Target(python_tag=interpreter.python_tag, platform=interpreter.platforms[0])
    yield own
    machine = next(name for name in MACHINES if own.platform.endswith(name))
    for tag in PYTHON_TAGS:
        if tag != own.python_tag:
            yield Target(python_tag=tag, platform=f"manylinux_2_{GLIBC}_{machine}")
    for other in MACHINES:
        if other != machine:
            yield Target(python_tag=own.python_tag, platform=f"manylinux_2_{GLIBC}_{other}")


def _pinned(wanted: Release, targets: list[Target], means: Means) -> tuple[wheel.Locked, Target] | None:
    """Return what a lock of the project says of the release, preferably for the interpreter's own target."""
    entries = [entry for entry in _locked_wheels(means) if _is_release(entry.distribution, entry.version, wanted)]
    files = {one.file: one.sha256 for entry in entries for one in entry.artifact}
    return _choose(wanted, files, targets)


def _locked_wheels(means: Means) -> Iterator[wheel.Locked]:
    types = {kind: source.Locked for kind, source in sources.available_sources().items()}
    for path in sorted(path for folder in means.project.recipes for path in folder.glob("*.lock")):
        try:
            found = lock.read_lock(path, locked_types=types)
        except LockError:  # Whoever builds by it is told; here another place is asked.
            continue
        yield from (entry.base for entry in found.components if isinstance(entry.base, wheel.Locked))


def _stored(wanted: Release, targets: list[Target], means: Means) -> tuple[wheel.Locked, Target] | None:
    """Return a wheel of the release that the store has: an entry is called by its file's hash, which is checked."""
    files = {
        path.name: path.parent.name
        for path in (means.store.root / STORE_KIND).glob("*/*.whl")
        if _is_wheel_of(path.name, wanted)
    }
    return _choose(wanted, files, targets)


def _published(wanted: Release, targets: list[Target], means: Means) -> tuple[wheel.Locked, Target]:
    registry.require_pip(means.environ)
    own, *others = targets

    def look(target: Target) -> PublishedFile | NoWheel:
        return registry.find_wheel(wanted.distribution, wanted.version, target, env=means.environ)

    answer = look(own)
    if isinstance(answer, PublishedFile):
        return _accept(wanted, answer, own, means)
    for target, other in zip(others, registry.ask_side_by_side(look, others, progress=None), strict=True):
        if isinstance(other, PublishedFile):
            return _accept(wanted, other, target, means)
    raise LockError(f"the registry has no wheel of {wanted}", hint=_which_there_are(wanted, means))


def _accept(wanted: Release, file: PublishedFile, target: Target, means: Means) -> tuple[wheel.Locked, Target]:
    if file.yanked is not None:
        why = f": {file.yanked}" if file.yanked else ", without a reason"
        raise LockError(
            f"{wanted} was yanked by its publisher{why}",
            hint=f"{_which_there_are(wanted, means)}; pip takes a yanked release only where it is pinned, and warns",
        )
    return _lock(wanted, file.file, file.sha256, target), target


def _which_there_are(wanted: Release, means: Means) -> str:
    try:
        versions = registry.list_releases(wanted.distribution, env=means.environ)
    except ToolkitError as fault:
        return fault.message
    return f"it has {', '.join(versions) or 'no release of that name'}"


def _choose(wanted: Release, files: dict[str, str], targets: list[Target]) -> tuple[wheel.Locked, Target] | None:
    """Return the file that the first of the targets accepts."""
    for target in targets:
        for name, sha256 in sorted(files.items()):
            if accepts_wheel(name, python_tag=target.python_tag, platform=target.platform):
                return _lock(wanted, name, sha256, target), target
    return None


def _lock(wanted: Release, file: str, sha256: str, target: Target) -> wheel.Locked:
    artifact = wheel.Artifact(file=file, sha256=sha256, python_tag=target.python_tag, platform=target.platform)
    return wheel.Locked(distribution=wanted.distribution, version=wanted.version, artifact=(artifact,))


def _is_wheel_of(file: str, wanted: Release) -> bool:
    try:
        name, version, _, _ = parse_wheel_filename(file)
    except InvalidWheelFilename:
        return False
    return _is_release(name, str(version), wanted)


def _is_release(distribution: str, version: str, wanted: Release) -> bool:
    same_name = canonicalize_name(distribution) == canonicalize_name(wanted.distribution)
    return same_name and Version(version) == Version(wanted.version)
