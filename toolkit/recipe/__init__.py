"""Recipes: TOML files, decoded strictly, with every fault of a file and of its parents reported in one go.

`extends = "other"` takes another recipe as the start. Tables merge key by key; components merge by their name, the
parent's first; any other value, arrays included, replaces the parent's. A base of another kind replaces the whole
`[component.base]` table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from toolkit.errors import RecipeError, UsageError
from toolkit.model import Base, Component, Contract, EvidenceKept, EvidenceWanted, Recipe
from toolkit.recipe.tables import (
    ComponentTable,
    EvidenceTable,
    KeepTable,
    RecipeTable,
    TargetTable,
    VerifyTable,
    Vocabulary,
    component_index,
    components,
    shape_faults,
    word_faults,
)
from toolkit.schema import (
    Fault,
    FileStem,
    Place,
    TomlError,
    describe_faults,
    describe_toml_error,
    did_you_mean,
    find_faults,
    inner_tables,
    key_table,
    parse_toml,
    shown_path,
)

SUFFIX = ".toml"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Layer:
    """One file of a recipe."""

    path: Path
    text: str
    raw: dict[str, Any]


def recipe_names(folders: Iterable[Path]) -> list[str]:
    """List the recipes in the folders by name."""
    return sorted({path.stem for folder in folders for path in folder.glob(f"*{SUFFIX}")})


def find_recipe(name: str, folders: Sequence[Path]) -> Path:
    """Return the file of a recipe, given by name or as the path of a `.toml` file; UsageError where there is none."""
    if "/" in name or name.endswith(SUFFIX):
        if Path(name).is_file():
            return Path(name)
        raise UsageError(f"there is no recipe file {name!r}")
    found = _first_file(name, folders)
    if found is None:
        names = recipe_names(folders)
        raise UsageError(
            f"there is no recipe {name!r}{did_you_mean(name, names)}",
            hint=f"known recipes: {', '.join(names) or 'none'}",
        )
    return found


def load_recipe(
    name: str,
    *,
    folders: Sequence[Path],
    base_types: Mapping[str, type[Any]],
    known_series: Collection[str],
    known_checks: Collection[str],
    diagnostic_series: Collection[str] = (),
) -> Recipe:
    """Read a recipe by its name in `folders`, where the first that has it wins, or by the path of a `.toml` file.

    `base_types` holds the type of `[component.base]` by its kind; `diagnostic_series` are those that only a recipe for
    diagnosis may take. Raises UsageError where there is no such recipe, and RecipeError with one detail for each fault
    in it and in those that it extends.
    """
    path = find_recipe(name, folders)
    layers, broken = _read_layers(path, folders)
    words = Vocabulary(base_types=base_types, series=known_series, checks=known_checks, diagnostic=diagnostic_series)
    merged: dict[str, Any] = {}
    for layer in reversed(layers):
        merged = _merge(merged, layer.raw)
    faults = [line for layer in layers for line in _describe_layer(layer, merged, words)] + broken
    faults += [line for child, parent in pairwise(layers) for line in _diagnostic_parent(child, parent)]
    if not broken:
        faults += _describe_missing(layers, merged, words)
    if faults:
        count = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise RecipeError(
            f"recipe {path.stem!r} has {count}", hint="docs/recipe-reference.md lists every key", details=faults
        )
    return _build_recipe(merged, layers, base_types)


def schema_reference(base_types: Mapping[str, type[Any]]) -> str:
    """Write the Markdown reference of every key, from the types that decode them."""
    sections = [
        ("Top level", key_table(RecipeTable)),
        ("`[target]`", key_table(TargetTable)),
        ("`[[component]]`", key_table(ComponentTable)),
        *((f"`[component.base]` of kind `{kind}`", key_table(base_types[kind])) for kind in sorted(base_types)),
        *((f"`[component.base.{name}]`", key_table(table)) for name, table in _inner_tables(base_types).items()),
        ("`[verify]`", key_table(VerifyTable)),
        ("`[evidence]`", key_table(EvidenceTable)),
        ("`[[evidence.keep]]`", key_table(KeepTable)),
    ]
    return "\n\n".join(f"## {title}\n\n{table}" for title, table in sections) + "\n"


def _inner_tables(base_types: Mapping[str, type[Any]]) -> dict[str, type[msgspec.Struct]]:
    """Return the tables that bases have in them, by their keys; kinds that have one of a name share it."""
    return {name: table for kind in sorted(base_types) for name, table in inner_tables(base_types[kind]).items()}


# --- files -----------------------------------------------------------------------------------------------------


def _read_layers(path: Path, folders: Sequence[Path]) -> tuple[list[_Layer], list[str]]:
    """Read a recipe and all that it extends, itself first, and describe what breaks the chain, if anything does."""
    layers: list[_Layer] = []
    while True:
        try:
            layers.append(_read_layer(path))
        except TomlError as fault:
            return layers, [describe_toml_error(fault, path)]
        parent = layers[-1].raw.get("extends")
        if not isinstance(parent, str) or find_faults(parent, FileStem):
            return layers, []
        found = _first_file(parent, [path.parent, *folders])
        if found is None:
            return layers, _extends_fault(
                layers[-1], f"there is no recipe {parent!r}{did_you_mean(parent, recipe_names(folders))}"
            )
        if any(found.samefile(layer.path) for layer in layers):
            chain = " -> ".join([*(layer.path.stem for layer in layers), parent])
            return layers, _extends_fault(layers[-1], f"recipes extend each other: {chain}")
        path = found


def _read_layer(path: Path) -> _Layer:
    try:
        text, raw = parse_toml(path.read_bytes())
    except OSError as fault:
        raise RecipeError(f"cannot read recipe {shown_path(path)}: {fault.strerror}") from fault
    return _Layer(path=path, text=text, raw=raw)


def _extends_fault(layer: _Layer, what: str) -> list[str]:
    return describe_faults([Fault(where=("extends",), what=what)], layer.path, layer.text)


def _first_file(name: str, folders: Iterable[Path]) -> Path | None:
    return next((path for folder in folders if (path := folder / f"{name}{SUFFIX}").is_file()), None)


# --- merging ---------------------------------------------------------------------------------------------------


def _merge(parent: Mapping[str, Any], child: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(parent)
    for key, value in child.items():
        before = parent.get(key)
        if key == "component" and isinstance(before, list) and isinstance(value, list):
            merged[key] = _merge_components(before, value)
        elif isinstance(before, dict) and isinstance(value, dict) and not _is_other_kind(before, value):
            merged[key] = _merge(before, value)
        else:
            merged[key] = value
    return merged


def _is_other_kind(parent: Mapping[str, Any], child: Mapping[str, Any]) -> bool:
    return "kind" in parent and child.get("kind", parent["kind"]) != parent["kind"]


def _merge_components(parent: Sequence[Any], child: Sequence[Any]) -> list[Any]:
    merged = list(parent)
    for table in child:
        index = component_index(merged, table.get("name")) if isinstance(table, dict) else None
        if index is None:
            merged.append(table)
        else:
            merged[index] = _merge(merged[index], table)
    return merged


# --- faults ----------------------------------------------------------------------------------------------------


def _describe_layer(layer: _Layer, merged: Mapping[str, Any], words: Vocabulary) -> list[str]:
    """Describe what is wrong in one file by itself; keys that it may inherit are not missed."""
    shape = [fault for fault in shape_faults(layer.raw, merged, words) if not _may_be_inherited(fault)]
    name_faults = find_faults(layer.path.stem, FileStem, ("name of the file",))
    words_used = word_faults(layer.raw, merged, words)
    return describe_faults([*name_faults, *shape, *words_used], layer.path, layer.text)


def _diagnostic_parent(child: _Layer, parent: _Layer) -> list[str]:
    """Describe a start that no recipe may have: what narrows a fault down may be wrong in every other way."""
    if not parent.raw.get("diagnostic"):
        return []
    what = (
        f"recipe {parent.path.stem!r} is for diagnosis only ({parent.raw['diagnostic']}), which no other recipe may "
        "extend; extend what it extends, or start from a recipe that is for work"
    )
    return _extends_fault(child, what)


def _describe_missing(layers: Sequence[_Layer], merged: Mapping[str, Any], words: Vocabulary) -> list[str]:
    """Describe the keys that no file has, each at the file that is nearest to it."""
    described = []
    for fault in filter(_may_be_inherited, shape_faults(merged, merged, words)):
        layer, where = _nearest_layer(fault.where, layers, merged)
        described += describe_faults([Fault(where=where, what=fault.what)], layer.path, layer.text)
    return described


def _may_be_inherited(fault: Fault) -> bool:
    """Whether a key is missing that another file of the chain may have; each names its schema and its components."""
    return fault.missing and fault.where != ("schema",) and fault.where[2:] != ("name",)


def _nearest_layer(where: Place, layers: Sequence[_Layer], merged: Mapping[str, Any]) -> tuple[_Layer, Place]:
    """Find the first file that has the component which a merged place lies in; one without a name is nowhere else."""
    if where[0] == "component" and len(where) > 1:
        wanted = dict(components(merged["component"]))[int(where[1])]
        for layer in layers:
            for index, table in components(layer.raw.get("component")):
                if table is wanted or ("name" in wanted and table.get("name") == wanted["name"]):
                    return layer, ("component", index, *where[2:])
    return layers[0], where


# --- the value -------------------------------------------------------------------------------------------------


def _build_recipe(merged: Mapping[str, Any], layers: Sequence[_Layer], base_types: Mapping[str, type[Any]]) -> Recipe:
    table = msgspec.convert(merged, RecipeTable)
    target = table.target
    return Recipe(
        name=layers[0].path.stem,
        description=table.description,
        contract=Contract(
            python_tags=target.python, platforms=target.platforms, torch=target.torch, cann=target.cann, soc=target.soc
        ),
        components=tuple(_build_component(component, base_types) for component in table.component),
        env=table.env,
        checks=table.verify.checks,
        files=tuple(layer.path for layer in layers),
        diagnostic=table.diagnostic,
        evidence=_build_evidence(table.evidence or EvidenceTable()),
    )


def _build_evidence(table: EvidenceTable) -> EvidenceWanted:
    return EvidenceWanted(
        require=table.require,
        in_all=table.all,
        forbid=table.forbid,
        keep=tuple(EvidenceKept(pattern=one.pattern, at_least=one.at_least) for one in table.keep),
        no_alias_hazard=table.no_alias_hazard,
    )


def _build_component(table: ComponentTable, base_types: Mapping[str, type[Any]]) -> Component:
    base: Base = msgspec.convert(table.base, base_types[table.base["kind"]])
    return Component(
        name=table.name,
        import_name=table.import_name or table.name,
        base=base,
        series=table.series,
        accept_upstream=table.accept_upstream,
    )
