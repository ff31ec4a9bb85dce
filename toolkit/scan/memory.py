"""What a tensor lies in, and whether two of them share an element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from toolkit.scan.placing import Part
from toolkit.scan.values import Verdict


class Item(NamedTuple):
    """One of the tensors that a name holds: the name, the line that binds it, and the number; from the end below 0."""

    name: str
    line: int
    number: int

    def is_other_than(self, item: Item) -> bool:
        """Whether the two are surely not the same."""
        is_alike = self[:2] == item[:2] and (self.number < 0) == (item.number < 0)
        return is_alike and self.number != item.number


@dataclass(frozen=True, slots=True)
class Memory:
    """What a tensor lies in: a buffer by the name and the line that it came with, 0 for a function's own argument.

    `part` is what of it a view has, None for all of it or where that is unknown; `item` which of several tensors it is.
    `is_whole` is False once a view was taken: what is said of it does not count from the buffer's beginning. `in_pool`
    says that `part` counts bytes.
    `maybe` are the other buffers that it may lie in as well, where what made it cannot be followed.
    """

    buffer: str
    line: int = 0
    part: Part | None = None
    item: Item | None = None
    is_whole: bool = True
    in_pool: bool = False
    maybe: frozenset[tuple[str, int]] = frozenset()

    @property
    def roots(self) -> frozenset[tuple[str, int]]:
        """All the buffers that it may lie in."""
        return self.maybe | {(self.buffer, self.line)} if self.buffer else self.maybe

    def overlaps(self, other: Memory) -> Verdict:
        """Tell whether the two share an element, or may by what is known of them."""
        if not self.roots & other.roots:
            return "no"
        if self.maybe or other.maybe:
            return "yes" if self == other and self.is_whole and self.buffer else "unknown"
        if self.part is not None and other.part is not None and self.in_pool == other.in_pool:
            return "yes" if self.part[0] < other.part[1] and other.part[0] < self.part[1] else "no"
        if self.item is not None and other.item is not None and self.item.is_other_than(other.item):
            return "no"
        return "yes"
