"""Everything of the machine, the environment and the overlay: what is not the interpreter and its packages."""

from __future__ import annotations

from toolkit.doctor.asked import Asked
from toolkit.doctor.caches import examine_caches
from toolkit.doctor.cann import examine_cann
from toolkit.doctor.compilers import examine_compilers
from toolkit.doctor.devices import examine_devices
from toolkit.doctor.overlay_state import examine_overlay
from toolkit.doctor.resources import examine_resources
from toolkit.model import Observation

GROUPS = (examine_cann, examine_devices, examine_compilers, examine_caches, examine_resources, examine_overlay)
"""In the order in which training meets them."""


def examine_machine(asked: Asked) -> list[Observation]:
    """Look at CANN, the NPUs, compilers, caches, resources and the overlay."""
    return [observation for group in GROUPS for observation in group(asked)]
