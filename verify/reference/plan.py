"""What a kernel's launches load and store, and where: the plan by which `verify.reference.stages` evaluates them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from verify.reference.program import Program


class PlanError(ValueError):
    """A plan does not hold what the program needs: a launch computes a value of something that it does not load."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a value is stored: at the start of an argument, by instruction number, or in a workspace by offset."""

    argument: int | None = None
    workspace: int | None = None

    def __str__(self) -> str:
        return f"argument %{self.argument}" if self.argument is not None else f"workspace+{self.workspace}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Read:
    """A load: of an input, or of the value that an earlier launch has stored in a place, as elements of `dtype`."""

    instruction: int
    place: Place | None = None
    dtype: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Write:
    """A store of a value in a place. `store` is the output that it is, by instruction number; None: it is parked."""

    instruction: int
    place: Place
    dtype: str
    atomic: bool = False
    store: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """One launch: a fill before an atomic store has only `fills`, by the write that it is for."""

    blocks: int
    reads: tuple[Read, ...] = ()
    writes: tuple[Write, ...] = ()
    fills: tuple[Write, ...] = ()
    tiles: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The launches of a kernel. `copied` are arguments that are gapless copies of strided tensors, by number.

    `shapes` are those of all values, by number, at the launch's sizes.
    """

    program: Program
    launches: tuple[Launch, ...]
    shapes: Mapping[int, tuple[int, ...]]
    copied: frozenset[int] = frozenset()

    def parked(self) -> tuple[Write, ...]:
        """Return the stores of values that only later launches want."""
        return tuple(write for launch in self.launches for write in launch.writes if write.store is None)


Lie = Literal["none", "same", "other"]
Overlaps = Callable[[int, int], Lie]
"""How two arguments' memories lie, by instruction numbers: apart, element for element the same, or overlapping else."""
