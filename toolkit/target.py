"""The interpreter that will import the overlay: what it is, and whether it fits a recipe's contract."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolkit.errors import CommandError, ContractMismatchError, TargetError
from toolkit.files import temporary_directory
from toolkit.model import Contract, Interpreter, Overlay, Target
from toolkit.platforms import MACHINES, accepted_platforms
from toolkit.process import compose_env, last_lines, run

OLDEST_PYTHON = (3, 10)

PROBE_LIMIT = 1 << 20
"""So many bytes may a Python, and what runs at its start, say: a program that is none may say anything."""

PROBE = """
import json, sys
facts = {"version": list(sys.version_info[:3])}
if sys.version_info >= (3, 10):
    import importlib.metadata, os, platform, struct, sysconfig
    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, OSError, ValueError):
        libc = None
    try:
        torch = importlib.metadata.distribution("torch")
    except importlib.metadata.PackageNotFoundError:
        torch = None
    metadata = getattr(torch, "_path", None)
    facts.update(
        implementation=sys.implementation.name, system=sys.platform, libc=libc, bits=8 * struct.calcsize("P"),
        machine=platform.machine(), free_threaded=bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        torch=None if torch is None else torch.version, executable=sys.executable, prefix=sys.prefix,
        torch_metadata=None if metadata is None else os.path.join(str(metadata), "METADATA"),
    )
print(json.dumps(facts))
"""
"""Runs in the target. Up to the version test it is also Python 2, so that an old one can say what it is."""


def inspect_interpreter(executable: Path, *, env: Mapping[str, str], timeout: float = 60) -> Interpreter:
    """Ask a Python what it is, without importing torch; a bare name is looked up on the PATH of `env`.

    The value's `executable` is what the interpreter says of itself, so that a shim is asked only once.
    Runs apart from the current folder and from PYTHON* variables, but with the user's site-packages, where torch may
    be. Raises TargetError for one that is missing, not Python, or not one that a wheel is made for.
    """
    path = _find_executable(executable, env)
    facts = _probe(path, env, timeout)
    _require_supported(path, facts)
    major, minor, _ = facts["version"]
    return Interpreter(
        executable=Path(facts["executable"] or path),
        version=".".join(map(str, facts["version"])),
        python_tag=f"cp{major}{minor}",
        platforms=_platforms(facts),
        torch=facts["torch"],
        files=_decisive_files(path, facts),
    )


def choose_target(interpreter: Interpreter, contract: Contract) -> Target:
    """Return the contract's target that the interpreter can import, on the newest platform that fits.

    Raises ContractMismatchError naming what would do.
    """
    if interpreter.python_tag not in contract.python_tags:
        raise ContractMismatchError(
            f"{interpreter.executable} is {interpreter.python_tag}, expected {_either(contract.python_tags)}",
            hint="name another interpreter with --python",
        )
    for platform in interpreter.platforms:
        if platform in contract.platforms:
            return Target(python_tag=interpreter.python_tag, platform=platform)
    newest = interpreter.platforms[0] if interpreter.platforms else "no manylinux platform"
    raise ContractMismatchError(
        f"{interpreter.executable} runs on {newest} at most, expected {_either(contract.platforms)}",
        hint="build for another machine with --python-tag and --platform",
    )


def require_torch(interpreter: Interpreter, contract: Contract) -> None:
    """Raise TargetError where the interpreter has no torch, ContractMismatchError where it has another than asked for.

    Any build of a release will do (`2.13.0+cpu` for `2.13.0`), unless the contract names a local version.
    """
    wanted = contract.torch
    if interpreter.torch is None:
        raise TargetError(
            f"{interpreter.executable} has no torch, expected {wanted}",
            hint=_how_to_get(wanted, interpreter),
        )
    found = interpreter.torch if "+" in wanted else interpreter.torch.partition("+")[0]
    if found != wanted:
        raise ContractMismatchError(
            f"{interpreter.executable} has torch {interpreter.torch}, expected {wanted}",
            hint=_how_to_get(wanted, interpreter, elsewhere=True),
        )


def _how_to_get(torch: str, interpreter: Interpreter, *, elsewhere: bool = False) -> str:
    """Say how to have a torch; where another is installed, other overlays may need that one."""
    if not elsewhere:
        return f"install it: {interpreter.executable} -m pip install torch=={torch}"
    folder = f".venv-torch-{torch}"
    return (
        f"give it an interpreter of its own: python3 -m venv {folder} && {folder}/bin/pip install torch=={torch}, "
        f"then --python {folder}/bin/python"
    )


def require_fit(overlay: Overlay, interpreter: Interpreter, environ: Mapping[str, str]) -> None:
    """Raise ContractMismatchError where an interpreter cannot use an overlay, TargetError where it has no torch.

    CANN is compared where `environ` names a home that says its version, as a device's does. Which NPU is there only
    the driver knows: that is left to `toolkit verify`.
    """
    wanted = overlay.target
    if interpreter.python_tag != wanted.python_tag or wanted.platform not in interpreter.platforms:
        newest = interpreter.platforms[0] if interpreter.platforms else "no manylinux platform"
        raise ContractMismatchError(
            f"the overlay of {overlay.recipe!r} is for {wanted}, {interpreter.executable} is "
            f"{interpreter.python_tag} on {newest}",
            hint="name the interpreter that it is for with --python, or build for this one: toolkit build",
        )
    require_torch(interpreter, overlay.contract)
    found = installed_cann(environ)
    if overlay.contract.cann and found and not _starts_with(found, overlay.contract.cann):
        raise ContractMismatchError(
            f"{environ['ASCEND_HOME_PATH']} has CANN {found}, expected {overlay.contract.cann}",
            hint="source the set_env.sh of the CANN that the recipe is for",
        )


def installed_cann(environ: Mapping[str, str]) -> str | None:
    """Return the version of the CANN that ASCEND_HOME_PATH names, as its install.info says it; None if none does."""
    if not (home := environ.get("ASCEND_HOME_PATH")):
        return None
    for pattern in ("ascend_*_install.info", "*/ascend_*_install.info"):
        for path in sorted(Path(home).glob(pattern)):
            if found := re.search(r"^version=(\S+)$", path.read_text(encoding="utf-8", errors="replace"), re.MULTILINE):
                return found[1]
    return None


def _starts_with(version: str, prefix: str) -> bool:
    """Whether a version begins with the parts of another: `9.1.RC1` with `9.1`, but `9.10` does not."""
    parts = prefix.split(".")
    return version.split(".")[: len(parts)] == parts


def _find_executable(executable: Path, env: Mapping[str, str]) -> Path:
    """Return where a program is, links kept: a virtual environment's link is what makes it one."""
    found = shutil.which(str(executable), path=env.get("PATH", os.defpath))
    if found is None:
        state = "is not executable" if executable.exists() else "does not exist"
        raise TargetError(f"the interpreter {str(executable)!r} {state}", hint="name another with --python")
    return Path(found).absolute()


