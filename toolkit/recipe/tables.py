"""The tables of a recipe file: what they may hold, and what is wrong in one.

Below `recipe.py`, which reads the files, follows `extends` and builds the value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from toolkit.model import pattern_fault
from toolkit.schema import Fault, FileStem, Place, Platform, PythonTag, Version, did_you_mean, find_faults

RESERVED_ENV = re.compile(
    r"(PYTHON|LD_|DYLD_|GIT_|PIP_|TOOLKIT_).*|PATH|HOME|SHELL|ENV|BASH_ENV|IFS|TMPDIR"
    r"|TORCH_EXTENSIONS_DIR|TORCHINDUCTOR_CACHE_DIR|TRITON_CACHE_DIR"
)
"""Variables that the toolkit sets or clears itself, or that change how a shell or a loader works."""

ModuleName = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_]*\Z", title="a name of letters, digits and `_`",
                                 examples=["torch_npu"])]  # fmt: skip
CannPrefix = Annotated[str, Meta(pattern=r"^\d+(\.\w+)*\Z", title="a CANN version or the start of one",
                                 examples=["9.1"])]  # fmt: skip


class TargetTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[target]`: what the overlay demands of the interpreter and the machine."""

    python: Annotated[
        tuple[PythonTag, ...],
        Meta(min_length=1, description="the interpreters that the lock covers", examples=[["cp311", "cp312"]]),
    ]
    platforms: Annotated[
        tuple[Platform, ...],
        Meta(min_length=1, description="the platforms that the lock covers", examples=[["manylinux_2_28_x86_64"]]),
    ]
    torch: Annotated[Version, Meta(description="the torch that the target must have; any build of it will do unless "
                                   "a `+local` part is named", examples=["2.13.0"])]  # fmt: skip
    cann: Annotated[CannPrefix | None, Meta(description="the CANN that a device must have")] = None
    soc: Annotated[
        tuple[FileStem, ...],
        Meta(description="the NPU models that will do; all, if none is named", examples=[["Ascend910B3"]]),
    ] = ()


class ComponentTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[component]]`: one upstream package; its base is decoded by the type of its kind."""

    name: Annotated[ModuleName, Meta(description="its name here and below `patches/`")]
    import_name: Annotated[ModuleName | None, Meta(description="the package that Python imports; else the name")] = None
    series: Annotated[
        str | None,
        Meta(description="its patches, a folder below `patches/`; without it the base is taken as it is",
             examples=["torch_npu/2.13"]),
    ] = None  # fmt: skip
    accept_upstream: Annotated[
        tuple[FileStem, ...],
        Meta(description="patches that may be skipped where the base has their change already",
             examples=[["0002-symbolic-broadcast-without-data-dependent-guard"]]),
    ] = ()  # fmt: skip
    base: Annotated[dict[str, Any], Meta(description="where it starts; its keys depend on its `kind`")]


class VerifyTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[verify]`: what must be proven."""

    checks: Annotated[
        tuple[str, ...],
        Meta(min_length=1, description="the checks that must come out as wanted", examples=[["origins", "manifest"]]),
    ]


class KeepTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[evidence.keep]]`: calls that many files must have."""

    pattern: Annotated[str, Meta(description="a regular expression for the names of called operators",
                                 examples=["cann_ops_transformer|sparse_flash_mla"])]  # fmt: skip
    at_least: Annotated[int, Meta(ge=1, description="how many files must have such a call", examples=[64])]


class EvidenceTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[evidence]`: what the generated code of a run must hold."""

    require: Annotated[
        tuple[str, ...],
        Meta(description="what there must be in at least one file: `@name` is a decorator, anything else a regular "
             "expression for the names of called operators", examples=[["@dvm.kernel"]]),
    ] = ()  # fmt: skip
    all: Annotated[bool, Meta(description="have each of `require` in every file")] = False
    forbid: Annotated[
        tuple[str, ...], Meta(description="what there must be in no file", examples=[["@triton.jit"]])
    ] = ()  # fmt: skip
    keep: Annotated[tuple[KeepTable, ...], Meta(description="calls that many files must have")] = ()
    no_alias_hazard: Annotated[bool, Meta(description="whether any alias hazard that is found is a failure")] = False


class RecipeTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole file."""

    schema: Annotated[Literal[1], Meta(description="the version of this format; each file says it", examples=[1])]
    description: Annotated[str, Meta(description="one line for `toolkit recipe list`")]
    extends: Annotated[
        FileStem | None, Meta(description="the recipe to start from", examples=["dsv4-dvm-release"])
    ] = None  # fmt: skip
    diagnostic: Annotated[
        str,
        Meta(
            description="what an overlay of it is for, where that is narrowing faults down and nothing else: shown "
            "when it is activated, and no other recipe may extend it",
            examples=["the Triton route, to tell whose fault a wrong number is"],
        ),
    ] = ""
    target: TargetTable
    component: Annotated[tuple[ComponentTable, ...], Meta(min_length=1)]
    env: Annotated[
        dict[str, str],
        Meta(description="variables that the env file sets, besides the toolkit's own"),
    ] = msgspec.field(default_factory=dict)
    verify: VerifyTable
    evidence: Annotated[
        EvidenceTable | None, Meta(description="what `toolkit evidence scan --recipe` wants of a run's generated code")
    ] = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Vocabulary:
    """The names that a recipe may use; `base_types` holds the type of `[component.base]` by its kind.

    `diagnostic` are those of the series that only a recipe for diagnosis may take.
    """

    base_types: Mapping[str, type[Any]]
    series: Collection[str]
    checks: Collection[str]
    diagnostic: Collection[str] = ()


def shape_faults(raw: Mapping[str, Any], merged: Mapping[str, Any], words: Vocabulary) -> Iterator[Fault]:
    """Find unknown keys, wrong types and missing keys in one file.

    `merged` is the file with all that it extends: a base that names no kind is of the kind that it has there.
    """
    yield from find_faults(raw, RecipeTable)
    for index, table in components(raw.get("component")):
        base = table.get("base")
        if isinstance(base, dict):
            kind = base.get("kind", _merged_kind(table.get("name"), merged))
            yield from _base_faults(base, kind, ("component", index, "base"), words.base_types)


def word_faults(raw: Mapping[str, Any], merged: Mapping[str, Any], words: Vocabulary) -> Iterator[Fault]:
    """Find names that nobody knows or that this recipe may not use, names that stand twice, and reserved variables.

    `merged` is the file with all that it extends, and with all that extends it.
    """
    target, verify, env = (_table(raw.get(key)) for key in ("target", "verify", "env"))
    for key in ("python", "platforms", "soc"):
        yield from _repeated(target.get(key), ("target", key))
    yield from _component_faults(raw.get("component"), words)
    yield from _diagnosis_faults(raw, merged, words)
    yield from _env_faults(env)
    yield from _evidence_faults(_table(raw.get("evidence")))
    yield from _repeated(verify.get("checks"), ("verify", "checks"))
    for index, check in _strings(verify.get("checks")):
        if check not in words.checks:
            what = f"unknown check {check!r}{did_you_mean(check, words.checks)}"
            yield Fault(where=("verify", "checks", index), what=what)


def components(tables: object) -> list[tuple[int, dict[str, Any]]]:
    """Return the component tables with their indexes; what is no table is left out."""
    return [(index, table) for index, table in enumerate(_array(tables)) if isinstance(table, dict)]


def component_index(tables: object, name: object) -> int | None:
    """Return the index of the first component of that name."""
    return next((index for index, table in components(tables) if name and table.get("name") == name), None)


def _merged_kind(name: object, merged: Mapping[str, Any]) -> object:
    index = component_index(merged.get("component"), name)
    return None if index is None else _table(merged["component"][index].get("base")).get("kind")


def _base_faults(base: object, kind: object, where: Place, base_types: Mapping[str, type[Any]]) -> Iterator[Fault]:
    if kind is None:
        yield Fault(where=(*where, "kind"), what="missing key", missing=True)
    elif isinstance(kind, str) and kind in base_types:
        yield from (fault for fault in find_faults(base, base_types[kind], where) if fault.where != (*where, "kind"))
    else:
        known = ", ".join(map(repr, sorted(base_types)))
        yield Fault(where=(*where, "kind"), what=f"unknown kind {kind!r}; expected one of {known}")


def _component_faults(tables: object, words: Vocabulary) -> Iterator[Fault]:
    names: list[object] = []
    for index, table in components(tables):
        name, series = table.get("name"), table.get("series")
        if name is not None and name in names:
            yield Fault(where=("component", index, "name"), what=f"component {name!r} stands twice")
        names.append(name)
        if isinstance(series, str) and series not in words.series:
            what = f"unknown series {series!r}{did_you_mean(series, words.series)}"
            yield Fault(where=("component", index, "series"), what=what)
        yield from _repeated(table.get("accept_upstream"), ("component", index, "accept_upstream"))


def _diagnosis_faults(raw: Mapping[str, Any], merged: Mapping[str, Any], words: Vocabulary) -> Iterator[Fault]:
    """Find what only a recipe for diagnosis may have in one that is for work."""
    purpose = raw.get("diagnostic", "said")
    if isinstance(purpose, str) and not (purpose.strip() and purpose.isprintable()):
        yield Fault(where=("diagnostic",), what="expected one line that says what an overlay of the recipe is for")
    if merged.get("diagnostic"):
        return
    for index, table in components(raw.get("component")):
        if table.get("series") in words.diagnostic:
            what = (
                f"series {table['series']!r} only narrows faults down: expected "
                '`diagnostic = "<what an overlay of it is for>"` at the top of the recipe'
            )
            yield Fault(where=("component", index, "series"), what=what)


def _env_faults(env: Mapping[str, object]) -> Iterator[Fault]:
    for name, value in env.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            yield Fault(where=("env", name), what=f"{name!r} is not a variable's name")
        elif RESERVED_ENV.fullmatch(name):
            yield Fault(where=("env", name), what="the toolkit itself sets or clears this variable")
        if isinstance(value, str) and not value.isprintable():
            yield Fault(where=("env", name), what="the value has a line break or another control character")


def _evidence_faults(evidence: Mapping[str, object]) -> Iterator[Fault]:
    keep = [table.get("pattern") if isinstance(table, dict) else None for table in _array(evidence.get("keep"))]
    for key, patterns in (("require", evidence.get("require")), ("forbid", evidence.get("forbid")), ("keep", keep)):
        for index, pattern in _strings(patterns):
            if what := pattern_fault(pattern):
                yield Fault(where=("evidence", key, index), what=what)


def _repeated(values: object, where: Place) -> Iterator[Fault]:
    counts = Counter(value for _, value in _strings(values))
    for value, count in counts.items():
        if count > 1:
            yield Fault(where=where, what=f"{value!r} stands {count} times")


def _strings(values: object) -> list[tuple[int, str]]:
    return [(index, value) for index, value in enumerate(_array(values)) if isinstance(value, str)]


def _array(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
