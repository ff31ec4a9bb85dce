"""What a line's own small file says: `series.toml` beside its patches, which bases the series is for.

A base outside of it is refused, not tried: that a patch applies does not say that it belongs there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from toolkit.errors import SeriesError
from toolkit.mirrors import require_sound_addresses
from toolkit.model import Component
from toolkit.requirements import require_subfolder
from toolkit.schema import (
    TomlError,
    describe_faults,
    describe_toml_error,
    did_you_mean,
    find_faults,
    parse_toml,
    shown_path,
)

LINE_FILE = "series.toml"

Covered = Annotated[
    str,
    Meta(
        pattern=r"^(git:([0-9a-f]{40}|[0-9a-f]{64})|installed:[A-Za-z0-9][A-Za-z0-9._-]*"
        r"|(installed:)?[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.+!]+)\Z",
        title="a release such as `torch_npu==2.13.0`, `git:` and a full commit id, or `installed:` and a package",
        examples=["torch_npu==2.13.0"],
    ),
]


class LineTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`series.toml`."""

    schema: Annotated[Literal[1], Meta(description="the version of this format", examples=[1])]
    covers: Annotated[
        tuple[Covered, ...],
        Meta(min_length=1, description="the bases that the series is for; the first is the one it is written on"),
    ]
    upstream: Annotated[
        tuple[str, ...],
        Meta(description="the addresses of upstream's repository, where commits that are covered are fetched from"),
    ] = ()
    subfolder: Annotated[str, Meta(description="where in that repository the paths of the patches begin")] = ""
    diagnostic: Annotated[
        bool, Meta(description="whether the series only narrows faults down; a recipe that takes it says so too")
    ] = False

    def __post_init__(self) -> None:
        if twice := [base for number, base in enumerate(self.covers) if base in self.covers[:number]]:
            raise ValueError(f"covers names {twice[0]!r} twice")
        require_sound_addresses(self.upstream)
        require_subfolder(self.subfolder)


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """The bases of a series, as `series.toml` names them, and where its upstream is. `name` is the series' name."""

    name: str
    covers: tuple[str, ...]
    upstream: tuple[str, ...] = ()
    subfolder: str = ""
    diagnostic: bool = False

    @property
    def home(self) -> str:
        """The base that the patches are written on."""
        return self.covers[0]

    def is_for(self, coverage: str) -> bool:
        """Whether a base, named as `Base.coverage` names it, is one that the series is for."""
        return coverage in self.covers


def read_line(folder: Path, *, name: str) -> Line:
    """Read a series' `series.toml`; SeriesError, with one detail for each fault, where it is missing or wrong."""
    path = folder / LINE_FILE
    try:
        text, raw = parse_toml(path.read_bytes())
    except FileNotFoundError as fault:
        raise SeriesError(
            f"series {name!r} does not say which bases it is for: no file {shown_path(path)}",
            hint='write one: schema = 1 and covers = ["<distribution>==<version>", "git:<commit id>"]',
        ) from fault
    except OSError as fault:
        raise SeriesError(f"cannot read {shown_path(path)}: {fault.strerror}") from fault
    except TomlError as fault:
        raise SeriesError(
            f"{LINE_FILE} of series {name!r} is no TOML", details=[describe_toml_error(fault, path)]
        ) from fault
    if faults := find_faults(raw, LineTable):
        raise SeriesError(f"{LINE_FILE} of series {name!r} is wrong", details=describe_faults(faults, path, text))
    table = msgspec.convert(raw, LineTable)
    return Line(
        name=name, covers=table.covers, upstream=table.upstream, subfolder=table.subfolder, diagnostic=table.diagnostic
    )


def require_covered(line: Line, component: Component) -> None:
    """Raise SeriesError where a component's base is not one that its series is for."""
    coverage = component.base.coverage
    if not line.is_for(coverage):
        raise SeriesError(
            f"series {line.name!r} is not for {component.name} {coverage}{did_you_mean(coverage, line.covers)}",
            hint=f"it is for {', '.join(line.covers)}; `toolkit patch matrix --against {_as_word(coverage)}` says how "
            f"its patches stand there, and {LINE_FILE} of the series is where a base is added once that is known",
        )


def _as_word(coverage: str) -> str:
    """Return a base as --against takes it; a commit wants its repository's address."""
    return coverage.replace("git:", "git:URL@") if coverage.startswith("git:") else coverage.removeprefix("installed:")
