"""What a page tells of: an overlay, what it was made from, its proof and the evidence behind that."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from toolkit.model import CheckResult, Overlay, Proof, Side

Row = TypeVar("Row")
Name = TypeVar("Name", bound=Hashable)

SIDES: tuple[Side, ...] = ("base", "overlay")


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchAccount:
    """One patch as it was built in. `diff` and `reason` are empty where `remark` says why they are not at hand.

    `is_in` is False for a patch that the base has already.
    """

    name: str
    sha256: str
    subject: str = ""
    reason: str = ""
    upstream_status: str = ""
    witness: str = ""
    file: str = ""
    diff: str = ""
    is_in: bool = True
    remark: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ComponentAccount:
    """One component: its base, and what it became. `places` are where the base comes from, a file or addresses."""

    name: str
    kind: str
    digest: str
    places: tuple[str, ...]
    base_version: str
    version: str
    wheel: str
    wheel_sha256: str
    built_with: tuple[tuple[str, str], ...]
    patches: tuple[PatchAccount, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckAccount:
    """One check with its result on each side that it ran on, the evidence files that it left, and its command."""

    name: str
    summary: str
    results: Mapping[Side, CheckResult]
    files: tuple[str, ...]
    command: str

    @property
    def is_good(self) -> bool:
        """Whether nothing that was required of it came out otherwise."""
        return all(result.ok for result in self.results.values() if result.required)

    @property
    def seconds(self) -> float:
        """The time of both sides."""
        return sum(result.seconds for result in self.results.values())


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberRow:
    """One value of a graph against its reference; an error that is None was not finite.

    `written` is False for an input that the graph only reads: it must stay, but nobody computed it.
    """

    check: str
    side: Side
    graph: str
    mode: str
    value: str
    dtype: str
    shape: tuple[int, ...]
    reference: str
    maximum_absolute_error: float | None
    relative_l2: float | None
    cosine: float | None
    ulps: Mapping[str, int]
    within: bool
    written: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernel:
    """One kernel of a compiled graph; `name` is empty where only its type was recorded."""

    name: str
    type: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """What one graph was compiled to on one side; `lost` are the inputs that it overwrites too early, and how."""

    check: str
    side: Side
    graph: str
    kernels: tuple[Kernel, ...]
    launches: tuple[str, ...]
    lost: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptFile:
    """An evidence file; `path` is from the overlay's folder, `cut` the number of characters that were not read."""

    path: str
    text: str
    cut: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphEvidence:
    """The generated code of one graph and the compiler's stages and disassembly, by side."""

    check: str
    graph: str
    code: Mapping[Side, KeptFile]
    stages: Mapping[Side, KeptFile]


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """All that a report tells of one overlay. `notices` say what a reader must know before believing the rest."""

    overlay: Overlay
    proof: Proof
    description: str
    notices: tuple[str, ...]
    components: tuple[ComponentAccount, ...]
    checks: tuple[CheckAccount, ...]
    numbers: tuple[NumberRow, ...]
    programs: tuple[Program, ...]
    graphs: tuple[GraphEvidence, ...]
    commands: tuple[tuple[str, str], ...]

    @property
    def recipe(self) -> str:
        """The recipe's name."""
        return self.overlay.recipe

    def check(self, name: str) -> CheckAccount | None:
        """Find a check by name, or None."""
        return next((check for check in self.checks if check.name == name), None)


def grouped(rows: Iterable[Row], name: Callable[[Row], Name]) -> list[tuple[Name, list[Row]]]:
    """Sort rows into groups by a name, both in the order in which they come."""
    groups: dict[Name, list[Row]] = {}
    for row in rows:
        groups.setdefault(name(row), []).append(row)
    return list(groups.items())
