"""What is known of one run's compiles and of their lookups in the caches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DEBUGGING = "TORCH_LOGS=+torch._functorch._aot_autograd.autograd_cache"
"""With this in its environment torch lists the parts of AOTAutograd's keys too, and logs them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One part of a key's input."""

    hash: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Lookup:
    """One look into a cache.

    `place` tells it from the others of its run: process, compile id, cache, and the how many-eth of these. `state` is
    torch's word (`hit`, `miss`, `bypass`), or `disabled` or `unrecorded`. `parts` is None where the trace lists none.
    `seconds` is what compiling took after a miss, `saved` what a hit says it has saved. `failure` is why the compile
    that it belongs to came to nothing.
    """

    process: str
    compile_id: str
    cache: str
    ordinal: int
    state: str
    key: str | None
    reason: str
    direction: str
    parts: Mapping[str, Part] | None
    seconds: float | None
    saved: float | None
    failure: str = ""

    @property
    def place(self) -> tuple[str, str, str, int]:
        """What the same lookup is found by in another run."""
        return self.process, self.compile_id, self.cache, self.ordinal


@dataclass(frozen=True, kw_only=True, slots=True)
class Compile:
    """One compile of a frame, forward with all that belongs to it, or of its backward."""

    process: str
    compile_id: str
    backward: bool
    function: str
    seconds: float | None
    failure: str

    @property
    def place(self) -> tuple[str, str, bool]:
        """What the same compile is found by in another run."""
        return self.process, self.compile_id, self.backward


@dataclass(frozen=True, kw_only=True, slots=True)
class RunTrace:
    """All that one run's traces say."""

    lookups: tuple[Lookup, ...]
    compiles: tuple[Compile, ...]
    torch: str | None
    doubts: tuple[str, ...]
    files: int
