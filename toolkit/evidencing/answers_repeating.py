"""What `toolkit evidence repeat` answers: plain text that fits a terminal, and the document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from toolkit.answers import Answer
from toolkit.repeats.saved import as_document
from toolkit.runs import in_words

if TYPE_CHECKING:
    from toolkit.repeats import Repetition, Value

SHOWN = 60
"""How many values are listed for a person; a model's checkpoint may have thousands."""

SHORT = 12
"""How much of a hash is shown."""

MARKS = {"stable": "stable ", "differs": "DIFFERS", "missing": "MISSING"}


def describe_repetition(found: Repetition) -> Answer:
    """List what is not the same first, then what is."""
    stable = [value for value in found.values if value.state == "stable"]
    took = ", ".join(f"{seconds:.1f} s" for seconds in found.seconds)
    lines = [
        f"{len(found.seconds)} runs of `{in_words(found.argv)}` ({took})",
        *_listed([*found.unstable, *stable]),
        f"{len(stable)} of {len(found.values)} values are the same in every run",
        *([f"left out: {_left_out(found)}"] if found.left_out else []),
        *([f"kept in {found.kept}"] if found.kept else []),
    ]
    return Answer(text="\n".join(lines), document=repetition_document(found))


def repetition_document(found: Repetition) -> dict[str, Any]:
    """Return everything that is known of the runs."""
    return {
        "command": list(found.argv),
        "runs": len(found.seconds),
        "seconds": [round(seconds, 3) for seconds in found.seconds],
        "stable": not found.unstable,
        "values": [_document_of(value) for value in found.values],
        "left_out": as_document(found.left_out),
        "kept": found.kept,
    }


def _listed(values: list[Value]) -> Iterator[str]:
    for value in values[:SHOWN]:
        if value.state == "stable":
            yield f"  {MARKS[value.state]} {value.name}  ({_words(value)})"
        else:
            yield f"  {MARKS[value.state]} {value.name}"
            yield f"          {_words(value)}"
    if len(values) > SHOWN:
        yield f"  ... and {len(values) - SHOWN} more; --json lists them all"


def _words(value: Value) -> str:
    told = next(one for one in value.hashes if one)
    parts = [next(one for one in value.types if one)] if value.types else []
    if value.state == "stable":
        return ", ".join([*parts, told[:SHORT]])
    if missing := value.missing_in:
        parts.append(f"not in run{'s' * (len(missing) > 1)} {', '.join(map(str, missing))}")
    if value.differs_from is not None:
        parts.append(f"from run {value.differs_from} on, {value.kinds} different values")
        parts += _how_far(value)
    return ", ".join(parts)


def _how_far(value: Value) -> list[str]:
    """Say the greatest difference among the runs, or what keeps it from being told."""
    if len(types := {one for one in value.types if one}) > 1:
        return [f"as {' and '.join(sorted(types))}"]
    if not value.differences:
        return []
    measured = [one.maximum_absolute_error for one in value.differences if one.maximum_absolute_error is not None]
    most = max(value.differences, key=lambda one: one.differing or 0)
    count = [f"{most.differing} of {most.elements} elements"] if most.differing is not None else []
    if len(measured) < len(value.differences):
        return [*count, "with values that have no difference"]
    return [*count, f"at most {max(measured):.6g} from the first"]


def _left_out(found: Repetition) -> str:
    first = found.left_out[0]
    others = len(found.left_out) - 1
    more = f", and {others} more" if others else ""
    return f"{f'{first.file}: {first.name}' if first.name else first.file} is {first.why}{more}"


def _document_of(value: Value) -> dict[str, Any]:
    return {
        "kind": value.kind,
        "name": value.name,
        "state": value.state,
        "hashes": list(value.hashes),
        "types": list(value.types),
        "missing_in": list(value.missing_in),
        "differs_from": value.differs_from,
        "differences": as_document(value.differences),
    }
