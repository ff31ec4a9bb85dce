"""Run checks in this fresh interpreter: `python -m verify request.json result.json`.

The caller puts the side's `site/` first on PYTHONPATH and the folder that holds `verify/` behind it, starts from an
empty working directory, and asks in `request.json`:

    {"schema": 1, "checks": [name, ...], "side": "base" | "overlay", "runtime": "host" | "device",
     "site": folder, "manifest": file | null, "scratch": folder, "can_load": bool, "time_limit": seconds,
     "packages": [{"component", "import_name", "distribution", "version"}, ...], "expect": {fact: value, ...},
     "overlay": folder | null (or left out)}

The names are those of `checks.json` beside this file. They run in the order given, in this one process, and
`result.json` then says, in the same order:

    {"schema": 1, "environment": {fact: value, ...},
     "checks": [{"name", "status", "detail", "evidence", "excused", "seconds"}, ...]}

`status` is `pass`, `fail`, `error` or `skip`. A check that raises, that is unknown, or that returns no outcome is an
`error`; the checks after it still run. Standard output and error mean nothing: they are for people.

Exit code 0 says that `result.json` is there and whole, whatever stands in it; 2 that the request could not be read.
Any other end (a signal, another code) leaves no result, and the caller counts every check of the request as an error.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import platform
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from verify.contract import Outcome, Record, Request, broke, write_result

TRACEBACK_LINES = 12
SHARE_BEFORE_WARNING = 0.9


def main(argv: list[str]) -> int:
    """Carry out one request and return the exit code."""
    if len(argv) != 3:
        sys.stderr.write("usage: python -m verify request.json result.json\n")
        return 2
    try:
        request = Request.read(Path(argv[1]))
    except (OSError, ValueError) as fault:
        sys.stderr.write(f"cannot read the request {argv[1]}: {fault}\n")
        return 2
    if request.time_limit > 0:
        # Says in the log where a check hangs; the caller's kill leaves no time for it.
        faulthandler.dump_traceback_later(request.time_limit * SHARE_BEFORE_WARNING)
    modules = read_modules(Path(__file__).with_name("checks.json"))
    records = [run_check(name, modules, request) for name in request.checks]
    write_result(Path(argv[2]), records, describe_environment())
    return 0


def read_modules(catalogue: Path) -> dict[str, str]:
    """Return the module of each check by the check's name."""
    return {name: entry["module"] for name, entry in json.loads(catalogue.read_text(encoding="utf-8")).items()}


def run_check(name: str, modules: dict[str, str], request: Request) -> Record:
    """Run one check and time it; what goes wrong in it becomes its outcome."""
    began = time.monotonic()
    outcome = _attempt(name, modules, request)
    return Record(
        name=name,
        status=outcome.status,
        detail=outcome.detail,
        evidence=outcome.evidence,
        excused=outcome.excused,
        seconds=round(time.monotonic() - began, 3),
    )


def describe_environment() -> dict[str, Any]:
    """Return what this interpreter is and, where they were imported, the versions of torch and torch_npu."""
    versions = {name: str(getattr(sys.modules.get(name), "__version__", None)) for name in ("torch", "torch_npu")}
    return {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "executable": sys.executable,
        "system": platform.system(),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()).strip(),
        **{name: version for name, version in versions.items() if name in sys.modules},
    }


def _attempt(name: str, modules: dict[str, str], request: Request) -> Outcome:
    if name not in modules:
        return broke(f"there is no check {name!r}; known are {', '.join(modules)}")
    try:
        outcome = importlib.import_module(modules[name]).check(request)
        if not isinstance(outcome, Outcome):
            return broke(f"{modules[name]}.check returned {outcome!r}, expected an Outcome")
        json.dumps(dict(outcome.evidence), sort_keys=True, default=str, allow_nan=False)
        return outcome
    except (Exception, SystemExit) as fault:
        # Whatever a check or the code under test raises, an exit of the interpreter among it, is that check's
        # outcome, and must not take the other checks' results along.
        traceback.print_exception(type(fault), fault, fault.__traceback__)  # the whole of it, for the log
        return _broke_with(fault)


def _broke_with(fault: BaseException) -> Outcome:
    said = str(fault).strip().splitlines()
    lines = "".join(traceback.format_exception(type(fault), fault, fault.__traceback__)).splitlines()
    return broke(
        f"{type(fault).__name__}: {said[0]}" if said else type(fault).__name__, traceback=lines[-TRACEBACK_LINES:]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv))
