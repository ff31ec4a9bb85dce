"""JIT extensions are compiled into the overlay's own folder, found again there, and nowhere else.

torch keeps them in TORCH_EXTENSIONS_DIR. A folder that several builds of torch_npu share gives one of them what was
compiled against another, so the env file names one of the overlay's own. Three processes show that it counts, with an
extension of a name that nobody else has:

    first    env.sh sourced                       compiles it into the overlay's folder
    other    another overlay's folder instead     compiles its own there
    again    env.sh sourced                       loads the first as it is

The first is a pybind11 module, linked to CANN's runtime where CANN's headers are; the other needs Python's C API
alone, which compiles in a tenth of the time. torch_npu is not imported: where torch compiles is not its affair.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from verify.contract import Outcome, Request, broke, failed, failed_with, passed
from verify.loaded import is_below
from verify.processes import run_limited

PREFIX = "toolkit_jit_check_"
"""No other extension's name begins like this; what does may be removed."""

VARIABLE = "TORCH_EXTENSIONS_DIR"
ENV_FILE = "env.sh"
ACTIVATED = f'. "$1/{ENV_FILE}" && shift && exec "$@"'
SETTING = f'. "$1/{ENV_FILE}" && printf %s "${VARIABLE}"'

TIME_LIMIT = 240.0
SHARE_OF_TIME = 0.8
"""Of the request's time, so that what takes too long is ended here, and said, and cleared away."""

PYBIND11_SOURCE = """\
#include <pybind11/pybind11.h>
PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.attr("made_for") = "first"; }
"""
CANN_SOURCE = """\
#include <acl/acl.h>
auto *volatile linked = &aclrtGetDeviceCount;
"""
C_SOURCE = """\
#include <Python.h>
#define INIT_(name) PyInit_##name
#define INIT(name) INIT_(name)
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "other", nullptr, -1, nullptr, nullptr, nullptr, nullptr,
                                 nullptr};
PyMODINIT_FUNC INIT(TORCH_EXTENSION_NAME)() {
  PyObject *module = PyModule_Create(&definition);
  if (module && PyModule_AddStringConstant(module, "made_for", "other") < 0) Py_CLEAR(module);
  return module;
}
"""


class ProbeError(Exception):
    """A process did not come to a good end; the message says why, in the compiler's words where it was that."""


@dataclass(frozen=True)
class Loaded:
    """What a process loaded, whom the source was made for, and the seconds that torch took.

    `state` changes when the library or ninja's log of it is written.
    """

    file: Path
    made_for: str
    seconds: float
    state: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Bench:
    """What the processes share. `cann` is CANN's home, empty where it has no headers; `deadline` is in monotonic time.

    `scratch` takes sources, logs and the other overlay's folder.
    """

    name: str
    overlay: Path
    scratch: Path
    env: Mapping[str, str]
    cann: str
    deadline: float

    @property
    def other_folder(self) -> Path:
        """Where the other overlay keeps its extensions."""
        return self.scratch / "other" / "torch_extensions"


def check(request: Request) -> Outcome:
    """Compile an extension, keep it apart and find it again; nothing of it stays in the overlay's folder."""
    if request.overlay is None or not (request.overlay / ENV_FILE).is_file():
        return broke(f"the {request.side} has no {ENV_FILE} to source (looked in {request.overlay})")
    bench = make_bench(request, request.overlay)
    if lacks := list(missing_tools(bench.env)):
        return broke("; ".join(lacks))
    try:
        setting = read_setting(bench)
        if fault := judge_setting(setting, bench.overlay):
            return failed(fault)
        return _try_out(bench, Path(setting))
    except ProbeError as fault:
        return broke(str(fault), logs=str(bench.scratch))


def make_bench(request: Request, overlay: Path) -> Bench:
    """Prepare what the processes share, their sources among it."""
    scratch = request.scratch / "jit"
    cann = find_cann(os.environ)
    scratch.mkdir()
    (scratch / "first.cpp").write_text(PYBIND11_SOURCE + (CANN_SOURCE if cann else ""))
    (scratch / "other.cpp").write_text(C_SOURCE)
    limit = request.time_limit * SHARE_OF_TIME if request.time_limit > 0 else TIME_LIMIT
    return Bench(
        name=PREFIX + secrets.token_hex(4),
        overlay=overlay,
        scratch=scratch,
        env=compose_env(os.environ),
        cann=cann,
        deadline=time.monotonic() + limit,
    )


