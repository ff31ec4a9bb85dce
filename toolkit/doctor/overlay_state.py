"""The recipe's overlay: whether there is one, whether it holds and fits, and whether it is the one that is active."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from toolkit import current
from toolkit.doctor.asked import Asked
from toolkit.doctor.observed import bad, doubtful, good
from toolkit.envfile import CACHES, OVERLAY, PYTHONPATH, activation_of
from toolkit.errors import ToolkitError
from toolkit.manifest import read_overlay, verify_site
from toolkit.model import Observation, Overlay
from toolkit.project import Project
from toolkit.target import require_fit


def examine_overlay(asked: Asked) -> list[Observation]:
    """Look at the overlay of the recipe in the project, and at the one that the environment has."""
    if asked.project is None:
        return [*_examine_active(asked, None)]
    folder = current.recipe_folder(asked.project, asked.recipe)
    generation = folder.current()
    if generation is None or not os.path.isdir(generation):
        return [_without(asked, folder), *_examine_active(asked, None)]
    return [*_examine_built(asked, asked.project, folder, generation), *_examine_active(asked, generation)]


def _without(asked: Asked, folder: current.RecipeFolder) -> Observation:
    return doubtful(
        "overlay.built",
        f"there is no overlay of {asked.recipe} in {folder.path}",
        f"build it: toolkit build --recipe {asked.recipe}",
    )


# --- as it lies there ------------------------------------------------------------------------------------------


def _examine_built(
    asked: Asked, project: Project, folder: current.RecipeFolder, generation: Path
) -> Iterator[Observation]:
    build = f"build it again: toolkit build --recipe {asked.recipe}"
    try:
        overlay = read_overlay(generation)
        verify_site(generation)
    except (ToolkitError, OSError) as fault:
        yield bad("overlay.manifest", f"{fault}", build)
        return
    yield good("overlay.built", f"{asked.recipe}: generation {generation.name}, {_versions(overlay)}")
    yield _examine_proof(folder, generation)
    yield from _examine_contract(asked, overlay)
    yield from _examine_age(asked, project, folder, build)


def _versions(overlay: Overlay) -> str:
    return ", ".join(f"{package.distribution} {package.version}" for package in overlay.packages)


def _examine_proof(folder: current.RecipeFolder, generation: Path) -> Observation:
    """Say whether the manifest holds and the proof is one of these very files."""
    try:
        current.open_current(folder)
    except ToolkitError as fault:
        return bad("overlay.proof", fault.message, "toolkit verify says what does not hold")
    return good("overlay.proof", f"its files are those that {generation / current.PROOF_FILE} is about")


def _examine_contract(asked: Asked, overlay: Overlay) -> Iterator[Observation]:
    if asked.interpreter is None:
        return
    try:
        require_fit(overlay, asked.interpreter, asked.environ)
    except ToolkitError as fault:
        yield bad("overlay.contract", fault.message, fault.hint)
    else:
        yield good("overlay.contract", f"made for {overlay.target} and torch {overlay.contract.torch}, as is "
                   f"{asked.interpreter.executable}")  # fmt: skip


def _examine_age(asked: Asked, project: Project, folder: current.RecipeFolder, build: str) -> Iterator[Observation]:
    """Yield whether what the overlay was made from has changed since."""
    executable = asked.interpreter.executable if asked.interpreter else Path("python")
    facts = current.facts_of(project, folder, asked.recipe, str(executable), asked.environ)
    try:
        current.require_own(folder, facts)
    except ToolkitError as fault:
        yield bad("overlay.inputs", fault.message, fault.hint)
        return
    if stale := current.changed_since(folder, facts):
        yield doubtful("overlay.inputs", f"{stale} was changed after the overlay was built", build)


# --- as the environment has it ---------------------------------------------------------------------------------


def _examine_active(asked: Asked, generation: Path | None) -> Iterator[Observation]:
    named = asked.environ.get(OVERLAY)
    how = f"source {generation.parent.parent / 'env.sh'}" if generation else "source the env.sh of an overlay"
    if not named:
        if generation is not None:
            yield doubtful(
                "overlay.active",
                f"no overlay is active: {OVERLAY} is not set",
                f"{how}, or start commands with `toolkit run --`",
            )
        return
    active = Path(named)
    if not os.path.isdir(active / "site"):
        yield bad("overlay.active", f"{OVERLAY} is {active}, which is gone", f"{how} in this shell")
        return
    if generation is not None and not _is_same(active, generation):
        yield _describe_other(asked, active, generation, how)
        generation = None
    faults = [*_examine_variables(asked, active)]
    yield from faults
    if generation is not None and not faults:
        yield good("overlay.active", f"the current generation is active: first on {PYTHONPATH}, caches its own")


def _describe_other(asked: Asked, active: Path, generation: Path, how: str) -> Observation:
    name = os.path.basename(os.path.realpath(active))
    if _is_same(active.parent, generation.parent) or _is_same(active.parent.parent, generation.parent.parent):
        return doubtful(
            "overlay.active",
            f"the active generation of {asked.recipe} is {name}, the current one is {generation.name}",
            f"{how} again in this shell",
        )
    return bad(
        "overlay.active",
        f"another overlay is active, {active}, not that of {asked.recipe}, {generation}",
        f"{how}, or name its recipe with --recipe",
    )


def _examine_variables(asked: Asked, active: Path) -> Iterator[Observation]:
    """Yield the variables of the active overlay's env file that have been changed since it was sourced."""
    first = asked.environ.get(PYTHONPATH, "").partition(":")[0]
    if not first or not _is_same(Path(first), active / "site"):
        yield bad(
            "overlay.python_path",
            f"{OVERLAY} is {active}, but {PYTHONPATH} begins with {first or 'nothing'!r}: the overlay may not win",
            "put nothing before it: activate the overlay last",
        )
    try:
        overlay = read_overlay(active)
        wanted = activation_of(overlay).variables
    except (ToolkitError, OSError) as fault:
        yield bad("overlay.manifest", f"{fault}", f"build it again: toolkit build --recipe {asked.recipe}")
        return
    for name in (*CACHES, *overlay.env):
        has = asked.environ.get(name)
        if has == wanted[name] or (name in CACHES and has and _is_same(Path(has), Path(wanted[name]))):
            continue
        yield doubtful(
            "overlay.variables",
            f"{name} is {has if has is not None else 'not set'}, the overlay's is {wanted[name]}",
            "activate the overlay again, or leave it where that is meant",
        )


def _is_same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
