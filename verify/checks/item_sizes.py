"""Sizes that are read from a tensor and summed give tensors of that size, with the right numbers.

Eight sizes of 1 are read with `Tensor.item()` and summed; the sum is the size of two tensors, each 1, 2, ..., 8. The
witness `symbolic-broadcast` shows that such a graph is lowered; this one computes it.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from verify import host
from verify.catalogue.values import Input, TrainingGraph
from verify.contract import Outcome, Request, broke, failed, passed
from verify.measured import DEVICE, Measured, evidence_of, keep_program, measure

CHECK = "item-sizes"
SIZES = 8
EXPECTED = list(range(1, SIZES + 1))


def counted_twice(sizes: Any) -> Any:
    """Count up to the sum of the sizes, by a sum of ones and by a range, which the other's zeros are added to."""
    total = sizes[0].item()
    for position in range(1, SIZES):
        total = total + sizes[position].item()
    ones = sizes.new_ones(total)
    first = ones.cumsum(0) * ones
    return first, first + sizes.new_zeros(total)


GRAPH = TrainingGraph(
    name="item_sizes",
    function=counted_twice,
    inputs={"sizes": Input(shape=(SIZES,), kind="one", dtype="int64")},
)


def check(request: Request) -> Outcome:
    """Compute the graph and judge its results."""
    host.prepare(request.runtime)
    host.load_backend("dvm")
    importlib.import_module("torch._dynamo").config.capture_scalar_outputs = True
    run = measure(GRAPH, mode="recorded" if request.runtime == "host" else DEVICE)
    keep_program(run, request.scratch, CHECK)
    return judge(run, [run.values[f"result {number}"].tolist() for number in range(2)])


def judge(run: Measured, results: Sequence[Sequence[int]]) -> Outcome:
    """Judge by the numbers of both results."""
    evidence = evidence_of([run]) | {"results": [list(one) for one in results]}
    if run.unjudged:
        return broke(f"the numbers cannot be judged: {'; '.join(run.unjudged)}", **evidence)
    if any(list(one) != EXPECTED for one in results):
        return failed(f"the results are {' and '.join(map(str, results))}, expected {EXPECTED} twice", **evidence)
    return passed(f"{EXPECTED} twice, by {run.told_kernels}", **evidence)
