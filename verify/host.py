"""Bring torch_npu up in this fresh interpreter, on an NPU or on the host sysroot.

    facts = host.prepare("host")                    # before anything imports torch or torch_npu
    scheduling = host.load_backend("dvm")           # once a process: loading patches Inductor's globals
    with host.generated_code() as sources:          # list[str], filled while it is open
        torch.compile(f)(x)
    with host.recorded_launches() as lines:         # list[str], filled when it closes; see verify.launches
        compiled(x)

Importing this module needs the standard library only. `prepare` returns plain values for the result file:
`torch` and `torch_npu` (versions), `devices` (count), `soc` (name or None) and `runtime` as given.

On the host two things are made to look as on a machine with an NPU, and nothing else is:

* A CUDA build of torch has registered its allocator's option names, and torch_npu aborts when it registers the same
  ones. The names are forgotten between the two imports (`forget_allocator_keys`). With a CPU build nothing is done.
* Inductor's scheduler asks `has_triton()` before it makes any backend for an npu device, also one that never uses
  Triton. Where no Triton is installed that one question is answered yes, after the backend is loaded, so that the
  backend's own choices still see the truth.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

BACKEND_VARIABLE = "TORCHINDUCTOR_NPU_BACKEND"
LAUNCH_LOG_VARIABLE = "TOOLKIT_LAUNCH_LOG"
MARK = "toolkit-sysroot.json"
AUTOLOAD_VARIABLE = "TORCH_DEVICE_BACKEND_AUTOLOAD"

# std::unordered_set<std::string>& getMutableKeys(), and the object itself where the function is inline (torch 2.12).
KEYS_FUNCTION = "_ZN3c1016CachingAllocator26AcceleratorAllocatorConfig14getMutableKeysB5cxx11Ev"
KEYS_OBJECT = "_ZZN3c1016CachingAllocator26AcceleratorAllocatorConfig14getMutableKeysB5cxx11EvE4keys"


class _KeySet(ctypes.Structure):
    """The head of libstdc++'s `std::unordered_set` (hashtable.h: _Hashtable), unchanged since GCC 5."""

    _fields_ = [
        ("buckets", ctypes.c_void_p),
        ("bucket_count", ctypes.c_size_t),
        ("first", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
    ]


def prepare(runtime: str) -> dict[str, Any]:
    """Import torch and torch_npu for `runtime` ("host" or "device") and return what they say of themselves.

    Where there is no torch_npu, nothing of it is wanted: what must be there is asked for by its own name.
    """
    if runtime == "host":
        _import_torch_alone()
    torch = importlib.import_module("torch")
    if importlib.util.find_spec("torch_npu") is None:
        return {"runtime": runtime, "torch": str(torch.__version__), "torch_npu": None, "devices": 0, "soc": None}
    torch_npu = importlib.import_module("torch_npu")
    return {
        "runtime": runtime,
        "torch": str(torch.__version__),
        "torch_npu": str(torch_npu.__version__),
        "devices": torch.npu.device_count(),
        "soc": torch.npu.get_device_name(0) if torch.npu.device_count() else None,
    }


def load_backend(name: str) -> str:
    """Load the Inductor backend `name` for npu devices and return the scheduling class that is then registered.

    The returned `module.Class` is the fact to judge by: releases load Triton for a name that they do not know.
    """
    os.environ[BACKEND_VARIABLE] = name
    # Where it is set Inductor takes this for torch's own CI, and refuses fallbacks that torch_npu registers.
    os.environ.pop("CI", None)
    importlib.import_module("torch_npu._inductor")
    common = importlib.import_module("torch._inductor.codegen.common")
    if is_host_sysroot() and importlib.util.find_spec("triton") is None:
        scheduler: Any = importlib.import_module("torch._inductor.scheduler")
        scheduler.has_triton = lambda: True
    scheduling = common.get_scheduling_for_device("npu")
    return "none" if scheduling is None else f"{scheduling.__module__}.{scheduling.__qualname__}"


def is_host_sysroot() -> bool:
    """Tell whether the CANN home in use is a generated stand-in: those carry a mark."""
    home = os.environ.get("ASCEND_HOME_PATH")
    return bool(home) and Path(home or "", MARK).exists()


@contextlib.contextmanager
def generated_code() -> Iterator[list[str]]:
    """Collect the Python sources that Inductor writes, with its caches off so that it writes them all."""
    cache = importlib.import_module("torch._inductor.codecache").PyCodeCache
    config = importlib.import_module("torch._inductor.config")
    sources: list[str] = []
    write = cache.write

    def keep(source_code: str, *args: Any, **options: Any) -> Any:
        sources.append(source_code)
        return write(source_code, *args, **options)

    cache.write = keep
    try:
        with config.patch(force_disable_caches=True):
            yield sources
    finally:
        cache.write = write


@contextlib.contextmanager
def recorded_launches() -> Iterator[list[str]]:
    """Collect the lines that the host sysroot's runtime records, waiting for the device on both sides."""
    torch = importlib.import_module("torch")
    lines: list[str] = []
    torch.npu.synchronize()
    before = os.environ.get(LAUNCH_LOG_VARIABLE)
    with tempfile.TemporaryDirectory(prefix="launches-") as folder:
        log = Path(folder) / "launches.jsonl"
        os.environ[LAUNCH_LOG_VARIABLE] = str(log)
        try:
            yield lines
            torch.npu.synchronize()
        finally:
            _restore(LAUNCH_LOG_VARIABLE, before)
        if log.exists():
            lines.extend(log.read_text(encoding="utf-8").splitlines())


def forget_allocator_keys(libraries: Iterable[Path]) -> int:
    """Empty torch's set of registered allocator option names and return how many there were.

    `libraries` are searched in turn for the set. Its nodes are left to leak: they are a few strings, and only the
    C++ allocator may free them. Raises LookupError where no library exports the set.
    """
    keys = _find_keys(libraries)
    forgotten = int(keys.count)
    ctypes.memset(keys.buckets, 0, keys.bucket_count * ctypes.sizeof(ctypes.c_void_p))
    keys.first, keys.count = None, 0
    return forgotten


def _find_keys(libraries: Iterable[Path]) -> _KeySet:
    for library in map(ctypes.CDLL, map(str, libraries)):
        with contextlib.suppress(AttributeError):
            function = library[KEYS_FUNCTION]
            function.restype = ctypes.POINTER(_KeySet)
            found: _KeySet = function().contents
            return found
        with contextlib.suppress(ValueError):
            return _KeySet.in_dll(library, KEYS_OBJECT)
    raise LookupError(f"no library of torch exports {KEYS_FUNCTION} or its object")


def _import_torch_alone() -> None:
    """Import torch without the backend that its entry point would import, then make way for torch_npu."""
    before = os.environ.get(AUTOLOAD_VARIABLE)
    os.environ[AUTOLOAD_VARIABLE] = "0"
    try:
        torch = importlib.import_module("torch")
    finally:
        _restore(AUTOLOAD_VARIABLE, before)
    if torch.version.cuda is not None:
        folder = Path(str(torch.__file__)).parent / "lib"
        forget_allocator_keys(folder / name for name in ("libc10.so", "libc10_cuda.so"))


def _restore(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
