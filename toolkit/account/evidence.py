"""The evidence of checks, from the proof's JSON and the files in the overlay's logs, as values.

A check writes `numbers` (a row for each value of a graph) and `programs` (what each graph was compiled to) into its
evidence, and leaves `<check>-<graph>.py` (generated code) and `<check>-<graph>.das` (the compiler's stages and
disassembly) under the same names on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from toolkit.model import CheckResult, Side
from toolkit.page import GraphEvidence, KeptFile, Kernel, NumberRow, Program

READ_LIMIT = 128_000
"""Bytes that are read of one file."""

MOST_GRAPHS = 300

CODE, STAGES = ".py", ".das"

Row = TypeVar("Row")


class _Number(msgspec.Struct, frozen=True, kw_only=True):
    graph: str
    mode: str
    value: str
    dtype: str
    shape: tuple[int, ...]
    reference: str
    maximum_absolute_error: float | None
    relative_l2: float | None
    cosine: float | None
    ulps: dict[str, int]
    within: bool
    written: bool = True


class _Kernel(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""
    type: str
    launches: tuple[str, ...] = ()


class _Program(msgspec.Struct, frozen=True, kw_only=True):
    graph: str
    kernels: tuple[_Kernel, ...]
    seconds: dict[str, float] = {}


class _Launched(msgspec.Struct, frozen=True, kw_only=True):
    """What a witness of launches writes for each graph, under the graph's name."""

    graph: str
    kernels: tuple[str, ...]
    launches: tuple[str, ...]
    lost: dict[str, str] = {}


def read_numbers(results: Iterable[CheckResult]) -> tuple[tuple[NumberRow, ...], list[str]]:
    """Return the rows of all results, and what has to be said of those that cannot be read."""
    rows, unread = [], []
    for result in results:
        found, remarks = _rows(result, "numbers", _Number)
        unread += remarks
        rows += [NumberRow(check=result.name, side=result.side, **msgspec.structs.asdict(one)) for one in found]
    return tuple(rows), unread


def read_programs(results: Iterable[CheckResult]) -> tuple[tuple[Program, ...], list[str]]:
    """Return the programs of all results, and what has to be said of those that cannot be read."""
    programs, unread = [], []
    for result in results:
        found, remarks = _rows(result, "programs", _Program)
        unread += remarks
        programs += [
            Program(
                check=result.name,
                side=result.side,
                graph=one.graph,
                kernels=tuple(Kernel(name=kernel.name, type=kernel.type) for kernel in one.kernels),
                launches=tuple(launch for kernel in one.kernels for launch in kernel.launches),
                seconds=one.seconds,
            )
            for one in found
        ]
        programs += _launched(result)
    return tuple(programs), unread


def read_graphs(results: Iterable[CheckResult], logs: Path) -> tuple[tuple[GraphEvidence, ...], list[str]]:
    """Return the generated code that is still there, both sides of a graph together, and what was left out."""
    found: dict[tuple[str, str], dict[tuple[str, Side], Path]] = {}
    for check, graph, side, path in _evidence_files(list(results), logs):
        found.setdefault((check, graph), {})[path.suffix, side] = path
    graphs = [
        GraphEvidence(
            check=check,
            graph=graph,
            code={side: _read(path, logs) for (suffix, side), path in files.items() if suffix == CODE},
            stages={side: _read(path, logs) for (suffix, side), path in files.items() if suffix == STAGES},
        )
        for (check, graph), files in list(found.items())[:MOST_GRAPHS]
    ]
    rest = len(found) - len(graphs)
    return tuple(graphs), [f"the code of {rest} more graphs is in {logs.name}/ only"] if rest > 0 else []


def _rows(result: CheckResult, key: str, form: type[Row]) -> tuple[list[Row], list[str]]:
    given = result.evidence.get(key)
    if given is None:
        return [], []
    rows = []
    for one in given if isinstance(given, list) else [given]:
        try:
            rows.append(msgspec.convert(one, form))
        except msgspec.ValidationError:
            continue
    unread = (len(given) if isinstance(given, list) else 1) - len(rows)
    remark = f"{unread} of the {key} that {result.name} recorded on the {result.side} cannot be read; see proof.json"
    return rows, [remark] if unread else []


def _launched(result: CheckResult) -> Iterator[Program]:
    for value in result.evidence.values():
        try:
            one = msgspec.convert(value, _Launched)
        except msgspec.ValidationError:  # other evidence, of another form
            continue
        yield Program(
            check=result.name,
            side=result.side,
            graph=one.graph,
            kernels=tuple(Kernel(name="", type=kind) for kind in one.kernels),
            launches=one.launches,
            lost=one.lost,
        )


# --- files -----------------------------------------------------------------------------------------------------


def _evidence_files(results: Sequence[CheckResult], logs: Path) -> Iterator[tuple[str, str, Side, Path]]:
    """Yield check, graph, side and path of every file of code, in the order of the proof's checks."""
    jobs: dict[tuple[str, Side], list[str]] = {}
    for result in results:
        if result.log:
            jobs.setdefault((Path(result.log).stem, result.side), []).append(result.name)
    for (job, side), checks in jobs.items():
        folder = logs / job
        for path in sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []:
            if path.suffix in (CODE, STAGES) and path.is_file() and not path.is_symlink():
                check, graph = _owner(path.stem, checks)
                yield check, graph, side, path


def _owner(stem: str, checks: Sequence[str]) -> tuple[str, str]:
    """Return the check that left a file, and its graph; a name that begins as none's goes to the first."""
    owners = [name for name in checks if stem == name or stem.startswith(f"{name}-")]
    owner = max(owners, key=len, default="")
    return (owner, stem[len(owner) + 1 :]) if owner else (checks[0], stem)


def _read(path: Path, logs: Path) -> KeptFile:
    with path.open("rb") as stream:
        raw = stream.read(READ_LIMIT)
    cut = max(0, path.stat().st_size - len(raw))
    return KeptFile(path=f"{logs.name}/{path.parent.name}/{path.name}", text=raw.decode("utf-8", "replace"), cut=cut)
