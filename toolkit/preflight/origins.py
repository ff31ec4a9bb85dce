"""What would be imported, and by whom: the overlay against the interpreter, the program, the import path."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.doctor.observed import bad, doubtful, good
from toolkit.envfile import PYTHONPATH
from toolkit.model import Observation
from toolkit.preflight.subject import read_sourced

if TYPE_CHECKING:
    from toolkit.preflight.subject import Subject

PYTHON = re.compile(r"python(\d+(\.\d+)?)?")
STARTERS = ("torchrun",)
SYSTEM = re.compile(r"(site|dist)-packages$")
SETS_PATH = re.compile(rb"^[^#\n]*\bPYTHONPATH=", re.MULTILINE)


def examine_origins(subject: Subject) -> list[Observation]:
    """Look at the overlay's contract, the program that is started, the import path, and what may change it."""
    return [
        _examine_versions(subject),
        *_examine_programs(subject),
        *_examine_script(subject),
        _examine_path(subject),
        *_examine_shadows(subject),
        *_examine_sourced(subject),
        *_examine_replaced(subject),
    ]


def _examine_versions(subject: Subject) -> Observation:
    if subject.misfit is not None:
        return bad("preflight.versions", *subject.misfit)
    overlay = subject.overlay
    versions = [f"{one.distribution} {one.version}" for one in overlay.packages] + [f"torch {overlay.contract.torch}"]
    seen = f"{', '.join(versions)} for {overlay.target}, as the recipe {overlay.recipe} says, in {subject.interpreter}"
    return good("preflight.versions", seen)


# --- programs ----------------------------------------------------------------------------------------------------


def _examine_programs(subject: Subject) -> Iterator[Observation]:
    """Yield whether what is started is there, and is of the interpreter that the overlay fits."""
    launch, name = subject.launch, "preflight.program"
    path = subject.effective("PATH") or os.defpath
    for word in dict.fromkeys((launch.program, launch.starter)):
        found = shutil.which(str(subject.place(word)) if "/" in word else word, path=path)
        if found is None and word == launch.program and "/" not in word and subject.place(word).exists():
            found = str(subject.place(word))  # bash reads a script of that name from where it stands.
        if found is None:
            yield _missing(name, subject, word)
        elif other := _other_interpreter(Path(found), subject.interpreter):
            whose = "" if other == found else f", of {other}"
            seen = f"{word} is {found}{whose}, and the overlay was checked for {subject.interpreter}"
            yield bad(name, seen, f"{_instead(word, subject)}, or check the overlay for that one: --python PATH")
        elif word == launch.program:
            yield good(name, found)
    if flags := _deaf_flags(launch.argv):
        seen = f"python {flags} ignores PYTHONPATH, and so the overlay"
        yield bad(name, seen, f"leave {flags} out")


def _instead(word: str, subject: Subject) -> str:
    """Say how the overlay's own interpreter would start: it is first on PATH, where it has a program of that name."""
    own = subject.interpreter.absolute()
    if "/" in word and (own.parent / Path(word).name).exists():
        return "name it without its folder"
    return f"start {own} -m torch.distributed.run" if Path(word).name in STARTERS else f"start {own}"


def _deaf_flags(argv: Sequence[str]) -> str:
    """Return the option with which a Python on the command line does not heed PYTHON* variables, if there is one."""
    at = next((place for place, word in enumerate(argv) if PYTHON.fullmatch(Path(word).name)), len(argv))
    for word in argv[at + 1 :]:
        if not word.startswith("-") or word[1:2] in ("-", "m", "c", ""):
            return ""
        if re.fullmatch(r"-[a-zA-Z]*[EI][a-zA-Z]*", word):
            return word
    return ""


def _missing(name: str, subject: Subject, word: str) -> Observation:
    place = subject.place(word)
    if "/" in word and place.exists():
        return bad(name, f"{word} cannot be run by this user", f"chmod +x {word}, or start it with bash")
    where = f"there is no {place}" if "/" in word or word.endswith(".sh") else f"there is no {word} on PATH"
    return doubtful(
        name, f"{where}: what it sets and passes on cannot be read", "run preflight where the run will start"
    )


def _other_interpreter(program: Path, interpreter: Path) -> str:
    """Return which Python a program is or uses where that is another than ours, else nothing."""
    if PYTHON.fullmatch(program.name):
        used = program
    elif program.name in STARTERS and (shebang := _interpreter_line(program)):
        used = Path(shebang)
    else:
        return ""
    if not used.exists() or _environment(used) == _environment(interpreter):
        return ""
    return str(used)


def _environment(program: Path) -> tuple[Path, Path]:
    """Return what makes two Pythons one: the folder of the virtual environment, or the program itself."""
    folder = Path(os.path.abspath(program)).parent
    real = Path(os.path.realpath(program))
    is_virtual = (folder.parent / "pyvenv.cfg").is_file()
    return (Path(os.path.realpath(folder)), Path()) if is_virtual else (Path(), real)


