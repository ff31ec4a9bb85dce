"""Graphs that the DVM backend of torch_npu 2.13.0 computes wrongly for other reasons than the one that is patched.

They are wrong on the base and on the overlay; docs/evidence.md tells why. A test runs them, so that it shows when they
no longer are.
"""

from __future__ import annotations

from typing import Any

from verify.catalogue.values import Input, TrainingGraph


def tempered_softmax(x: Any, temperature: Any) -> Any:
    """A temperature that is a tensor: Inductor's pattern for it holds a constant, which the backend loses."""
    return (x * temperature).softmax(-1)


FINDINGS = (
    TrainingGraph(
        name="tempered_softmax",
        function=tempered_softmax,
        inputs={
            "x": Input(shape=(8, 16), gradient=True),
            "temperature": Input(shape=(), kind="uniform", gradient=True),
        },
        on_base="wrong",
    ),
)
