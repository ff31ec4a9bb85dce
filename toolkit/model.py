"""The values that flow between the rooms: frozen, keyword-only, each naming the digest of what it was made from.

Recipe -> Lock -> FetchedBase -> SourceTree -> PatchedTree -> Wheel -> Overlay -> Proof
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

Part = Literal["python", "native", "generated"]
ChangeKind = Literal["modified", "added", "deleted", "renamed"]
ApplyStatus = Literal["clean", "offset", "upstream"]
Side = Literal["base", "overlay"]
Runtime = Literal["host", "device"]
Status = Literal["pass", "fail", "error", "skip", "not run"]
Form = Literal["wheel", "tree"]
"""What a base is when it has been fetched: a wheel that is patched as it is, or a source tree that is built."""

Backend = Literal["pep517", "setup.py"]
"""How a source tree becomes a wheel: by its build backend, or by upstream's own `setup.py build bdist_wheel`."""

SandboxMode = Literal["auto", "require", "off"]
SandboxKind = Literal["bubblewrap", "network namespace", "none"]

Progress = Callable[[int, int | None], None]
"""Called with bytes done and bytes in all (None where unknown)."""


# --- recipes and locks -----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What a wheel is for: an interpreter tag such as `cp311` and a platform tag such as `manylinux_2_28_x86_64`."""

    python_tag: str
    platform: str

    def __str__(self) -> str:
        return f"{self.python_tag}-{self.platform}"


class Base(Protocol):
    """Where a component starts, as a recipe says it. Each kind is defined by its module in `toolkit.sources`."""

    @property
    def kind(self) -> str:
        """The name of the module in `toolkit.sources` that can take it."""

    @property
    def identity(self) -> str:
        """One line that changes when, and only when, another artifact is asked for."""


class LockedBase(Protocol):
    """A base resolved to exact artifacts, as a lock says it. Defined beside its base."""

    @property
    def kind(self) -> str:
        """The name of the module in `toolkit.sources` that can take it."""

    @property
    def identity(self) -> str:
        """The identity of the base that it was resolved from."""

    def covers(self, target: Target) -> bool:
        """Whether there is an artifact for that target."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Component:
    """One upstream package of a recipe.

    `series` is the folder below `patches/`, or None for a component that is taken as it is. `accept_upstream`
    names the patches (file stem) that may be skipped where the base has their change already.
    """

    name: str
    import_name: str
    base: Base
    series: str | None = None
    accept_upstream: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Contract:
    """What an overlay demands of its target. `torch` is a full version, `cann` a prefix such as `9.1`."""

    python_tags: tuple[str, ...]
    platforms: tuple[str, ...]
    torch: str
    cann: str | None = None
    soc: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[Target, ...]:
        """Every interpreter tag on every platform."""
        return tuple(Target(python_tag=tag, platform=place) for tag in self.python_tags for place in self.platforms)


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """A recipe after `extends` is resolved. `files` are all the files that it was read from, itself first."""

    name: str
    description: str
    contract: Contract
    components: tuple[Component, ...]
    env: Mapping[str, str]
    checks: tuple[str, ...]
    files: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedComponent:
    """One component's base, resolved."""

    name: str
    base: LockedBase


