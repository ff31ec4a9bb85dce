"""The machine's compilers and linkers: which they are, and what they must not leave in a wheel."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from toolkit.build.variables import asked_variables, search_path, split_command
from toolkit.errors import CommandError
from toolkit.model import BuildSpec
from toolkit.process import run

NO_COMPILER = "none"
VERSION_LIMIT = 30.0

RUN_PATH = re.compile(r"-Wl,(?:-R|-?-rpath[,=])")


def compiler_identity(spec: BuildSpec, environ: Mapping[str, str], *, cached: bool = True) -> str:
    """Return the first line of what a build's C++ compiler says of itself, and its machine; `none` without one.

    It is for people to read; keys have `drivers.compiler_digest`, which runs nothing. `cached` tells whether ccache is
    used: it hands paths to the compiler as relative ones. `environ` is the caller's.
    """
    asked = asked_variables(spec, environ)
    words = split_command("CXX", asked.get("CXX", "")) or ["c++"]
    env = {"PATH": search_path(asked), "LC_ALL": "C"}
    try:
        version, machine = (
            run([*words, option], cwd=Path("/"), env=env, timeout=VERSION_LIMIT).stdout.partition("\n")[0].strip()
            for option in ("--version", "-dumpmachine")
        )
    except CommandError:
        return NO_COMPILER
    through = ", through ccache" if cached and shutil.which("ccache", path=search_path(asked)) else ""
    return f"{version} for {machine}{through}"


def plain_linkers(variables: Mapping[str, str], commands: Mapping[str, str]) -> dict[str, str]:
    """Return the linking commands to set for setuptools where the interpreter's own would leave a foreign run path.

    An interpreter that was installed in a place of its own (pyenv, conda) links each extension so that it looks for
    libraries there.
    """
    found = {}
    for name, compiler in (("LDSHARED", "CC"), ("LDCXXSHARED", "CXX")):
        command, first = commands.get(name, ""), commands.get(compiler, "")
        if name in variables or not any(RUN_PATH.match(word) for word in shlex.split(command)):
            continue
        if first and command.startswith(first):  # As setuptools does where it takes the command itself.
            command = shlex.join(split_command(compiler, variables.get(compiler, first))) + command[len(first) :]
        found[name] = shlex.join(word for word in shlex.split(command) if not RUN_PATH.match(word))
    return found
