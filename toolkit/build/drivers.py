"""Which compilers a build would run, told without running one: a build that compiles nothing calls none."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from toolkit.build.variables import asked_variables, search_path
from toolkit.files import sha256_file
from toolkit.model import BuildSpec

USUAL = {"CC": "cc", "CXX": "c++"}


def compiler_drivers(spec: BuildSpec, environ: Mapping[str, str]) -> dict[str, Path]:
    """Return the programs that CC and CXX mean to a build, as they are found; what is not there is left out.

    With a launcher before it (`ccache c++`) the program is the last word that names one.
    """
    asked = asked_variables(spec, environ)
    path = search_path(asked)
    found = {}
    for name, usual in USUAL.items():
        words = shlex.split(asked.get(name, "")) or [usual]
        programs = [program for word in words if (program := shutil.which(word, path=path))]
        if programs:
            found[name] = Path(programs[-1]).resolve()
    return found


def compiler_digest(spec: BuildSpec, environ: Mapping[str, str]) -> str:
    """Name a build's compilers by their programs' bytes, which another machine with the same packages has too.

    Whether ccache stands before them counts: it hands paths to the compiler that are relative.
    """
    drivers = compiler_drivers(spec, environ)
    words = [f"{name}={sha256_file(program)}" for name, program in sorted(drivers.items())] or ["none"]
    through = shutil.which("ccache", path=search_path(asked_variables(spec, environ)))
    return " ".join([*words, *(["through ccache"] if through else [])])
