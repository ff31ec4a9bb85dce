"""CANN: whether its set_env.sh was sourced, which one, and whether torch_npu's libraries find what they need in it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from toolkit.doctor.asked import Asked
from toolkit.doctor.loader import read_cache
from toolkit.doctor.needed import examine_libraries
from toolkit.doctor.observed import bad, doubtful, good
from toolkit.doctor.places import (
    HOST_HINT,
    RUNTIME,
    cann_home,
    device_numbers,
    has_runtime,
    install_root,
    installed_canns,
    is_host_sysroot,
    listed,
    real_path,
    set_env_of,
    split_paths,
)
from toolkit.model import Observation
from toolkit.target import installed_cann

FOLDERS = ("runtime", "compiler")
"""What torch_npu looks for in a CANN home before it does anything."""

VERSION_FILES = ("version.info", "compiler/version.info", "runtime/version.info", "toolkit/version.info")


def examine_cann(asked: Asked) -> list[Observation]:
    """Look at CANN's environment, its version, those that are installed, and the libraries that torch_npu needs."""
    home = cann_home(asked)
    return [*_examine_home(asked, home), *_examine_installed(asked, home), *examine_libraries(asked)]


def _examine_home(asked: Asked, home: Path | None) -> Iterator[Observation]:
    if home is None:
        yield _without_home(asked)
    elif is_host_sysroot(home):
        yield good(
            "cann.environment",
            f"ASCEND_HOME_PATH is a host sysroot, {home}: code is generated there, no kernel runs",
        )
    elif fault := _home_fault(home):
        yield bad("cann.environment", f"ASCEND_HOME_PATH is {home}, {fault}", _how_to_source(asked))
    else:
        faults = [*_examine_variables(asked, home)]
        yield from faults or [good("cann.environment", f"set_env.sh is sourced: ASCEND_HOME_PATH is {home}")]
        yield _examine_version(asked, home)


def _without_home(asked: Asked) -> Observation:
    installed, nodes = installed_canns(asked), device_numbers(asked)
    if installed:
        where = listed([str(home) for home in installed])
        return bad(
            "cann.environment",
            f"CANN is installed in {where}, but its set_env.sh is not sourced: ASCEND_HOME_PATH is not set",
            _how_to_source(asked),
        )
    if nodes:
        return bad(
            "cann.environment",
            f"there are device nodes ({_nodes(nodes)}), but no CANN: ASCEND_HOME_PATH is not set, and "
            f"{asked.root / 'usr/local/Ascend'} has none",
            "install CANN's toolkit and kernels, and source its set_env.sh",
        )
    return doubtful(
        "cann.environment",
        f"no CANN: ASCEND_HOME_PATH is not set, and {asked.root / 'usr/local/Ascend'} has none",
        HOST_HINT,
    )


def _home_fault(home: Path) -> str:
    """Say why a folder is no CANN home, or nothing."""
    if not os.path.isdir(home):
        return "which does not exist"
    if not has_runtime(home):
        return f"which is no CANN home: it has no lib64/{RUNTIME}"
    lacking = [folder for folder in FOLDERS if not os.path.exists(home / folder)]
    return f"which lacks {' and '.join(f'{folder}/' for folder in lacking)}: torch_npu refuses it" if lacking else ""


def _how_to_source(asked: Asked) -> str:
    installed = installed_canns(asked)
    if not installed:
        return "source the set_env.sh of the CANN that is installed, or unset ASCEND_HOME_PATH where there is none"
    return f"source {set_env_of(installed[-1])}"


def _nodes(numbers: list[int]) -> str:
    return listed([f"davinci{number}" for number in numbers])


# --- the variables of set_env.sh -------------------------------------------------------------------------------


def _examine_variables(asked: Asked, home: Path) -> Iterator[Observation]:
    """Yield what set_env.sh would have set otherwise."""
    source = f"source {set_env_of(home)} in a fresh shell"
    yield from _examine_opp(asked, home, source)
    toolkit = asked.environ.get("ASCEND_TOOLKIT_HOME")
    if toolkit and install_root(Path(toolkit)) != install_root(home):
        yield bad(
            "cann.toolkit_home",
            f"ASCEND_TOOLKIT_HOME is {toolkit}, ASCEND_HOME_PATH is {home}: two CANNs are mixed",
            source,
        )
    yield from _examine_library_path(asked, home, source)
    packages = [home / "python/site-packages", home / "opp/built-in/op_impl/ai_core/tbe"]
    lacking = [folder for folder in packages if os.path.isdir(folder) and not _is_listed(folder, asked, "PYTHONPATH")]
    if lacking:
        yield doubtful(
            "cann.python_path",
            f"PYTHONPATH lacks {' and '.join(map(str, lacking))}: operators that CANN compiles while "
            "training runs fail",
            f"{source}, then activate the overlay again",
        )


