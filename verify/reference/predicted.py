"""Hold the rule of parking (`verify.reference.parking`) against what was recorded.

    remarks = compare_prediction(plan, listing)     # one for each value that the rule puts elsewhere; none: they agree

A recording always counts. The rule is only compared, so that a kernel with which it disagrees is found out.
"""

from __future__ import annotations

from verify.reference.parking import Crossing, predict_parking
from verify.reference.plan import Plan, Write
from verify.reference.program import Program
from verify.reference.staged import UnknownParkingError


def compare_prediction(plan: Plan, listing: str) -> tuple[str, ...]:
    """Say where the rule puts the values that cross stages elsewhere than the recorded launches do."""
    if plan.program.kind != "spec":
        return ()
    try:
        predicted = predict_parking(plan.program, dump=listing)
    except UnknownParkingError:
        return ()
    expected = [one for one in predicted.crossings if not one.own]
    found = list(plan.parked())
    told = []
    for one in sorted(expected, key=lambda crossing: not any(write.instruction == crossing.value for write in found)):
        write = _find(one, found)
        if write is None:
            told.append(f"the rule parks {_tell(plan.program, one)}, the recorded launches do not park it")
            continue
        found.remove(write)
        if write.place.argument not in (one.place, *one.others):
            told.append(f"the rule parks {_tell(plan.program, one)}, the recorded launches in {write.place}")
    told += [f"the recorded launches park %{write.instruction} in {write.place}, the rule does not" for write in found]
    return tuple(told)


def _find(crossing: Crossing, found: list[Write]) -> Write | None:
    """Return the recorded store of a value: its own, or where another instruction gives the same, one in its place."""
    own = [write for write in found if write.instruction == crossing.value]
    alike = [write for write in found if write.place.argument == crossing.place]
    return next(iter(own + alike), None)


def _tell(program: Program, crossing: Crossing) -> str:
    outputs = [store.number for store in program.stores]
    place = "a workspace" if crossing.place is None else f"output {outputs.index(crossing.place)}"
    return f"{program.instructions[crossing.value]} in {place}"
