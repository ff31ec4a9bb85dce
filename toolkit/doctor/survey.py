"""Where the target would import packages from, and why: asked of the target as training would start it.

Only what a start runs by itself is run there (`site`, and with it .pth files); no package is imported.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from toolkit.doctor.pth import PthLine, read_pth_files
from toolkit.errors import CommandError, TargetError
from toolkit.model import Interpreter
from toolkit.process import compose_env, last_lines, run

NAMES = ("torch", "torch_npu", "triton", "cann_ops_transformer", "torchtitan", "torchtitan_npu")
"""The packages that are looked for."""

PASSED = ("PYTHONPATH", "PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONUSERBASE", "PYTHONSAFEPATH", "PYTHONPLATLIBDIR",
          "LD_LIBRARY_PATH", "VIRTUAL_ENV", "SETUPTOOLS_USE_DISTUTILS")  # fmt: skip
"""What decides how an interpreter starts and where it looks."""

FIXED = {"PYTHONDONTWRITEBYTECODE": "1", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}

LIMIT = 20.0
"""How many seconds a start may take; the imports of .pth files are among it."""

CHILD = Path(__file__).with_name("survey_child.py")
MARK = "toolkit-survey:"

START = """
import sys
_seen = list(sys.path), list(sys.meta_path)
os = sys.modules["os"]
home = os.path.dirname(os.__file__)
sys.path[:] = [home, os.path.join(home, "lib-dynload")]
sys.meta_path[:] = [one for one in sys.meta_path if str(getattr(one, "__module__", "")).startswith("_frozen_importlib")]
with open(sys.argv[1], "rb") as stream:
    exec(compile(stream.read(), sys.argv[1], "exec"))
