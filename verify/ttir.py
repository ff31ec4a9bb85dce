"""Compile small graphs for npu as far as Triton's front end, which needs no compiler of CANN's, and see what it made.

    for attempt in ttir.try_graphs([ttir.Graph("sum", f, (x, y))], request):    # CPU tensors
        attempt.ttir, attempt.error, attempt.wrong

After `triton_host.load_backend`. Nothing is launched: on the host, what a kernel gives is seen in Triton's own
interpreter, which runs the very function that TTIR is made of on CPU tensors.

torch_npu 2.13 has two kinds of kernels. Those with loops over sub-blocks (NPUIndexTritonKernel) are checked by the
front end, and where that refuses one, its error is hidden and a kernel without loops (NPUTritonKernel) is generated.
Here the error is kept, and each graph is tried as both kinds.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verify import host, triton_host
from verify.contract import Request

CHECK = "make_ttir_for_check"
WITHOUT_LOOPS = " (without loops)"


@dataclass(frozen=True)
class Graph:
    """A function with its tensors, on the CPU, in the order in which it reads them.

    To be interpreted every axis must have one and the same size, a power of 2, which is the first tensor's first.
    """

    name: str
    function: Callable[..., Any]
    tensors: Sequence[Any]


@dataclass(frozen=True)
class Attempt:
    """What compiling a graph came to: TTIR or the error that refused its kernel, and what its value is if wrong."""

    graph: str
    ttir: str = ""
    error: str = ""
    wrong: str = ""

    @property
    def reason(self) -> str:
        """The last line of the error: Triton quotes the kernel up to the place first."""
        return self.error.strip().rpartition("\n")[2]


@dataclass(frozen=True)
class Kernel:
    """A kernel as the front end left it: its TTIR, or the error that refused it.

    `function` is the kernel as a function of Python, None where it was refused before there was one.
    """

    name: str
    ttir: str = ""
    error: str = ""
    function: Any = None


class FrontEndDoneError(Exception):
    """The kernel's TTIR is made, and it is not compiled further."""


def try_graphs(graphs: Sequence[Graph], request: Request) -> list[Attempt]:
    """Compile each graph, as each kind of kernel that there is, and leave code and TTIR in the request's scratch.

    Only once a process: interpreting makes Triton's language the interpreter's for good.
    """
    made = [(graph, kind, _compile(graph, kind, request.scratch)) for kind in _kinds() for graph in graphs]
    # A device has another Triton, whose interpreter was not tried.
    interpreted = request.runtime == "host"
    return [_look_at(graph, f"{graph.name}{kind}", kernels, interpreted) for graph, kind, kernels in made]


def _kinds() -> tuple[str, ...]:
    return ("", WITHOUT_LOOPS) if hasattr(_scheduling(), CHECK) else ("",)


def _compile(graph: Graph, kind: str, folder: Path) -> list[Kernel]:
    torch = importlib.import_module("torch")
    torch._dynamo.reset()
    kernels: list[Kernel] = []
    refuse = _all_refused() if kind else _kept_refusals(kernels)
    with host.generated_code() as sources, refuse, _front_end_only(kernels):
        try:
            torch.compile(graph.function)(*(tensor.npu() for tensor in graph.tensors))
        except Exception:  # every compile ends with one here; the front end's are with the kernels
            if not kernels:
                raise
    kept = [*sources, *(f"# {kernel.name}\n{kernel.ttir or kernel.error}" for kernel in kernels)]
    (folder / f"{graph.name}{kind}.txt").write_text("\n\n".join(kept), encoding="utf-8")
    return kernels


def _look_at(graph: Graph, name: str, kernels: Sequence[Kernel], interpreted: bool) -> Attempt:
    errors = [kernel.error for kernel in kernels if kernel.error]
    if errors or len(kernels) != 1:
        return Attempt(name, error="; ".join(errors) or f"{len(kernels)} kernels, expected one")
    return Attempt(name, ttir=kernels[0].ttir, wrong=_compare_values(graph, kernels[0]) if interpreted else "")


def _compare_values(graph: Graph, kernel: Kernel) -> str:
    expected = graph.function(*graph.tensors)
    found = expected.new_zeros(expected.shape)
    interpret(kernel, [*graph.tensors, found], size=len(graph.tensors[0]))
    return "" if found.equal(expected) else f"gives {found.flatten().tolist()}, expected {expected.flatten().tolist()}"


def interpret(kernel: Kernel, tensors: Sequence[Any], size: int) -> None:
    """Run a kernel on CPU tensors, in the order of its pointers, with `size` for each of its numbers.

    That is right where all axes have that size: one program then does it all.
    """
    interpreter = importlib.import_module("triton.runtime.interpreter")
    patch_tensor = interpreter._patch_lang_tensor
    pointers = iter(tensors)
    arguments = {name: next(pointers) if "_ptr" in name else size for name in kernel.function.arg_names}

    def patch_index_too(tensor: Any) -> None:
        patch_tensor(tensor)
        # The interpreter of triton-ascend 3.2.0 counts loops by int() of an array of one number: numpy 2.4 refuses it.
        tensor.__index__ = lambda self: int(self.handle.data.item())

    with triton_host.replaced(interpreter, "_patch_lang_tensor", patch_index_too):
        interpreter.InterpretedFunction(kernel.function.fn)[(1, 1, 1)](**arguments)


@contextlib.contextmanager
def _front_end_only(kernels: list[Kernel]) -> Iterator[None]:
    source = importlib.import_module("triton.compiler.compiler").ASTSource
    config = importlib.import_module("torch._inductor.config")
    make_ir, one_by_one = source.make_ir, threading.Lock()

    def keep(self: Any, *args: Any, **options: Any) -> None:
        # Once for each kernel: its other configurations, which threads compile side by side, differ in numbers alone.
        with one_by_one:
            if self.name not in {kernel.name for kernel in kernels}:
                kernels.append(_try_front_end(self, lambda: make_ir(self, *args, **options)))
        raise FrontEndDoneError(self.name)

    # One is this process itself; more would be other processes.
    with triton_host.replaced(source, "make_ir", keep), config.patch(compile_threads=1):
        yield


def _try_front_end(source: Any, make_ir: Callable[[], Any]) -> Kernel:
    try:
        return Kernel(source.name, ttir=str(make_ir()), function=source.fn)
    except Exception as fault:  # whatever a kernel is refused with, it is that kernel's outcome
        return Kernel(source.name, error=_describe(fault), function=source.fn)


@contextlib.contextmanager
def _kept_refusals(kernels: list[Kernel]) -> Iterator[None]:
    scheduling = _scheduling()
    check = getattr(scheduling, CHECK, None)
    if check is None:
        yield
        return

    def keep(self: Any, *args: Any) -> None:
        try:
            check(self, *args)
        except Exception as fault:
            kernels.append(Kernel("refused by its check", error=_describe(fault)))
            raise

    with triton_host.replaced(scheduling, CHECK, keep):
        yield


@contextlib.contextmanager
def _all_refused() -> Iterator[None]:
    def refuse(*_args: Any) -> None:
        raise FrontEndDoneError("so that the kernel without loops is generated")

    with triton_host.replaced(_scheduling(), CHECK, refuse):
        yield


def _scheduling() -> Any:
    return importlib.import_module("torch_npu._inductor.codegen.scheduling").NPUTritonScheduling


def _describe(fault: BaseException) -> str:
    return f"{type(fault).__name__}: {fault}"