@dataclass(frozen=True, kw_only=True, slots=True)
class Lock:
    """A recipe's bases resolved to exact artifacts; `path` is the file that it was read from."""

    recipe: str
    components: tuple[LockedComponent, ...]
    path: Path

    def component(self, name: str) -> LockedComponent | None:
        """Find one component's entry, or None."""
        return next((entry for entry in self.components if entry.name == name), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Requirement:
    """One distribution of a build's environment, pinned to a wheel."""

    distribution: str
    version: str
    file: str
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildSpec:
    """How a source tree is built for one target.

    `requirements` are all that the build's environment holds besides the interpreter. `env` is set for the build,
    `pass_env` names the caller's variables that may reach it. `subfolder` is where in the tree the project lies;
    `submodules` says whether the tree has those that it records.
    """

    backend: Backend
    requirements: tuple[Requirement, ...]
    env: Mapping[str, str]
    pass_env: tuple[str, ...] = ()
    subfolder: str = ""
    submodules: bool = False


# --- sources ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchedBase:
    """A base whose bytes are in the store. `digest` is the sha256 of the artifact, or the commit id.

    `path` is the artifact, for a commit the bare repository that has it. `distribution` is empty for a source tree:
    its wheel will say. `subfolder` is where in a source tree the paths of its patches begin; `epoch` is the time of
    a source tree, in seconds since 1970, for what a build stamps with a time. `addresses` are those that a commit's
    recipe names, from which the addresses of its submodules may be relative; `submodules` says whether it has any.
    """

    component: str
    kind: str
    digest: str
    path: Path
    file: str
    distribution: str
    version: str
    target: Target
    subfolder: str = ""
    epoch: int = 0
    addresses: tuple[str, ...] = ()
    submodules: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Submodule:
    """A repository inside a source tree, nested ones too: its folder from the tree's top, and what is checked out.

    `repository` is the bare repository in the store that has the commit.
    """

    path: str
    commit: str
    repository: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceTree:
    """Files of a base, laid out to be patched.

    `root` holds at least the files that were asked for; `members` names every file of the base, so that a patch
    that names none of them can be told from one that names a file which was not laid out. `gitlinks` are the
    submodules that a commit records, path to commit. All paths begin at the base's subfolder.
    """

    base: FetchedBase
    root: Path
    members: frozenset[str]
    gitlinks: Mapping[str, str] = field(default_factory=dict)


# --- series ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class FileChange:
    """One file that a patch names, as paths from the tree's root; `old_path` differs only for a rename or copy.

    With `is_gitlink`, what changes there is a submodule: the commit of it that the tree records.
    """

    path: str
    old_path: str
    kind: ChangeKind
    part: Part
    is_gitlink: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch:
    """One patch file, parsed. `name` is the file stem, `NNNN-slug`; `sha256` is over the file's bytes."""

    number: int
    name: str
    path: Path
    sha256: str
    subject: str
    body: str
    upstream_status: str
    witness: str
    fixes: tuple[str, ...]
    changes: tuple[FileChange, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """The ordered patches of one component on one line. `name` is the folder below `patches/`.

    `elsewhere` are the names of those that were split off, to be applied to another tree.
    """

    name: str
    patches: tuple[Patch, ...]
    elsewhere: tuple[str, ...] = ()

    @property
    def paths(self) -> frozenset[str]:
        """Every path that a patch reads or writes."""
        return frozenset(
            path for patch in self.patches for change in patch.changes for path in (change.path, change.old_path)
        )

    @property
    def native(self) -> tuple[str, ...]:
        """The names of the patches that change a native file or move a submodule."""
        return tuple(patch.name for patch in self.patches if any(change.part == "native" for change in patch.changes))


@dataclass(frozen=True, kw_only=True, slots=True)
class AppliedPatch:
    """How one patch went in. `offsets` are the hunks' line offsets as git reports them, 0 left out."""

    name: str
    status: ApplyStatus
    offsets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedFile:
    """One file of the patched tree that differs from the base; `sha256` is None where it was deleted."""

    path: str
    kind: ChangeKind
    part: Part
    sha256: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchedTree:
    """A tree with the whole series in it. `root` holds the changed files (a deleted one is absent there).

    `gitlinks` are the submodules that the series moves: path to the new commit, None where it takes one away.
    """

    source: SourceTree
    series: Series
    root: Path
    applied: tuple[AppliedPatch, ...]
    changed: tuple[ChangedFile, ...]
    gitlinks: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildTree:
    """A whole source tree, patches and submodules in it, that a build may dirty.

    `digest` names its content (a git tree id for a commit); `native_digest` names what can change a compiled file.
    `root` is the top; the project lies in the base's subfolder of it.
    """

    base: FetchedBase
    root: Path
    digest: str
    native_digest: str


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


# --- results ---------------------------------------------------------------------------------------------------


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


# --- digests ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """A digest over named inputs, with the inputs kept so that it can be explained and compared."""

    digest: str
    inputs: tuple[tuple[str, str], ...]

    @property
    def short(self) -> str:
        """The eight digits that stand in a version."""
        return self.digest[:8]


def make_key(inputs: Iterable[tuple[str, str]]) -> Key:
    """Digest named inputs, sorted by name; names and values are framed by length so that no two lists collide.

    Raises ValueError for a name that stands twice: `key_difference` could not tell the two apart.
    """
    ordered = tuple(sorted(inputs))
    if len({name for name, _ in ordered}) < len(ordered):
        raise ValueError("a name stands twice among a key's inputs")
    return Key(digest=framed_digest(part for pair in ordered for part in pair), inputs=ordered)


def framed_digest(parts: Iterable[str | bytes]) -> str:
    """Return the sha256 of the parts, each preceded by its length in bytes."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8") if isinstance(part, str) else part
        digest.update(b"%d:" % len(raw))
        digest.update(raw)
    return digest.hexdigest()


def key_difference(old: Key, new: Key) -> list[tuple[str, str | None, str | None]]:
    """List the inputs that differ as (name, old value, new value); None where one side lacks it."""
    before, after = dict(old.inputs), dict(new.inputs)
    names: Sequence[str] = sorted(before.keys() | after.keys())
    return [(n, before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n)]
