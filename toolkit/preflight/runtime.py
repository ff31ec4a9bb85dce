"""Whether the overlay's torch_npu can be loaded here at all: CANN, and the libraries that it needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.doctor.cann import examine_cann
from toolkit.doctor.observed import doubtful
from toolkit.doctor.places import claims_device
from toolkit.model import Observation
from toolkit.preflight.options import UNSEEN
from toolkit.preflight.processes import asked_of

if TYPE_CHECKING:
    from toolkit.preflight.subject import Subject

PACKAGE = "torch_npu"
HOME = "ASCEND_HOME_PATH"
NEEDED = ("cann.environment", "libraries.torch_npu", "libraries.cann", "libraries.driver")
"""The lines of the doctor without which nothing of torch_npu loads."""


def examine_runtime(subject: Subject, *, is_started: bool, root: Path) -> list[Observation]:
    """Look at what torch_npu needs to be loaded, as the doctor does.

    A machine without CANN and an NPU is a doubt where the command is only looked at, and a fault where it is started.
    """
    if PACKAGE not in {one.import_name for one in subject.overlay.packages}:
        return []
    if subject.effective(HOME) is None:
        return [doubtful("cann.environment", f"what {HOME} will be cannot be known from the command's text", UNSEEN)]
    asked = replace(asked_of(subject), packages={PACKAGE: Path(subject.site) / PACKAGE}, root=root)
    observations = examine_cann(asked)
    if not is_started or claims_device(asked):
        return observations
    return [replace(one, grade="fail") if _is_lacking(one) else one for one in observations]


def _is_lacking(one: Observation) -> bool:
    return one.grade == "warn" and one.name in NEEDED