def _examine_opp(asked: Asked, home: Path, source: str) -> Iterator[Observation]:
    opp = asked.environ.get("ASCEND_OPP_PATH")
    if not opp:
        seen = "ASCEND_OPP_PATH is not set: torch_npu refuses to load"
    elif not os.path.exists(opp):
        seen = f"ASCEND_OPP_PATH is {opp}, which does not exist: torch_npu refuses to load"
    elif not _is_of(Path(opp), home) and os.path.isdir(home / "opp"):
        seen = f"ASCEND_OPP_PATH is {opp}, outside ASCEND_HOME_PATH, {home}: two CANNs are mixed"
    else:
        return
    yield bad("cann.opp", seen, source)


def _examine_library_path(asked: Asked, home: Path, source: str) -> Iterator[Observation]:
    """Yield whether LD_LIBRARY_PATH leads to this CANN, or to another first."""
    folders = list(split_paths(asked.environ.get("LD_LIBRARY_PATH", "")))
    first = next((folder for folder in folders if os.path.exists(folder / RUNTIME)), None)
    if first is None and RUNTIME not in read_cache(asked.root):
        yield bad(
            "cann.library_path",
            f"LD_LIBRARY_PATH has no folder with {RUNTIME}: of set_env.sh only a part was taken over",
            source,
        )
    elif first is not None and not _is_of(first / RUNTIME, home):
        yield bad(
            "cann.library_path",
            f"LD_LIBRARY_PATH has {first} first, of another CANN than ASCEND_HOME_PATH, {home}",
            source,
        )


def _is_listed(folder: Path, asked: Asked, variable: str) -> bool:
    return any(_is_same(entry, folder) for entry in split_paths(asked.environ.get(variable, "")))


def _is_of(path: Path, home: Path) -> bool:
    """Whether a path leads into a CANN, into its home or into where it is really installed."""
    real = real_path(path)
    return any(real.is_relative_to(root) for root in (real_path(home), install_root(home)))


def _is_same(one: Path, other: Path) -> bool:
    return real_path(one) == real_path(other)


# --- versions --------------------------------------------------------------------------------------------------


def _examine_version(asked: Asked, home: Path) -> Observation:
    version = version_of(home)
    if version is None:
        return doubtful(
            "cann.version",
            f"{home} does not say its version: there is no ascend_*_install.info and no version.info",
            "see whether the installation is whole; no recipe can be held against it",
        )
    wanted = asked.wanted.contract.cann if asked.wanted else None
    if wanted and version.split(".")[: wanted.count(".") + 1] != wanted.split("."):
        return bad(
            "cann.version",
            f"CANN {version} in {home}; the recipe {asked.recipe} is for {wanted}",
            f"source the set_env.sh of CANN {wanted}, or choose another recipe: toolkit recipe list",
        )
    return good("cann.version", f"CANN {version} in {home}")


def version_of(home: Path) -> str | None:
    """Return the version of a CANN home by its install.info, else by a version.info; None where none says it."""
    if found := installed_cann({"ASCEND_HOME_PATH": str(home)}):
        return found
    for name in VERSION_FILES:
        try:
            text = (home / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if match := re.search(r"^version\s*=\s*(\S+)$", text, re.MULTILINE | re.IGNORECASE):
            return match[1]
    return None


def _examine_installed(asked: Asked, home: Path | None) -> Iterator[Observation]:
    """Yield which CANNs are installed where there are several."""
    installed = installed_canns(asked)
    if len(installed) < 2:
        return
    named = [f"{place} ({version_of(place) or 'version unknown'})" for place in installed]
    sourced = home if home is not None and has_runtime(home) else None
    yield good(
        "cann.installed",
        f"{len(installed)} CANNs are installed: {listed(named)}; sourced: {sourced or 'none'}",
    )
