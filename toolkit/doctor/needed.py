"""The libraries and names that torch_npu's own libraries need, held against what this environment has, by owner."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit.doctor.asked import Asked
from toolkit.doctor.elf import ElfError, Library
from toolkit.doctor.loader import Closure, Missing, Search, load_closure, read_cache
from toolkit.doctor.observed import bad, doubtful, good
from toolkit.doctor.places import SEE_CANN, STAND_IN, cann_home, claims_device, current_overlay, listed, matching
from toolkit.model import Observation

ATB_LIBRARY = "lib/libop_plugin_atb.so"
"""Loaded by torch_npu only where it is used, so that want of NNAL breaks no import."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """Whose a library or a name is. `namespaces` are the outermost of its C++ names."""

    key: str
    title: str
    library: re.Pattern[str]
    namespaces: frozenset[str]
    get_library: str
    get_symbol: str


OWNERS = (
    Owner(
        key="torch",
        title="torch",
        library=re.compile(r"lib(torch|c10|shm)(_(?!npu)\w+)?\.so.*"),
        namespaces=frozenset({"c10", "at", "torch", "caffe2"}),
        get_library="install the torch that this torch_npu was built for, into the same environment",
        get_symbol="torch and torch_npu were not built for each other: install the torch that torch_npu's metadata "
        "requires, of the same release to the last .postN",
    ),
    Owner(
        key="torch_npu",
        title="torch_npu",
        library=re.compile(r"lib(torch_npu|tensorpipe|npu_profiler|op_plugin_atb)\.so"),
        namespaces=frozenset({"at_npu", "c10_npu", "torch_npu", "tensorpipe_npu"}),
        get_library="torch_npu is not whole: install it again, or build the overlay again: toolkit build",
        get_symbol="files of two torch_npu lie in one folder: remove it and install torch_npu again",
    ),
    Owner(
        key="nnal",
        title="NNAL",
        library=re.compile(r"lib(atb|asdops|lcal|mki|tbe_adapter)\w*\.so.*"),
        namespaces=frozenset({"atb"}),
        get_library="install the NNAL of this CANN's release, and source nnal/atb/set_env.sh",
        get_symbol="source the set_env.sh of the NNAL of this CANN's release",
    ),
    Owner(
        key="driver",
        title="the driver",
        library=re.compile(r"lib(ascend_hal|drv|dcmi|dsmi)\w*\.so.*"),
        namespaces=frozenset(),
        get_library="install the driver, or mount /usr/local/Ascend/driver into the container",
        get_symbol="",
    ),
    Owner(
        key="cann",
        title="CANN",
        library=re.compile(r".*"),
        namespaces=frozenset({"ge", "gert"}),
        get_library="source the set_env.sh of CANN",
        get_symbol="this torch_npu was built for another CANN: source the set_env.sh of the one that its release names",
    ),
)
"""The first whose pattern fits owns a library; what nobody else has is CANN's."""

FIRST_NAME = re.compile(r"_Z(?:T[VTIS]|GV|TW|TH)?(?:N[rVK]*)?(\d+)")


def examine_libraries(asked: Asked) -> list[Observation]:
    """Say for each owner whether torch_npu's libraries find its libraries, and in those the names that they need.

    The torch_npu is the one that would be imported; where none would, that of the recipe's overlay.
    """
    package = asked.packages.get("torch_npu") or _overlays_own(asked)
    starts = _starts(asked, package) if package else []
    if package is None or not starts:
        return []
    search = _search(asked)
    try:
        closure = load_closure(starts, search)
        # That there is no torch at all is for another group to say.
        torch = ["torch"] if "torch" in asked.packages else []
        observed = [*_examine(asked, package, closure, [*torch, "torch_npu", "driver", "cann"])]
        if os.path.isfile(package / ATB_LIBRARY) and claims_device(asked):
            with_atb = load_closure([*starts, package / ATB_LIBRARY], search)
            observed += _examine(asked, package, with_atb, ("nnal",))
        return observed
    except (ElfError, OSError) as fault:
        do = _owner("torch_npu").get_library
        return [bad("libraries.torch_npu", str(fault), do)]


def _starts(asked: Asked, package: Path) -> list[Path]:
    """List the extension modules that are loaded first: the interpreter's where there are several."""
    found = matching(package, "_C*.so")
    tag = f".cpython-{asked.interpreter.python_tag[2:]}-" if asked.interpreter else ""
    return [path for path in found if tag in path.name] or found


def _overlays_own(asked: Asked) -> Path | None:
    generation = current_overlay(asked)
    package = generation / "site/torch_npu" if generation else None
    return package if package and os.path.isdir(package) else None


