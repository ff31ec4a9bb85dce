"""The NPUs: their device nodes, the driver, and which of them a process may see."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from toolkit.doctor.asked import Asked
from toolkit.doctor.loader import read_cache
from toolkit.doctor.observed import bad, doubtful, good
from toolkit.doctor.places import (
    SEE_CANN,
    cann_home,
    claims_device,
    device_numbers,
    is_host_sysroot,
    listed,
    split_paths,
)
from toolkit.model import Observation

COMPANIONS = ("davinci_manager", "devmm_svm", "hisi_hdc")
"""The nodes that the driver needs beside those of the NPUs."""

DRIVER_LIBRARY = "libascend_hal.so"
DRIVER_FOLDERS = ("lib64/driver", "lib64/common", "lib64")
INSTALL_INFO = "etc/ascend_install.info"

VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"
CONTAINER_VISIBLE = "ASCEND_VISIBLE_DEVICES"

INTO_CONTAINER = (
    "in a container, start it with --device /dev/davinciN for each NPU, --device /dev/davinci_manager, "
    "--device /dev/devmm_svm and --device /dev/hisi_hdc, or with the Ascend container runtime"
)


def examine_devices(asked: Asked) -> list[Observation]:
    """Look at the device nodes and who may use them, the driver, and the variables that choose among the NPUs."""
    numbers = device_numbers(asked)
    observed = [*_examine_nodes(asked, numbers)]
    if claims_device(asked):
        observed += _examine_driver(asked)
    return [*observed, *_examine_visible(asked, numbers), *_examine_container(asked, numbers)]


# --- nodes -----------------------------------------------------------------------------------------------------


def _examine_nodes(asked: Asked, numbers: Sequence[int]) -> Iterator[Observation]:
    dev = asked.root / "dev"
    if not numbers:
        yield _without_nodes(asked, dev)
        return
    lacking = [name for name in COMPANIONS if not os.path.exists(dev / name)]
    if lacking:
        yield bad(
            "device.nodes",
            f"{dev} has {_shown(numbers)}, but lacks {', '.join(lacking)}: the driver cannot be reached",
            INTO_CONTAINER,
        )
    nodes = [dev / f"davinci{number}" for number in numbers] + [
        dev / name for name in COMPANIONS if name not in lacking
    ]
    refused = [node for node in nodes if not os.access(node, os.R_OK | os.W_OK, effective_ids=True)]
    if refused:
        yield bad(
            "device.nodes",
            f"{listed([str(node) for node in refused])}: not to be read and written by this user{_owner(refused[0])}",
            "join the group that owns them (as a rule HwHiAiUser's), or run as a user who may",
        )
    if not lacking and not refused:
        count = f"{len(numbers)} NPU{'' if len(numbers) == 1 else 's'}"
        yield good("device.nodes", f"{count} in {dev}: {_shown(numbers)}")


def _without_nodes(asked: Asked, dev: Path) -> Observation:
    if not claims_device(asked):
        is_stand_in = is_host_sysroot(cann_home(asked))
        seen = f"no NPU: {dev} has no davinci0" + (", the host sysroot stands in for one" if is_stand_in else "")
        return doubtful("device.nodes", seen, "" if is_stand_in else SEE_CANN)
    return bad(
        "device.nodes",
        f"no NPU: {dev} has no davinci0, while ASCEND_HOME_PATH names CANN",
        f"{INTO_CONTAINER}; where there is no NPU on purpose, unset ASCEND_HOME_PATH and use `toolkit run --host`",
    )


def _shown(numbers: Sequence[int]) -> str:
    return listed([f"davinci{number}" for number in numbers], 16)


def _owner(node: Path) -> str:
    status = node.stat()
    return f" (mode {status.st_mode & 0o777:o}, owner {status.st_uid}, group {status.st_gid})"


# --- driver ----------------------------------------------------------------------------------------------------


def _examine_driver(asked: Asked) -> Iterator[Observation]:
    folder = _driver_folder(asked)
    library = _driver_library(asked, folder)
    if library is None:
        yield bad(
            "device.driver",
            f"no {DRIVER_LIBRARY} in {folder}, on LD_LIBRARY_PATH or in ld.so.cache: CANN cannot reach an NPU",
            f"install the driver; in a container, mount {folder} into it",
        )
        return
    version = _version(folder)
    if version is None:
        yield doubtful(
            "device.driver",
            f"{library} is there, but no {folder / 'version.info'}: the driver's version is not known",
            f"in a container, mount {folder}/version.info into it",
        )
    else:
        yield good("device.driver", f"driver {version}: {library}")


def _driver_folder(asked: Asked) -> Path:
    """Return the driver's folder, as its installation noted it or where it usually is."""
    try:
        noted = (asked.root / INSTALL_INFO).read_text(encoding="utf-8", errors="replace")
    except OSError:
        noted = ""
    match = re.search(r"^Driver_Install_Path_Param=(\S+)$", noted, re.MULTILINE)
    above = match[1].lstrip("/") if match else "usr/local/Ascend"
    return asked.root / above / "driver"


