"""A training command, held against a recipe and what an acceptance run needs, before it is started."""

from __future__ import annotations

from pathlib import Path

from toolkit.doctor.allocator import examine_allocator
from toolkit.doctor.observed import bad
from toolkit.model import Observation
from toolkit.preflight.filled import filled_command, filled_variables, started_environment
from toolkit.preflight.folders import examine_folders
from toolkit.preflight.options import examine_options
from toolkit.preflight.origins import examine_origins
from toolkit.preflight.processes import asked_of, examine_processes
from toolkit.preflight.runtime import examine_runtime
from toolkit.preflight.subject import Subject, make_subject
from toolkit.preflight.switches import examine_switches

__all__ = [
    "Subject",
    "examine_launch",
    "filled_command",
    "filled_variables",
    "make_subject",
    "started_environment",
]

ROOT = Path("/")


def examine_launch(subject: Subject, *, is_started: bool = False, root: Path = ROOT) -> tuple[Observation, ...]:
    """Look at everything of a training command that can be seen before it is started; nothing is.

    `is_started` says that it will be, here: then what cannot be loaded on this machine is a fault. The machine is
    looked at below `root`.
    """
    if not subject.launch.argv:
        seen = "there is no command that starts a training in what was given"
        return (bad("preflight.program", seen, "give it behind --, or in a file with --cmd FILE"),)
    return (
        *examine_origins(subject),
        *examine_switches(subject),
        *examine_options(subject),
        *examine_processes(subject),
        *examine_folders(subject),
        *examine_allocator(asked_of(subject)),
        *examine_runtime(subject, is_started=is_started, root=root),
    )