def _search(asked: Asked) -> Search:
    torch = asked.packages.get("torch")
    return Search(
        library_path=asked.environ.get("LD_LIBRARY_PATH", ""),
        root=asked.root,
        loaded=(torch / "lib",) if torch else (),
        cache=read_cache(asked.root),
    )


def _examine(asked: Asked, package: Path, closure: Closure, keys: Sequence[str]) -> Iterator[Observation]:
    """Yield a line for the libraries of each owner, and one for its names where all of its libraries are there."""
    lacking = _symbols_lacking(package, closure)
    for owner in (_owner(key) for key in keys):
        missing = [one for one in closure.missing if _owner_of_library(one.name) is owner]
        found = [one for one in closure.libraries if _owner_of(one, package) is owner]
        if missing:
            yield _describe_missing(asked, owner, missing)
        elif found and owner.key != "torch_npu":
            yield _describe_found(owner, found)
        # Where some are missing, so are their names.
        if (names := lacking.get(owner.key)) and not missing and found:
            yield _describe_symbols(owner, names, found)


def _owner(key: str) -> Owner:
    return next(owner for owner in OWNERS if owner.key == key)


def _owner_of(library: Library, package: Path) -> Owner:
    return _owner("torch_npu") if library.path.is_relative_to(package) else _owner_of_library(library.soname)


def _owner_of_library(name: str) -> Owner:
    return next(owner for owner in OWNERS if owner.library.fullmatch(name))


def _describe_missing(asked: Asked, owner: Owner, missing: Sequence[Missing]) -> Observation:
    broken = [one.broken for one in missing if one.broken]
    if owner.key == "cann" and not broken and cann_home(asked) is None and not claims_device(asked):
        # Which they are tells nothing where there is none of it.
        return doubtful(f"libraries.{owner.key}", f"{len(missing)} libraries of CANN are not found", SEE_CANN)
    is_hard = owner.key in ("torch", "torch_npu") or (owner.key != "nnal" and claims_device(asked))
    names = [one.name for one in missing if not one.broken]
    by = listed(sorted({one.by for one in missing if not one.broken}), 3)
    needs = "needs" if "," not in by else "need"
    parts = [f"libraries of {owner.title} that {by} {needs} are not found: {listed(names, 12)}"] if names else []
    parts += [f"a library of {owner.title} cannot be used: {listed(broken)}"] if broken else []
    is_plain_host = owner.key in ("cann", "driver") and not is_hard
    return Observation(
        name=f"libraries.{owner.key}",
        grade="fail" if is_hard else "warn",
        seen="; ".join(parts),
        do=STAND_IN if is_plain_host else f"install {owner.title} again" if broken else owner.get_library,
    )


def _describe_found(owner: Owner, found: Sequence[Library]) -> Observation:
    folders = listed(list(dict.fromkeys(str(one.path.parent) for one in found)), 3)
    names = listed([one.soname for one in found], 12)
    return good(f"libraries.{owner.key}", f"{names} of {owner.title} found in {folders}")


# --- names -----------------------------------------------------------------------------------------------------


def _symbols_lacking(package: Path, closure: Closure) -> Mapping[str, dict[str, list[str]]]:
    """Return the names that no library has, by owner and by the file of torch_npu that needs them."""
    lacking: dict[str, dict[str, list[str]]] = {}
    for library in closure.libraries:
        if not library.path.is_relative_to(package):
            continue
        for name in library.undefined():
            owner = _owner_of_symbol(name)
            if owner and not any(other.defines(name) for other in closure.libraries):
                lacking.setdefault(owner, {}).setdefault(library.path.name, []).append(name)
    return lacking


def _owner_of_symbol(name: str) -> str | None:
    """Return whose a name is by its outermost namespace, or as a C name by its prefix; None for anyone else's."""
    from toolkit.sysroot.needs import C_NAME

    if match := FIRST_NAME.match(name):
        first = name[match.end() : match.end() + int(match[1])]
        return next((owner.key for owner in OWNERS if first in owner.namespaces), None)
    return "cann" if C_NAME.fullmatch(name) else None


def _describe_symbols(owner: Owner, lacking: Mapping[str, Sequence[str]], found: Sequence[Library]) -> Observation:
    folders = listed(list(dict.fromkeys(str(one.path.parent) for one in found)), 2)
    parts = [f"{file} needs {listed(sorted(names), 3)}" for file, names in sorted(lacking.items())]
    count = sum(len(names) for names in lacking.values())
    return bad(
        f"symbols.{owner.key}",
        f"{owner.title} in {folders} lacks {count} {'name' if count == 1 else 'names'}: " + "; ".join(parts),
        owner.get_symbol,
    )