def compose_env(environ: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment without its own folder of extensions, so that only the env file names one.

    The interpreter's scripts are on PATH, as in an activated virtual environment: ninja is one of them.
    """
    own = {
        "PATH": os.pathsep.join([sysconfig.get_path("scripts"), environ.get("PATH", os.defpath)]),
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
        # A cache must not answer in the compiler's place, nor keep what nobody will ask for again.
        "TORCH_NO_COMPILER_WRAPPER": "1",
        "CCACHE_DISABLE": "1",
    }
    return {**{name: value for name, value in environ.items() if name != VARIABLE}, **own}


def find_cann(environ: Mapping[str, str]) -> str:
    """Return the CANN home that extensions can be compiled against, empty where there is none."""
    home = environ.get("ASCEND_HOME_PATH", "")
    needed = ("include/acl/acl.h", "lib64/libascendcl.so")
    return home if home and all(os.path.isfile(os.path.join(home, path)) for path in needed) else ""


def missing_tools(env: Mapping[str, str]) -> Iterator[str]:
    """Say of each thing that compiling needs and this target lacks how to get it."""
    compiler = env.get("CXX", "c++")
    if shutil.which("ninja", path=env["PATH"]) is None:
        yield "there is no ninja: install the Python package ninja into the target"
    if shutil.which(compiler.split()[0], path=env["PATH"]) is None:
        yield f"there is no C++ compiler {compiler}: install g++ or clang++"
    header = Path(sysconfig.get_path("include", "posix_prefix"), "Python.h")
    if not header.is_file():
        yield f"there is no {header}: install the interpreter's development files (python3-dev, python3-devel)"


def read_setting(bench: Bench) -> str:
    """Return what the overlay's env file sets TORCH_EXTENSIONS_DIR to, empty where it does not."""
    argv = ["sh", "-c", SETTING, "sh", str(bench.overlay)]
    done = subprocess.run(argv, cwd=bench.scratch, env=dict(bench.env), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ProbeError(f"{bench.overlay / ENV_FILE} cannot be sourced: {done.stderr.strip()}")
    return done.stdout


def judge_setting(setting: str, overlay: Path) -> str:
    """Say what is wrong with the folder that the env file sets, nothing where it is the overlay's own to write."""
    if not setting:
        return f"{ENV_FILE} does not set {VARIABLE}"
    folder = Path(setting)
    if not folder.is_absolute() or not is_below(folder, overlay) or is_below(folder, overlay / "site"):
        return f"{ENV_FILE} sets {VARIABLE} to {setting}, which is not the overlay's own below {overlay}"
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        return f"{there} is no folder that this user may write into: no extension could be compiled there"
    return ""


def judge(first: Loaded, other: Loaded, again: Loaded, *, folder: Path, other_folder: Path) -> list[str]:
    """Name the ways in which the three processes did not keep to their folders."""
    faults = []
    if not is_below(first.file, folder):
        faults.append(f"{ENV_FILE} sets {VARIABLE} to {folder}, torch compiled {first.file}")
    if not is_below(other.file, other_folder) or other.made_for != "other":
        faults.append(f"with {VARIABLE}={other_folder} torch loaded {other.file}, made for the {other.made_for}")
    if again.file != first.file or again.made_for != "first":
        faults.append(f"a second process loaded {again.file}, made for the {again.made_for}, not {first.file}")
    elif again.state != first.state:
        faults.append(f"a second process compiled {first.file} again")
    return faults


def load_extension(bench: Bench, step: str, source: str, *, activated: bool) -> Loaded:
    """Have a fresh process load the extension, activated by the env file or in the other overlay's folder."""
    result, log = bench.scratch / f"{step}.json", bench.scratch / f"{step}.log"
    probe = [sys.executable, "-m", "verify.jit_probe", bench.name, str(bench.scratch / source), str(result)]
    if activated:
        argv, own = ["sh", "-c", ACTIVATED, "sh", str(bench.overlay), *probe, bench.cann], {}
    else:
        argv, own = probe, {VARIABLE: str(bench.other_folder)}
    left = bench.deadline - time.monotonic()
    try:
        code = run_limited(argv, cwd=bench.scratch, env={**bench.env, **own}, log=log, seconds=max(left, 0.0))
    except TimeoutError as fault:
        raise ProbeError(f"the process {step!r} {fault}: {last_word(log)}") from fault
    if code != 0:
        raise ProbeError(f"the process {step!r} ended with code {code}: {last_word(log)}")
    told = json.loads(result.read_bytes())
    file = Path(told["file"])
    return Loaded(file=file, made_for=told["made_for"], seconds=told["seconds"], state=read_state(file))


def read_state(library: Path) -> tuple[tuple[int, int, int], ...]:
    """Return what changes when a library, or ninja's log of it, is written."""
    stats = [path.stat() for path in (library, library.with_name(".ninja_log"))]
    return tuple((one.st_ino, one.st_size, one.st_mtime_ns) for one in stats)


def last_word(log: Path) -> str:
    """Return the line of a log that names the cause: the first of the compiler's errors, or the last line."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line]
    return errors[0] if errors else lines[-1] if lines else "it printed nothing"


def remove_leftovers(folder: Path) -> None:
    """Remove what this check made, now or when it was killed: whoever proves an overlay holds its lock."""
    for leftover in folder.glob(f"{PREFIX}*"):
        shutil.rmtree(leftover)


def _try_out(bench: Bench, folder: Path) -> Outcome:
    try:
        first = load_extension(bench, "first", "first.cpp", activated=True)
        other = load_extension(bench, "other", "other.cpp", activated=False)
        again = load_extension(bench, "again", "first.cpp", activated=True)
    finally:
        remove_leftovers(folder)
        remove_leftovers(bench.other_folder)
    evidence = {"folder": str(folder), "cann": bench.cann, "file": str(first.file),
                "seconds": {"first": first.seconds, "other": other.seconds, "again": again.seconds}}  # fmt: skip
    if faults := judge(first, other, again, folder=folder, other_folder=bench.other_folder):
        return failed_with(faults, **evidence)
    return passed(
        f"compiled into {folder} in {first.seconds:.1f} s, found again in {again.seconds:.1f} s, "
        "not found from another folder", **evidence,
    )  # fmt: skip
