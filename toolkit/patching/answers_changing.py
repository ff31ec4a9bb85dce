"""What the commands that change a series answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.answers import Answer

if TYPE_CHECKING:
    from toolkit.upkeep.acceptances import StaleAcceptance
    from toolkit.upkeep.reshaping import Retired
    from toolkit.upkeep.writeback import Written, WrittenPatch


def describe_written(written: Written, stale: Sequence[StaleAcceptance] = ()) -> Answer:
    """Say what became of each patch of a series, and which recipes have to be edited for it."""
    if not written.changed:
        return Answer(text=f"{written.name}: nothing changed", document=_document(written, stale))
    lines = [
        f"{written.name}: wrote {written.folder}",
        *(f"  {patch.name}{_fate(patch)}" for patch in written.patches),
        *(f"  {name} is no longer there" for name in written.gone),
        *_edits(stale),
    ]
    return Answer(text="\n".join(lines), document=_document(written, stale))


def describe_retired(retired: Retired, stale: Sequence[StaleAcceptance]) -> Answer:
    """Say where a retired patch is kept, and what became of the others."""
    rest = describe_written(retired.written, stale)
    return Answer(
        text=f"{retired.patch} is retired: {retired.path}\n{rest.text}",
        document={"retired": {"name": retired.patch, "path": str(retired.path)}, **rest.document},
    )


def describe_given_up(name: str, folder: Path) -> Answer:
    """Say that the work on a series is gone, and the series as it was."""
    return Answer(
        text=f"{name} is as it was; {folder} is removed", document={"series": name, "changed": False, "patches": []}
    )


def _document(written: Written, stale: Sequence[StaleAcceptance]) -> dict[str, Any]:
    return {
        "series": written.name,
        "folder": str(written.folder),
        "changed": written.changed,
        "patches": [asdict(patch) for patch in written.patches],
        "gone": list(written.gone),
        "accept_upstream": [asdict(one) for one in stale],
    }


def _fate(patch: WrittenPatch) -> str:
    words = [f"was {patch.old}"] if patch.old not in ("", patch.name) else []
    words += {"rewritten": ["written anew"], "new": ["new"]}.get(patch.fate, [])
    return f" ({', '.join(words)})" if words else ""


def _edits(stale: Sequence[StaleAcceptance]) -> list[str]:
    return [
        f"edit recipe {one.recipe}: accept_upstream of {one.component} names {one.old}, "
        + (f"which is {one.new} now" if one.new else "which is no patch of the series any more")
        for one in stale
    ]
