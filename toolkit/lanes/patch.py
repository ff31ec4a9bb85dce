"""A base with its series in it, before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from toolkit import repack, series
from toolkit.errors import RepackError, ToolkitError
from toolkit.lanes.fetch import fetch_submodules, prefix_of
from toolkit.model import AppliedPatch, FetchedBase, PatchedTree, Series, SourceTree
from toolkit.plan import Plan, PlannedComponent, read_recipe
from toolkit.project import Project
from toolkit.recipe import recipe_names
from toolkit.sources import TreeSource, available_sources
from toolkit.work import Means, Watcher

IsNative = Callable[[str], bool]
"""Says of a path in a source tree whether the file can change a compiled one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchedSource:
    """A patched base: `parts` are the main tree, then what lies in its submodules if the series goes there.

    `digest` names the patched tree's content; it is empty for a release wheel.
    """

    base: FetchedBase
    parts: tuple[PatchedTree, ...]
    digest: str = ""

    @property
    def applied(self) -> tuple[AppliedPatch, ...]:
        """How each patch went in, in the series' order."""
        return tuple(sorted((one for part in self.parts for one in part.applied), key=lambda one: one.name))


def patch_base(
    part: PlannedComponent, base: FetchedBase, plan: Plan, means: Means, watcher: Watcher, scratch: Path
) -> PatchedSource:
    """Apply the component's series strictly to its base below `scratch`: the main tree, then the submodules.

    Submodules are fetched only where a patch lies in one; a patch of the main tree may have moved it before.
    """
    if count := len(part.series.patches):
        watcher.stage(prefix_of(part, plan), f"apply {count} patch{'es' * (count > 1)} to {base.file}")
    tree = part.source.lay_out(base, part.series.paths, scratch / "base")
    if part.spec is None:
        _require_able(part, tree, means.project)
    main, inner = series.split_series(part.series, tree.gitlinks)
    parts: tuple[PatchedTree, ...] = (_apply(part, main, tree, scratch / "main"),)
    if part.spec is None:
        return PatchedSource(base=base, parts=parts)
    source = cast(TreeSource, part.source)
    if inner.patches:
        submodules = fetch_submodules(part, base, parts[0], plan, means, watcher)
        below = source.lay_out_submodules(base, submodules, inner.paths, scratch / "submodules")
        parts += (_apply(part, inner, below, scratch / "inner"),)
    digest, _ = source.digest_tree(base, parts, is_native=native_inputs(part))
    return PatchedSource(base=base, parts=parts, digest=digest)


def native_inputs(part: PlannedComponent) -> IsNative:
    """Return what says of a path in the component's tree whether the file can change a compiled one."""
    return partial(series.is_native_input, package=part.component.import_name)


def _require_able(part: PlannedComponent, tree: SourceTree, project: Project) -> None:
    """Raise RepackError, naming a recipe that can take it, where a series changes what is compiled in a wheel."""
    if not (native := part.series.native) or not repack.has_compiled(tree.members):
        return
    able = [name for name in recipe_names(project.recipes) if _builds(name, part.component.name, project)]
    raise RepackError(
        f"{_listed(native)} of series {part.series.name!r} {'changes' if len(native) == 1 else 'change'} what is "
        "compiled, which a base that is a wheel cannot take",
        hint=f"build from source: --recipe {able[0]}" if able else "use a recipe with a git base for this component",
        details=[f"recipe {name!r} builds {part.component.name} from source" for name in able],
    )


def _builds(name: str, component: str, project: Project) -> bool:
    try:
        found = read_recipe(project, name)
    except ToolkitError:  # Another recipe's faults are not what is asked about.
        return False
    kinds = available_sources()
    return any(one.name == component and kinds[one.base.kind].FORM == "tree" for one in found.components)


def _listed(names: Sequence[str]) -> str:
    return f"patch {names[0]}" if len(names) == 1 else f"patches {', '.join(names)}"


def _apply(part: PlannedComponent, patches: Series, tree: SourceTree, into: Path) -> PatchedTree:
    return series.apply_series(
        patches,
        tree,
        into=into,
        accept_upstream=part.component.accept_upstream,
        scratch=into.with_name(f"{into.name}-scratch"),
    )
