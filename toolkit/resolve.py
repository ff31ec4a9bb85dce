"""Resolve a recipe's bases to exact artifacts: the only place where anything is looked up rather than pinned."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from toolkit import lock, sources
from toolkit.errors import LockError
from toolkit.model import Component, Lock, LockedComponent, Recipe
from toolkit.plan import load_lock, read_recipe
from toolkit.project import Project


def resolve_recipe(
    project: Project,
    name: str,
    *,
    upgrade: bool,
    environ: Mapping[str, str],
    stage: Callable[[str, str], None],
) -> tuple[Lock, tuple[str, ...]]:
    """Write a recipe's lock and return it with the names of the components whose entry changed or went.

    Without `upgrade`, an entry that still belongs to its base is kept, and only the others are resolved.
    """
    wanted = read_recipe(project, name)
    path = project.lock_path(wanted.files[0])
    standing = _standing_lock(project, wanted)
    entries, changed = [], []
    for part in wanted.components:
        kept = standing.component(part.name) if standing else None
        if kept is not None and not upgrade and not lock.entry_differences(kept.base, part, wanted.contract):
            entries.append(kept)
            continue
        stage(f"{wanted.name}/{part.name}", f"resolve {part.base.identity}")
        entry = _resolve(part, wanted, environ)
        entries.append(entry)
        if entry != kept:
            changed.append(part.name)
    if standing is not None:
        known = {part.name for part in wanted.components}
        changed += [entry.name for entry in standing.components if entry.name not in known]
    made = Lock(recipe=wanted.name, components=tuple(entries), path=path)
    if made != standing:
        lock.write_lock(made, path)
    return made, tuple(changed)


def _resolve(part: Component, wanted: Recipe, environ: Mapping[str, str]) -> LockedComponent:
    source = sources.available_sources()[part.base.kind]
    base = source.resolve(part.base, wanted.contract, component=part.name, env=environ, progress=None)
    return LockedComponent(name=part.name, base=base)


def _standing_lock(project: Project, wanted: Recipe) -> Lock | None:
    """Read the lock that is there; one that cannot be read is made anew, which is what this command is for."""
    try:
        return load_lock(project, wanted)
    except LockError:
        return None
