"""Run the machine's C compiler: relative paths, no build ids, so that the same sources give the same bytes."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolkit.errors import CommandError, SysrootError
from toolkit.process import Completed, run

FLAGS = ("-std=gnu11", "-O1", "-fPIC", "-shared", "-pthread", "-Wl,--build-id=none")


def compiler_identity(compiler: str, *, env: Mapping[str, str], cwd: Path) -> str:
    """Return the compiler's first line of `--version` and the machine that it compiles for.

    Raises SysrootError where there is no such compiler.
    """
    version = _compile(compiler, ["--version"], cwd=cwd, env=env).stdout.partition("\n")[0]
    machine = _compile(compiler, ["-dumpmachine"], cwd=cwd, env=env).stdout.strip()
    return f"{version} for {machine}"


def compile_library(
    name: str,
    sources: Sequence[str],
    *,
    linked: Sequence[str] = (),
    root: Path,
    compiler: str,
    env: Mapping[str, str],
    log: Path | None = None,
) -> None:
    """Compile `sources` to `lib64/<name>` below `root`; `linked` libraries of the same folder are needed by it.

    It finds them beside itself ($ORIGIN), so that the folder may be moved. Raises SysrootError with what the
    compiler said.
    """
    needed = ["-Llib64", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN", *(f"-l:{library}" for library in linked)]
    words = [*FLAGS, f"-Wl,-soname,{name}", "-o", f"lib64/{name}", *sources, *(needed if linked else ())]
    _compile(compiler, words, cwd=root, env=env, log=log)


def _compile(
    compiler: str, words: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: Path | None = None
) -> Completed:
    try:
        return run([*shlex.split(compiler), *words], cwd=cwd, env=env, log_file=log)
    except CommandError as fault:
        raise SysrootError(
            f"the host sysroot needs a C compiler, and {compiler!r} did not do: {fault}",
            hint=fault.hint or "install one (Debian: `apt install gcc libc6-dev`), or name it in CC",
            details=fault.details,
        ) from fault
