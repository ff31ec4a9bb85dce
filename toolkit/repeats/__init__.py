"""Run a command several times in fresh processes and say what of its results is the same every time.

`repeat` is the door. The runs share nothing that we can part: each has new compiler caches, and what one saves is out
of the way before the next begins.
"""

from __future__ import annotations

import contextlib
import logging
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from toolkit.errors import UsageError
from toolkit.files import remove_tree, temporary_directory
from toolkit.prove.child import stage_verify
from toolkit.repeats.printed import compile_pattern, find_hashes
from toolkit.repeats.saved import find_saved, put_back, read_saved, require_globs, require_none, set_aside
from toolkit.repeats.values import Repetition, Value, compare_printed, compare_saved, left_out_of
from toolkit.runs import Ran, require_empty, run_command, with_caches

__all__ = ["Asked", "Reading", "Repetition", "Value", "compile_pattern", "repeat"]

log = logging.getLogger(__name__)


SAVED = "run-*/files/**"
"""What the runs have saved, from the folder of what they have given."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """Who reads the saved tensors: an interpreter with torch, the folder of `verify/`, and how long it may take."""

    interpreter: Path
    verify: Path
    time_limit: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What is to be repeated and compared; `keep` is where what the runs have printed and saved stays."""

    argv: tuple[str, ...]
    times: int
    cwd: Path
    environ: Mapping[str, str]
    tensors: tuple[str, ...] = ()
    hashes: re.Pattern[str] | None = None
    own_caches: bool = True
    timeout: float | None = None
    keep: Path | None = None


@dataclass(kw_only=True, slots=True)
class _Aside:
    """The folder of what the runs have given, and whether it is still wanted when all is done."""

    root: Path
    is_wanted: bool
    moved: dict[Path, Path] = field(default_factory=dict)


def repeat(asked: Asked, reading: Reading, stage: Callable[[str], None]) -> Repetition:
    """Run the command and compare what its runs print and save; `stage` is told what is done next.

    The files of the last run are left where the command saved them. Those of all runs stay in a folder, which the
    result names, unless every run has given the same; they stay also where a later run fails or is interrupted.
    Raises CommandError for a run that fails, and UsageError where there is nothing to compare.
    """
    require_globs(asked.tensors, asked.cwd)
    require_none(asked.tensors, asked.cwd)
    with _set_aside(asked.keep) as aside:
        folders = [aside.root / f"run-{number}" for number in range(1, asked.times + 1)]
        ran = []
        for number, folder in enumerate(folders, start=1):
            stage(f"run {number} of {asked.times}")
            ran.append(_run(asked, number, folder))
            aside.moved = {}
            set_aside(asked.tensors, asked.cwd, folder, aside.moved)
        printed = compare_printed([_hashes_of(one, asked.hashes) for one in ran])
        _require_something(asked, printed, aside.root)
        found = Repetition(
            argv=asked.argv, seconds=tuple(one.seconds for one in ran), values=tuple(printed), left_out=()
        )  # fmt: skip
        if asked.tensors:
            stage("read the saved tensors")
            found = _with_saved(found, asked, reading, folders)
        aside.is_wanted = aside.is_wanted or bool(found.unstable)
        return replace(found, kept=str(aside.root)) if aside.is_wanted else found


def _with_saved(found: Repetition, asked: Asked, reading: Reading, folders: Sequence[Path]) -> Repetition:
    """Add what the runs have saved; UsageError where that is nothing, and nothing was printed either."""
    with temporary_directory("toolkit-repeat-") as scratch:
        told = read_saved(
            folders,
            interpreter=reading.interpreter,
            stage=stage_verify(reading.verify, scratch),
            environ=asked.environ,
            time_limit=reading.time_limit,
        )
    values = (*found.values, *compare_saved(told))
    if not values:
        raise UsageError("the saved files hold no tensor, and no run printed a hash: there is nothing to compare")
    return replace(found, values=values, left_out=left_out_of(told))


def _run(asked: Asked, number: int, folder: Path) -> Ran:
    with temporary_directory("toolkit-caches-") as caches:
        return run_command(
            asked.argv,
            what=f"run {number} of {asked.times}",
            cwd=asked.cwd,
            environ=with_caches(asked.environ, caches) if asked.own_caches else asked.environ,
            timeout=asked.timeout,
            outputs=folder,
        )


def _hashes_of(ran: Ran, pattern: re.Pattern[str] | None) -> dict[str, str]:
    """Return the hashes of both streams; programs print to one and log to the other."""
    return find_hashes(f"{ran.stdout}\n{ran.stderr}", pattern)


@contextlib.contextmanager
def _set_aside(keep: Path | None) -> Iterator[_Aside]:
    """Yield the folder for what the runs give; put the last run's files back, and lose none of the others.

    It is removed where it is not wanted: nothing was saved, or every run has saved the same.
    """
    if keep is not None:
        require_empty(keep)
    aside = _Aside(root=keep or Path(tempfile.mkdtemp(prefix="toolkit-repeat-")), is_wanted=keep is not None)
    try:
        yield aside
    except BaseException:
        aside.is_wanted = aside.is_wanted or bool(find_saved([SAVED], aside.root))
        if aside.is_wanted:
            log.warning("what the runs have given until then is in %s", aside.root)
        raise
    finally:
        put_back(aside.moved)
        if not aside.is_wanted:
            remove_tree(aside.root)


def _require_something(asked: Asked, printed: Sequence[Value], root: Path) -> None:
    """Raise UsageError where the runs have given less than was asked for by name."""
    if asked.hashes is not None and not printed:
        raise UsageError(
            f"no run printed a line that --hashes {asked.hashes.pattern!r} matches",
            hint="look at what it prints; the pattern is searched in each line",
        )
    if asked.tensors and not find_saved([SAVED], root):
        raise UsageError(
            f"no run saved a file that --tensors {' '.join(map(repr, asked.tensors))} names",
            hint=f"the pattern counts from {asked.cwd}",
        )
    if not asked.tensors and not printed:
        raise UsageError(
            "no run printed a hash, and --tensors names no files: there is nothing to compare",
            hint="let it print `name: <sha256>`, say with --hashes how it prints them, or name files with --tensors",
        )
