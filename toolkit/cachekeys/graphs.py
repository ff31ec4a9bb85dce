"""What the traces of one run say of its compiles: lookups in the caches, their keys, and the seconds.

The names of records and fields are those of torch 2.13; what a trace of another version lacks stays None, and is told
in `doubts`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import shorten
from typing import Any

from toolkit.cachekeys.trace import Reading, Record, read_records
from toolkit.cachekeys.values import Compile, Lookup, Part, RunTrace

CACHES = {"fx_graph_cache_": "fx", "aotautograd_cache_": "aotautograd"}
"""The beginning of a lookup's artifact, and whose cache it is about; its state follows."""

METRICS = ("compilation_metrics", "bwd_compilation_metrics")
DISABLED = "fx_graph_cache_disabled"
CODE = "inductor_output_code"
START = "dynamo_start"

PART = re.compile(r"\[(?P<hash>[a-z0-9]+)\] (?P<name>[^\n]*?): (?P<text>.*)", re.DOTALL)
"""A part of a key's input as torch lists it: the hash is what counts, the text is for reading."""

LINE_END = "\n"
FAILURE_LENGTH = 160
RANK = re.compile(r"rank_(\d+)_")


@dataclass(slots=True)
class _File:
    """What one file has told so far; each is one process's."""

    lookups: list[Lookup] = field(default_factory=list)
    compiles: list[Compile] = field(default_factory=list)
    coded: list[str] = field(default_factory=list)
    begun: dict[str, int] = field(default_factory=dict)
    torch: str | None = None
    rank: str | None = None
    begins: str = ""


def read_run(folder: Path) -> RunTrace:
    """Read every trace below a folder."""
    reading = Reading()
    pool: dict[str, str] = {}
    files = [_read_file(path, reading, pool) for path in sorted(folder.rglob("*.log"))]
    spoke = _named(sorted((one for one in files if one.lookups or one.compiles or one.coded), key=_age))
    return RunTrace(
        lookups=tuple(lookup for one in spoke for lookup in one.lookups),
        compiles=tuple(compiled for one in spoke for compiled in one.compiles),
        torch=next((one.torch for one in files if one.torch), None),
        doubts=tuple(_doubts(reading, files)),
        files=len(files),
    )


def _read_file(path: Path, reading: Reading, pool: dict[str, str]) -> _File:
    told = _File()
    if found := RANK.search(path.name):
        told.rank = found[1]
    for record in read_records(path, reading, _is_wanted):
        told.begins = told.begins or record.stamp
        if "rank" in record.header:
            told.rank = str(record.header["rank"])
        _take(record, told, pool)
    told.lookups += [_unrecorded(one) for one in dict.fromkeys(told.coded) if not _has_lookup(told, one)]
    failed = {one.compile_id: one.failure for one in told.compiles if one.failure}
    told.lookups = [replace(one, failure=failed.get(one.compile_id, "")) for one in told.lookups]
    return told


def _is_wanted(header: Mapping[str, Any]) -> bool:
    name = _artifact(header)
    return name.startswith(tuple(CACHES)) or name == "torch_version" or "chromium_event" in header


def _take(record: Record, told: _File, pool: dict[str, str]) -> None:
    name, here = _artifact(record.header), _place(record.header, told)
    if prefix := next((one for one in CACHES if name.startswith(one)), None):
        state, content = name.removeprefix(prefix), _object(record.payload)
        if state in ("hit", "miss", "bypass"):
            told.lookups.append(_lookup(told, here, CACHES[prefix], state, content, pool))
    elif name == "torch_version":
        told.torch = _text(_object(record.payload).get("pytorch_version")) or told.torch
    elif "chromium_event" in record.header and DISABLED in (record.payload or ""):
        told.lookups.append(_lookup(told, here, "fx", "disabled", {}, pool))
    elif CODE in record.header:
        told.coded.append(here)
    for metrics in METRICS:
        if isinstance(measured := record.header.get(metrics), dict):
            told.torch = told.torch or _text(measured.get("pytorch_version")) or None
            told.compiles.append(_compile(here, metrics, measured))


def _lookup(
    told: _File, compile_id: str, cache: str, state: str, content: Mapping[str, Any], pool: dict[str, str]
) -> Lookup:  # fmt: skip
    parts = _parts(content.get("components"), pool)
    return Lookup(
        process="",
        compile_id=compile_id,
        cache=cache,
        ordinal=sum((one.compile_id, one.cache) == (compile_id, cache) for one in told.lookups) + 1,
        state=state,
        key=_text(content.get("key")) or None,
        reason=_text(content.get("cache_bypass_reason")) or _detail(content, state),
        direction=_direction(parts),
        parts=parts or None,
        seconds=_scaled(content.get("time_taken_ns"), 1e-9),
        saved=_scaled(content.get("time_saved_ns"), 1e-9),
    )


def _detail(content: Mapping[str, Any], state: str) -> str:
    """Return what torch adds to a state, such as `guard_miss`, where it says more than the state itself."""
    detail = _text(content.get("cache_status_detailed"))
    return "" if detail in ("hit", "full_miss", state) else detail


