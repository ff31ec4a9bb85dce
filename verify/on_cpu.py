"""Compute eager operators on npu tensors with the CPU, on a host sysroot whose device memory is host memory.

    seen = on_cpu.share(tensor)         # a CPU tensor over the same memory
    with on_cpu.operators():
        x.var(0)                        # npu in, npu out, computed by torch's CPU kernel

On the sysroot an npu tensor lies in memory that the CPU can read, but every operator on it does nothing. Here each is
done by torch's CPU kernel on the same memory, in place where it is in place; operators that only make views or memory
are torch_npu's own. An operator that has no CPU kernel is an error that names it.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
from collections.abc import Iterator
from typing import Any

from verify import npu_operators

MAKES_MEMORY = (
    "aten::empty_strided", "aten::empty.memory_format", "aten::_local_scalar_dense", "aten::set_.source_Tensor"
)  # fmt: skip


def share(tensor: Any) -> Any:
    """Return a CPU tensor over the memory of an npu tensor, with its shape, strides and offset."""
    torch = importlib.import_module("torch")
    storage = tensor.untyped_storage()
    shared = torch.empty(0, dtype=tensor.dtype)
    if storage.nbytes() == 0:
        return shared.as_strided(tensor.size(), tensor.stride())
    memory = (ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr())
    flat = torch.frombuffer(memory, dtype=torch.uint8)
    return shared.set_(flat.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride())


def to_npu(tensor: Any) -> Any:
    """Return an npu tensor with a CPU tensor's values and strides."""
    torch = importlib.import_module("torch")
    made = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="npu")
    share(made).copy_(tensor.detach())
    return made


def to_cpu(tensor: Any) -> Any:
    """Return a CPU tensor of its own with an npu tensor's values."""
    return share(tensor.detach()).clone()


@contextlib.contextmanager
def operators() -> Iterator[None]:
    """Compute operators on npu tensors with the CPU while this is open, in this thread."""
    dispatch = importlib.import_module("torch.utils._python_dispatch")

    class OnCpu(dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]  # torch is untyped here
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return compute(func, args, kwargs or {})

    with OnCpu():
        yield


@contextlib.contextmanager
def folded_constants() -> Iterator[None]:
    """Have Inductor fold constants with the CPU while this is open: it runs operators on real npu tensors for it."""
    folder: Any = importlib.import_module("torch._inductor.constant_folding").ConstantFolder
    fold = folder.run

    def fold_on_cpu(self: Any) -> Any:
        with operators():
            return fold(self)

    folder.run = fold_on_cpu
    try:
        yield
    finally:
        folder.run = fold


def compute(operator: Any, args: Any, kwargs: Any) -> Any:
    """Compute one operator call; npu tensors among the arguments stand for their memory."""
    tree = importlib.import_module("torch.utils._pytree")
    if not _is_for_npu(tree.tree_leaves((args, kwargs))) or _is_own(operator, kwargs):
        return operator(*args, **kwargs)
    originals: dict[int, tuple[Any, Any]] = {}

    def give(one: Any) -> Any:
        if not _is_npu(one):
            return _cpu_device() if _is_npu_device(one) else one
        shared = share(one)
        originals[id(shared)] = (shared, one)
        return shared

    def take(one: Any) -> Any:
        if not hasattr(one, "untyped_storage"):
            return one
        return originals[id(one)][1] if id(one) in originals else to_npu(one)

    wants_cpu = "device" in kwargs and kwargs["device"] is not None and not _is_npu_device(kwargs["device"])
    compute_one = npu_operators.find(operator._schema.name) or operator
    result = compute_one(*tree.tree_map(give, args), **tree.tree_map(give, kwargs))
    return result if wants_cpu else tree.tree_map(take, result)


def _is_for_npu(leaves: Any) -> bool:
    return any(_is_npu(one) or _is_npu_device(one) for one in leaves)


def _is_own(operator: Any, kwargs: Any) -> bool:
    """Tell whether torch_npu does this itself without computing: views, and memory that nothing is written to."""
    name = operator._schema.name + (f".{operator._schema.overload_name}" if operator._schema.overload_name else "")
    return bool(operator.is_view) or name in MAKES_MEMORY


def _is_npu(one: Any) -> bool:
    return hasattr(one, "untyped_storage") and one.device.type == "npu"


def _is_npu_device(one: Any) -> bool:
    return getattr(one, "type", None) == "npu" and hasattr(one, "index")


def _cpu_device() -> Any:
    return importlib.import_module("torch").device("cpu")
