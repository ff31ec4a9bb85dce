"""The numeric catalogue: small training graphs, each with what is known of it on the unpatched DVM backend.

    CATALOGUE                   # every graph, by its name, those in FP16 and BF16 and with unknown sizes too
    for_proof()                 # those that every proof tries

Nothing here needs torch before a graph's inputs are made (`verify.catalogue.values.make_inputs`).
"""

from __future__ import annotations

from collections.abc import Mapping

from verify.catalogue import accumulators, layers, optimizers
from verify.catalogue.values import TrainingGraph, in_dtype, with_sizes_unknown

SIZES_UNKNOWN = ("softmax", "rms_norm", "moving_average", "cross_entropy", "exponential_average")
"""Graphs that are also tried with sizes that are not known when they are compiled."""


def _expand() -> Mapping[str, TrainingGraph]:
    written = {graph.name: graph for graph in (*accumulators.GRAPHS, *layers.GRAPHS, *optimizers.GRAPHS)}
    halves = [in_dtype(graph, dtype) for graph in written.values() for dtype in graph.halves]
    dynamic = [with_sizes_unknown(written[name]) for name in SIZES_UNKNOWN]
    return written | {graph.name: graph for graph in (*halves, *dynamic)}


CATALOGUE: Mapping[str, TrainingGraph] = _expand()


def for_proof() -> tuple[TrainingGraph, ...]:
    """Return the graphs that every proof tries."""
    return tuple(graph for graph in CATALOGUE.values() if graph.proof)
