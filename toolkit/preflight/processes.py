"""How many processes there are, against the parallelism's degrees, the batch, and the NPUs that may be seen."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from toolkit.doctor.asked import Asked
from toolkit.doctor.devices import read_visible
from toolkit.doctor.observed import bad, doubtful, good
from toolkit.launch import process_count
from toolkit.model import Observation
from toolkit.preflight.options import UNSEEN, said

if TYPE_CHECKING:
    from toolkit.preflight.subject import Subject

VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"
BATCH = "training.global_batch_size"
LOCAL_BATCH = "training.local_batch_size"
DATA = ("parallelism.data_parallel_replicate_degree", "parallelism.data_parallel_shard_degree")
DEGREE = re.compile(r"-?[0-9]{1,9}")


def examine_processes(subject: Subject) -> list[Observation]:
    """Look at the number of processes, what is made of them, and the NPUs for them."""
    name, count = "preflight.processes", _count(subject)
    if count is None:
        seen = "how many processes there will be cannot be known from the command"
        return [doubtful(name, seen, "set NGPU, or give torchrun --nproc_per_node"), *_examine_visible(subject, None)]
    world = count * _nodes(subject)
    faults = [*_examine_degrees(subject, world), *_examine_batch(subject)]
    return [*(faults or [good(name, _told(subject, count, world))]), *_examine_visible(subject, count)]


def _count(subject: Subject) -> int | None:
    value = process_count(subject.launch)
    return _whole(value or "") or None


def _nodes(subject: Subject) -> int:
    """Return how many nodes torchrun is told of; a range (`1:4`) is taken by its most."""
    option = subject.launch.launcher.get("nnodes")
    value = (option.value or "").rpartition(":")[2] if option else ""
    return _whole(value) or 1


def _whole(text: str) -> int:
    """Return a whole number as options say it; 0 for what is none, or longer than any that is meant."""
    return int(text) if text.isdecimal() and len(text) < 19 else 0


def _told(subject: Subject, count: int, world: int) -> str:
    degrees = _degrees(subject)
    shown = ", ".join(f"{name.rpartition('.')[2]} {value}" for name, value in degrees.items())
    nodes = f" on each of {world // count} nodes" if world != count else ""
    return f"{count} processes{nodes}{f' for {shown}' if shown else ''}"


def _degrees(subject: Subject) -> dict[str, int]:
    """Return the degrees that are given as numbers."""
    wanted = subject.acceptance.processes
    found = {name: subject.launch.option(name) for name in (*wanted.degrees, wanted.expert_degree)}
    return {name: int(value) for name, value in found.items() if value and DEGREE.fullmatch(value)}


def _examine_degrees(subject: Subject, world: int) -> Iterator[Observation]:
    name, degrees = "preflight.processes", _degrees(subject)
    expert = degrees.pop(subject.acceptance.processes.expert_degree, 1)
    given = {option: value for option, value in degrees.items() if value > 0}
    product = math.prod(given.values())
    factors = [str(value) for value in given.values() if value != 1]
    shown = f"{' x '.join(factors)} = {product}" if len(factors) > 1 else str(product)
    do = "make NGPU (or torchrun's --nproc_per_node) and the degrees agree"
    if world % product:
        yield bad(name, f"{world} processes cannot be shared out over degrees of {shown}", do)
    elif product != world and -1 not in degrees.values() and len(given) == len(subject.acceptance.processes.degrees):
        yield bad(name, f"{world} processes, and the degrees are {shown}", do)
    elif product != world and -1 not in degrees.values() and any(option in given for option in DATA):
        seen = f"{world} processes, and the given degrees are {shown}"
        yield doubtful(name, f"{seen}: the configuration must make up for the rest", do)
    if expert > 1 and world % expert and not world % product:
        seen = f"{world} processes cannot be shared out over an expert degree of {expert}"
        yield bad(name, seen, f"make --{subject.acceptance.processes.expert_degree} a divisor of {world}")


def _examine_batch(subject: Subject) -> Iterator[Observation]:
    """Yield a global batch that the data-parallel ranks cannot share out evenly."""
    launch, degrees = subject.launch, _degrees(subject)
    batch, local = (launch.option(name) or "" for name in (BATCH, LOCAL_BATCH))
    ranks = math.prod(degrees.get(name, 1) for name in DATA)
    step = ranks * (_whole(local) or 1)
    if ranks > 0 and _whole(batch) % step:
        seen = f"{said(launch, BATCH)} is no multiple of {step}, what the data-parallel ranks take at a time"
        yield bad("preflight.processes", seen, f"make --{BATCH} a multiple of {step}")


def _examine_visible(subject: Subject, count: int | None) -> Iterator[Observation]:
    name, value = "preflight.devices", subject.effective(VISIBLE)
    if value is None:
        yield doubtful(name, f"what {VISIBLE} will be cannot be known from the command's text", UNSEEN)
    elif value:
        chosen, fault = read_visible(value, None)
        enough = ",".join(map(str, range(count or 1)))
        if fault:
            do = f"list each NPU once, as plain numbers in ascending order without blanks, such as {VISIBLE}={enough}"
            yield bad(name, f"{VISIBLE}={value}: {fault}", do)
        elif count is not None and len(chosen) < count:
            seen = f"{VISIBLE}={value} lets {len(chosen)} NPUs be seen, and there are {count} processes"
            yield bad(name, seen, f"make NGPU {len(chosen)}, or name {count} NPUs")
        else:
            yield good(name, f"{VISIBLE}={value}: {len(chosen)} NPUs")


def asked_of(subject: Subject) -> Asked:
    """Return what the doctor's looks start from, for the environment that training would have."""
    return Asked(
        environ=subject.launch.environ, cwd=subject.folder, interpreter=None, packages={}, project=None,
        recipe=subject.overlay.recipe,
    )  # fmt: skip
