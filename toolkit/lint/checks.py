"""The checks by name: what each finds, why that is wrong, and the form that is right.

`docs/lint.md` has a section for each, held against this table by a test. What is told of torch was seen with 2.13 on
the CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One check; `id` is stable and goes into comments that allow a finding."""

    id: str
    finds: str
    why: str
    right: str


_ALL = (
    Check(
        id="import-in-forward",
        finds="an import in a function that is traced",
        why="the import runs while the compiler traces: the operators that it registers or builds, the tensors that it "
        "makes (fake ones in a fake function) and the globals that it patches come to be in the middle of a trace",
        right="import at the top of the module, or load the provider before the model is compiled and only look the "
        "operator up here",
    ),
    Check(
        id="log-in-forward",
        finds="a log call, `print` or `warnings.warn` in a function that is traced",
        why="Dynamo does not trace it: a graph break, and with fullgraph=True an error (`Unsupported`)",
        right="log where the model is built, or write `if not torch.compiler.is_compiling():` before it",
    ),
    Check(
        id="log-once-in-forward",
        finds="a flag or set that lets a log line through once, in a function that is traced",
        why="the flag is a guard of the graph: once it is set, everything is compiled again, and the log call itself "
        "breaks the first graph",
        right="log where the model is built, or put flag and log below `if not torch.compiler.is_compiling():`",
    ),
    Check(
        id="state-in-forward",
        finds="a write to a container of a module or class, or a counter there or in an attribute, in a function "
        "that is traced",
        why="what is written is a guard of the graph or a side effect of it: five calls that count compiled five "
        "graphs, tensors kept so outlive their graph, and activation checkpointing writes twice",
        right="return the value or keep it in a buffer of the module; what only eager runs need goes below "
        "`if not torch.compiler.is_compiling():`",
    ),
    Check(
        id="output-without-gradient",
        finds="an output of an autograd.Function that its backward refuses or ignores and that is not marked",
        why="autograd takes the output as differentiable: a loss that uses it loses that part of its gradient without "
        "a word, or fails in backward, and the compiler traces a gradient for it",
        right="`ctx.mark_non_differentiable(output)` in forward (or setup_context)",
    ),
    Check(
        id="raise-on-placeholder-gradient",
        finds="a backward that raises because a gradient is there, or is not",
        why="autograd fills the gradient of an output that nobody used with zeros, of one that is marked "
        "non-differentiable too, and the compiler traces backward with a placeholder for each output: it raises "
        "although nothing is wrong",
        right="mark the output with `ctx.mark_non_differentiable(output)` and take no notice of its gradient",
    ),
    Check(
        id="hand-written-rms-norm",
        finds="x * rsqrt(mean(x²) + eps), in any spelling",
        why="in bfloat16 each of its operations rounds, and a compiler that fuses them rounds at other places: "
        "compiled and eager runs differ, and the mean goes on in bfloat16",
        right="`torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, eps)`: float32 from the load to one cast",
    ),
    Check(
        id="scale-before-float32",
        finds="a matrix product that is scaled before it is cast to float32",
        why="the product is rounded to bfloat16 once more by the scale; a logit near 12 is off by up to 0.03, its "
        "probability by percents",
        right="cast the product, then scale: `(q @ k.transpose(-1, -2)).float() * scale`",
    ),
    Check(
        id="float-shape-in-fake",
        finds="a true division in a size, in a Meta or fake function",
        why="`/` makes a float (SymFloat) of the size: `TypeError: empty(): argument 'size' … must be tuple of ints`; "
        "in int(…) it binds the graph to this one size, and each other one compiles again",
        right="divide with `//`",
    ),
    Check(
        id="determinism-after-compile",
        finds="`use_deterministic_algorithms` that runs after `torch.compile`",
        why="kernels are built for the setting of their compilation: what ran before it is compiled again or was not "
        "deterministic, and the order decides which",
        right="call `torch.use_deterministic_algorithms(True)` before anything is compiled",
    ),
    Check(
        id="provider-preload-order",
        finds="a preload of operator providers before parallelisation, or after activation checkpointing or compile",
        why="parallelisation replaces the modules that a provider was chosen for; what activation checkpointing and "
        "the compiler have wrapped sees operators that are registered later only as another graph, or not at all",
        right="parallelise, preload the providers, then activation checkpointing, then compile",
    ),
    Check(
        id="bad-allow",
        finds="a comment `toolkit: allow[…]` without a reason, or for a check that there is none of",
        why="it allows nothing: the finding stays",
        right="`# toolkit: allow[CHECK] the reason`, on the line of the finding or alone on the line above",
    ),
)

CHECKS: Mapping[str, Check] = MappingProxyType({check.id: check for check in _ALL})
"""All checks by id, in the order of the page."""
