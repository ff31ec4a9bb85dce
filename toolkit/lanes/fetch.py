"""What a component's lane takes from elsewhere: its base, the submodules in it, its build's environment."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from toolkit import build
from toolkit.errors import SourceError, UsageError
from toolkit.model import FetchedBase, PatchedTree, Submodule
from toolkit.plan import Plan, PlannedComponent
from toolkit.sources import TreeSource
from toolkit.work import Means, Watcher

UNFIT = frozenset(":;\"'$`\\#")
"""What a path may not have that Makefiles, CMake, shells and virtual environments are given."""


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
    if unfit := sorted(set(str(means.store.root)) & UNFIT):
        raise UsageError(
            f"the store {str(means.store.root)!r} has {unfit[0]!r} in its name, which build tools stumble over",
            hint="choose another with --store DIR or TOOLKIT_STORE",
        )
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


def prefix_of(part: PlannedComponent, plan: Plan) -> str:
    """Return what stands before each line about a component."""
    return f"{plan.recipe.name}/{part.component.name}"