def _interpreter_line(program: Path) -> str:
    try:
        with program.open("rb") as stream:
            line = stream.readline(512)
    except OSError:
        return ""
    found = re.fullmatch(rb"#!\s*(/\S*python\S*)\s*", line)
    return os.fsdecode(found[1]) if found else ""


def _examine_script(subject: Subject) -> Iterator[Observation]:
    launch, name = subject.launch, "preflight.script"
    if launch.passes_on is False:
        yield bad(
            name,
            f"{launch.script_path} does not hand all of its arguments on to {launch.target}: some options are lost",
            'end its training command with "$@"',
        )
    elif launch.passes_on:
        set_here = ", ".join(f"{key}={value}" for key, value in launch.script.items() if value and len(value) < 40)
        yield good(name, f"{launch.script_path} starts {launch.target}{f' with {set_here}' if set_here else ''}")


# --- the import path ---------------------------------------------------------------------------------------------


def _examine_path(subject: Subject) -> Observation:
    name, value = "preflight.import_path", subject.effective(PYTHONPATH)
    do = f"put {subject.activation.site} first, or leave PYTHONPATH to toolkit"
    if value is None:
        return doubtful(name, f"what {PYTHONPATH} will be cannot be known from the command's text", do)
    entries = value.split(":") if value else []
    places = [os.path.realpath(subject.place(entry)) if entry else "" for entry in entries]
    if subject.site not in places:
        return bad(name, f"{PYTHONPATH}={value} does not have the overlay's {subject.activation.site}", do)
    before = [entry for entry in entries[: places.index(subject.site)] if entry]
    if before:
        told = ", ".join(_told(subject.place(entry), entry, _packages(subject)) for entry in before)
        return bad(name, f"{PYTHONPATH} has {told} before the overlay's {subject.activation.site}", do)
    if "" in entries:
        seen = f"{PYTHONPATH}={value} has an empty entry: Python takes it for the folder where the run starts"
        return bad(name, seen, "take the empty entry out: no colon at the ends, no two in a row")
    gone = [entry for entry in entries if not subject.place(entry).exists()]
    if gone:
        return doubtful(
            name, f"{PYTHONPATH} has {', '.join(gone)}, which is not there", "mend the path or leave it out"
        )
    rest = f", then {', '.join(entries[1:])}" if entries[1:] else ""
    return good(name, f"{PYTHONPATH} has the overlay's {entries[0]} first{rest}")


def _packages(subject: Subject) -> list[str]:
    return [one.import_name for one in subject.overlay.packages]


def _told(place: Path, entry: str, packages: Sequence[str]) -> str:
    """Name an entry, and why it matters that it stands where it does."""
    held = [one for one in packages if (place / one).is_dir()]
    what = (
        f"with a {' and a '.join(held)} in it"
        if held
        else "a folder of system packages"
        if SYSTEM.search(entry)
        else ""
    )
    return f"{entry} ({what})" if what else entry


def _examine_shadows(subject: Subject) -> Iterator[Observation]:
    """Yield a source tree where the run starts: `python -m` looks there before PYTHONPATH, or in a file's folder."""
    target = subject.launch.target
    is_file = target.endswith(".py")
    place = subject.place(target).parent if is_file else subject.place("")
    if place.is_dir() and os.path.realpath(place) != subject.site:
        for one in _packages(subject):
            if (place / one / "__init__.py").is_file():
                seen = f"{place / one} comes before the overlay's {one}: Python looks in {place} first"
                yield bad("preflight.import_path", seen, "start the run from another folder, or move that one away")


def _examine_sourced(subject: Subject) -> Iterator[Observation]:
    """Yield what a run script takes in after the overlay was put first: set_env.sh puts CANN's packages before it."""
    own = {os.path.realpath(subject.activation.root / "env.sh")}
    files = list(subject.launch.sourced)
    last = max((at for at, one in enumerate(files) if os.path.realpath(subject.place(one)) in own), default=-1)
    for one in files[last + 1 :]:
        text = read_sourced(subject.place(one))
        if text is None or SETS_PATH.search(text):
            how = "which sets PYTHONPATH" if text is not None else "which cannot be read and may set anything"
            yield (bad if text is not None else doubtful)(
                "preflight.import_path",
                f"the run script sources {one}, {how}, after the overlay was put first",
                f"source it before toolkit is called, and take it out of the script (or source "
                f"{subject.activation.root}/env.sh after it)",
            )


def _examine_replaced(subject: Subject) -> Iterator[Observation]:
    for name in subject.replaced:
        if name in subject.launch.own:
            continue
        yield doubtful(
            "preflight.environment",
            f"{name}={subject.given.environ.get(name, '')} of the calling environment is replaced by the overlay's "
            f"{subject.activation.variables[name]}",
            f"put {name}=… in front of the command to keep it, or unset it",
        )
