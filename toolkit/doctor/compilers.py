"""The compilers that training starts: C and C++ for generated code and extensions, ninja for extensions, CANN's own."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from toolkit.doctor.asked import Asked
from toolkit.doctor.observed import bad, doubtful, good
from toolkit.doctor.places import cann_home, claims_device, is_host_sysroot
from toolkit.errors import CommandError, StorageError
from toolkit.files import temporary_directory
from toolkit.model import Observation
from toolkit.process import compose_env, run

LIMIT = 20.0
"""Seconds after which a program that is only asked for its version, or for an empty program, is given up."""

LANGUAGES = (
    ("compiler.c", "CC", "cc", "c", '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n'),
    ("compiler.cxx", "CXX", "c++", "c++", "#include <string>\nint main() { return std::string().size(); }\n"),
)
"""For each line: its name, the variable that names another compiler, the default, the language, a program."""

OF_CANN = (
    (("bishengir-compile",), ("bin", "tools/bishengir/bin", "compiler/bishengir/bin")),
    (("bisheng", "ccec"), ("bin", "tools/ccec_compiler/bin", "compiler/ccec_compiler/bin")),
)
"""CANN's compilers by the names that they have had, and where they are in its home."""


def examine_compilers(asked: Asked) -> list[Observation]:
    """Compile a small program in C and in C++, run ninja on the PATH that ranks get, and look for CANN's compilers."""
    try:
        with temporary_directory("toolkit-doctor-") as folder:
            compiled = [_examine_compiler(asked, folder, *language) for language in LANGUAGES]
            return [*compiled, _examine_ninja(asked, folder), *_examine_cann_compilers(asked, folder)]
    except StorageError as fault:
        return [bad("compiler.temporary", f"nothing can be compiled: {fault.message}", fault.hint)]


def _examine_compiler(asked: Asked, folder: Path, name: str, variable: str, default: str, language: str,
                      program: str) -> Observation:  # fmt: skip
    named = asked.environ.get(variable, "").strip()
    try:
        words = shlex.split(named) or [default]
    except ValueError as fault:
        return bad(name, f"{variable}={named} is no command: {fault}", f"mend it, or unset {variable}")
    shown = f"{variable}={named}" if named else default
    found = _which(words[0], asked)
    if found is None:
        return bad(name, f"{shown}: there is no such compiler on PATH", _how_to_get(variable if named else ""))
    try:
        run([*words, "-x", language, "-", "-o", folder / "program"], cwd=folder, env=_env(asked), timeout=LIMIT,
            stdin=program.encode())  # fmt: skip
    except CommandError as fault:
        return bad(
            name, f"{shown} ({found}) does not compile and link a program of two lines: {_last_line(fault)}",
            f"see what it says: echo 'int main() {{}}' | {shlex.join(words)} -x {language} - -o /dev/null",
        )  # fmt: skip
    return good(name, f"{shown} ({found}) compiles and links")


def _how_to_get(variable: str) -> str:
    install = "install one (Debian: apt install g++)"
    return f"{install}, or unset {variable}" if variable else install


def _examine_ninja(asked: Asked, folder: Path) -> Observation:
    """Say whether ninja runs. torch asks it for its version before it builds an extension, and so do we."""
    mark = bad if claims_device(asked) else doubtful
    found = _which("ninja", asked)
    if found is None:
        beside = asked.interpreter.executable.parent if asked.interpreter else None
        if beside is not None and os.access(beside / "ninja", os.X_OK):
            return mark(
                "compiler.ninja", f"ninja is in {beside}, which is not on PATH: no extension can be built",
                f"activate that environment, or: export PATH={shlex.quote(str(beside))}:$PATH",
            )  # fmt: skip
        python = asked.interpreter.executable if asked.interpreter else "python"
        return mark("compiler.ninja", "no ninja on PATH: no extension can be built", f"{python} -m pip install ninja")
    try:
        version = run([found, "--version"], cwd=folder, env=_env(asked), timeout=LIMIT).stdout.strip()
    except CommandError as fault:
        return mark(
            "compiler.ninja", f"{found} does not run: {_last_line(fault)}",
            f"install it again in the environment that it belongs to, or take {Path(found).parent} off PATH",
        )  # fmt: skip
    return good("compiler.ninja", f"ninja {version} ({found}) runs")


def _examine_cann_compilers(asked: Asked, folder: Path) -> Iterator[Observation]:
    home = cann_home(asked)
    if home is None or is_host_sysroot(home) or not os.path.isdir(home):
        return
    for programs, places in OF_CANN:
        yield _examine_cann_compiler(asked, home, folder, programs, places)


def _examine_cann_compiler(asked: Asked, home: Path, folder: Path, programs: Sequence[str],
                           places: Sequence[str]) -> Observation:  # fmt: skip
    """Say whether one runs. NPU Triton looks on PATH alone."""
    name, what = f"compiler.{programs[0]}", " or ".join(programs)
    found = next((path for program in programs if (path := _which(program, asked))), None)
    if found is None:
        candidates = [home / place / program for program in programs for place in places]
        beside = next((path.parent for path in candidates if os.access(path, os.X_OK)), None)
        if beside is not None:
            return doubtful(
                name, f"{what} is in {beside}, which is not on PATH: NPU Triton does not find it",
                f"export PATH={shlex.quote(str(beside))}:$PATH",
            )  # fmt: skip
        return doubtful(
            name, f"no {what} on PATH nor in {home}: NPU Triton's kernels are not compiled (DVM needs none)",
            "install CANN's toolkit whole, and source its set_env.sh",
        )  # fmt: skip
    try:
        run([found, "--version"], cwd=folder, env=_env(asked), timeout=LIMIT)
    except CommandError as fault:
        seen = f"{found} does not run: {_last_line(fault)}"
        return bad(name, seen, "install the CANN that is for this machine again")
    return good(name, f"{found} runs")


def _last_line(fault: CommandError) -> str:
    """Return the last thing that a program said, or why it did not start."""
    return fault.details[-1] if fault.details else fault.message


def _which(program: str, asked: Asked) -> str | None:
    return shutil.which(program, path=asked.environ.get("PATH", os.defpath))


def _env(asked: Asked) -> Mapping[str, str]:
    """Return what a rank would hand on to a program that it starts, as far as it changes how that runs."""
    kept = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONHOME", "CPATH", "LIBRARY_PATH", "VIRTUAL_ENV")
    extra = {name: asked.environ[name] for name in kept if name in asked.environ}
    return compose_env(asked.environ, extra)
