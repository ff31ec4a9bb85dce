"""What comes of a run: wheels, overlays, and the proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from toolkit.model.recipes import Contract, Target
from toolkit.model.trees import AppliedPatch

Side = Literal["base", "overlay"]
Runtime = Literal["host", "device"]
Status = Literal["pass", "fail", "error", "skip", "not run"]
SandboxMode = Literal["auto", "require", "off"]
SandboxKind = Literal["bubblewrap", "network namespace", "none"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildFacts:
    """What is known of a wheel that was built from source.

    `tree` is its tree's digest, `native` the key of what was compiled, `compiler` and `jobs` what it was compiled with.
    `libraries` are those that its native files need and do not bring, `symbol_versions` the highest version of each
    family that they ask for (`GLIBC`, `GLIBCXX`, `CXXABI`), `cache` the compiler cache's statistics of this build.
    """

    tree: str
    sandbox: SandboxKind
    compiler: str
    jobs: int
    native: str = ""
    libraries: tuple[str, ...] = ()
    symbol_versions: Mapping[str, str] = field(default_factory=dict)
    cache: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """A built or repacked wheel. `patches` are the names of the patches in it, in order; `built` if from source."""

    component: str
    distribution: str
    import_name: str
    version: str
    path: Path
    sha256: str
    key: str
    patches: tuple[str, ...]
    built: BuildFacts | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PartResult:
    """How far one component has come; `digest` names its patched tree, where it is a source tree."""

    component: str
    base: str
    applied: tuple[AppliedPatch, ...] = ()
    digest: str = ""
    wheel: Wheel | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ManifestEntry:
    """One file below `site/`."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class OverlayPackage:
    """One component as the overlay carries it; `built` if it was built from source."""

    component: str
    import_name: str
    distribution: str
    version: str
    base_version: str
    wheel: str
    wheel_sha256: str
    patches: tuple[str, ...]
    built: BuildFacts | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlay:
    """One immutable generation on disk: `root` holds site/, torch_extensions/, cache/, wheels/ and manifest.json.

    `absent` are the recipe's optional components that the machine did not have when it was built.
    """

    recipe: str
    key: str
    root: Path
    target: Target
    contract: Contract
    packages: tuple[OverlayPackage, ...]
    env: Mapping[str, str]
    diagnostic: str = ""
    absent: tuple[str, ...] = ()

    @property
    def site(self) -> Path:
        """The folder that goes first on PYTHONPATH."""
        return self.root / "site"

    @property
    def manifest(self) -> Path:
        """The hash list of everything below `site`."""
        return self.root / "manifest.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Interpreter:
    """The Python that will import the overlay.

    `platforms` are the manylinux tags that it can use, newest first. `torch` is its version, None where it has none;
    `files` are those whose change may change any of this.
    """

    executable: Path
    version: str
    python_tag: str
    platforms: tuple[str, ...]
    torch: str | None
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckResult:
    """One check on one side, against what was wanted of it there.

    A witness is wanted to `fail` on the base and to `pass` on the overlay. `ok` says whether it came out as wanted;
    only a `required` one that is not ok makes the proof fail.
    """

    name: str
    side: Side
    wanted: Status
    status: Status
    required: bool
    ok: bool
    detail: str
    seconds: float
    evidence: Mapping[str, object] = field(default_factory=dict)
    log: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """The record of a verify run, as it stands in proof.json."""

    recipe: str
    overlay: str
    runtime: Runtime
    results: tuple[CheckResult, ...]
    environment: Mapping[str, object]

    @property
    def ok(self) -> bool:
        """Whether every required check came out as wanted, and at least one was required."""
        required = [result for result in self.results if result.required]
        return bool(required) and all(result.ok for result in required)
