"""Whether output, log and cache folders hold nothing yet, and whose the folder of extensions is."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.doctor.observed import bad, doubtful, good
from toolkit.extensions import examine_extensions
from toolkit.model import Observation
from toolkit.preflight.options import UNSEEN, said, unseen
from toolkit.preflight.subject import EXTENSIONS

if TYPE_CHECKING:
    from toolkit.preflight.subject import Subject

NAMES = {"dump_folder": "dump_folder", "LOG_DIR": "log_folder", "TORCHINDUCTOR_CACHE_DIR": "cache_folder",
         "TRITON_CACHE_DIR": "triton_folder"}  # fmt: skip
"""The line's name, behind `preflight.`, of an option or variable; of any other it is its own, in small letters."""

MANIFEST = "manifest.json"


def examine_folders(subject: Subject) -> list[Observation]:
    """Look at each folder that must be fresh, and at the one of extensions, which must be the overlay's own."""
    wanted = subject.acceptance.folders
    return [
        *(_examine_option(subject, name) for name in wanted.fresh_options),
        *(seen for name in wanted.fresh_variables for seen in _examine_variable(subject, name)),
        *_examine_extensions(subject),
    ]


def _examine_option(subject: Subject, option: str) -> Observation:
    name, launch = _named(option), subject.launch
    value = launch.option(option)
    if value is None:
        return doubtful(name, unseen(launch, option), UNSEEN)
    if value == "":
        seen = f"--{option} is not given: the configuration's own is used again by every run"
        return doubtful(name, seen, f"add --{option}=DIR with a folder that is not there yet")
    return _examine_fresh(name, said(launch, option), subject.place(value), f"--{option}")


def _examine_variable(subject: Subject, variable: str) -> Iterator[Observation]:
    name, value = _named(variable), subject.variable(variable)
    own = subject.activation.variables.get(variable)
    if value is None:
        yield doubtful(name, f"what {variable} will be cannot be known from the command's text", UNSEEN)
    elif value and own and os.path.realpath(subject.place(value)) == os.path.realpath(own):
        yield _examine_own(name, variable, Path(own))
    elif value:
        yield _examine_fresh(name, f"{variable}={value}", subject.place(value), variable)
    elif own is None:
        yield good(name, f"{variable} is not set")
    elif variable == "TORCHINDUCTOR_CACHE_DIR":
        seen = f"{variable} is not set: generated code goes to a folder that all runs of this user share"
        yield bad(
            name, seen, f"set {variable}=DIR to a folder that is not there yet, or leave the environment to toolkit"
        )


def _examine_own(name: str, variable: str, place: Path) -> Observation:
    """Look at the overlay's own cache: no other torch_npu wrote it, but what a run finds there it does not compile."""
    found = _first_file(place)
    if found is None:
        return good(name, f"{variable}={place}, the overlay's own, holds nothing yet")
    return doubtful(
        name,
        f"{variable}={place} is the overlay's own and holds code of runs before, such as {found.name}: nothing stale "
        "is loaded, but what is found there is not compiled again, and a scan of it counts those runs in",
        f"for an acceptance run, put {variable}=DIR in front of the command, with a folder that is not there yet",
    )


def _examine_fresh(name: str, written: str, place: Path, knob: str) -> Observation:
    other = f"name another with {knob}"
    if place.exists() and not place.is_dir():
        return bad(name, f"{written}: {place} is no folder", other)
    above = next(one for one in (place, *place.parents) if one.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        return bad(name, f"{written}: {above} cannot be written by this user", other)
    if (found := _first_file(place)) is not None:
        return bad(
            name,
            f"{written}: it holds results already, such as {found.relative_to(place)}, and the run's cannot be told "
            "from them",
            f"{other} that is not there yet, or move this one away: mv {shlex.quote(str(place))} "
            f"{shlex.quote(f'{place}.before')}",
        )
    return good(name, f"{written} holds nothing yet")


def _first_file(place: Path) -> Path | None:
    """Return any file below a folder; empty folders hold nothing."""
    return next((Path(folder) / names[0] for folder, _, names in os.walk(place) if names), None)


def _named(what: str) -> str:
    return f"preflight.{NAMES.get(what, what.lower())}"


# --- extensions --------------------------------------------------------------------------------------------------


def _examine_extensions(subject: Subject) -> Iterator[Observation]:
    name, own = "preflight.extensions", subject.activation.variables[EXTENSIONS]
    value, do = subject.variable(EXTENSIONS), f"set {EXTENSIONS}={shlex.quote(own)}"
    if value is None:
        yield doubtful(name, f"what {EXTENSIONS} will be cannot be known from the command's text", UNSEEN)
    elif value == "":
        yield bad(
            name, f"{EXTENSIONS} is not set: extensions go to the folder that all torch_npu of this user share", do
        )
    elif os.path.realpath(subject.place(value)) != os.path.realpath(own):
        yield bad(name, f"{EXTENSIONS}={value}, {_whose(subject.place(value))}: expected the overlay's own, {own}", do)
    elif found := examine_extensions(Path(own)):
        yield from (doubtful(name, f"{one.path}: {one.what}", one.remedy) for one in found)
    else:
        yield good(name, f"{EXTENSIONS}={value}, the overlay's own")


def _whose(place: Path) -> str:
    real = Path(os.path.realpath(place))
    owner = next((one for one in (real, *real.parents) if (one / MANIFEST).is_file() and (one / "site").is_dir()), None)
    if owner is not None:
        return f"which is that of the overlay {owner}"
    return "which holds extensions built elsewhere" if _first_file(place) else "which another torch_npu may use too"
