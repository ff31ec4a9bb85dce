"""Whether a patch does what the change does that it was made from, hunk by hunk, wherever the lines are now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from toolkit.series.diff import FileDiff, Hunk

Kept = Literal["unchanged", "moved", "changed"]
"""A patch's diff beside its old self: the same, the same at other lines or paths, or with other content."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """In what a file's change is not what it was."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


def differences(
    there: Sequence[FileDiff], here: Sequence[FileDiff], *, moved: Mapping[str, str] | None = None
) -> list[Difference]:
    """Say in what two diffs differ besides their line numbers; nothing where they are proven to be equal.

    Equal are they that change the same files in the same way: the same lines removed and added, with the same context,
    in the same hunks. `moved` are paths of the first diff that are others in the second.
    """
    names = moved or {}
    old = {names.get(file.path, file.path): file for file in there}
    new = {file.path: file for file in here}
    return list(_differences(old, new))


def compare(there: Sequence[FileDiff], here: Sequence[FileDiff]) -> tuple[Kept, list[Difference]]:
    """Say how a patch that was moved to another base stands to what it was, and in what its content differs."""
    found = differences(there, here)
    if found:
        return "changed", found
    places = [[(hunk.old_start, hunk.new_start) for file in files for hunk in file.hunks] for files in (there, here)]
    return ("unchanged" if places[0] == places[1] else "moved"), []


def _differences(old: Mapping[str, FileDiff], new: Mapping[str, FileDiff]) -> Iterator[Difference]:
    for path in sorted(old.keys() | new.keys()):
        if path not in new:
            yield Difference(path=path, why="it is no longer changed")
        elif path not in old:
            yield Difference(path=path, why="it was not changed before")
        elif why := _difference(old[path], new[path]):
            yield Difference(path=path, why=why)


def _difference(old: FileDiff, new: FileDiff) -> str:
    if old.kind != new.kind:
        return f"it is {new.kind}, and was {old.kind}"
    if old.kind == "renamed" and old.old_path != new.old_path:
        return f"it is renamed from {new.old_path}, and was from {old.old_path}"
    if old.binary is not None or new.binary is not None:
        same = (old.old_blob, old.new_blob) == (new.old_blob, new.new_blob)
        return "" if same else "its bytes are others"
    if [_body(hunk) for hunk in old.hunks] == [_body(hunk) for hunk in new.hunks]:
        return ""
    if _changed_lines(old) == _changed_lines(new):
        return "the lines removed and added are the same, the context around them is not"
    first = next(
        (at for at, pair in enumerate(zip(old.hunks, new.hunks, strict=False)) if _body(pair[0]) != _body(pair[1])),
        min(len(old.hunks), len(new.hunks)),
    )
    return f"other lines are removed or added, first in hunk #{first + 1}"


def _body(hunk: Hunk) -> list[bytes]:
    """Return a hunk's lines but the first, which says where it stands and what git takes for its heading.

    An empty line of context may have lost its blank on the way.
    """
    return [line or b" " for line in hunk.raw.removesuffix(b"\n").split(b"\n")[1:]]


def _changed_lines(file: FileDiff) -> list[bytes]:
    return [line for hunk in file.hunks for line in _body(hunk) if line[:1] in (b"-", b"+")]
