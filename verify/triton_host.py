"""Give triton-ascend a driver on a machine without an NPU, so that torch_npu's Triton backend generates code.

    if missing := triton_host.skip_without():
        return missing
    scheduling = triton_host.load_backend("host")   # host.prepare, this driver, then host.load_backend("default")
    with host.generated_code() as sources, triton_host.code_only():
        torch.compile(f)(x)                         # raises once the code is written

triton-ascend looks for an NPU's compiler (`ccec` or `bisheng`) and builds a C++ extension against CANN to ask the
device what it is. Without them every use ends in `RuntimeError: 0 active drivers` or `Could not find an active GPU
backend`. The stand-in answers for the device that the host sysroot pretends (toolkit/sysroot/behaviour.c): one
Ascend910B3 with 20 cube and 40 vector cores. Lowering, code generation and Triton's front end are then the real
code; compiling a kernel further ends, after seconds for each of its configurations, where CANN's compiler is missing.
No kernel ever runs, so `code_only` ends a compile as soon as its code is written, and verify.ttir where the front end
has made TTIR of it.

torch_npu 2.13 asks for two things that triton-ascend 3.2.0 lacks. `tl.extra.cann` is still called `tl.extra.ascend`.
The binding `triton._C.libtriton.ascend.ir`, which loads dialects that no generated kernel uses, is asked for when a
kernel is checked: without it every kernel fails its check, and torch_npu silently generates another kind (without loops
over sub-blocks, NPUTritonKernel for NPUIndexTritonKernel), with other faults. Both are given.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import sys
import types
from collections.abc import Iterator
from typing import Any

from verify import host
from verify.contract import Outcome, skipped

ARCH, CUBE_CORES, VECTOR_CORES = "Ascend910B3", 20, 40

# triton-ascend 3.2.0 has wheels for Python 3.9 to 3.11.
FIRST_PYTHON_WITHOUT_WHEEL = (3, 12)


def has_wheel(python: tuple[int, int]) -> bool:
    """Tell whether triton-ascend could be installed for a Python version at all."""
    return python < FIRST_PYTHON_WITHOUT_WHEEL


def is_installed() -> bool:
    """Tell whether Triton is here with its Ascend backend; another Triton does not count."""
    return not is_overwritten() and all(
        importlib.util.find_spec(name) is not None for name in ("triton", "triton.backends.ascend")
    )


def is_overwritten() -> bool:
    """Tell whether another Triton was installed too: a CUDA build of torch brings one, into the very same folder."""
    return bool(list(importlib.metadata.distributions(name="triton")))


def skip_without() -> Outcome | None:
    """Return the skip of a check that needs triton-ascend, or None where it is installed and whole."""
    if is_overwritten():
        return skipped(
            "the package triton shares its folder with triton-ascend, so neither is whole: pip uninstall triton, then "
            "pip install --force-reinstall --no-deps triton-ascend==3.2.0"
        )
    if is_installed():
        return None
    if has_wheel(sys.version_info[:2]):
        return skipped("triton-ascend is not installed, and could be (the extra `target`)")
    return skipped("triton-ascend has no wheel for this Python", excused=True)


def load_backend(runtime: str) -> str:
    """Bring torch_npu up with its Triton backend, on the host with this driver; return the scheduling that it has then.

    torch_npu calls that backend `default`.
    """
    host.prepare(runtime)
    if runtime == "host":
        install_driver()
    return host.load_backend("default")


def install_driver() -> None:
    """Replace the Ascend backend's driver by the stand-in and give what torch_npu asks for and this Triton lacks."""
    backends = importlib.import_module("triton.backends")
    found = backends.backends["ascend"]
    driver = _make_driver(found.driver)
    backends.backends["ascend"] = backends.Backend(compiler=found.compiler, driver=driver)
    importlib.import_module("triton.runtime.driver").driver.set_active(driver())
    _alias_cann(importlib.import_module("triton.language").extra)
    _give_dialects(importlib.import_module("triton._C.libtriton").ascend)


class CodeWrittenError(Exception):
    """The code that was asked for is written, and is not loaded."""


@contextlib.contextmanager
def code_only() -> Iterator[None]:
    """Make a compile raise, with CodeWrittenError's name in the message, instead of loading the code it wrote.

    The single kernels that torch_npu loads to check them, while it writes the code, are loaded.
    """
    cache = importlib.import_module("torch._inductor.codecache").PyCodeCache
    load, load_written = cache.load, cache.load_by_key_path

    def load_kernel(*args: Any, **options: Any) -> Any:
        with replaced(cache, "load_by_key_path", load_written):
            return load(*args, **options)

    def refuse(*_args: Any, **_options: Any) -> None:
        raise CodeWrittenError("the generated code is all that was asked for")

    with replaced(cache, "load", load_kernel), replaced(cache, "load_by_key_path", refuse):
        yield


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Give an attribute of a class or module another value for a while."""
    before = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


class _Utilities:
    """What the extension that cannot be built would say of the device."""

    def get_arch(self) -> str:
        return ARCH

    def get_aicore_num(self) -> int:
        return CUBE_CORES

    def get_aivector_core_num(self) -> int:
        return VECTOR_CORES

    def get_device_properties(self, _device: object) -> dict[str, int]:
        return {"max_shared_mem": 1, "num_aicore": CUBE_CORES, "num_vectorcore": VECTOR_CORES}


def _make_driver(real: Any) -> Any:
    target = importlib.import_module("triton.backends.compiler").GPUTarget

    class HostDriver(real):  # type: ignore[misc]  # the real driver's class is only known at run time
        def __init__(self) -> None:
            # Not the real one's: that builds and loads the extension.
            self.utils = _Utilities()

        @classmethod
        def is_active(cls) -> bool:
            return True

        def get_current_target(self) -> Any:
            return target("npu", ARCH, 0)

    return HostDriver


def _alias_cann(extra: Any) -> None:
    if hasattr(extra, "cann"):
        return
    cann, extension = (types.ModuleType(f"{extra.__name__}.{name}") for name in ("cann", "cann.extension"))
    # Generated code imports `extension` by name; only templates use what is in it.
    extra.cann, cann.extension, cann.libdevice = cann, extension, extra.ascend.libdevice  # type: ignore[attr-defined]
    sys.modules.update({module.__name__: module for module in (cann, extension)})


def _give_dialects(ascend: Any) -> None:
    if not hasattr(ascend, "ir"):
        ascend.ir = types.SimpleNamespace(load_dialects=lambda _context: None)
