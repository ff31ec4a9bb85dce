"""Stands in for the `dvm` module that generated code imports, and computes its kernels by reference on the CPU.

    from verify import dvm_reference as dvm

    @dvm.kernel(ktype="spec", dyn_shape=False)
    def accumulate(k):
        x = k.load([128, 256], dvm.float32)
        ...

    accumulate.run(x, old, out)         # CPU tensors: inputs in order, then outputs in order
    result = accumulate(x, old)         # the outputs are made

`kernel` takes and returns what torch_npu's `_inductor.dvm.kernel` does, so that generated code runs unchanged. What a
kernel computes is read off its own builder calls (`verify.reference.program`), each operation evaluated with torch in
its own element type. An operation that is not known is an error that names it.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from verify.reference import operations
from verify.reference.evaluate import bind, bind_inputs, compute, evaluate, read_memory, write_output
from verify.reference.program import Builder, Program

bool_, float16, bfloat16, float32, int32, int64 = "bool", "float16", "bfloat16", "float32", "int32", "int64"

KINDS = ("vector", "vector:opt_fractal", "spec", "split", "mix")


def kernel(ktype: str = "split", dyn_shape: bool = False) -> Callable[[Callable[[Any], Any]], Any]:
    """Return a decorator that builds a kernel from its builder function.

    The kernel is called with inputs and returns its outputs, or its `run` is called with inputs and outputs.
    `program` is what the builder wrote down.
    """
    if ktype not in KINDS:
        raise ValueError(f"kernel type {ktype!r}, expected one of {', '.join(KINDS)}")

    def decorate(build: Callable[[Any], Any]) -> Any:
        program = build_program(build, ktype)

        @functools.wraps(build)
        def call(*inputs: Any, **options: Any) -> Any:
            return compute_outputs(program, inputs)

        call.run = functools.partial(_run, program)  # type: ignore[attr-defined]
        call.program = program  # type: ignore[attr-defined]
        return call

    return decorate


def build_program(build: Callable[[Any], Any], ktype: str, *, keep_promoted: bool = False) -> Program:
    """Run a builder function and return the program that it writes down."""
    builder = Builder(keep_promoted=keep_promoted)
    build(builder)
    return builder.program(ktype, getattr(build, "__name__", ""))


def compute_outputs(program: Program, inputs: Sequence[Any]) -> Any:
    """Return what a kernel computes of a launch's inputs: its output, or a tuple where there are several."""
    torch = importlib.import_module("torch")
    arguments = bind_inputs(program, inputs)
    values = compute(program.instructions, read=lambda one: read_memory(one, arguments[one.number]))
    outputs = []
    for store in program.stores:
        value = values[store.operands[0].number]
        outputs.append(torch.empty(value.shape, dtype=operations.element_type(store.dtype)))
        write_output(store, value, outputs[-1])
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _run(program: Program, *arguments: Any, **options: Any) -> None:
    evaluate(bind(program, arguments))
