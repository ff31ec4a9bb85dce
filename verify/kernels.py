"""Collect the DVM kernels that generated code builds.

    with kernels.built() as found:      # list[Any], filled while it is open
        torch.compile(f)(x)
    found[0].kobj.das()                 # the real compiler's disassembly; empty before the first launch

Each is what `dvm.kernel(...)` made of a builder function: callable, with `run`, `kobj` and the builder's `__name__`.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def built() -> Iterator[list[Any]]:
    """Collect the DVM kernels that are built while this is open, in order."""
    dvm: Any = importlib.import_module("torch_npu._inductor.dvm")
    kernel, kernels = dvm.kernel, []

    def keep(*args: Any, **options: Any) -> Callable[[Any], Any]:
        def build(builder: Any) -> Any:
            kernels.append(kernel(*args, **options)(builder))
            return kernels[-1]

        return build

    dvm.kernel = keep
    try:
        yield kernels
    finally:
        dvm.kernel = kernel