def _unrecorded(compile_id: str) -> Lookup:
    return Lookup(
        process="", compile_id=compile_id, cache="fx", ordinal=1, state="unrecorded", key=None, parts=None,
        reason="the trace has the graph's code and no lookup", direction="", seconds=None, saved=None,
    )  # fmt: skip


def _has_lookup(told: _File, compile_id: str) -> bool:
    return any(one.compile_id == compile_id for one in told.lookups)


def _compile(compile_id: str, metrics: str, content: Mapping[str, Any]) -> Compile:
    line = content.get("co_firstlineno")
    file = Path(_text(content.get("co_filename"))).name
    name = _text(content.get("co_name"))
    whole = _scaled(content.get("duration_us"), 1e-6)
    return Compile(
        process="",
        compile_id=compile_id,
        backward=metrics != METRICS[0],
        function=f"{name} ({file}:{line})" if name and file else name,
        seconds=_scaled(content.get("entire_frame_compile_time_s"), 1.0) if whole is None else whole,
        failure=_failure(content),
    )


def _failure(content: Mapping[str, Any]) -> str:
    kind, reason = _text(content.get("fail_type")), _text(content.get("fail_reason"))
    return shorten(f"{kind}: {reason.partition(LINE_END)[0]}", FAILURE_LENGTH, placeholder=" ...") if kind else ""


def _place(header: Mapping[str, Any], told: _File) -> str:
    """Return the compile that a record belongs to; torch counts anew after a reset: `0/0`, then `0/0 #2`."""
    here = _compile_id(header)
    if START in header and not header.get("attempt"):
        told.begun[here] = told.begun.get(here, 0) + 1
    times = told.begun.get(here, 1)
    return here if times == 1 else f"{here} #{times}"


# --- fields ------------------------------------------------------------------------------------------------------


def _artifact(header: Mapping[str, Any]) -> str:
    artifact = header.get("artifact")
    return _text(artifact.get("name")) if isinstance(artifact, dict) else ""


def _compile_id(header: Mapping[str, Any]) -> str:
    """Return torch's name of a compile: `0/0`, behind `!1/` where it belongs to a compiled backward."""
    frame, times, outer = (header.get(name) for name in ("frame_id", "frame_compile_id", "compiled_autograd_id"))
    before = "" if outer is None else f"!{outer}/"
    return f"{before}{frame}/{times}" if frame is not None else before.rstrip("/") or "-"


def _parts(listed: object, pool: dict[str, str]) -> dict[str, Part]:
    """Return the parts of a key's input by name; equal texts are held once, as each graph lists hundreds."""
    found: dict[str, Part] = {}
    for line in listed if isinstance(listed, list) else []:
        if isinstance(line, str) and (one := PART.fullmatch(line)):
            name = _free(one["name"], found)
            texts = [pool.setdefault(text, text) for text in (name, one["hash"], one["text"])]
            found[texts[0]] = Part(hash=texts[1], text=texts[2])
    return found


def _free(name: str, taken: Mapping[str, Part]) -> str:
    number = 2
    while (name if number == 2 else f"{name} #{number - 1}") in taken:
        number += 1
    return name if number == 2 else f"{name} #{number - 1}"


def _direction(parts: Mapping[str, Part]) -> str:
    if "fx_kwargs[is_backward]" not in parts:
        return ""
    if parts["fx_kwargs[is_backward]"].text == "True":
        return "backward"
    inference = parts.get("fx_kwargs[is_inference]")
    return "inference" if inference is not None and inference.text == "True" else "forward"


def _object(payload: str | None) -> dict[str, Any]:
    try:
        content = json.loads(payload or "")
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _scaled(value: object, unit: float) -> float | None:
    return value * unit if isinstance(value, (int, float)) and not isinstance(value, bool) else None


# --- files -------------------------------------------------------------------------------------------------------


def _age(one: _File) -> tuple[int, str]:
    return int(one.rank) if one.rank is not None and one.rank.isdigit() else -1, one.begins


def _named(files: Iterable[_File]) -> list[_File]:
    """Name each file's process: by its rank, else by when it began, where there are several."""
    listed = list(files)
    for number, one in enumerate(listed, start=1):
        name = f"rank {one.rank}" if one.rank is not None else f"process {number}" if len(listed) > 1 else ""
        one.lookups = [replace(lookup, process=name) for lookup in one.lookups]
        one.compiles = [replace(compiled, process=name) for compiled in one.compiles]
    return listed


def _doubts(reading: Reading, files: Iterable[_File]) -> Iterator[str]:
    """Say what the traces lack."""
    if reading.unknown_lines:
        yield f"{_of_trace(reading.unknown_lines, 'line')} in no form that is known here"
    if reading.cut_payloads:
        yield f"{_of_trace(reading.cut_payloads, 'record')} cut short"
    if reading.records and not any(one.torch for one in files):
        yield "the trace does not say which torch wrote it"


def _of_trace(count: int, what: str) -> str:
    return f"{count} {what} of the trace is" if count == 1 else f"{count} {what}s of the trace are"