def _driver_library(asked: Asked, folder: Path) -> Path | None:
    folders = [folder / below for below in DRIVER_FOLDERS] + list(split_paths(asked.environ.get("LD_LIBRARY_PATH", "")))
    places = [place / DRIVER_LIBRARY for place in folders]
    if cached := read_cache(asked.root).get(DRIVER_LIBRARY):
        places.append(asked.root / cached.lstrip("/"))
    return next((place for place in places if os.path.isfile(place)), None)


def _version(folder: Path) -> str | None:
    try:
        text = (folder / "version.info").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r"^version\s*=\s*(\S+)$", text, re.MULTILINE | re.IGNORECASE)
    return match[1] if match else None


# --- choosing --------------------------------------------------------------------------------------------------


def _examine_visible(asked: Asked, numbers: Sequence[int]) -> Iterator[Observation]:
    value = asked.environ.get(VISIBLE)
    if value is None:
        if numbers:
            yield good("device.visible", f"{VISIBLE} is not set: all {len(numbers)} NPUs are seen")
        return
    chosen, fault = read_visible(value, len(numbers) or None)
    if fault:
        yield bad(
            "device.visible",
            f"{VISIBLE}={value!r}: {fault}",
            f"list each NPU once, as plain numbers in ascending order without blanks: {_proposal(value, numbers)}",
        )
    elif numbers:
        seen = f"{VISIBLE}={value}: {len(chosen)} of {len(numbers)} NPUs, set before any process starts"
        yield good("device.visible", seen)
    elif not claims_device(asked):
        yield doubtful(
            "device.visible",
            f"{VISIBLE}={value}, and there is no NPU to choose",
            f"unset {VISIBLE}",
        )


def read_visible(value: str, count: int | None) -> tuple[list[int], str]:
    """Read ASCEND_RT_VISIBLE_DEVICES as CANN does: return the NPUs that it gives, and what is wrong with it.

    CANN stops at the first id that is blank, no number, or not there, so that those behind it are not seen either.
    """
    chosen: list[int] = []
    for place, word in enumerate(value.split(",")):
        if not re.fullmatch(r"[0-9]{1,9}", word):
            what = "is empty" if not word else f"has a blank ({word!r})" if word != word.strip() else f"is {word!r}"
            what = "is a blank" if word and not word.strip() else what
            return chosen, f"id {place + 1} {what}; CANN stops there and {_seen(chosen)}"
        number = int(word)
        if count is not None and number >= count:
            there = f"there {'is' if count == 1 else 'are'} {count}, from 0"
            return chosen, f"there is no NPU {number} ({there}); CANN stops there and {_seen(chosen)}"
        if number in chosen:
            return chosen, f"NPU {number} stands twice"
        if chosen and number < chosen[-1]:
            return chosen, f"NPU {number} stands behind {chosen[-1]}, and CANN wants them in ascending order"
        chosen.append(number)
    return chosen, ""


def _seen(chosen: Sequence[int]) -> str:
    return f"sees only {', '.join(map(str, chosen))}" if chosen else "sees none"


def _proposal(value: str, numbers: Sequence[int]) -> str:
    """Return the setting that was probably meant."""
    named = {int(word) for word in re.findall(r"(?<!\d)[0-9]{1,9}(?!\d)", value)}
    fitting = sorted(number for number in named if not numbers or number < len(numbers))
    ids = ",".join(map(str, fitting or range(len(numbers) or 1)))
    return f"export {VISIBLE}={ids}"


def _examine_container(asked: Asked, numbers: Sequence[int]) -> Iterator[Observation]:
    """Yield where ASCEND_VISIBLE_DEVICES was taken for the variable that chooses within a process."""
    value = asked.environ.get(CONTAINER_VISIBLE)
    count = _count_ids(value) if value else None
    if count is not None and numbers and count != len(numbers) and VISIBLE not in asked.environ:
        yield doubtful(
            "device.container",
            f"{CONTAINER_VISIBLE}={value} names {count}, {len(numbers)} NPUs are there: only the container "
            "runtime reads it, when a container starts",
            f"to choose NPUs for a process, set {VISIBLE}",
        )


def _count_ids(value: str) -> int | None:
    """Return how many NPUs a list such as `0-3,5` names; None where it is another kind of list."""
    found: set[int] = set()
    for word in value.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", word.strip())
        if match is None:
            return None
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return len(found)
