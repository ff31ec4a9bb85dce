"""Matrices in memory, for tests of what is said of them."""

from __future__ import annotations

from typing import Any

from toolkit.series.verdict import HunkVerdict, PatchState, PatchVerdict
from toolkit.upkeep.matrix import Cell, Column, Matrix, Row, WitnessVerdict
from toolkit.upkeep.words import Release

PATCH, SERIES = "0001-change", "part/1"


def verdict(state: PatchState, **more: Any) -> PatchVerdict:
    hunk = HunkVerdict(path="part/core.py", hunk=1, verdict="conflict" if state == "partly" else state, line=7)
    return PatchVerdict(name=PATCH, witness="answer", verdict=state, hunks=(hunk,), **more)


def witness(needed: str, works: str, **more: Any) -> WitnessVerdict:
    statuses = {"still needed": "fail", "no longer needed": "pass", "still works": "pass", "no longer works": "fail"}
    facts: dict[str, Any] = {
        "base": statuses.get(needed, "error"), "overlay": statuses.get(works, "error"), "base_detail": "base says",
        "overlay_detail": "overlay says", "torch": "2.13.0", **more,
    }  # fmt: skip
    return WitnessVerdict(witness="answer", needed=needed, works=works, **facts)  # type: ignore[arg-type]


def cell(state: PatchState | None, base: str = "1.0", **more: Any) -> Cell:
    facts: dict[str, Any] = {"covered": True, "verdict": verdict(state) if state else None, **more}
    return Cell(series=SERIES, patch=PATCH, base=base, **facts)


def matrix(*cells: Cell, remark: str = "", subject: str = "change", **more: Any) -> Matrix:
    columns = [
        Column(
            component="part", name=one.base, word=Release(distribution="part", version=one.base),
            coverage=f"part=={one.base}", remark=remark, why=one.why if one.verdict is None else "",
        )
        for one in cells
    ]  # fmt: skip
    row = Row(series=SERIES, patch=PATCH, subject=subject, witness="answer", diagnostic=False)
    return Matrix(columns=tuple(columns), rows=(row,), cells=cells, **more)
