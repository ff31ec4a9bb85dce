"""The DVM backend is in this build, and asking for it installs it.

The environment variable alone proves nothing: a release without DVM (2.12.0) takes `dvm` and falls through to NPU
Triton, where the first sign in training is `KeyError: 'r'` in `initialize_range_tree`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from importlib.abc import InspectLoader
from importlib.machinery import PathFinder
from pathlib import Path

from verify import host
from verify.contract import Outcome, Request, failed, passed

INDUCTOR = "torch_npu._inductor"
PACKAGE = f"{INDUCTOR}.dvm"
LOADER = "_load_dvm_backend"
SYMPTOM = "such a build falls through to NPU Triton, where it fails with KeyError: 'r'"


def check(request: Request) -> Outcome:
    """Look for the backend's three parts, ask for it, and judge by the scheduling that is then registered."""
    host.prepare(request.runtime)
    missing = list(_missing_parts())
    try:
        scheduling = host.load_backend("dvm")
    except Exception as fault:
        # Each build has its own way of not loading a backend that it lacks or that is broken: 2.12.0 falls through
        # to NPU Triton, which raises where it finds no driver. What is missing was looked up before, without it.
        raised = f"asking for dvm raised {type(fault).__name__}: {fault}"
        return failed("; ".join([*missing, raised]) + (f" ({SYMPTOM})" if missing else ""))
    installed = scheduling.startswith(f"{PACKAGE}.")
    if not installed:
        missing.append(f"asking for dvm installed {scheduling} for npu, expected a scheduling of {PACKAGE}")
    if missing:
        return failed("; ".join(missing) + ("" if installed else f" ({SYMPTOM})"), scheduling=scheduling)
    return passed(f"npu is scheduled by {scheduling}", scheduling=scheduling, wrapper=_wrapper())


def _missing_parts() -> Iterator[str]:
    """Find out without importing Inductor's package, which would load a backend already, or fail to."""
    torch_npu = importlib.import_module("torch_npu")
    folder = Path(str(torch_npu.__file__)).parent
    if PathFinder.find_spec(PACKAGE, [str(folder / "_inductor")]) is None:
        yield f"there is no package {PACKAGE}"
    if not hasattr(importlib.import_module("torch_npu._C"), "dvm"):
        yield "there is no native binding torch_npu._C.dvm"
    if LOADER not in _global_names(folder):
        yield f"there is no loader {INDUCTOR}.{LOADER}"


def _global_names(folder: Path) -> tuple[str, ...]:
    """Return the names that the code of Inductor's package binds or uses at its top; none where it has no code."""
    spec = PathFinder.find_spec(INDUCTOR, [str(folder)])
    loader = None if spec is None else spec.loader
    code = loader.get_code(INDUCTOR) if isinstance(loader, InspectLoader) else None
    return () if code is None else code.co_names


def _wrapper() -> str:
    common = importlib.import_module("torch._inductor.codegen.common")
    wrapper = common.get_wrapper_codegen_for_device("npu")
    return f"{wrapper.__module__}.{wrapper.__qualname__}"
