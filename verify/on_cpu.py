"""Compute eager operators on npu tensors with the CPU, on a host sysroot whose device memory is host memory.

    seen = on_cpu.share(tensor)         # a CPU tensor over the same memory
    with on_cpu.operators():
        x.var(0)                        # npu in, npu out, computed by torch's CPU kernel

On the sysroot an npu tensor lies in memory that the CPU can read, but every operator on it does nothing. Here each is
done by torch's CPU kernel on the same memory, in place where it is in place; operators that only make views or memory
are torch_npu's own. An operator that has no CPU kernel is an UnknownOperatorError that names it, and one that mixes
tensors of both devices is an error as it is on a machine with an NPU.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
from collections.abc import Iterator, Sequence
from typing import Any

from verify import npu_operators

MAKES_MEMORY = (
    "aten::empty_strided", "aten::empty.memory_format", "aten::_local_scalar_dense", "aten::set_.source_Tensor"
)  # fmt: skip

TAKES_BOTH = ("aten::copy_", "aten::_to_copy", "aten::index", "aten::index_put", "aten::index_put_", "aten::set_")
"""Operators that may get tensors of the CPU beside those of the npu."""


class UnknownOperatorError(NotImplementedError):
    """An operator on npu tensors has no kernel on the CPU, and is not among `verify.npu_operators`."""


class MixedDevicesError(RuntimeError):
    """An operator got tensors of the CPU beside those of the npu, as no NPU takes them."""


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
    # By memory, not by element: one of an expanded tensor is written to once.
    held = made.untyped_storage().nbytes() // made.element_size()
    share(made).as_strided((held,), (1,), 0).copy_(tensor.detach().as_strided((held,), (1,)))
    return made


def to_npu_together(tensors: Sequence[Any]) -> list[Any]:
    """Return npu tensors with CPU tensors' values, strides and offsets, over shared memory where those share it."""
    torch = importlib.import_module("torch")
    memories: dict[int, Any] = {}
    wholes: dict[tuple[int, Any], Any] = {}
    made = []
    for tensor in tensors:
        storage = tensor.untyped_storage()
        place, typed = storage.data_ptr(), (storage.data_ptr(), tensor.dtype)
        if place not in memories:
            memories[place] = to_npu(torch.empty(0, dtype=torch.uint8).set_(storage)).untyped_storage()
        if typed not in wholes:
            held = storage.nbytes() // tensor.element_size()
            wholes[typed] = torch.empty(0, dtype=tensor.dtype, device="npu").set_(memories[place], 0, (held,), (1,))
        made.append(wholes[typed].as_strided(tensor.size(), tensor.stride(), tensor.storage_offset()))
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
    """Have Inductor fold and print constants with the CPU while this is open: it runs npu operators for both."""
    folding = importlib.import_module("torch._inductor.constant_folding").ConstantFolder
    uniform = importlib.import_module("torch._inductor.fx_passes.joint_graph").UniformValueConstantFolder
    printing = importlib.import_module("torch._tensor_str")
    places = ((folding, "run"), (uniform, "__init__"), (printing, "_tensor_str"))
    before = [vars(place)[name] for place, name in places]
    for (place, name), function in zip(places, before, strict=True):
        setattr(place, name, _with_operators(function))
    try:
        yield
    finally:
        for (place, name), function in zip(places, before, strict=True):
            setattr(place, name, function)


def _with_operators(function: Any) -> Any:
    @functools.wraps(function)
    def on_cpu(*args: Any, **options: Any) -> Any:
        with operators():
            return function(*args, **options)

    return on_cpu


def compute(operator: Any, args: Any, kwargs: Any) -> Any:
    """Compute one operator call; npu tensors among the arguments stand for their memory."""
    tree = importlib.import_module("torch.utils._pytree")
    if not _is_for_npu(tree.tree_leaves((args, kwargs))) or _is_own(operator, kwargs):
        return operator(*args, **kwargs)
    _refuse_mixed(operator, tree.tree_leaves((args, kwargs)))
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
    try:
        result = compute_one(*tree.tree_map(give, args), **tree.tree_map(give, kwargs))
    except NotImplementedError as fault:
        if "not implemented for" in str(fault):  # there is a kernel, but not for this element type
            raise
        raise UnknownOperatorError(f"{operator} on npu tensors: torch has no kernel of it for the CPU") from fault
    return result if wants_cpu else tree.tree_map(take, result)


def _refuse_mixed(operator: Any, leaves: Sequence[Any]) -> None:
    if operator._schema.name in TAKES_BOTH or not any(map(_is_npu, leaves)):
        return
    if any(hasattr(one, "untyped_storage") and one.device.type == "cpu" and one.dim() > 0 for one in leaves):
        raise MixedDevicesError(f"{operator} got tensors of the CPU and of the npu, expected one device")


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
