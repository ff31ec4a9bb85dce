"""The interpreter that training would run: whether it can be used, starts as it is, and is the one on the PATH."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from toolkit.doctor.asked import Asked
from toolkit.doctor.observed import bad, doubtful, good
from toolkit.doctor.survey import LIMIT, Survey
from toolkit.errors import ContractMismatchError, TargetError
from toolkit.model import Interpreter, Observation, Recipe
from toolkit.target import choose_target, inspect_interpreter

PROGRAMS = ("python", "python3", "torchrun")
"""What launch scripts call; the first two name an interpreter, the last one brings its own."""

SHIM_LIMIT = 4096
"""How many bytes of a script say what runs it."""

LONG_NAME = re.compile(r"""'''exec' (?:"(?P<quoted>[^"]+)"|(?P<bare>\S+)) """)
"""How pip names an interpreter whose path is too long, or has a blank, for the first line."""


def examine_interpreter(asked: Asked, survey: Survey | None, survey_fault: str) -> list[Observation]:
    """Look at the interpreter; `survey_fault` says why it does not start with the caller's environment."""
    found = asked.interpreter
    if found is None:
        return [bad("interpreter.python", asked.interpreter_fault, "name another with --python")]
    seen = f"CPython {found.version} ({found.python_tag}, {found.platforms[0]}) at {found.executable}"
    observations = [good("interpreter.python", seen), *_tag(asked.wanted, found), _start(asked, survey_fault)]
    if survey is not None:
        observations += [_headers(found, survey), _on_path(found, survey.prefix, asked)]
    return observations


def _tag(wanted: Recipe | None, found: Interpreter) -> Iterator[Observation]:
    if wanted is None:
        return
    try:
        chosen = choose_target(found, wanted.contract)
    except ContractMismatchError as fault:
        yield bad("interpreter.tag", f"{fault.message}, by the recipe {wanted.name}", fault.hint)
    else:
        yield good("interpreter.tag", f"{chosen}, which the recipe {wanted.name} takes")


def _start(asked: Asked, fault: str) -> Observation:
    home = asked.environ.get("PYTHONHOME")
    if fault:
        do = "unset PYTHONHOME" if home else "start it by hand with this environment; PYTHONPATH, .pth files run first"
        return bad("interpreter.start", f"it does not start with this environment: {fault}", do)
    if home:
        return doubtful(
            "interpreter.start", f"PYTHONHOME is {home}: every Python takes its standard library from there",
            "unset PYTHONHOME",
        )  # fmt: skip
    return good("interpreter.start", "starts with this environment's PYTHONPATH and .pth files")


def _headers(found: Interpreter, survey: Survey) -> Observation:
    if (survey.include / "Python.h").is_file():
        return good("interpreter.headers", f"Python.h is in {survey.include}")
    return doubtful(
        "interpreter.headers", f"no Python.h in {survey.include}: extensions and Triton's launchers do not compile",
        f"install the headers of Python {'.'.join(found.version.split('.')[:2])} (python3-dev, python3-devel)",
    )  # fmt: skip


def _on_path(found: Interpreter, prefix: Path, asked: Asked) -> Observation:
    """Compare what a launch script's `python` and `torchrun` would be with the target."""
    path = asked.environ.get("PATH", os.defpath)
    places = {name: Path(place) for name in PROGRAMS if (place := shutil.which(name, path=path))}
    others = [f"{name} is {place}" for name, place in places.items() if not _is_of(place, found, prefix, asked.environ)]
    do = f"put {found.executable.parent} first on PATH, or start with `toolkit run -- CMD`; or name it with --python"
    if others:
        return doubtful("interpreter.path", f"on the PATH {', '.join(others)}: not the target", do)
    if "python" not in places:
        return doubtful("interpreter.path", "there is no python on the PATH", do)
    return good("interpreter.path", f"{' and '.join(places)} on the PATH {'is' if len(places) == 1 else 'are'} its own")


def _is_of(place: Path, found: Interpreter, prefix: Path, environ: Mapping[str, str]) -> bool:
    """Whether a program is the target, or a script that runs in it."""
    if _is_interpreter(place, found, prefix):
        return True
    first, _, second = _head(place).partition("\n")
    if not first.startswith("#!"):
        return False
    words = first[2:].split()
    if words and Path(words[0]).name == "env" and Path(words[-1]).name in PROGRAMS:
        return True  # It asks the PATH again, which is looked at by itself.
    if long := LONG_NAME.match(second):
        return _is_interpreter(Path(long["quoted"] or long["bare"]), found, prefix)
    if words and Path(words[0]).name.startswith("python"):
        return _is_interpreter(Path(words[0]), found, prefix)
    return place.name.startswith("python") and _is_shim_of(place, found, prefix, environ)


def _is_shim_of(place: Path, found: Interpreter, prefix: Path, environ: Mapping[str, str]) -> bool:
    """Whether a script that chooses an interpreter, such as pyenv's, chooses the target."""
    try:
        return _is_interpreter(inspect_interpreter(place, env=environ, timeout=LIMIT).executable, found, prefix)
    except TargetError:
        return False


def _head(place: Path) -> str:
    try:
        with place.open("rb") as stream:
            return stream.read(SHIM_LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""


def _is_interpreter(place: Path, found: Interpreter, prefix: Path) -> bool:
    """Whether a path names the target: the same file in an environment's own folder, or by a link outside of any."""
    if os.path.realpath(place) != os.path.realpath(found.executable):
        return False
    return _environment(place) == _environment(found.executable) or _environment(place) == prefix


def _environment(program: Path) -> Path | None:
    """Return the virtual environment that a program stands in, links in its name followed only as Python does."""
    home = program.absolute().parent.parent
    return Path(os.path.realpath(home)) if (home / "pyvenv.cfg").is_file() else None
