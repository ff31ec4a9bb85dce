"""The rule for parking: whether a value that crosses the stages of a kernel may be put into one of its outputs.

The backend keeps such a value in memory between its launches: in an output of the kernel in some programs, in a
workspace in others. Which it takes is known from recorded launches only, so the rule says no more than what must be
so in any case, and everything else is unknown. A sharper rule has its place here, and nowhere else.
"""

from __future__ import annotations

from toolkit.scan.program import BYTES, Output, Program, Value
from toolkit.scan.values import Verdict


def may_park(program: Program, value: Value, output: Output) -> Verdict:
    """Say whether `value` is kept in the memory of `output` from its stage to its last use.

    "yes" where the output is to hold that very value, which a reduction stores as it makes it; "no" where the output
    is too small, or has got what another reduction made before the last use; else "unknown".
    """
    if output.value == value.name:
        return "yes" if value.is_reduction else "unknown"
    if program.values[output.value].is_reduction and output.stage < program.last_use(value.name):
        return "no"
    needed, room = value.least_bytes, _bytes(program, output)
    if needed is not None and room is not None and needed > room:
        return "no"
    return "unknown"


def _bytes(program: Program, output: Output) -> int | None:
    """Return the bytes of an output: what is stored has its sizes, the store its type."""
    stored = program.values[output.value]
    least = stored.least_bytes
    if least is None or stored.dtype is None or output.dtype not in BYTES:
        return None
    return least // BYTES[stored.dtype] * BYTES[output.dtype]
