"""The DVM backend is in this build, and asking for it installs it.

The environment variable alone proves nothing: a release without DVM (2.12.0) takes `dvm` and falls through to NPU
Triton, where the first sign is `KeyError: 'r'` in `initialize_range_tree`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from verify import host
from verify.contract import Outcome, Request, failed, passed

PACKAGE = "torch_npu._inductor.dvm"
SYMPTOM = "such a build falls through to NPU Triton, where it fails with KeyError: 'r'"


def check(request: Request) -> Outcome:
    """Look for the backend's three parts, ask for it, and judge by the scheduling that is then registered."""
    host.prepare(request.runtime)
    missing = list(_missing_files())
    try:
        scheduling = host.load_backend("dvm")
    except Exception as fault:
        # Each build has its own way of not loading a backend that it lacks or that is broken; all mean the same.
        return failed("; ".join([*missing, f"asking for dvm raised {type(fault).__name__}: {fault}"]))
    missing.extend(_missing_loader(importlib.import_module("torch_npu._inductor")))
    installed = scheduling.startswith(f"{PACKAGE}.")
    if not installed:
        missing.append(f"asking for dvm installed {scheduling} for npu, expected a scheduling of {PACKAGE}")
    if missing:
        return failed("; ".join(missing) + ("" if installed else f" ({SYMPTOM})"), scheduling=scheduling)
    return passed(f"npu is scheduled by {scheduling}", scheduling=scheduling, wrapper=_wrapper())


def _missing_files() -> Iterator[str]:
    torch_npu = importlib.import_module("torch_npu")
    folder = Path(str(torch_npu.__file__)).parent / "_inductor"
    # Asked of the path finder, because importing the package's parent would load a backend already.
    if PathFinder.find_spec(PACKAGE, [str(folder)]) is None:
        yield f"there is no package {PACKAGE}"
    if not hasattr(importlib.import_module("torch_npu._C"), "dvm"):
        yield "there is no native binding torch_npu._C.dvm"


def _missing_loader(inductor: ModuleType) -> Iterator[str]:
    if not hasattr(inductor, "_load_dvm_backend"):
        yield "there is no loader torch_npu._inductor._load_dvm_backend"


def _wrapper() -> str:
    common = importlib.import_module("torch._inductor.codegen.common")
    wrapper = common.get_wrapper_codegen_for_device("npu")
    return f"{wrapper.__module__}.{wrapper.__qualname__}"
