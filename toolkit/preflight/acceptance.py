"""What an acceptance run is, read strictly from `acceptance.toml` beside this and from a file that changes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from toolkit.errors import UsageError
from toolkit.schema import Place, TomlError, describe_faults, describe_toml_error, find_faults, parse_toml, shown_path

DEFAULT = Path(__file__).parent / "acceptance.toml"
NAMED = ("option", "path")
"""The arrays whose tables are told apart by their names."""

Grade = Literal["ok", "warn", "fail"]


class CompileTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[compile]`: what compiles the model."""

    backend: Annotated[str, Meta(description="the NPU backend, where the recipe's `[env]` names none")]
    framework: Annotated[str, Meta(description="what `--compile.backend` may say, if it is given")] = "inductor"


class DeterminismTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[determinism]`: what refuses it."""

    refused_by: Annotated[
        tuple[str, ...], Meta(description="attention backends whose backward refuses strict determinism")
    ] = ()


class FoldersTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[folders]`: what must hold nothing yet."""

    fresh_options: Annotated[tuple[str, ...], Meta(description="options that name such a folder")] = ()
    fresh_variables: Annotated[tuple[str, ...], Meta(description="variables that name such a folder")] = ()


class ProcessesTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[processes]`: how many there are."""

    degrees: Annotated[tuple[str, ...], Meta(description="options whose product is the number of processes")] = ()
    expert_degree: Annotated[str, Meta(description="the option that spreads experts over some of them")] = ""


class OptionTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[option]]`: what one option must say."""

    name: Annotated[str, Meta(description="the option, in its normal name", examples=["training.dtype"])]
    check: Annotated[str, Meta(description="the name of its line, behind `preflight.`", examples=["dtype"])]
    why: Annotated[str, Meta(description="what happens otherwise")]
    values: Annotated[tuple[str, ...], Meta(description="what it may say; anything where there is none")] = ()
    least: Annotated[int | None, Meta(description="the least number that it may say")] = None
    absent: Annotated[Grade, Meta(description="how it is where the option is not given")] = "ok"
    otherwise: Annotated[Grade, Meta(description="how it is where the option says something else")] = "fail"
    example: Annotated[str, Meta(description="a value to propose, where `values` and `least` name none")] = ""


class PathTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[path]]`: what must be there."""

    name: Annotated[str, Meta(description="the option that names it")]
    check: Annotated[str, Meta(description="the name of its line, behind `preflight.`")]
    why: Annotated[str, Meta(description="what happens where the option is not given")] = ""
    absent: Annotated[Grade, Meta(description="how it is where the option is not given")] = "ok"
    unless: Annotated[str, Meta(description="a switch: where it is not on, the option is without effect")] = ""


class Acceptance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an acceptance run is."""

    schema: Literal[1]
    compile: CompileTable
    determinism: DeterminismTable = DeterminismTable()
    folders: FoldersTable = FoldersTable()
    processes: ProcessesTable = ProcessesTable()
    option: tuple[OptionTable, ...] = ()
    path: tuple[PathTable, ...] = ()


def read_acceptance(changes: Path | None = None) -> Acceptance:
    """Return the acceptance configuration, with what a file changes in it; UsageError with every fault of that file."""
    _, raw = parse_toml(DEFAULT.read_bytes())
    if changes is None:
        return msgspec.convert(raw, Acceptance)
    try:
        text, changed = parse_toml(changes.read_bytes())
    except OSError as fault:
        raise UsageError(f"cannot read {shown_path(changes)}: {fault.strerror}") from fault
    except TomlError as fault:
        raise _refusal(changes, [describe_toml_error(fault, changes)]) from fault
    merged = _merge(raw, changed)
    if faults := find_faults(merged, Acceptance):
        own = [replace(fault, where=_place_in(changed, merged, fault.where)) for fault in faults]
        raise _refusal(changes, describe_faults(own, changes, text))
    return msgspec.convert(merged, Acceptance)


def _refusal(path: Path, faults: Sequence[str]) -> UsageError:
    return UsageError(
        f"{shown_path(path)} is no acceptance configuration: {faults[0]}",
        hint="docs/preflight.md lists the tables and keys",
        details=faults[1:],
    )


def _place_in(changed: Mapping[str, Any], merged: Mapping[str, Any], where: Place) -> Place:
    """Return the place in a file of what stands at another among the default's tables."""
    key, at, rest = where[0], where[1] if len(where) > 1 else None, where[2:]
    if key not in NAMED or not isinstance(at, int) or not isinstance(changed.get(str(key)), list):
        return where
    table = merged[str(key)][at]
    name = table.get("name") if isinstance(table, dict) else None
    own = changed[str(key)]
    found = (
        number for number, one in enumerate(own)
        if one is table or (name is not None and isinstance(one, dict) and one.get("name") == name)
    )  # fmt: skip
    return (key, next(found, at), *rest)


def _merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Put a file's tables over the default's; what has another shape is left for the reader to refuse."""
    merged = dict(base)
    for key, value in changes.items():
        before = base.get(key)
        if key in NAMED and isinstance(before, list) and isinstance(value, list):
            merged[key] = _merge_named(before, value)
        elif isinstance(before, dict) and isinstance(value, dict):
            merged[key] = {**before, **value}
        else:
            merged[key] = value
    return merged


def _merge_named(base: Sequence[Any], changes: Sequence[Any]) -> list[Any]:
    merged = list(base)
    for one in changes:
        name = one.get("name") if isinstance(one, dict) else None
        at = next((place for place, before in enumerate(merged) if before.get("name") == name), None)
        if at is None or not isinstance(one, dict):
            merged.append(one)
        else:
            merged[at] = {**merged[at], **one}
    return merged
