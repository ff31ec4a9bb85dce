"""What depends on how the backend tiles a kernel, as far as the sizes tell.

The outermost axis of more than one element is always tiled, a short vector never; the rest is decided by the backend.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from toolkit.scan.lowering import Node
from toolkit.scan.program import REDUCTIONS, broadcast
from toolkit.scan.values import Verdict

LOCAL_ELEMENTS = 48 * 1024
"""How many FP32 numbers the local memory of a core of the 910B holds."""
UNTILED = 512
"""The length up to which the one axis of a vector is never tiled."""
ONE_BLOCK = 4096
"""Up to how many elements all of them were seen to be reduced by one block."""
MANY_BLOCKS = 32 * 1024
"""From how many elements on several blocks were seen to share the work."""

Sizes = tuple[int, ...]


class UndecidedError(Exception):
    """Something about the tiling decides, and was not guessed yet."""

    def __init__(self, question: Hashable) -> None:
        super().__init__(question)
        self.question = question


@dataclass(frozen=True, slots=True)
class Guess:
    """Answers to what the backend decides."""

    answers: Mapping[Hashable, bool]

    def ask(self, question: Hashable) -> bool:
        """Return the answer; raise UndecidedError where there is none yet."""
        if question not in self.answers:
            raise UndecidedError(question)
        return self.answers[question]

    def assume(self, question: Hashable, answer: bool) -> Guess:
        """Return a guess with one more answer."""
        return Guess({**self.answers, question: answer})


def is_whole(value: Node, nodes: Sequence[Node], guess: Guess) -> bool:
    """Tell whether a value is as large as what its stage loops over, along all axes that are tiled."""
    shapes = [_sizes(one) for node in nodes for one in (node, *node.inputs)]
    domain, shape, stage = broadcast(shapes), _sizes(value), nodes[0].stage
    if domain not in shapes:
        return guess.ask((stage, shape))
    if math.prod(shape) == math.prod(domain):
        return True
    padded = (1,) * (len(domain) - len(shape)) + shape
    repeated = [axis for axis, (one, size) in enumerate(zip(padded, domain, strict=True)) if one != size]
    long = _long_axes(domain)
    if len(long) > 1 and long[0] in repeated:
        return False
    if len(domain) == 1 and domain[0] <= UNTILED:
        return True
    if len(long) == 1 and len(domain) > 1:
        return False  # all axes are folded into one
    return not any(guess.ask((stage, axis)) for axis in repeated)


def is_cut(nodes: Sequence[Node]) -> Verdict:
    """Tell whether the backend cuts a kernel: where a reduction that is used needs more than the rows of one tile."""
    shapes = [_sizes(node) for node in nodes]
    domain = broadcast(shapes)
    used = {one for node in nodes for one in node.inputs if one.operation in REDUCTIONS}
    answers = {_needs_launch(one, domain, len(nodes)) for one in used}
    if domain not in shapes:
        return "unknown"
    if "yes" in answers:
        return "yes"
    is_mixed = len({node.axes for node in nodes if node.operation in REDUCTIONS}) > 1
    return "unknown" if "unknown" in answers or is_mixed else "no"


def _needs_launch(reduction: Node, domain: Sizes, count: int) -> Verdict:
    shape = _sizes(reduction.inputs[0])
    reduced = [axis for axis in reduction.axes or () if shape[axis] > 1]
    if not reduced or shape != domain:
        return "unknown"
    row = math.prod(domain[min(reduced) :])
    if row == math.prod(domain) or 2 * row > LOCAL_ELEMENTS:
        return "yes"
    return "no" if reduction.keeps_axes and row * (count + 2) <= LOCAL_ELEMENTS else "unknown"


def is_cleared(node: Node, is_known: bool) -> Verdict:
    """Tell whether the memory of a value is cleared before its launch, because blocks add to it."""
    if node.operation not in REDUCTIONS:
        return "no"
    shape = _sizes(node.inputs[0]) if node.inputs else ()
    if not is_known or any(size < 0 for size in shape):
        return "unknown"
    long = _long_axes(shape)
    reduced = [axis for axis in long if axis in (node.axes or ())]
    if not reduced or (reduced == long and math.prod(shape) <= ONE_BLOCK):
        return "no"
    if reduced == long:
        return "yes" if math.prod(shape) >= MANY_BLOCKS else "unknown"
    return "yes" if reduced[0] == long[0] else "unknown"


def _long_axes(shape: Sizes) -> list[int]:
    return [axis for axis, size in enumerate(shape) if size > 1]


def _sizes(node: Node) -> Sizes:
    return node.shape or ()
