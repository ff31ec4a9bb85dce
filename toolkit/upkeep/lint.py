"""Everything that is wrong with series by themselves: all faults of all of them, in one go.

What keeps a patch from being applied at all is refused whenever a series is read; the rest is what a reviewer would
send back. How the patches stand to a base that has moved on is the matter of `status` and `matrix`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkit import series
from toolkit.errors import SeriesError
from toolkit.files import temporary_directory
from toolkit.model import Interpreter, Patch, Series
from toolkit.plan import witness_faults
from toolkit.project import Project
from toolkit.schema import shown_path
from toolkit.series import Line
from toolkit.series.diff import parse_diff
from toolkit.series.lines import PatchFault
from toolkit.series.load import read_folder
from toolkit.series.mail import is_mangled, parse_mail
from toolkit.series.undone import ReadPatch, undoing_faults
from toolkit.series.whitespace import whitespace_faults
from toolkit.series.wording import line_of, wording_faults
from toolkit.upkeep.bases import BaseTree, this_interpreter
from toolkit.upkeep.compiling import NOT_APPLYING, faults_alone, faults_on_base
from toolkit.upkeep.nearest import nearest_base
from toolkit.upkeep.roundtrip import round_trip_faults
from toolkit.work import Means, Watcher

LINE_AND_WHAT = re.compile(r":(?P<line>\d+)(?::\d+)?: (?P<what>.*)", re.DOTALL)
TRAILER = re.compile(r"`(?P<token>[A-Za-z-]+:)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One fault, in a line of a file, counted from 1; 0 where it is in none. `path` is the folder if it is in that."""

    path: Path
    what: str
    line: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class SeriesReport:
    """What was found in one series; `remarks` say what could not be looked at, and are no faults."""

    name: str
    patches: int
    faults: tuple[Finding, ...]
    remarks: tuple[str, ...] = ()


def lint_series(names: Sequence[str], project: Project, means: Means, watcher: Watcher) -> tuple[SeriesReport, ...]:
    """Look at each series whole: what is wrong with one patch keeps nobody from seeing what is wrong with the next."""
    interpreter = this_interpreter(means)
    return tuple(_lint_one(name, project, means, watcher, interpreter) for name in names)


def _lint_one(name: str, project: Project, means: Means, watcher: Watcher, interpreter: Interpreter) -> SeriesReport:
    folder = project.series_folder(name)
    line, line_faults = _read_line(folder, name)
    patches, refused = read_folder(folder)
    opened = [_open(patch) for patch in patches]
    faults = [*line_faults, *(_refusal(fault, folder) for fault in refused)]
    faults += [_finding(patch, PatchFault(what=what)) for patch, what in _witness_faults(patches, project)]
    faults += [_finding(one.patch, fault) for one in opened for fault in _own_faults(one)]
    faults += [_finding(patch, fault) for patch, fault in undoing_faults(opened)]
    if refused or line is None:
        # A path that leaves the tree may be among what is refused: nothing is written by such patches.
        faults += [_finding(patch, fault) for patch, fault in faults_alone(opened)]
        remarks: tuple[str, ...] = ("not compiled on a base, nor written anew: the other faults come first",)
    else:
        whole = Series(name=name, patches=patches)
        found, remarks = _faults_with_base(whole, opened, line, means, watcher, interpreter)
        faults += found
    return SeriesReport(name=name, patches=len(patches), faults=tuple(_sorted(faults)), remarks=remarks)


# --- the series' own file ----------------------------------------------------------------------------------------


def _read_line(folder: Path, name: str) -> tuple[Line | None, list[Finding]]:
    path = folder / series.LINE_FILE
    try:
        line = series.read_line(folder, name=name)
    except SeriesError as fault:
        texts = fault.details or (f"{fault.message}; {fault.hint}" if fault.hint else fault.message,)
        return None, [_line_finding(text.removeprefix(shown_path(path)), path) for text in texts]
    return line, [Finding(path=path, what=what) for what in _line_faults(line)]


def _line_finding(text: str, path: Path) -> Finding:
    placed = LINE_AND_WHAT.fullmatch(text)
    if placed is None:
        return Finding(path=path, what=text.removeprefix(": "))
    return Finding(path=path, what=placed["what"], line=int(placed["line"]))


