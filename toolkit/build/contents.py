"""What a built wheel says that it is and what it would bring into an environment, before anybody installs it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from packaging.tags import Tag, parse_tag
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from toolkit.errors import BuildError
from toolkit.model import Target
from toolkit.platforms import accepts_any, split_platform
from toolkit.wheels.archive import WheelArchive, open_wheel

INSTALLED = re.compile(r"[^/]+\.data/(?:purelib|platlib)/")
"""What stands before the name of a member that is installed as if it lay at the top."""

NOT_IMPORTED = (".dist-info", ".data", ".libs")

SEE_ITS_BUILD = "see how the project's build names its wheel"


def examine_contents(wheel: Path, *, target: Target, import_name: str) -> tuple[str, ...]:
    """Examine what a wheel says of itself and where its files go; return what a person should know.

    Raises BuildError where the package is not in it, where its file's name is not true, where it is for another
    interpreter, and for a `.pth` file: every start of Python would run it.
    """
    with open_wheel(wheel) as archive:
        _require_package(archive, import_name)
        _require_true_name(archive)
        _require_fit(archive, target)
        _refuse_path_files(archive)
        foreign = _foreign_names(archive.members, import_name)
    return (f"{wheel.name} also brings {', '.join(foreign)} beside {import_name!r}",) if foreign else ()


def _require_package(archive: WheelArchive, import_name: str) -> None:
    if not any(name.startswith((f"{import_name}/", f"{import_name}.")) for name in archive.members):
        raise BuildError(
            f"{archive.path.name} has no package {import_name!r}",
            hint="`import_name` of the component names what the wheel is imported as",
        )


def _require_true_name(archive: WheelArchive) -> None:
    said = archive.metadata
    try:
        name, version, *_ = parse_wheel_filename(archive.path.name)
    except ValueError as fault:
        raise BuildError(f"{archive.path.name} is not the name of a wheel: {fault}", hint=SEE_ITS_BUILD) from fault
    if (name, version) != (canonicalize_name(said.name), Version(said.version)):
        raise BuildError(
            f"{archive.path.name} is {said.name} {said.version} by its METADATA, expected the same in its name",
            hint=SEE_ITS_BUILD,
        )


def _require_fit(archive: WheelArchive, target: Target) -> None:
    """Raise BuildError where the file's name or WHEEL names no interpreter and machine of the target."""
    named = parse_wheel_filename(archive.path.name)[3]
    said = [tag for text in archive.metadata.tags for tag in parse_tag(text)]
    for place, tags in (("its name", named), ("its WHEEL", said)):
        if not _fits(tags, target):
            raise BuildError(
                f"{archive.path.name} is for {', '.join(sorted(map(str, tags))) or 'nothing'} by {place}, "
                f"expected one for {target}",
                hint=SEE_ITS_BUILD,
            )


def _fits(tags: Iterable[Tag], target: Target) -> bool:
    """Whether one of the tags is of the target's interpreter and machine; how new its glibc may be is not asked.

    A wheel that was just built has the tag `linux_…`; repacking names the platform.
    """
    any_linux = re.compile(rf"(?:many)?linux.*_{split_platform(target.platform)[1]}")
    texts = (
        f"{tag.interpreter}-{tag.abi}-{target.platform if any_linux.fullmatch(tag.platform) else tag.platform}"
        for tag in tags
    )
    return accepts_any(texts, python_tag=target.python_tag, platform=target.platform)


def _refuse_path_files(archive: WheelArchive) -> None:
    found = [name for name in archive.members if _is_path_file(PurePosixPath(INSTALLED.sub("", name, count=1)))]
    if found:
        raise BuildError(
            f"{archive.path.name} brings {found[0]}, which every start of Python would run",
            hint="drop it from what the project packs, with a patch",
            details=found,
        )


def _is_path_file(place: PurePosixPath) -> bool:
    return place.suffix == ".pth" and (len(place.parts) == 1 or place.parent.name == "site-packages")


def _foreign_names(members: Iterable[str], import_name: str) -> list[str]:
    """List what lies at the top and is no part of the package."""
    tops = {INSTALLED.sub("", name, count=1).partition("/")[0] for name in members}
    return sorted(top for top in tops if top.partition(".")[0] != import_name and not top.endswith(NOT_IMPORTED))
