"""Where things of the machine are: CANN homes, device nodes, the file system under a path."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from glob import escape, glob
from pathlib import Path

from toolkit.current import recipe_folder
from toolkit.doctor.asked import Asked
from toolkit.envfile import OVERLAY

RUNTIME = "libascendcl.so"
RUNTIME_FOLDERS = ("lib64", "runtime/lib64")
PARTS = ("opp", "compiler")
HOME_PATTERNS = ("ascend-toolkit/*", "cann*", "cann/*", "latest")
"""Where below an Ascend folder a CANN home may be: up to 8 `ascend-toolkit/<version>`, then `cann-<version>`."""

SYSROOT_MARK = "toolkit-sysroot.json"
NODE = re.compile(r"davinci(\d+)")

STAND_IN = "nothing to do without an NPU: `toolkit run --host` has a stand-in"

SEE_CANN = "see cann.environment"
"""Said where another line tells already that there is no CANN."""

HOST_HINT = (
    "without an NPU nothing of torch_npu loads by itself; look at the overlay with `toolkit run --host -- python …`, "
    "which lowers and generates code and runs no kernel"
)


def current_overlay(asked: Asked) -> Path | None:
    """Return the current generation of the recipe's overlay, where it is built."""
    generation = recipe_folder(asked.project, asked.recipe).current() if asked.project else None
    return generation if generation is not None and os.path.isdir(generation) else None


def how_to_activate(asked: Asked) -> str:
    """Say how to get what an active overlay has; `overlay.active` tells it where one is built and none is active."""
    is_told = current_overlay(asked) is not None and not asked.environ.get(OVERLAY)
    return "see overlay.active" if is_told else "activate the overlay"


def device_numbers(asked: Asked) -> list[int]:
    """List the numbers of the NPUs' device nodes, /dev/davinci0 on."""
    found = (NODE.fullmatch(name) for name in _names(asked.root / "dev"))
    return sorted(int(match[1]) for match in found if match)


def cann_home(asked: Asked) -> Path | None:
    """Return what ASCEND_HOME_PATH names."""
    named = asked.environ.get("ASCEND_HOME_PATH")
    return Path(named) if named else None


def is_host_sysroot(home: Path | None) -> bool:
    """Whether a CANN home is a host sysroot of ours."""
    return home is not None and os.path.isfile(home / SYSROOT_MARK)


def claims_device(asked: Asked) -> bool:
    """Whether training with an NPU is meant here: CANN is named, or there are device nodes."""
    home = cann_home(asked)
    return (home is not None and not is_host_sysroot(home)) or bool(device_numbers(asked))


def has_runtime(home: Path) -> bool:
    """Whether a folder is a CANN home: one with CANN's runtime library."""
    return any(os.path.exists(home / folder / RUNTIME) for folder in RUNTIME_FOLDERS)


def installed_canns(asked: Asked) -> list[Path]:
    """List the CANN homes in the usual places, each installation once."""
    own = asked.environ.get("HOME")
    above = [asked.root / "usr/local/Ascend", *([Path(own) / "Ascend"] if own else [])]
    found = (home for place in above for pattern in HOME_PATTERNS for home in matching(place, pattern))
    by_root: dict[Path, Path] = {}
    for home in found:
        if has_runtime(home):
            by_root.setdefault(install_root(home), home)
    return list(by_root.values())


def install_root(home: Path) -> Path:
    """Return the folder that a CANN is really installed in: `latest` may be a folder of links into it.

    That is the nearest one above its runtime library that has the operators or the compiler, too.
    """
    library = next(
        (home / folder / RUNTIME for folder in RUNTIME_FOLDERS if os.path.exists(home / folder / RUNTIME)), home
    )
    above = real_path(library).parents
    return next((place for place in above if any(os.path.isdir(place / part) for part in PARTS)), real_path(home))


def set_env_of(home: Path) -> Path:
    """Return the set_env.sh to source for a CANN home, whether it lies in it or beside it."""
    beside = (home / "set_env.sh", home.parent / "set_env.sh")
    return next((file for file in beside if os.path.isfile(file)), beside[0])


def matching(folder: Path, pattern: str) -> list[Path]:
    """List what matches below a folder, sorted; nothing of a folder that this user may not enter, unlike Path.glob."""
    return [Path(found) for found in sorted(glob(f"{escape(str(folder))}/{pattern}"))]


def real_path(path: Path) -> Path:
    """Return a path without links; one whose links lead nowhere, or in a circle, as far as they lead."""
    return Path(os.path.realpath(path))


def nearest_folder(path: Path) -> Path:
    """Return the path itself, or the nearest folder above it that is there."""
    return next((place for place in (path, *path.parents) if os.path.exists(place)), Path("/"))


def listed(names: list[str], limit: int = 5) -> str:
    """Return names with commas between them, and how many more there are beyond the limit."""
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")


def split_paths(value: str) -> Iterator[Path]:
    """Yield the folders of a variable such as LD_LIBRARY_PATH, in order, empty entries left out."""
    yield from (Path(entry) for entry in value.split(":") if entry)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
