"""Training graphs drawn by hypothesis: shapes, dtypes, what is reduced, what is written in place, what is returned."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from verify.catalogue.values import Input, TrainingGraph

SIZES = (1, 2, 3, 5, 8, 17, 32, 64, 128, 256)
MOST = 2**15
SMOOTH = (
    "t = t.sigmoid()",
    "t = (t * 0.5).exp()",
    "t = t * y",
    "t = t + y",
    "t = t.square() * 0.5",
    "t = t / (y.square() + 1)",
    "t = (t.square() + 1).rsqrt()",
)
STEPPED = ("t = t.abs()", "t = t.clamp(min=0.25)", "t = t.where(t > 0.5, y)", "t = t.maximum(y)")
"""A rounding more or less before these decides on which side a half-precision number falls."""
VIEWS = ("t = t.transpose(0, -1)", "t = t[..., 1:]", "t = t[..., ::2]", "t = t.flatten(0, 1)", "t = t.unsqueeze(0)")
LAYOUTS = ("contiguous", "contiguous", "transposed", "strided")
SUMS, EXTREMES = ("sum", "mean"), ("amax", "amin")
UPDATES = (
    "{a}.copy_({a} + {r})",
    "{a}.copy_({a} * 0.9 + {r} * 0.1)",
    "{a}.mul_(0.5).add_({r})",
    "{a}.copy_({a} * {r})",
    "{a}.copy_({r})",
    "{a}.add_({r}.detach())",
    "{a}.copy_({r} * 2 + {a}.square())",
)
WHOLE_UPDATES = (
    "{p}.copy_({p} + t)",
    "{p}.copy_({p} + t / (t.abs().{sum}({dims}, keepdim=True) + 1))",
    "{p}.mul_(t.{sum}({dims}, keepdim=True))",
    "{p}.copy_((t + 1).softmax({last}))",
    "{p}.sub_(t - t.{sum}({dims}, keepdim=True))",
)
# A softmax of a product with a tensor is wrong for a reason of its own: verify.catalogue.findings.
RESULTS = (
    "t",
    "t * 2",
    "t.{sum}({dims})",
    "(t + 1).softmax({last})",
    "t - t.{sum}({dims}, keepdim=True)",
    "t.flatten()[::2]",
    "t.{sum}()",
)


@dataclass
class Draft:
    """A graph while it is drawn: `t` is the value that the statements so far have made."""

    draw: Callable[[Any], Any]
    dtype: str
    shape: tuple[int, ...]
    inputs: dict[str, Input]
    lines: list[str] = field(default_factory=list)
    mutated: list[str] = field(default_factory=list)

    def choose(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))


@st.composite
def drawn_graphs(draw: Callable[[Any], Any]) -> TrainingGraph:
    """Draw a graph whose text is its name."""
    dtype = draw(st.sampled_from(("float32", "float32", "float32", "bfloat16", "float16")))
    shape = tuple(draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=3).filter(lambda s: math.prod(s) <= MOST)))
    layout = draw(st.sampled_from(LAYOUTS if len(shape) > 1 else LAYOUTS[:2]))
    x = Input(shape=shape, kind="uniform", layout=layout, gradient=draw(st.booleans()))
    draft = Draft(draw=draw, dtype=dtype, shape=shape, inputs={"x": x})
    _draw_value(draft)
    for name in ("a", "b")[: draw(st.integers(0, 2))]:
        _draw_accumulator(draft, name)
    if draw(st.booleans()):
        _draw_whole(draft, "p")
    results = _draw_results(draft)
    order = draw(st.permutations([name for name in draft.inputs if name != "x"]))
    return _finish(draft, ["x", *order] if draw(st.booleans()) else [*order, "x"], results)


def _draw_value(draft: Draft) -> None:
    draft.lines.append("t = x")
    if draft.draw(st.booleans()):
        _draw_view(draft)
    smooth = SMOOTH if draft.dtype != "float32" else SMOOTH + STEPPED
    steps = draft.draw(st.lists(st.sampled_from(smooth), max_size=3))
    if any("y" in step for step in steps):
        shape = tuple(draft.choose((size, 1)) for size in draft.shape)
        draft.inputs["y"] = Input(shape=shape, kind="uniform", gradient=draft.draw(st.booleans()))
    draft.lines += steps


def _draw_view(draft: Draft) -> None:
    view = draft.choose(VIEWS)
    shape = draft.shape
    if view == VIEWS[0]:
        shape = (shape[-1], *shape[1:-1], shape[0]) if len(shape) > 1 else shape
    elif view in VIEWS[1:3] and shape[-1] > 1:
        shape = (*shape[:-1], shape[-1] - 1 if view == VIEWS[1] else (shape[-1] + 1) // 2)
    elif view == VIEWS[3] and len(shape) > 1:
        shape = (shape[0] * shape[1], *shape[2:])
    elif view == VIEWS[4]:
        shape = (1, *shape)
    else:
        return
    draft.shape = shape
    draft.lines.append(view)


def _draw_dims(draft: Draft) -> tuple[int, ...]:
    axes = range(len(draft.shape))
    return draft.choose([dims for count in range(1, len(axes) + 1) for dims in itertools.combinations(axes, count)])


def _draw_accumulator(draft: Draft, name: str) -> None:
    dims, keepdim = _draw_dims(draft), draft.draw(st.booleans())
    kind = draft.choose(SUMS if draft.dtype != "float32" else SUMS + EXTREMES)
    kept = [1 if axis in dims else size for axis, size in enumerate(draft.shape)]
    shape = tuple(kept if keepdim else [size for axis, size in enumerate(draft.shape) if axis not in dims])
    draft.inputs[name] = Input(shape=shape, kind="uniform")
    draft.mutated.append(name)
    draft.lines.append(f"r = t.detach().{kind}({dims}, keepdim={keepdim})")
    draft.lines.append(draft.choose(UPDATES).format(a=name, r="r"))
    if keepdim and draft.draw(st.booleans()):
        draft.lines.append(f"t = t * {name}.detach()")


def _draw_whole(draft: Draft, name: str) -> None:
    draft.inputs[name] = Input(shape=draft.shape, kind="uniform", layout=draft.choose(("contiguous", "transposed"))
                               if len(draft.shape) > 1 else "contiguous")  # fmt: skip
    draft.mutated.append(name)
    draft.lines.append("u, t = t, t.detach()")
    draft.lines.append(_fill(draft, draft.choose(WHOLE_UPDATES).replace("{p}", name)))
    draft.lines.append("t = u")


def _draw_results(draft: Draft) -> list[str]:
    results = draft.draw(st.lists(st.sampled_from(RESULTS), min_size=0 if draft.mutated else 1, max_size=2))
    return [_fill(draft, one) for one in results]


def _fill(draft: Draft, text: str) -> str:
    dims = _draw_dims(draft) if "{dims}" in text else ()
    return text.format(sum=draft.choose(SUMS), dims=dims, last=draft.choose(range(len(draft.shape))))


def _finish(draft: Draft, order: Sequence[str], results: Sequence[str]) -> TrainingGraph:
    head = f"def graph({', '.join(order)}):"
    body = [*draft.lines, f"return {', '.join(results)}" if results else "return None"]
    text = "\n    ".join([head, *body])
    made: dict[str, Any] = {}
    exec(text, made)
    return TrainingGraph(
        name=text,
        function=made["graph"],
        inputs={name: draft.inputs[name] for name in order},
        mutated=tuple(draft.mutated),
        dtype=draft.dtype,
    )


def describe(graph: TrainingGraph) -> str:
    """Return a drawn graph's text with what its inputs are."""
    inputs = [f"    # {name}: {one.shape} {one.kind} {one.layout}{', gradient' if one.gradient else ''}"
              for name, one in graph.inputs.items()]  # fmt: skip
    return "\n".join([graph.name, f"    # {graph.dtype}", *inputs])
