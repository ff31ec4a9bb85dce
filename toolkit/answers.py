"""What each command answers: the text for a person and the document for a program, made from the result's values.

Pure: nothing is printed here. Imports only what a no-op run has imported already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.model import Key, Lock, Overlay, PartResult, Recipe, Series
    from toolkit.store import StoreEntry
    from toolkit.wheels.stored import StoredWheel

ENV_FILE = "env.sh"


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """One command's result in both forms; `document` is what `--json` prints."""

    text: str
    document: Any


def describe_overlay(
    overlay: Overlay, folder: Path, *, did: Sequence[str], proof: dict[str, Any] | None, report: Path | None = None
) -> Answer:  # fmt: skip
    """Say which overlay stands, what had to be done for it, how to activate it, and where its report is, if it has one.

    `proof` is its whole record.
    """
    versions = ", ".join(f"{package.distribution} {package.version}" for package in overlay.packages)
    done = f"{overlay.recipe}: {versions}" if did else f"{overlay.recipe}: nothing to do, {versions} stands and holds"
    document = {
        "recipe": overlay.recipe,
        "key": overlay.key,
        "target": str(overlay.target),
        "overlay": str(overlay.root),
        "site": str(overlay.site),
        "env_file": str(folder / ENV_FILE),
        "packages": [asdict(package) for package in overlay.packages],
        "absent": list(overlay.absent),
        "diagnostic": overlay.diagnostic or None,
        "did": list(did),
        "proof": str(overlay.root / "proof.json"),
        "report": None if report is None else str(report),
        **({} if proof is None else {"proof_record": proof}),
    }
    notes = [f"without {name}: it was not installed here" for name in overlay.absent]
    notes += diagnosis_lines(overlay.diagnostic)
    files = [f"env file: {folder / ENV_FILE}", *report_lines(report)]
    return Answer(text="\n".join([done, *notes, *files]), document=document)


def report_lines(report: Path | None) -> list[str]:
    """Say where an overlay's report is, where there is one."""
    return [] if report is None else [f"report: {report}"]


def diagnosis_lines(diagnostic: str) -> list[str]:
    """Say that something is for diagnosis only, where it is."""
    return [f"for diagnosis only: {diagnostic}"] if diagnostic else []


def describe_unproven(overlay: Overlay) -> Answer:
    """Say where an overlay is that was built and not proven; it has no env file."""
    document = {
        "recipe": overlay.recipe,
        "key": overlay.key,
        "overlay": str(overlay.root),
        "diagnostic": overlay.diagnostic or None,
        "packages": [asdict(package) for package in overlay.packages],
    }
    text = [f"{overlay.recipe}: not proven, and not the current one: {overlay.root}"]
    return Answer(text="\n".join(text + diagnosis_lines(overlay.diagnostic)), document=document)


def describe_parts(recipe: str, stage: str, parts: Sequence[PartResult]) -> Answer:
    """Say how far the components of a recipe have come, each patch with how it went in."""
    lines, document = [], []
    for part in parts:
        lines.append(f"{recipe}/{part.component}: {part.base}")
        lines += [f"  {one.name}: {one.status}" for one in part.applied]
        lines += [f"  tree: {part.digest}"] if part.digest else []
        lines += [f"  wheel: {part.wheel.path}"] if part.wheel else []
        document.append(
            {
                "component": part.component,
                "base": part.base,
                "patches": [asdict(one) for one in part.applied],
                "tree": part.digest or None,
                "wheel": None if part.wheel is None else {**asdict(part.wheel), "path": str(part.wheel.path)},
            }
        )
    return Answer(text="\n".join(lines), document={"recipe": recipe, "until": stage, "components": document})


def describe_patches(wheels: Sequence[StoredWheel]) -> dict[str, Any]:
    """Say how each patch of each component went in."""
    return {stored.wheel.component: [asdict(patch) for patch in stored.applied] for stored in wheels}


def describe_other_target(overlay: Overlay) -> Answer:
    """Say that an overlay is for another machine, and which wheels to take there."""
    wheels = [str(overlay.root / "wheels" / package.wheel) for package in overlay.packages]
    text = [
        f"{overlay.recipe}: built for {overlay.target}, which cannot be loaded on this machine",
        "not run: other platform; only the static checks were, prove the rest there with `toolkit verify`",
        *diagnosis_lines(overlay.diagnostic),
        *(f"wheel: {wheel}" for wheel in wheels),
    ]
    return Answer(text="\n".join(text), document={"wheels": wheels})


def describe_lock(lock: Lock, changed: Sequence[str]) -> Answer:
    """Say which components of a lock are new."""
    news = f"wrote {lock.path}: {', '.join(changed)}" if changed else f"{lock.path} is up to date"
    return Answer(text=news, document={"recipe": lock.recipe, "lock": str(lock.path), "changed": list(changed)})


