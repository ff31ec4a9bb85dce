"""What the machine has for training and compiling: memory and cores, disk space, a clock that is right; settings."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from toolkit.build.jobs import choose_jobs
from toolkit.doctor.allocator import examine_allocator
from toolkit.doctor.asked import Asked
from toolkit.doctor.observed import bad, doubtful, good
from toolkit.doctor.places import matching, nearest_folder
from toolkit.doctor.switches import examine_switches
from toolkit.files import available_cores
from toolkit.model import Observation
from toolkit.store import default_store

GIB = 1 << 30
MIB = 1 << 20

LITTLE_SPACE = 2 * GIB
"""Less than this, and a build or a long run's caches may not find room: an overlay alone has 170 MB, torch 1.2 GB."""
NO_SPACE = 200 * MIB

EARLIEST, LATEST = 2025, 2100
"""Years outside of which a clock is not set: no torch_npu that recipes are for is older."""
SKEW = 2.0
"""Seconds that a file's time may differ from the clock."""
AHEAD = 60.0


def examine_resources(asked: Asked) -> list[Observation]:
    """Look at memory and cores against MAX_JOBS, disk space, the clock, the allocator's options and other switches."""
    return [
        _examine_jobs(asked),
        *_examine_disk(asked),
        *_examine_clock(asked),
        *examine_allocator(asked),
        *examine_switches(asked),
    ]


# --- jobs ------------------------------------------------------------------------------------------------------


def _examine_jobs(asked: Asked) -> Observation:
    """Hold MAX_JOBS, which torch hands to ninja, against what cores and memory allow, control groups included."""
    jobs, why = choose_jobs(None, root=asked.root)
    reason = why.partition(": ")[2]
    named = asked.environ.get("MAX_JOBS")
    advice = f"export MAX_JOBS={jobs}"
    if named is None:
        return _without_max_jobs(jobs, reason, advice)
    if not named.isdecimal() or len(named) > 9:
        return doubtful("resources.jobs", f"MAX_JOBS={named!r} is no number, and torch ignores it", advice)
    if int(named) == 0:
        return bad("resources.jobs", "MAX_JOBS=0: ninja starts all compilers at once", advice)
    if int(named) > jobs:
        return doubtful(
            "resources.jobs", f"MAX_JOBS={named}, and there are {reason}: compilers are killed or wait", advice
        )
    return good("resources.jobs", f"MAX_JOBS={named}: {reason}")


def _without_max_jobs(jobs: int, reason: str, advice: str) -> Observation:
    """Ninja counts the machine's cores, and neither memory nor what a control group grants."""
    started = available_cores()
    if jobs < started:
        return doubtful(
            "resources.jobs",
            f"MAX_JOBS is not set: ninja starts {started} compilers and more, and there are {reason}",
            advice,
        )
    return good("resources.jobs", f"MAX_JOBS is not set: {reason}")


# --- disk ------------------------------------------------------------------------------------------------------


def _examine_disk(asked: Asked) -> Iterator[Observation]:
    """Yield a line for each file system that something is written to."""
    users: dict[int, tuple[Path, list[str]]] = {}
    for what, place in _written(asked):
        nearest = nearest_folder(asked.cwd / place)
        users.setdefault(nearest.stat().st_dev, (nearest, []))[1].append(what)
    for place, whats in users.values():
        yield _examine_space(place, ", ".join(whats))


def _written(asked: Asked) -> Iterator[tuple[str, Path]]:
    """Yield what is written while an overlay is built or used, and where."""
    environ = asked.environ
    yield "the store", default_store(environ)
    if asked.project is not None:
        yield "overlays", asked.project.overlays
    yield "temporary files", Path(environ.get("TMPDIR") or "/tmp")
    for variable in ("TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        if named := environ.get(variable):
            yield variable, Path(named)


def _examine_space(place: Path, what: str) -> Observation:
    free = shutil.disk_usage(place).free
    status = os.statvfs(place)
    shown = f"{free // MIB} MiB" if free < GIB else f"{free // GIB} GiB"
    seen = f"{shown} free at {place} for {what}"
    advice = "free some (`toolkit cache gc`), or choose other places: TOOLKIT_STORE, TOOLKIT_OVERLAYS, TMPDIR"
    if status.f_files and not status.f_favail:
        return bad("resources.disk", f"no file can be made at {place} for {what}: it is out of inodes", advice)
    if free < NO_SPACE:
        return bad("resources.disk", seen, advice)
    if free < LITTLE_SPACE:
        return doubtful("resources.disk", seen, advice)
    return good("resources.disk", seen)


# --- clock -----------------------------------------------------------------------------------------------------


def _examine_clock(asked: Asked) -> Iterator[Observation]:
    """Yield whether the clock is set, agrees with the file systems', and is later than the overlay's files."""
    now = time.time()
    year = time.gmtime(now).tm_year
    faults = []
    if not EARLIEST <= year <= LATEST:
        faults.append(
            bad(
                "resources.clock",
                f"the clock says {_shown(now)}: certificates fail, and what is compiled seems older than it is",
                "set it: timedatectl set-ntp true",
            )
        )
    faults += [*_examine_skew(asked, now), *_examine_future(asked, now)]
    yield from faults or [good("resources.clock", f"{_shown(now)}, as the file systems say")]


def _examine_skew(asked: Asked, now: float) -> Iterator[Observation]:
    """Yield where a file written now has another time: on a network disk it is the server's."""
    from tempfile import TemporaryFile

    cache = asked.environ.get("TORCH_EXTENSIONS_DIR") or asked.environ.get("TMPDIR") or "/tmp"
    place = nearest_folder(asked.cwd / cache)
    try:
        with TemporaryFile(dir=place) as stream:
            stream.write(b"\0")
            stream.flush()
            differs = os.fstat(stream.fileno()).st_mtime - now
    except OSError:  # That it cannot be written is for the caches' line to say.
        return
    if abs(differs) > SKEW:
        yield doubtful(
            "resources.clock",
            f"a file written at {place} is {abs(differs):.0f} s {'ahead of' if differs > 0 else 'behind'} the clock: "
            "ninja builds again, or does not",
            "let this machine and the disk's server follow one time source",
        )


def _examine_future(asked: Asked, now: float) -> Iterator[Observation]:
    """Yield where files of torch_npu are from the future: an extension built now seems older than its headers."""
    package = asked.packages.get("torch_npu")
    if package is None or not os.path.isdir(package):
        return
    ahead = [path for path in matching(package, "*.py") if path.stat().st_mtime > now + AHEAD]
    if ahead:
        yield doubtful(
            "resources.clock",
            f"{package} has files from the future: {ahead[0].name} is from {_shown(ahead[0].stat().st_mtime)}",
            "set the clock, and build the overlay again: toolkit build",
        )


def _shown(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