"""
"""Shuts what stands in the working directory or on PYTHONPATH off from the look itself, then looks."""

GIVEN_UP = re.compile("^Error processing ", re.MULTILINE)
"""How `site` begins to tell of a .pth file whose code fails, as each start with it does."""

Kind = Literal["folder", "pythonpath", "user", "site", "pth", "finder", "other"]
"""Why a place is looked in: it is the working directory, it stands on PYTHONPATH, … an editable install's finder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """A package at one place. `why` says in words why it is looked for there; `entry` is that entry of sys.path.

    `place` is the package's folder, or its file for a module alone. A namespace package is a folder without
    `__init__.py`: it wins only where no finder has anything better. `entry` is empty for what a finder brings.
    """

    name: str
    place: Path
    entry: str
    kind: Kind
    why: str
    is_namespace: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey:
    """What decides about imports in the target.

    `winners` are what an import would take, by name, `others` what it hides, `faults` the words of finders that fail,
    `complaints` those of .pth files that do.
    `include` is where Python.h has to be, `suffix` how extension modules end.
    """

    path: tuple[str, ...]
    prefix: Path
    site_folders: tuple[Path, ...]
    user_site: Path | None
    include: Path
    suffix: str
    finders: tuple[str, ...]
    pth_lines: tuple[PthLine, ...]
    winners: Mapping[str, Found]
    others: Mapping[str, tuple[Found, ...]]
    faults: Mapping[str, str]
    complaints: tuple[str, ...] = ()

    @property
    def packages(self) -> dict[str, Path]:
        """The folder of each package that would be imported; a namespace is none."""
        return {name: found.place for name, found in self.winners.items() if not found.is_namespace}


def survey_imports(
    interpreter: Interpreter, environ: Mapping[str, str], cwd: Path, names: Sequence[str] = NAMES
) -> Survey:
    """Ask the target where it would import packages from, started in `cwd` with the caller's import settings.

    Raises TargetError where it does not start so, or not within LIMIT.
    """
    facts = _ask(interpreter.executable, environ, cwd, names)
    places = _Places.read(facts, environ, cwd)
    winners, others, faults = {}, {}, {}
    for name, told in facts["packages"].items():
        winner = told["winner"]
        if winner is not None and "fault" in winner:
            faults[name] = f"{winner['finder']} fails: {winner['fault']}"
        elif winner is not None:
            winners[name] = places.judge(name, winner, told["all"])
        taken = _real(winners[name].place) if name in winners else None
        all_found = [places.found(name, one) for one in told["all"]]
        others[name] = tuple(_distinct(one for one in all_found if _real(one.place) != taken))
    return Survey(
        path=tuple(facts["path"]),
        prefix=Path(facts["prefix"]),
        site_folders=tuple(places.site),
        user_site=places.user,
        include=Path(facts["include"]),
        suffix=facts["suffix"],
        finders=tuple(facts["finders"]),
        pth_lines=places.pth,
        winners=winners,
        others=others,
        faults=faults,
        complaints=facts["complaints"],
    )


def _ask(executable: Path, environ: Mapping[str, str], cwd: Path, names: Sequence[str]) -> dict[str, Any]:
    settings = {name: environ[name] for name in PASSED if name in environ}
    argv: list[str | Path] = [executable, "-c", START, CHILD, *names]
    try:
        done = run(argv, cwd=cwd, env=compose_env(environ, {**settings, **FIXED}), timeout=LIMIT, check=False)
    except CommandError as fault:
        raise TargetError(fault.message, hint=fault.hint, details=fault.details) from fault
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if not lines:
        said = last_lines(done.stdout, done.stderr)
        errors = [line for line in said if "Error" in line]
        raise TargetError((errors or said or [f"it ended with code {done.returncode} and said nothing"])[-1].strip())
    answer: dict[str, Any] = json.loads(lines[0].removeprefix(MARK))
    return {**answer, "complaints": _complaints(done.stderr)}


def _complaints(stderr: str) -> tuple[str, ...]:
    """Return what `site` says of .pth files that it gave up: file and line, and the error."""
    found = []
    for part in GIVEN_UP.split(stderr)[1:]:
        head, _, rest = part.partition("\n")
        errors = [
            line.strip() for line in rest.partition("Remainder of file ignored")[0].splitlines() if "Error" in line
        ]
        found.append(f"{head.rstrip(':')}: {errors[-1] if errors else 'it failed'}")
    return tuple(found)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Places:
    """Why each entry of sys.path is there."""

    cwd: Path
    pythonpath: tuple[str, ...]
    site: tuple[Path, ...]
    user: Path | None
    pth: tuple[PthLine, ...]

    @classmethod
    def read(cls, facts: Mapping[str, Any], environ: Mapping[str, str], cwd: Path) -> _Places:
        on_path = {_real(entry) for entry in facts["path"]}
        site = tuple(Path(folder) for folder in facts["site"] if _real(folder) in on_path)
        user = Path(facts["user_site"]) if facts["user_site"] and _real(facts["user_site"]) in on_path else None
        return cls(
            cwd=cwd,
            pythonpath=tuple(environ["PYTHONPATH"].split(os.pathsep)) if environ.get("PYTHONPATH") else (),
            site=site,
            user=user,
            pth=tuple(read_pth_files([*([user] if user else []), *site])),
        )

    def judge(self, name: str, winner: Mapping[str, Any], everywhere: Sequence[Mapping[str, Any]]) -> Found:
        """Say why the winner wins: by the path entry that has it, or else by the finder that brought it."""
        if winner["finder"]:
            place = _place(winner)
            return Found(
                name=name, place=place, entry="", kind="finder", why=f"the finder {winner['finder']}",
                is_namespace=winner["namespace"],
            )  # fmt: skip
        wanted = _real(_place(winner))
        at = next(one for one in everywhere if _real(_place(one)) == wanted)
        return self.found(name, at)

    def found(self, name: str, told: Mapping[str, Any]) -> Found:
        kind, why = self.reason(told["entry"])
        return Found(
            name=name, place=_place(told), entry=told["entry"], kind=kind, why=why, is_namespace=told["namespace"]
        )

    def reason(self, entry: str) -> tuple[Kind, str]:
        """Say why an entry is on sys.path. A working directory that PYTHONPATH names first as well is meant to be."""
        is_named = bool(self.pythonpath and self.pythonpath[0]) and _real(self.cwd / self.pythonpath[0]) == _real(
            self.cwd
        )
        if entry == "" and not is_named:
            return "folder", "the working directory"
        for number, item in enumerate(self.pythonpath, 1):
            if _real(self.cwd / item) == _real(self.cwd / entry):
                count = len(self.pythonpath)
                return "pythonpath", f"{'the empty ' if not item else ''}entry {number} of {count} of PYTHONPATH"
        if self.user is not None and _real(entry) == _real(self.user):
            return "user", "the user's site-packages"
        if any(_real(entry) == _real(folder) for folder in self.site):
            return "site", "site-packages"
        for line in self.pth:
            if line.folder is not None and _real(line.folder) == _real(entry):
                return "pth", f"{line.file.name} in {line.file.parent}"
        return "other", f"the entry {entry} of sys.path"


def _place(told: Mapping[str, Any]) -> Path:
    if told["places"]:
        return Path(told["places"][0])
    return Path(told["origin"] or told.get("entry", ""))


def _distinct(found: Any) -> list[Found]:
    by_place: dict[str, Found] = {}
    for one in found:
        by_place.setdefault(_real(one.place), one)
    return list(by_place.values())


def _real(place: Path | str) -> str:
    return os.path.realpath(place)