def describe_key(key: Key, *, explain: bool) -> Answer:
    """Give a key, with `explain` together with its inputs."""
    inputs = dict(key.inputs)
    width = max(map(len, inputs), default=0)
    lines = [f"{name.ljust(width)}  {value}" for name, value in inputs.items()] if explain else []
    return Answer(text="\n".join([key.digest, *lines]), document={"key": key.digest, "inputs": inputs})


def describe_key_difference(difference: Sequence[tuple[str, str | None, str | None]]) -> Answer:
    """List the inputs that differ between two keys."""
    lines = [f"{name}\n  - {old or '(not there)'}\n  + {new or '(not there)'}" for name, old, new in difference]
    document = [{"input": name, "old": old, "new": new} for name, old, new in difference]
    return Answer(text="\n".join(lines) or "the keys are equal", document={"differences": document})


def describe_entries(root: Path, entries: Sequence[StoreEntry]) -> Answer:
    """List a store's entries with their sizes."""
    total = sum(entry.size for entry in entries)
    lines = [f"{entry.kind:10} {entry.key[:16]}  {_megabytes(entry.size):>10}" for entry in entries]
    document = {
        "store": str(root),
        "bytes": total,
        "entries": [{"kind": e.kind, "key": e.key, "bytes": e.size, "used": e.used} for e in entries],
    }
    return Answer(text="\n".join([*lines, f"{len(entries)} entries, {_megabytes(total)} in {root}"]), document=document)


def describe_freed(root: Path, freed: int) -> Answer:
    """Say what a clean-up freed."""
    return Answer(text=f"freed {_megabytes(freed)} in {root}", document={"store": str(root), "freed_bytes": freed})


def describe_bundle(file: Path, recipe: str, key: str, *, entries: int, new: int | None = None) -> Answer:
    """Say what went into a bundle, or (with `new`) how much of one was new to the store."""
    what = f"{entries} entries of {recipe}, key {key[:16]}"
    if new is not None:
        what += f": their hashes checked, {new} brought in" + (f", {entries - new} there already" * (new < entries))
    document = {"file": str(file), "recipe": recipe, "key": key, "entries": entries, "new": new}
    return Answer(text=f"{file}: {what}", document=document)


def describe_recipes(recipes: Sequence[Recipe]) -> Answer:
    """List recipes with what each is for."""
    width = max((len(recipe.name) for recipe in recipes), default=0)
    return Answer(
        text="\n".join(
            f"{recipe.name.ljust(width)}  {recipe.description}{' (for diagnosis only)' if recipe.diagnostic else ''}"
            for recipe in recipes
        ),
        document=[
            {"name": recipe.name, "description": recipe.description, "diagnostic": recipe.diagnostic or None}
            for recipe in recipes
        ],
    )


def describe_recipe(recipe: Recipe, lock: Lock | None, series: Sequence[Series]) -> Answer:
    """Show one recipe as it is after `extends`, its pins and its patches."""
    contract = recipe.contract
    lines = [
        f"{recipe.name}: {recipe.description}",
        *diagnosis_lines(recipe.diagnostic),
        f"python     {', '.join(contract.python_tags)}",
        f"platforms  {', '.join(contract.platforms)}",
        f"torch      {contract.torch}",
        *(f"env        {name}={value}" for name, value in recipe.env.items()),
        f"checks     {', '.join(recipe.checks)}",
    ]
    parts = []
    for part, patches in zip(recipe.components, series, strict=True):
        locked = lock.component(part.name) if lock else None
        lines += [f"component  {part.name}: {part.base.identity}{'' if locked else ' (not locked)'}"]
        lines += [f"  {patch.name}: {patch.subject} [{patch.witness}]" for patch in patches.patches]
        parts.append(
            {
                "name": part.name,
                "base": part.base.identity,
                "locked": locked is not None,
                "series": part.series,
                "patches": [
                    {"name": p.name, "subject": p.subject, "witness": p.witness, "sha256": p.sha256}
                    for p in patches.patches
                ],
            }
        )
    document = {
        "name": recipe.name,
        "description": recipe.description,
        "diagnostic": recipe.diagnostic or None,
        "contract": asdict(contract),
        "env": dict(recipe.env),
        "checks": list(recipe.checks),
        "components": parts,
    }
    return Answer(text="\n".join(lines), document=document)


def describe_sysroot(root: Path, variables: dict[str, str]) -> Answer:
    """Give a sysroot's path and the variables that put it to use, as shell lines."""
    import shlex

    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    return Answer(text="\n".join([f"# {root}", *lines]), document={"root": str(root), "variables": variables})


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def printable(line: str) -> str:
    """Write what no terminal should get, and what is no text at all, as Python would: names of files can hold it."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in line)