def _probe(path: Path, env: Mapping[str, str], timeout: float) -> dict[str, Any]:
    with temporary_directory("toolkit-probe-") as folder:
        try:
            done = run(
                [path, "-E", "-c", PROBE],
                cwd=folder,
                env=compose_env(env),
                timeout=timeout,
                check=False,
                limit=PROBE_LIMIT,
            )
        except CommandError as fault:
            raise TargetError(f"{path} cannot be asked what it is: {fault.message}", details=fault.details) from fault
    try:
        facts = json.loads(_answer_in(done.stdout))
        return facts if done.returncode == 0 and "version" in facts else _not_python(path, done.stdout, done.stderr)
    except (ValueError, TypeError):
        return _not_python(path, done.stdout, done.stderr)


def _answer_in(output: str) -> str:
    """Return the line that the probe printed; what .pth files print as the interpreter starts stands before it."""
    return next((line for line in reversed(output.splitlines()) if line.startswith("{")), output)


def _not_python(path: Path, *streams: str) -> dict[str, Any]:
    raise TargetError(
        f"{path} is not a Python that works", hint="name another with --python", details=last_lines(*streams)
    )


def _require_supported(path: Path, facts: Mapping[str, Any]) -> None:
    version = ".".join(map(str, facts["version"]))
    if tuple(facts["version"][:2]) < OLDEST_PYTHON:
        raise TargetError(f"{path} is Python {version}, expected 3.10 or newer", hint="name another with --python")
    unfit = {
        f"is {facts['implementation']}, expected CPython": facts["implementation"] != "cpython",
        "is a free-threaded build, expected one with the GIL": facts["free_threaded"],
        f"runs on {facts['system']}, expected Linux": facts["system"] != "linux",
        "does not use glibc, expected a Linux with it": not str(facts["libc"]).startswith("glibc "),
        f"runs on {facts['machine']}, expected {_either(MACHINES)}": facts["machine"] not in MACHINES,
        f"is a {facts['bits']}-bit build, expected 64 bits": facts["bits"] != 64,
    }
    for why, is_so in unfit.items():
        if is_so:
            raise TargetError(f"{path} {why}", hint="name another with --python")


def _platforms(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """List the manylinux tags that the reported glibc runs, newest first; later releases of glibc 2 run all older."""
    minor = str(facts["libc"]).split(".")[1]
    return tuple(accepted_platforms(f"manylinux_2_{minor}_{facts['machine']}"))


def _decisive_files(path: Path, facts: Mapping[str, Any]) -> tuple[Path, ...]:
    """List the files that say what the interpreter is: its program, its environment's settings, torch's metadata."""
    named = [
        path,
        Path(facts["executable"] or path).resolve(),
        Path(facts["prefix"]) / "pyvenv.cfg",
        facts["torch_metadata"],
    ]
    return tuple(dict.fromkeys(Path(file) for file in named if file is not None and Path(file).is_file()))


def _either(choices: tuple[str, ...]) -> str:
    return choices[0] if len(choices) == 1 else f"{', '.join(choices[:-1])} or {choices[-1]}"