def _line_faults(line: Line) -> Iterator[str]:
    for covered in dict.fromkeys(line.covers):
        if line.covers.count(covered) > 1:
            yield f"covers: {covered!r} stands {line.covers.count(covered)} times"
        if covered.startswith("git:") and not line.upstream:
            yield f"covers: nothing says where {covered} is; expected the addresses of its repository as `upstream`"


# --- a patch by itself -------------------------------------------------------------------------------------------


def _open(patch: Patch) -> ReadPatch:
    raw = patch.path.read_bytes()
    files = () if is_mangled(raw) else tuple(parse_diff(parse_mail(raw, []).diff, []))
    return ReadPatch(patch=patch, raw=raw, files=files)


def _own_faults(one: ReadPatch) -> Iterator[PatchFault]:
    if is_mangled(one.raw):  # Refused as it is; whatever else would be said of it comes of that.
        return
    yield from wording_faults(one.raw, parse_mail(one.raw, []))
    yield from whitespace_faults(one.raw, one.files)


def _witness_faults(patches: Sequence[Patch], project: Project) -> Iterator[tuple[Patch, str]]:
    """Find witnesses that are named and not there; that none is named is refused already."""
    for patch, what in witness_faults([patch for patch in patches if patch.witness], project):
        yield patch, f"{what}; write it, as docs/patches.md says"


def _refusal(fault: str, folder: Path) -> Finding:
    """Find the file, and where it can be told the line, of a fault for which a series is not read."""
    name, _, what = fault.partition(": ")
    path = folder / name
    if not path.is_file():
        return Finding(path=folder, what=what)
    return Finding(path=path, what=what, line=_line_of(what, path.read_bytes()))


def _line_of(what: str, raw: bytes) -> int:
    """Return the line of the trailer or of the changed file that a fault names, 0 for neither."""
    if trailer := TRAILER.search(what):
        return line_of(raw, trailer["token"])
    words = set(what.replace(";", " ").replace(",", " ").split())
    for number, line in enumerate(raw.decode("utf-8", "replace").split("\n"), 1):
        if line.startswith("diff --git a/") and line.partition(" b/")[2] in words:
            return number
    return 0


def _finding(patch: Patch, fault: PatchFault) -> Finding:
    return Finding(path=patch.path, what=fault.what, line=fault.line)


# --- a series on a base ------------------------------------------------------------------------------------------


def _faults_with_base(
    whole: Series, opened: Sequence[ReadPatch], line: Line, means: Means, watcher: Watcher, interpreter: Interpreter
) -> tuple[list[Finding], tuple[str, ...]]:
    """Compile what the series makes of its base, or what stands alone in it, and write it anew."""
    with temporary_directory("toolkit-lint-") as scratch:
        base, refusals = nearest_base(
            line, whole.paths, means=means, watcher=watcher, interpreter=interpreter, scratch=scratch
        )
        is_home = base is not None and base.coverage == line.home
        if base is None:
            compiled = list(faults_alone(opened))
        else:
            compiled = list(
                faults_on_base(opened, base.tree, label=base.label, scratch=scratch / "apply", is_home=is_home)
            )
        # On another base than its own a series has other line numbers; on one where it does not apply, none.
        applies = not any(fault.what.startswith(NOT_APPLYING) for _, fault in compiled)
        written = round_trip_faults(whole, base.tree if base and is_home and applies else None)
    folder = opened[0].patch.path.parent
    faults = [_finding(patch, fault) for patch, fault in compiled] + [
        _written_finding(text, folder) for text in written
    ]
    return faults, tuple(_remarks(base, refusals, is_home=is_home))


def _written_finding(text: str, folder: Path) -> Finding:
    name, _, rest = text.partition(".patch")
    return _line_finding(rest, folder / f"{name}.patch")


def _remarks(base: BaseTree | None, refusals: Sequence[str], *, is_home: bool) -> Iterator[str]:
    if base is None:
        yield f"not compiled: no base that it covers can be had here ({'; '.join(refusals)})"
    elif not is_home:
        yield f"compiled on {base.label} instead of its home ({'; '.join(refusals)})"


def _sorted(faults: Sequence[Finding]) -> list[Finding]:
    """Put faults in the order of files and lines, each once."""
    return sorted(dict.fromkeys(faults), key=lambda one: (one.path.name == series.LINE_FILE, str(one.path), one.line))
