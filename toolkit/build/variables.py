"""The environment of a build: the same on every machine, and nothing of the caller's but what the recipe lets in."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from toolkit.build.workroom import Workroom
from toolkit.errors import UsageError
from toolkit.model import BuildSpec, BuildTree

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where a build finds what is not in its environment; a recipe may set or pass another PATH."""

SOURCES = "/usr/src"
ENVIRONMENT = f"{SOURCES}/build-environment"
"""What stands for a build's folders in debug information and `__FILE__`, so that two machines give the same bytes: the
tree is below the one under its component's name, the build environment with torch's headers is the other."""

PRIVATE = ("HOME", "TMPDIR", "VIRTUAL_ENV")
"""What a build always has of its own; PATH only begins so."""

SET = {
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    "PYTHONNOUSERSITE": "1",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "GIT_CONFIG_NOSYSTEM": "1",
    "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
}
"""What every build gets unless its recipe says otherwise. The last because importing torch would import an installed
torch_npu, which may be broken or want CANN."""


def compose_variables(
    spec: BuildSpec, tree: BuildTree, room: Workroom, *, environment: Path, temporary: Path, jobs: int,
    caller: Mapping[str, str],
) -> dict[str, str]:  # fmt: skip
    """Compose a build's whole environment; `temporary` is the room's own folder by the name that the build sees.

    What the recipe sets wins over what it passes on from the caller, and both over what is set here; but PATH only
    comes behind the build environment's own folder, compiler flags are added to, and the private folders stay private.
    """
    asked = asked_variables(spec, caller)
    given = {
        **SET,
        "SOURCE_DATE_EPOCH": str(tree.base.epoch),
        "MAX_JOBS": str(jobs),
        "CMAKE_BUILD_PARALLEL_LEVEL": str(jobs),
        "GIT_CEILING_DIRECTORIES": str(tree.root.parent),
    }
    private = {
        "HOME": str(room.home),
        "TMPDIR": str(temporary),
        "VIRTUAL_ENV": str(environment),
        "PATH": os.pathsep.join([str(environment / "bin"), search_path(asked)]),
    }
    flags = shlex.join(_prefix_maps(tree, environment))
    compiling = {name: f"{asked.get(name, '')} {flags}".strip() for name in ("CFLAGS", "CXXFLAGS")}
    return {**given, **asked, **private, **compiling}


def _prefix_maps(tree: BuildTree, environment: Path) -> list[str]:
    """Return the compiler's options that map folders away, by every name that they have.

    A name counts for all that begins with it, and the last option that fits wins: the longest name stands last.
    """
    names = {environment: ENVIRONMENT, environment.resolve(): ENVIRONMENT}
    names[tree.root] = f"{SOURCES}/{tree.base.component}"
    return [f"-ffile-prefix-map={name}={names[name]}" for name in sorted(names, key=lambda name: len(str(name)))]


def asked_variables(spec: BuildSpec, caller: Mapping[str, str]) -> dict[str, str]:
    """Return what a recipe sets for a build, and what it passes on from the caller."""
    return {name: caller[name] for name in spec.pass_env if name in caller} | dict(spec.env)


def split_command(name: str, value: str) -> list[str]:
    """Split a variable's command as a shell does; UsageError where its quotes do not match."""
    try:
        return shlex.split(value)
    except ValueError as fault:
        raise UsageError(
            f"{name}={value!r} cannot be read as a command: {fault}",
            hint=f"give {name} matching quotes, in the environment or in `env` of `[component.base.build]`",
        ) from fault


def search_path(asked: Mapping[str, str]) -> str:
    """Return where compilers and tools are looked up."""
    return asked.get("PATH") or SYSTEM_PATH


def named_paths(spec: BuildSpec, caller: Mapping[str, str]) -> list[Path]:
    """List the absolute paths in what a recipe sets or passes on, such as CANN's home: a build may read them."""
    asked = asked_variables(spec, caller)
    words = [word for name, value in asked.items() if name not in PRIVATE for word in value.split(os.pathsep)]
    return [Path(word) for word in words if word.startswith("/")]
