"""What `toolkit evidence cachekey` answers: plain text that fits a terminal, and the document."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from toolkit.answers import Answer
from toolkit.cachekeys import DEBUGGING, RUNS
from toolkit.runs import in_words

if TYPE_CHECKING:
    from toolkit.cachekeys import CompileSeconds, GraphKeys, Lookup, PartDifference, Recording

WIDTH = 100
SHORT = 12
"""How much of a key is shown."""

SHOWN_PARTS = 12
SHOWN_LINES = 10
"""How many parts of a key's input, and how many lines of one, are shown to a person."""


def describe_recording(found: Recording) -> Answer:
    """Go through the compiles in their order, each with its seconds and its lookups."""
    took = ", ".join(f"{seconds:.1f} s {run}" for seconds, run in zip(found.seconds, RUNS, strict=True))
    good = len(found.graphs) - len(found.findings)
    lines = [
        f"{len(found.seconds)} runs of `{in_words(found.argv)}` ({took})",
        f"torch {found.torch or 'of a version that the trace does not say'}",
        *(line for place in _places(found) for line in _compile_lines(found, place)),
        f"{good} of {len(found.graphs)} lookups are as they should be: one key in every process, and a hit when warm",
        *(f"but {doubt}" for doubt in found.doubts),
        *([f"kept in {found.kept}"] if found.kept else []),
    ]
    return Answer(text="\n".join(lines), document=recording_document(found))


def recording_document(found: Recording) -> dict[str, Any]:
    """Return everything that is known of the runs."""
    return {
        "command": list(found.argv),
        "runs": list(RUNS),
        "seconds": [round(seconds, 3) for seconds in found.seconds],
        "torch": found.torch,
        "stable": not found.findings,
        "compiles": [
            {
                "process": one.process, "compile_id": one.compile_id, "backward": one.backward,
                "function": one.function, "seconds": list(one.seconds),
            }
            for one in found.compiles
        ],
        "lookups": [_lookup_document(graph) for graph in found.graphs],
        "doubts": list(found.doubts),
        "kept": found.kept,
    }  # fmt: skip


def _places(found: Recording) -> list[tuple[str, str]]:
    """List process and id of every compile, in the order in which they came."""
    named = [(one.process, one.compile_id) for one in found.compiles]
    return list(dict.fromkeys([*named, *((graph.any.process, graph.any.compile_id) for graph in found.graphs)]))


def _compile_lines(found: Recording, place: tuple[str, str]) -> Iterator[str]:
    here = [one for one in found.compiles if (one.process, one.compile_id) == place]
    function = next((one.function for one in here if one.function), "")
    yield ""
    yield " ".join(word for word in (place[0], place[1], function) if word)
    yield from (f"  compile{' of the backward' if one.backward else ''}: {_in_seconds(one)}" for one in here)
    graphs = [graph for graph in found.graphs if (graph.any.process, graph.any.compile_id) == place]
    for graph in graphs:
        yield from _graph_lines(graph)


def _in_seconds(one: CompileSeconds) -> str:
    told = [f"{seconds:.2f} s {run}" for seconds, run in zip(one.seconds, RUNS, strict=True) if seconds is not None]
    return ", ".join(told) or "the trace does not say how long"


def _graph_lines(graph: GraphKeys) -> Iterator[str]:
    what = " ".join(word for word in (graph.any.cache, _direction(graph)) if word)
    states = ", ".join(state or "-" for state in graph.states)
    keys = list(dict.fromkeys(one.key[:SHORT] for one in graph.lookups if one and one.key))
    mark = "LOOK" if graph.findings else "ok  "
    yield f"  {mark} {what}: {states}; {'key ' if keys else 'no key'}{' and '.join(keys)}"
    yield from (f"       {finding}" for finding in graph.findings)
    if graph.differs_in is not None:
        yield from (f"       {line}" for line in _part_lines(graph))


def _direction(graph: GraphKeys) -> str:
    return next((one.direction for one in graph.lookups if one and one.direction), "")


def _part_lines(graph: GraphKeys) -> Iterator[str]:
    """Say which parts of the key's input differ, or why that cannot be said."""
    if graph.parts is None:
        yield "what of its input differs is not in the trace: it lists no parts of this key"
        if graph.any.cache == "aotautograd":
            yield f"run with {DEBUGGING} to have them listed"
        return
    if not graph.parts:
        yield "no part of its input that the trace lists differs"
    for part in graph.parts[:SHOWN_PARTS]:
        yield from _one_part(part)
    if len(graph.parts) > SHOWN_PARTS:
        yield f"... and {len(graph.parts) - SHOWN_PARTS} more parts; --json lists them all"


def _one_part(part: PartDifference) -> Iterator[str]:
    if part.first is None or part.other is None:
        yield f"{part.name}: only when {'cold' if part.other is None else 'not cold'}"
    elif part.reads_the_same:
        yield f"{part.name}: differs, though it reads the same: {_short(part.first)}"
    elif "\n" in part.first or "\n" in part.other:
        yield f"{part.name}:"
        lines = part.lines()
        yield from (f"  {_printable(line)[:WIDTH]}" for line in lines[:SHOWN_LINES])
        if len(lines) > SHOWN_LINES:
            yield f"  ... and {len(lines) - SHOWN_LINES} more lines"
    else:
        yield f"{part.name}: {_short(part.first)} and {_short(part.other)}"


def _short(text: str) -> str:
    return shorten(_printable(text), WIDTH, placeholder=" ...")


def _printable(text: str) -> str:
    """Return a text that no terminal takes for a command: torch writes some hashes as raw bytes."""
    return "".join(character if character.isprintable() else "?" for character in text)


def _lookup_document(graph: GraphKeys) -> dict[str, Any]:
    one = graph.any
    return {
        "process": one.process,
        "compile_id": one.compile_id,
        "cache": one.cache,
        "ordinal": one.ordinal,
        "direction": _direction(graph),
        "runs": [None if lookup is None else _run_document(lookup) for lookup in graph.lookups],
        "findings": list(graph.findings),
        "key_differs_in": None if graph.differs_in is None else RUNS[graph.differs_in],
        "parts_that_differ": None
        if graph.parts is None
        else [{"name": part.name, "cold": part.first, "other": part.other} for part in graph.parts],
    }


def _run_document(lookup: Lookup) -> dict[str, Any]:
    return {
        "state": lookup.state,
        "key": lookup.key,
        "reason": lookup.reason,
        "compile_seconds": lookup.seconds,
        "saved_seconds": lookup.saved,
    }
