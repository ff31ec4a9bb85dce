"""Which compilers a build would run, told without running one: a build that compiles nothing calls none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from toolkit.build.variables import asked_variables, search_path, split_command
from toolkit.files import sha256_file
from toolkit.model import BuildSpec

USUAL = {"CC": "cc", "CXX": "c++"}

CACHES = ("ccache", "sccache")
"""Programs that a compiler's name may lead to, and that run the next program of that name."""


def compiler_drivers(spec: BuildSpec, environ: Mapping[str, str]) -> dict[str, Path]:
    """Return the programs that CC and CXX mean to a build, as they are found; what is not there is left out.

    With a launcher before it (`ccache c++`) the program is the last word that names one. A link to a compiler cache is
    the compiler that the cache would find behind it.
    """
    path = search_path(asked_variables(spec, environ))
    found = {}
    for name, words in _commands(spec, environ).items():
        programs = [program for word in words if (program := _find_program(word, path))]
        if programs:
            found[name] = programs[-1].resolve()
    return found


def compiler_digest(spec: BuildSpec, environ: Mapping[str, str]) -> str:
    """Name a build's compilers by their programs' bytes, which another machine with the same packages has too.

    Whether ccache stands before them counts: it hands paths to the compiler that are relative.
    """
    drivers = compiler_drivers(spec, environ)
    words = [f"{name}={sha256_file(program)}" for name, program in sorted(drivers.items())] or ["none"]
    through = shutil.which("ccache", path=search_path(asked_variables(spec, environ)))
    return " ".join([*words, *(["through ccache"] if through else [])])


def compiler_links(spec: BuildSpec, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """List the places that decide which programs `compiler_digest` names, whether or not something is there.

    They are all where a compiler or ccache is looked for, up to the one where it is found.
    """
    path = search_path(asked_variables(spec, environ))
    words = [word for command in _commands(spec, environ).values() for word in command]
    names = dict.fromkeys((*USUAL.values(), "ccache", *words))
    return tuple(dict.fromkeys(place for name in names for place in _places(name, path)))


def _commands(spec: BuildSpec, environ: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the words of CC and CXX that can name programs: no options, and nothing that lies in the tree."""
    asked = asked_variables(spec, environ)
    commands = {name: split_command(name, asked.get(name, "")) or [usual] for name, usual in USUAL.items()}
    return {
        name: [word for word in words if word.startswith("/") or not (word.startswith("-") or "/" in word)]
        for name, words in commands.items()
    }


def _find_program(word: str, path: str) -> Path | None:
    return next((place for place in _places(word, path) if _is_program(place) and not _is_cache(place)), None)


def _places(word: str, path: str) -> Iterator[Path]:
    """Yield where a program is looked for, in that order, ending with where it is found."""
    place, name = Path(word), os.path.basename(word)
    if place.is_absolute():
        yield place
        if name in CACHES or not _is_cache(place):
            return
    for folder in path.split(os.pathsep):
        place = Path(folder, name)
        if not place.is_absolute():  # It would lie in the tree.
            continue
        yield place
        if _is_program(place) and (name in CACHES or not _is_cache(place)):
            return


def _is_program(place: Path) -> bool:
    return os.path.isfile(place) and os.access(place, os.X_OK)


def _is_cache(place: Path) -> bool:
    return os.path.basename(os.path.realpath(place)) in CACHES
