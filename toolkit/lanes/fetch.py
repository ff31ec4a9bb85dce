"""What a component's lane takes from elsewhere: its base, the submodules in it, its build's environment."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from toolkit import build
from toolkit.errors import SourceError
from toolkit.model import FetchedBase, PatchedTree, Submodule
from toolkit.plan import Plan, PlannedComponent
from toolkit.sources import TreeSource
from toolkit.work import Means, Watcher


def fetch_base(part: PlannedComponent, plan: Plan, means: Means, watcher: Watcher) -> FetchedBase:
    """Bring a component's locked base into the store; SourceError for one that changed since the plan was made."""
    with watcher.download(prefix_of(part, plan), f"the base for {plan.target}") as progress:
        base = part.source.fetch(
            part.locked,
            component=part.component.name,
            target=plan.target,
            store=means.store,
            offline=means.offline,
            interpreter=plan.interpreter,
            env=means.environ,
            progress=progress,
        )
    if base.digest != part.digest:
        raise SourceError(
            f"{part.component.name} was changed while it was looked at: {base.digest}, expected {part.digest}",
            hint="run the command again",
        )
    return base


def fetch_submodules(
    part: PlannedComponent, base: FetchedBase, patched: PatchedTree, plan: Plan, means: Means, watcher: Watcher
) -> tuple[Submodule, ...]:
    """Bring the submodules of a patched tree into the store."""
    with watcher.download(prefix_of(part, plan), "its submodules") as progress:
        return cast(TreeSource, part.source).fetch_submodules(
            base, patched, store=means.store, offline=means.offline, env=means.environ, progress=progress
        )


def obtain_environment(part: PlannedComponent, plan: Plan, means: Means, watcher: Watcher) -> Path:
    """Return the environment that the component is built in, made in the store if need be."""
    assert part.spec is not None
    with watcher.download(prefix_of(part, plan), "what its build needs") as progress:
        return build.obtain_environment(
            part.spec.requirements,
            interpreter=plan.interpreter,
            target=plan.target,
            store=means.store,
            offline=means.offline,
            env=means.environ,
            component=part.component.name,
            progress=progress,
        )


def fetch_all(part: PlannedComponent, plan: Plan, means: Means, watcher: Watcher, scratch: Path) -> FetchedBase:
    """Bring all that the component's build takes from elsewhere into the store, so that it can go on offline.

    The submodules are those of the patched tree: `scratch` is where the patches are tried for that.
    """
    from toolkit.lanes.patch import patch_base

    base = fetch_base(part, plan, means, watcher)
    if part.spec is not None:
        patched = patch_base(part, base, plan, means, watcher, scratch)
        fetch_submodules(part, base, patched.parts[0], plan, means, watcher)
        obtain_environment(part, plan, means, watcher)
    return base


def prefix_of(part: PlannedComponent, plan: Plan) -> str:
    """Return what stands before each line about a component."""
    return f"{plan.recipe.name}/{part.component.name}"
